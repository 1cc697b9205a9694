/** Programs that a new machine may lack, and the tests that depend on them.
 *  Invariant: `npm test` finds these calls by their text, so each call spells out the program's name. If the program is
 *  installed, `npm test` runs these tests a second time with the program hidden, and lists them at the end.
 *  Elsewhere: the second run and the list (scripts/optional.ts). */

import { findProgram, probeSandbox, whyMissing } from "@prefork/guard";
import { pinnedRipgrep } from "@prefork/guard/internal";

export type OptionalProgram = "bwrap" | "rg" | "@vscode/ripgrep" | "jq" | "tree" | "tmux";

/** Options for `test` from node:test. */
export type OptionalTestOptions = { readonly skip: string | false; readonly only?: true };

const hiddenByRunner = process.env.PREFORK_HIDE_PROGRAMS;

const isHidden = (name: OptionalProgram): boolean => (hiddenByRunner ?? "").split(" ").includes(name);

/** For tests whose commands are harmless and beside the point: no result may depend on whether bubblewrap is installed. */
export const hideBwrap = (): void => {
  process.env.PREFORK_HIDE_PROGRAMS = hiddenByRunner ?? "bwrap";
};

/** The second run repeats only the tests that depend on the hidden program. */
const onlyIfHidden = (name: OptionalProgram): { readonly only?: true } => (isHidden(name) ? { only: true } : {});

const problemOf = async (name: OptionalProgram): Promise<string | undefined> => {
  if (name === "bwrap") {
    const probe = await probeSandbox();
    return probe.ok ? undefined : probe.reason;
  }
  if (isHidden(name)) return `it is ${whyMissing(name)}`;
  const path = name === "@vscode/ripgrep" ? pinnedRipgrep() : findProgram(name);
  const isThere = path !== undefined && (name !== "rg" || path !== pinnedRipgrep());
  return isThere ? undefined : "it is not installed";
};

/** The test runs only if the program works. */
export const needs = async (name: OptionalProgram): Promise<OptionalTestOptions> => {
  const problem = await problemOf(name);
  return { skip: problem === undefined ? false : `needs ${name}: ${problem}`, ...onlyIfHidden(name) };
};

/** The test runs with the program and without it, and passes in both cases. */
export const uses = (name: OptionalProgram): OptionalTestOptions => ({ skip: false, ...onlyIfHidden(name) });
