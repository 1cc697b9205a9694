/** What happened in a session, written before it has an effect: entries, writing, reading and replaying them. */

export { type GoingBack, goBack, lineUpTo, type OnLine } from "./branches.ts";
export type { StartedBy } from "./entry.ts";
export {
  ADDRESS_SLOT,
  type BranchEntry,
  type EpochEntry,
  FILES_SLOT,
  isWireEntry,
  type JournalEntry,
  type JournalProblem,
  type NoticeEntry,
  type OpenedEntry,
  type ParentPointer,
  type PlainEntry,
  type ProblemKind,
  REHEARSAL_SCHEME,
  type RequestEntry,
  type ResponseEntry,
  type SentBytes,
  type StoredEntry,
  type WireEntry,
} from "./entry.ts";
export type { JournalFault } from "./errors.ts";
export { JournalError } from "./errors.ts";
export {
  addPictures,
  type Draft,
  type Growth,
  growBlocks,
  growEpoch,
  growMessage,
  noPictures,
  type Pictures,
  tryExtendPrefix,
} from "./growth.ts";
export { exportMarkdown } from "./markdown.ts";
export {
  createJournal,
  forkJournal,
  type NewSession,
  openJournal,
  readJournal,
  readSession,
  type SessionReading,
  type SessionStore,
} from "./open.ts";
export { listSessionPreviews, type SessionPreview } from "./previews.ts";
export type { JournalReading } from "./read.ts";
export { readEntries } from "./read.ts";
export { type OpenCall, type Replayed, replay } from "./replay.ts";
export { type SearchExcerpt, type SearchMatch, type SearchOptions, searchSessions } from "./search.ts";
export type { ListOptions } from "./sessions.ts";
export {
  type DeleteOptions,
  deleteSession,
  findSession,
  type ListedSession,
  latestSession,
  listSessions,
  requireAllReadable,
  type UnreadableSession,
} from "./sessions.ts";
export { isSessionId } from "./storage.ts";
export { toShortLine, toTitle, userWords } from "./survey.ts";
export { renameSession } from "./title.ts";
export { ephemeralJournal, type Journal, JournalWriter } from "./writer.ts";
