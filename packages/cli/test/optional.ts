/** Programs that a new machine may lack, and the tests that they decide; see the same file of the runtime's tests.
 *  Sessions and commands of these tests run outside bubblewrap wherever they run, so that no result depends on the
 *  machine: what the guard promises must hold without it. Tests about it say `uses("bwrap")` and `withBwrap`.
 *  Elsewhere: the second run and the list of programs (scripts/optional.ts). */

import { probeSandbox } from "@prefork/guard";

export type OptionalProgram = "bwrap" | "@vscode/ripgrep";

const VARIABLE = "PREFORK_HIDE_PROGRAMS";
const hiddenByRunner = process.env[VARIABLE];

/** The test runs with the program and without it, and passes both ways. */
export const uses = (name: OptionalProgram): { readonly only?: true } =>
  (hiddenByRunner ?? "").split(" ").includes(name) ? { only: true } : {};

/** What a process that a test starts is given, and with `hideBwrap` this one too. */
export const hidingBwrap: Readonly<Record<string, string>> = { [VARIABLE]: hiddenByRunner ?? "bwrap" };

export const hideBwrap = (): void => void Object.assign(process.env, hidingBwrap);

/** As the machine has it, unless the runner hides it. */
export const withBwrap: Readonly<Record<string, string>> = { [VARIABLE]: hiddenByRunner ?? "" };

/** Does bubblewrap work here, where the runner does not hide it? */
export const hasBwrap = async (): Promise<boolean> => {
  if (hiddenByRunner !== undefined) return false;
  const { [VARIABLE]: before = "" } = process.env;
  process.env[VARIABLE] = "";
  const probe = probeSandbox(); // looks before it waits
  process.env[VARIABLE] = before;
  return (await probe).ok;
};
