/** Everything that runs beside the main line. */

export { type Notification, notificationOf, notificationsIn, notificationText, summaryOf } from "./notification.ts";
export { Denials, Questions } from "./questions.ts";
export { Inbox, TaskTable, tasksIn, toldEnd } from "./table.ts";
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
