export { readBounded } from "./bounded.ts";
export { newDraftName, removeAbandonedDrafts } from "./drafts.ts";
export { Folder, isSame, SwappedError, type Way } from "./folder.ts";
export {
  acquireLock,
  firstLock,
  type Lock,
  LockError,
  type LockHolder,
  livenessOf,
  lockHolder,
  thisProcess,
} from "./lock.ts";
export { listFolder, readPlainFile } from "./plain-file.ts";
export { inspectPrivateFolder, openPrivateFolder, type PrivateFolderState, tamperingRisk } from "./private-folder.ts";
export { canonical, type PathJudge, pathJudge, placesOf, reached } from "./read-judge.ts";
export { type Kind, kindOf, refusalOf } from "./reasons.ts";
export {
  type Entry,
  type FileFacts,
  type ListResult,
  type LookResult,
  openRoot,
  type ReadResult,
  Root,
  RootError,
  type RootOptions,
  type WriteResult,
} from "./root.ts";
