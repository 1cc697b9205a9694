/** The wire's promises in figures: building turns, building forks, sending them, holding them open.
 *  Elsewhere: how to read the table (../README.md), how figures are taken (../measure.ts). */

import { type Extent, mustAllowOpenFiles } from "../measure.ts";
import type { Finding } from "../table.ts";
import { measureForks } from "./forks.ts";
import { startServer } from "./processes.ts";
import { measureSending } from "./sending.ts";
import { compareStreams, measureStreams } from "./streams.ts";
import { measureTurns } from "./turns.ts";

/** `told` hears what is being measured, before it is. */
export const measureWire = async (extent: Extent, told: (step: string) => void): Promise<readonly Finding[]> => {
  mustAllowOpenFiles(extent.streams); // in the client, and as many in the server
  told("building turns");
  const turns = await measureTurns(extent);
  told("building forks");
  const forks = await measureForks(extent);
  await using server = await startServer("canned");
  told("sending forks, four clients in turn");
  const sending = await measureSending(server, extent);
  told(`holding ${extent.streams} streams open, four clients one after the other`);
  const beside = await compareStreams(server, extent);
  told(`holding ${extent.streams} streams open on the simulator`);
  const streams = await measureStreams(extent);
  return [...turns, ...forks, ...sending, ...streams, ...beside];
};
