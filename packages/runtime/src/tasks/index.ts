/** Everything that runs beside the main line. */

export { type DenialLimits, Denials, type DenialVerdict } from "./denials.ts";
export { Inbox, type PendingNotice } from "./inbox.ts";
export {
  type NotedUsage,
  type Notification,
  notificationOf,
  notificationsIn,
  notificationText,
  summaryOf,
} from "./notification.ts";
export { Questions, type QuestionsOptions } from "./questions.ts";
export { type StepOptions, TaskTable, type TaskTableOptions, tasksIn, toldEnd } from "./table.ts";
export {
  isEnded,
  type Mail,
  stateWords,
  TASK_ENDS,
  type Task,
  type TaskEnd,
  type TaskKind,
  type TaskResult,
  type TaskState,
  type TaskStep,
  taskAfter,
  taskOf,
} from "./task.ts";
