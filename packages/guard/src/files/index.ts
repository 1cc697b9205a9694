export { listFolder, readBounded, readPlainFile } from "./bounded.ts";
export { Folder, type FolderAccess, isSame, type Kind, kindOf, refusalOf, SwappedError } from "./folder.ts";
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
export { existingPath, isFolder, realPath, UncheckedPathError, unlessMissing } from "./look.ts";
export { inspectPrivateFolder, openPrivateFolder, type PrivateFolderState, tamperingRisk } from "./private-folder.ts";
export { type PathJudge, pathJudge, resolvedPatterns, resolveName } from "./read-judge.ts";
export { newDraftName, removeAbandonedDrafts } from "./replace.ts";
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
