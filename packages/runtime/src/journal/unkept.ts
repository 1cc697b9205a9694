/** A journal that nobody keeps: for a run that is to leave no trace.
 *  Invariant: entries go nowhere; the folder for what is too long for a message is private, and gone with `close`.
 *  Elsewhere: journals that are kept (writer.ts). */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PlainEntry, SentBytes, WireEntry } from "./entry.ts";
import type { Draft } from "./growth.ts";
import { type Journal, Tips } from "./writer.ts";

export const unkeptJournal = async (id: string): Promise<Journal> => {
  const path = await mkdtemp(join(tmpdir(), "prefork-unkept-"));
  const tips = new Tips();
  let seq = 0;
  let isClosed = false;
  const appendAll = (drafts: readonly Draft[]): number => {
    for (const { sent } of drafts) {
      seq += 1;
      tips.passed(seq, sent?.hash);
    }
    return seq;
  };
  const close = async (): Promise<void> => {
    if (isClosed) return;
    isClosed = true;
    await rm(path, { recursive: true, force: true });
  };
  return {
    id,
    outputs: { path },
    seqOf: (hash) => tips.seqOf(hash),
    append: (_entry: PlainEntry | WireEntry, sent?: SentBytes) => {
      seq += 1;
      tips.passed(seq, sent?.hash);
      return seq;
    },
    appendAll,
    flush: async () => {},
    close,
    [Symbol.asyncDispose]: close,
  };
};
