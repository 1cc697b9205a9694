/** Programs that a new machine may lack, and the tests that they decide.
 *  Invariant: `npm test` finds these calls by their text, so the name of a program is written out in each. Where the
 *  program is there, it runs the same tests a second time with the program hidden, and at its end it lists them.
 *  Elsewhere: the second run and the list (scripts/optional.ts). */

import { findProgram, probeSandbox, whyMissing } from "@prefork/guard";
import { pinnedRipgrep } from "@prefork/guard/internal";

export type OptionalProgram = "bwrap" | "rg" | "@vscode/ripgrep" | "jq" | "tree";

/** Options of a test. */
export type Decided = { readonly skip: string | false; readonly only?: true };

const hiddenByRunner = process.env.PREFORK_HIDE_PROGRAMS;

const isHidden = (name: OptionalProgram): boolean => (hiddenByRunner ?? "").split(" ").includes(name);

/** For sessions whose commands are harmless and not the point: no result may depend on whether bubblewrap is there. */
export const hideBwrap = (): void => {
  process.env.PREFORK_HIDE_PROGRAMS = hiddenByRunner ?? "bwrap";
};

/** In the second run nothing else is run again. */
const again = (name: OptionalProgram): { readonly only?: true } => (isHidden(name) ? { only: true } : {});

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

/** The test runs only where the program works. */
export const needs = async (name: OptionalProgram): Promise<Decided> => {
  const problem = await problemOf(name);
  return { skip: problem === undefined ? false : `needs ${name}: ${problem}`, ...again(name) };
};

/** The test runs with the program and without it, and passes both ways. */
export const uses = (name: OptionalProgram): Decided => ({ skip: false, ...again(name) });
