/** The fork's promises in figures, through a whole session: CPU, time, memory, disk.
 *  Elsewhere: how to read the table (../README.md), how figures are measured (../measure.ts). */

import { type Extent, mustAllowOpenFiles } from "../measure.ts";
import type { Finding } from "../table.ts";
import { measureFamilies } from "./families.ts";
import { measureHeadless } from "./headless.ts";
import { measureDisk, measureOneByOne } from "./left-behind.ts";
import { compareOpenForks, measureOpenForks } from "./open-forks.ts";

/** Open files per fork: a connection, a journal, and their folders. */
const FILES_PER_FORK = 6;

/** `report` is called with each step before it is measured. */
export const measureFork = async (extent: Extent, report: (step: string) => void): Promise<readonly Finding[]> => {
  mustAllowOpenFiles(extent.streams * FILES_PER_FORK);
  report("what forks leave on the disk");
  const disk = await measureDisk();
  report(`${extent.streams} forks, one after another`);
  const oneByOne = await measureOneByOne(extent);
  report(`${extent.streams / 4} forks open at once, three clients one after the other`);
  const beside = await compareOpenForks(extent);
  report(`${extent.streams} forks open at once on the simulator`);
  const open = await measureOpenForks(extent);
  report("prefork -p with fifty forks");
  const headless = await measureHeadless(extent);
  report("families of 1 to 200 forks, four clients in turn");
  const families = await measureFamilies(extent);
  return [...families, ...open, ...beside, ...headless, ...disk, ...oneByOne];
};
