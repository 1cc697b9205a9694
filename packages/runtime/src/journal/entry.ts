/** What a journal can say: one line each, in the order in which it came to pass.
 *  Invariant: everything here is plain data; what a reader of the same version does not know it skips, and says so.
 *  Elsewhere: how a line is spelled (line.ts), how it is checked when it is read (schema.ts), what it adds up to
 *  (replay.ts). */

import type { Block, Head, Json, MarkerPlace, Message, StopReason, ToolResultBlock, Usage } from "@prefork/wire";
import type { EpochReason } from "../events.ts";

/** The version that is written. A journal with a higher one is left alone. */
export const JOURNAL_VERSION = 1;

/** Where a fork left its parent: after the entry `seq`, whose prefix had this chain hash. */
export type ParentPointer = { readonly session: string; readonly seq: number; readonly hash: string };

export type OpenedEntry = {
  readonly kind: "opened";
  readonly id: string;
  readonly cwd: string;
  readonly model: string;
  readonly protocol: string;
  /** Where its engine was: the origin alone, so that no secret of a path or query is kept. */
  readonly address?: string;
  /** Who wrote this journal, with its version. */
  readonly product: string;
  readonly parent?: ParentPointer;
  /** Of an agent that starts empty: the session that started it, and as which task. */
  readonly startedBy?: StartedBy;
};

export type StartedBy = { readonly session: string; readonly task: string };

/** Context begins anew: nothing entered before is in the prefix any more. */
export type EpochEntry = {
  readonly kind: "epoch";
  readonly epoch: number;
  readonly reason: EpochReason;
  readonly protocol: string;
  readonly head: Head;
};

/** `source` says where the content came from: "prompt" is what the user typed. */
export type MessageEntry = { readonly kind: "message"; readonly message: Message; readonly source?: string };

/** More blocks for the user message that is still open. */
export type BlocksEntry = { readonly kind: "blocks"; readonly blocks: readonly Block[]; readonly source?: string };

/** Entries that make the prefix grow, and so carry the bytes that were sent. */
export type WireEntry = EpochEntry | MessageEntry | BlocksEntry;

export type RequestEntry = {
  readonly kind: "request";
  readonly turn: number;
  readonly markers: readonly MarkerPlace[];
  readonly prefixHash: string;
  readonly maxTokens: number;
  readonly reservedUsd?: number;
};

export type ResponseEntry = {
  readonly kind: "response";
  readonly turn: number;
  readonly id: string;
  readonly model: string;
  readonly stop: StopReason;
  readonly usage: Usage;
  readonly usd?: number;
  readonly ms: number;
};

/** What was billed and is in no answer here: of a turn whose answer had begun and was not finished, or (turn 0) of a fork
 *  that keeps no entries of its own, of a summary that was not finished, and of what was stored by name. */
export type BilledEntry = {
  readonly kind: "billed";
  readonly turn: number;
  readonly usage: Usage;
  readonly usd?: number;
  /** `stored`: an entry was created, `storage`: it was held. */
  readonly for?: "stored" | "storage";
};

/** Written before a tool may have any effect. */
export type CallStartedEntry = {
  readonly kind: "call_started";
  readonly callId: string;
  readonly name: string;
  readonly readOnly: boolean;
};

/** Written when a tool has ended, before anybody is told. */
export type CallEndedEntry = {
  readonly kind: "call_ended";
  readonly callId: string;
  readonly result: ToolResultBlock;
  readonly ms: number;
  readonly state?: Json;
};

/** A value that outlives the process; the latest of a slot counts. */
export type StateEntry = { readonly kind: "state"; readonly slot: string; readonly value: Json };

/** Something to be told at a turn boundary, exactly once. */
export type NoticeEntry = {
  readonly kind: "notice";
  readonly id: string;
  readonly text: string;
  readonly source?: string;
  readonly facts?: Json;
};
export type NoticeDeliveredEntry = { readonly kind: "notice_delivered"; readonly id: string };

/** The session `session` branched off after our entry `after`, and needs everything up to it. */
export type ForkEntry = { readonly kind: "fork"; readonly session: string; readonly after: number };
export type UnforkEntry = { readonly kind: "unfork"; readonly session: string };

export type ExchangeEndedEntry = { readonly kind: "exchange_ended"; readonly reason: string; readonly facts?: Json };

/** Entries that add nothing to the prefix. */
export type PlainEntry =
  | OpenedEntry
  | RequestEntry
  | ResponseEntry
  | BilledEntry
  | CallStartedEntry
  | CallEndedEntry
  | StateEntry
  | NoticeEntry
  | NoticeDeliveredEntry
  | ForkEntry
  | UnforkEntry
  | ExchangeEndedEntry;

export type JournalEntry = PlainEntry | WireEntry;

/** What was sent for an entry, byte for byte. */
export type SentBytes = {
  /** Chain hash of the prefix with this entry in it. */
  readonly hash: string;
  /** The JSON of each block; of a head, the one object it is. */
  readonly pieces: readonly Buffer[];
};

export type StoredEntry = {
  readonly seq: number;
  readonly at: number;
  /** Number of its line in the file, from 1. */
  readonly line: number;
  /** Where its line begins in the file. */
  readonly offset: number;
  readonly entry: JournalEntry;
  /** Present exactly with a WireEntry. */
  readonly sent?: SentBytes;
};

export type ProblemKind =
  /** A write that never ended: nobody was told of what it would have said. */
  | "torn"
  /** A line that cannot be read. */
  | "unreadable"
  /** A kind of entry that this version does not know. */
  | "unknown"
  /** Entries that are no longer there. */
  | "lost"
  /** The bytes differ from those that were sent. */
  | "changed"
  /** The bytes were damaged, and could be made again as they were. */
  | "mended";

/** Damage that was passed over. `line` is the number of the line in the file. */
export type JournalProblem = { readonly line: number; readonly kind: ProblemKind; readonly detail: string };

/** The slot of a session's state that holds where its engine was last. */
export const ADDRESS_SLOT = "address";

/** What the address of an engine inside our own process begins with. It has a new one each time it starts, because its
 *  cache ends with the process. */
export const REHEARSAL_SCHEME = "rehearsal:";

export const isWireEntry = (entry: JournalEntry): entry is WireEntry =>
  entry.kind === "epoch" || entry.kind === "message" || entry.kind === "blocks";
