/** The long form of the worktree tests: a life interrupted at every step and at many moments, and many merges.
 *  Elsewhere: what must hold (crash.ts, merge-laws.ts). */

import fc from "fast-check";
import { brokenBy, type Cut, reference } from "./crash.ts";
import { assertMerge, cases } from "./merge-laws.ts";

export type WorktreesSoak = {
  readonly steps: number;
  readonly moments: number;
  readonly merges: Readonly<Record<string, number>>;
  readonly broken: readonly string[];
};

const MOMENTS = 60;
const MERGES = 300;

export const worktreesSoak = async (): Promise<WorktreesSoak> => {
  const wanted = await reference();
  const moments = Array.from({ length: MOMENTS }, (_, at): Cut => ({ afterMs: (wanted.ms * at) / MOMENTS }));
  const cuts = [...wanted.steps.map((_, at): Cut => ({ atStep: at + 1 })), ...moments];
  const broken: string[] = [];
  for (const cut of cuts) broken.push(...(await brokenBy(cut, wanted)));
  const merges: Record<string, number> = {};
  const property = fc.asyncProperty(cases, async (one) => {
    const kind = (await assertMerge(one)) ?? "empty";
    merges[`${kind} ${one.onConflict}`] = (merges[`${kind} ${one.onConflict}`] ?? 0) + 1;
  });
  const found = await fc.check(property, { numRuns: MERGES });
  if (found.failed) broken.push(fc.defaultReportMessage(found) ?? "a merge failed");
  return { steps: wanted.steps.length, moments: MOMENTS, merges, broken };
};
