/** What every client of this benchmark can do, and what the clients are.
 *  Elsewhere: how each does it (ours.ts, wire.ts, raw.ts, naive.ts), the process it runs in (../client-process.ts). */

import { join } from "node:path";

export const CLIENT_NAMES = ["ours", "our wire alone", "raw two-chunk POST", "copy and JSON.stringify"] as const;
export type ClientName = (typeof CLIENT_NAMES)[number];

/** Prepares a family of this many forks, unmeasured. */
export type ForkClient = (forks: number) => Promise<ReadyFamily>;

export type ReadyFamily = AsyncDisposable & {
  /** From the parent's request that starts them to the end of the last fork's answer. */
  readonly run: () => Promise<void>;
};

/** Where our requests of a family were saved, so that others send the same bytes. */
export const keptRequests = (folder: string, forks: number): { readonly parent: string; readonly fork: string } => ({
  parent: join(folder, `parent-${forks}.json`),
  fork: join(folder, `fork-${forks}.json`),
});

export const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);
