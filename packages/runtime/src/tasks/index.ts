/** Everything that runs beside the main line. */

export {
  type NotedUsage,
  type Notification,
  notificationOf,
  notificationsIn,
  notificationText,
  summaryOf,
} from "./notification.ts";
export { Questions, type QuestionsOptions } from "./questions.ts";
export { type PendingNotice, TaskTable, type TaskTableOptions } from "./table.ts";
export {
  isEnded,
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
