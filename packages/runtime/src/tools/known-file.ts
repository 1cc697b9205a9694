/** May a file that exists be changed by somebody who knows it only so far?
 *  Invariant: pure; the answer says what is missing and how to get it, and ends in a full stop.
 *  Elsewhere: what is known (read-state.ts), the changes (write.ts, edit.ts). */

import type { ReadState } from "./read-state.ts";

export type Use = {
  readonly path: string;
  readonly version: string;
  readonly bytes: Uint8Array;
  /** Replacing a file needs all of it seen; an edit names the text it changes. */
  readonly need: "some" | "whole";
};

/** Undefined where nothing stands against it. An empty file holds nothing that could be lost. */
export const refusedUse = (reads: ReadState, { path, version, bytes, need }: Use): string | undefined => {
  if (bytes.length === 0 && need === "whole") return undefined;
  const fresh = reads.freshness(path, { version, bytes });
  switch (fresh.kind) {
    case "unread":
      return "exists and was not read in this session. Read it first.";
    case "changed":
      return "was changed since it was read. Read it again, then repeat the change on what it says now.";
    case "known":
      if (need === "some" || fresh.whole) return undefined;
      return "was read only in part. Read the rest of it first, or change the part you know with Edit.";
  }
};
