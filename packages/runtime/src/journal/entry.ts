/** What can a journal say? One entry per line, in the order of events.
 *  Invariant: everything here is plain data. A reader of the same version skips what it does not know, and reports it.
 *  Elsewhere: the format of a line (line.ts), checking it (schema.ts), what the entries add up to (replay.ts). */

import type { Block, Head, Json, MarkerPlace, Message, StopReason, ToolResultBlock, Usage } from "@prefork/wire";
import type { EpochReason } from "../events.ts";

/** The highest version that is read. A journal with a line of a higher version is not opened. */
export const JOURNAL_VERSION = 2;

/** A line is written with the lowest version that understands it. Version 1 does not know that a conversation can go
 *  back, and would continue with the wrong messages; so it must refuse a journal in which one did. */
export const versionOf = ({ kind }: JournalEntry): number => (kind === "branch" ? 2 : 1);

/** Where a fork branched off its parent: after the entry `seq`, whose prefix had this chain hash. */
export type ParentPointer = { readonly session: string; readonly seq: number; readonly hash: string };

export type OpenedEntry = {
  readonly kind: "opened";
  readonly id: string;
  readonly cwd: string;
  readonly model: string;
  readonly protocol: string;
  /** The origin of its engine's address, without path and query, so that no secret is kept. */
  readonly address?: string;
  /** The program that wrote this journal, with its version. */
  readonly product: string;
  readonly parent?: ParentPointer;
  /** For an agent that starts empty: the session that started it, and as which task. */
  readonly startedBy?: StartedBy;
};

export type StartedBy = { readonly session: string; readonly task: string };

/** The context starts over: nothing entered before is in the prefix any more. */
export type EpochEntry = {
  readonly kind: "epoch";
  readonly epoch: number;
  readonly reason: EpochReason;
  readonly protocol: string;
  readonly head: Head;
};

/** `source` says where the content came from; "prompt" is what the user typed. */
export type MessageEntry = { readonly kind: "message"; readonly message: Message; readonly source?: string };

/** More blocks for the user message that is still open. */
export type BlocksEntry = { readonly kind: "blocks"; readonly blocks: readonly Block[]; readonly source?: string };

/** Entries that extend the prefix, and therefore carry the bytes that were sent. */
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

/** What was billed without a response entry: for a turn whose answer began but did not finish, or (turn 0) for a
 *  fork that keeps no entries, an unfinished summary, or entries stored by name. */
export type BilledEntry = {
  readonly kind: "billed";
  readonly turn: number;
  readonly usage: Usage;
  readonly usd?: number;
  /** `stored`: an entry was created. `storage`: it was kept for some time. */
  readonly for?: "stored" | "storage";
};

/** Written before a tool may have any effect. */
export type CallStartedEntry = {
  readonly kind: "call_started";
  readonly callId: string;
  readonly name: string;
  readonly readOnly: boolean;
};

/** Written when a tool has ended, before anybody is notified. */
export type CallEndedEntry = {
  readonly kind: "call_ended";
  readonly callId: string;
  readonly result: ToolResultBlock;
  readonly ms: number;
  readonly state?: Json;
};

/** A value that outlives the process. The latest of a slot counts. */
export type StateEntry = { readonly kind: "state"; readonly slot: string; readonly value: Json };

/** Something to tell the model at a turn boundary, exactly once. */
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

/** The conversation goes back: from here on it continues as it was after our entry `after`. What came between stays in
 *  the journal, and a later branch may continue there. */
export type BranchEntry = {
  readonly kind: "branch";
  readonly after: number;
  /** The chain hash of the prefix that is continued. */
  readonly prefixHash: string;
  /** The ids of the notices that are undelivered now, oldest first: those that this line has not been told. */
  readonly pending: readonly string[];
};

export type ExchangeEndedEntry = { readonly kind: "exchange_ended"; readonly reason: string; readonly facts?: Json };

/** Entries that do not extend the prefix. */
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
  | BranchEntry
  | ExchangeEndedEntry;

export type JournalEntry = PlainEntry | WireEntry;

/** What was sent for an entry, byte for byte. */
export type SentBytes = {
  /** The chain hash of the prefix including this entry. */
  readonly hash: string;
  /** The JSON of each block; for a head, its one object. */
  readonly pieces: readonly Buffer[];
};

export type StoredEntry = {
  readonly seq: number;
  readonly at: number;
  /** The number of its line in the file, from 1. */
  readonly line: number;
  /** Where its line begins in the file. */
  readonly offset: number;
  readonly entry: JournalEntry;
  /** Present exactly for a WireEntry. */
  readonly sent?: SentBytes;
};

export type ProblemKind =
  /** An unfinished write: nobody was notified of what it would have said. */
  | "torn"
  /** A line that cannot be read. */
  | "unreadable"
  /** A kind of entry that this version does not know. */
  | "unknown"
  /** Entries are missing. */
  | "lost"
  /** The bytes differ from those that were sent. */
  | "changed"
  /** The bytes were damaged but could be restored. */
  | "mended";

/** Damage that was skipped. `line` is the number of the line in the file. */
export type JournalProblem = { readonly line: number; readonly kind: ProblemKind; readonly detail: string };

/** The state slot with the last address of the session's engine. */
export const ADDRESS_SLOT = "address";

/** The state slot with the files before the current exchange, or before the last rewind. */
export const FILES_SLOT = "files";

/** The start of the address of an engine inside our own process. The engine has a new address each time it starts,
 *  because its cache ends with the process. */
export const REHEARSAL_SCHEME = "rehearsal:";

/** Slots about what is in the context: what the model was told, has read, plans to do and was asked last. A branch
 *  restores them. All others are facts about the session or the machine, and stay. */
export const isLineSlot = (slot: string): boolean => LINE_SLOTS.includes(slot) || slot.startsWith("read:");

const LINE_SLOTS: readonly string[] = ["told", "prompt", "todos"];

/** The chain hash of the prefix after this entry, if the entry decides it. */
export const tipAfter = (entry: JournalEntry, sent: SentBytes | undefined): string | undefined =>
  entry.kind === "branch" ? entry.prefixHash : sent?.hash;

export const isWireEntry = (entry: JournalEntry): entry is WireEntry =>
  entry.kind === "epoch" || entry.kind === "message" || entry.kind === "blocks";
