/** Would a command of git print a password? People put them into the addresses of remotes.
 *  Invariant: only addresses with a password or a token in them count, a user's name is none.
 *  Elsewhere: settings that hold passwords by their names (../bash), the file of settings itself (../paths). */

import type { GitAsked } from "../rules/index.ts";
import { isGiven } from "./git-objects.ts";
import { holdsPassword, nameOf, type Setting } from "./git-settings.ts";
import type { View } from "./git-view.ts";

/** `view`: of the folder that git runs in. */
export const remoteProblem = (asked: GitAsked, view: View): { readonly problem: string } | undefined => {
  const { verb, words, operands } = asked;
  const sections = words.map((word) => /^\^?([\w-]+)/.exec(word)?.[1]?.toLowerCase());
  const tellsAddresses = verb === "remote" && (isGiven(asked, "v", "verbose") || operands[0]?.text === "get-url");
  if (!tellsAddresses && verb !== "config") return undefined;
  const isPrinted = (setting: Setting): boolean => {
    const name = nameOf(setting);
    return verb === "remote" ? /^(?:remote|url)\./.test(name) : sections.includes(name.slice(0, name.indexOf(".")));
  };
  const found = view.repository?.settings.find((setting) => isPrinted(setting) && holdsPassword(setting));
  return found && { problem: `${nameOf(found)} may hold a password; ask for it, or list names: git remote` };
};
