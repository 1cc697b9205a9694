/** The loop's promise in figures: what a turn of a long session costs the client.
 *  Elsewhere: how to read the table (../README.md), how figures are measured (../measure.ts). */

import type { Extent } from "../measure.ts";
import type { Finding } from "../table.ts";
import { measureSessions } from "./sessions.ts";

/** `report` is called with each step before it is measured. */
export const measureLoop = async (extent: Extent, report: (step: string) => void): Promise<readonly Finding[]> => {
  report("sessions of 100 turns, four clients in turn");
  return measureSessions(extent);
};
