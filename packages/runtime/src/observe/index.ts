/** What happened, read from journals after the fact: rows of requests, what they cost and why, and tasks. */

export { causeWords, type ShortfallCause } from "./cause.ts";
export {
  type BilledSum,
  type ComparedSum,
  type Explanation,
  explain,
  type MissedRead,
  type UnreadTask,
} from "./explain.ts";
export type { FamilyRole } from "./families.ts";
export type { InsteadId } from "./instead.ts";
export { ledgerOf, type RequestRow } from "./ledger.ts";
export type { AgentJournal } from "./line.ts";
export { explainFamily, namedSession, type ObservedFamily, readFamily } from "./read-family.ts";
export { listTasks, showTask, type TaskDetail, type TaskRow, type TasksOptions } from "./task-rows.ts";
