/** The guard's promises in figures: verdicts per second, the slowest one, and what the first one costs.
 *  Elsewhere: how to read the table (../README.md), how figures are measured (../measure.ts). */

import type { Extent } from "../measure.ts";
import type { Finding } from "../table.ts";
import { readCorpora } from "./corpora.ts";
import { measureStartUp } from "./start-up.ts";
import { measureVerdicts } from "./verdicts.ts";

/** `report` is called with each step before it is measured. */
export const measureGuard = async (extent: Extent, report: (step: string) => void): Promise<readonly Finding[]> => {
  const corpora = readCorpora();
  report("judging both corpora");
  const verdicts = await measureVerdicts(corpora, extent);
  report("starting processes up to their first verdict");
  return [...verdicts, ...(await measureStartUp(extent))];
};
