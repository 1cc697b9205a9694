/** The least that a client without a journal needs to be resumed: every message in a file, on the disk at turn ends.
 *  Invariant: no more than that, so that nobody pays for what is ours: one line a message, one write a line, one sync a
 *  turn, no hashes, no lock, no checks.
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

/** `isKept`: false for the client that keeps nothing. */
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
