/** The wire's promises in figures: building turns, building forks, sending them, holding them open.
 *  Elsewhere: how to read the table (../README.md), how figures are measured (../measure.ts). */

import { type Extent, mustAllowOpenFiles } from "../measure.ts";
import type { Finding } from "../table.ts";
import { measureForks } from "./forks.ts";
import { startServer } from "./processes.ts";
import { measureSending } from "./sending.ts";
import { compareStreams, measureStreams } from "./streams.ts";
import { measureTurns } from "./turns.ts";

/** `report` is called with each step before it is measured. */
export const measureWire = async (extent: Extent, report: (step: string) => void): Promise<readonly Finding[]> => {
  mustAllowOpenFiles(extent.streams); // in the client, and as many in the server
  report("building turns");
  const turns = await measureTurns(extent);
  report("building forks");
  const forks = await measureForks(extent);
  await using server = await startServer("canned");
  report("sending forks, four clients in turn");
  const sending = await measureSending(server, extent);
  report(`holding ${extent.streams} streams open, four clients one after the other`);
  const beside = await compareStreams(server, extent);
  report(`holding ${extent.streams} streams open on the simulator`);
  const streams = await measureStreams(extent);
  return [...turns, ...forks, ...sending, ...streams, ...beside];
};
