/** What approved commands see of the user's environment. Pure.
 *  Invariant: all of it but the keys that this program or its providers use, and what would start something in every
 *  shell that a command opens.
 *  Elsewhere: commands that only read see nothing of it, which names are keys (@prefork/guard). */

import { isProviderKey } from "@prefork/guard/internal";

const STARTS_SOMETHING: readonly string[] = [
  "BASH_ENV",
  "ENV",
  "PROMPT_COMMAND",
  "LD_PRELOAD",
  "LD_AUDIT",
  "SHELLOPTS",
  "BASHOPTS",
];

export const toolEnvironment = (env: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value === undefined || isProviderKey(name) || STARTS_SOMETHING.includes(name) || name.startsWith("BASH_FUNC_")
        ? []
        : [[name, value]],
    ),
  );
