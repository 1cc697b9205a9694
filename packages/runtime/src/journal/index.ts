export {
  ADDRESS_SLOT,
  type BlocksEntry,
  type CallEndedEntry,
  type CallStartedEntry,
  type EpochEntry,
  type ExchangeEndedEntry,
  type ForkEntry,
  JOURNAL_VERSION,
  type JournalEntry,
  type JournalProblem,
  type MessageEntry,
  type NoticeDeliveredEntry,
  type NoticeEntry,
  type OpenedEntry,
  type ParentPointer,
  type PlainEntry,
  type ProblemKind,
  REHEARSAL_SCHEME,
  type RequestEntry,
  type ResponseEntry,
  type SentBytes,
  type StartedBy,
  type StateEntry,
  type StoredEntry,
  type UnforkEntry,
  type WireEntry,
} from "./entry.ts";
export { JournalError, type JournalFault } from "./errors.ts";
export {
  type Draft,
  type GrowOptions,
  type Growth,
  growBlocks,
  growEpoch,
  growMessage,
  type NewEpoch,
} from "./growth.ts";
export { exportMarkdown } from "./markdown.ts";
export {
  createJournal,
  forkJournal,
  type NewFork,
  type NewSession,
  type OpenedJournal,
  openJournal,
  readJournal,
  readSession,
  type SessionReading,
  type SessionStore,
} from "./open.ts";
export { noPictures, type Pictures, withPictures } from "./pictures.ts";
export { isSessionId } from "./place.ts";
export { type JournalReading, readEntries } from "./read.ts";
export { type OpenCall, type Replayed, type ReplayOptions, replay } from "./replay.ts";
export {
  type DeleteOptions,
  deleteSession,
  findSession,
  type ListedSession,
  type ListOptions,
  latestSession,
  listSessions,
  mustAllBeReadable,
  type UnreadableSession,
} from "./sessions.ts";
export { unkeptJournal } from "./unkept.ts";
export { type Journal, JournalWriter } from "./writer.ts";
