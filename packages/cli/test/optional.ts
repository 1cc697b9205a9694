/** Programs that a new machine may lack, and the tests that depend on them; see the same file of the runtime's tests.
 *  Sessions and commands of these tests run outside bubblewrap on every machine, so that no result depends on it: what
 *  the guard promises must hold without it. Tests about bubblewrap say `uses("bwrap")` and `withBwrap`.
 *  Elsewhere: the second run and the list of programs (scripts/optional.ts). */

import { probeSandbox } from "@prefork/guard";

export type OptionalProgram = "bwrap" | "@vscode/ripgrep";

const VARIABLE = "PREFORK_HIDE_PROGRAMS";
const hiddenByRunner = process.env[VARIABLE];

/** The test runs with the program and without it, and passes in both cases. */
export const uses = (name: OptionalProgram): { readonly only?: true } =>
  (hiddenByRunner ?? "").split(" ").includes(name) ? { only: true } : {};

/** The variables for processes that a test starts, and with `hideBwrap` also for this one. */
export const hidingBwrap: Readonly<Record<string, string>> = { [VARIABLE]: hiddenByRunner ?? "bwrap" };

export const hideBwrap = (): void => void Object.assign(process.env, hidingBwrap);

/** Uses bubblewrap if the machine has it, unless the runner hides it. */
export const withBwrap: Readonly<Record<string, string>> = { [VARIABLE]: hiddenByRunner ?? "" };

/** Does bubblewrap work here, and does the runner not hide it? */
export const hasBwrap = async (): Promise<boolean> => {
  if (hiddenByRunner !== undefined) return false;
  const { [VARIABLE]: before = "" } = process.env;
  process.env[VARIABLE] = "";
  const probe = probeSandbox(); // reads the environment before its first await
  process.env[VARIABLE] = before;
  return (await probe).ok;
};
