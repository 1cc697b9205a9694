/** What happened, read from journals afterwards: rows of requests, what they cost and why, and tasks. */

export type { AlternativeId } from "./alternatives.ts";
export {
  type BilledSum,
  type ComparedSum,
  type Explanation,
  explain,
  type MissedRead,
  type UnreadTask,
} from "./explain.ts";
export type { FamilyRole } from "./families.ts";
export { ledgerOf, type RequestRow } from "./ledger.ts";
export { type MissReason, missReasonLabel } from "./miss-reason.ts";
export { explainFamily, type ObservedFamily, readFamily, resolveSession } from "./read-family.ts";
export type { SentRequest } from "./requests.ts";
export { listTasks, recentTasks, showTask, type TaskDetail, type TaskRow, type TasksOptions } from "./task-rows.ts";
export type { AgentJournal } from "./timeline.ts";
export { type RewindPoint, readTree, type SessionTree, sessionTree } from "./tree.ts";
