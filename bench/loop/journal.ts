/** The minimum that a client without a journal needs to be resumable: every message in a file, synced after each turn.
 *  Invariant: no more than that, so that the other clients do not pay for our features: one line and one write per message,
 *  one sync per turn, no hashes, no lock, no checks.
 *  Elsewhere: who keeps one (clients/), our own journal (packages/runtime). */

import { closeSync, fdatasync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const sync = promisify(fdatasync);

export type Keeping = {
  readonly add: (message: unknown) => void;
  readonly turnEnds: () => Promise<void>;
  readonly close: () => void;
};

const NOTHING: Keeping = { add: () => {}, turnEnds: async () => {}, close: () => {} };

/** `isKept`: false for the client that records nothing. */
export const openKeeping = (isKept: boolean): Keeping => {
  if (!isKept) return NOTHING;
  const path = join(tmpdir(), `prefork-bench-${process.pid}.jsonl`);
  const fd = openSync(path, "wx", 0o600);
  return {
    add: (message) => void writeSync(fd, `${JSON.stringify(message)}\n`),
    turnEnds: () => sync(fd),
    close: () => {
      closeSync(fd);
      rmSync(path);
    },
  };
};
