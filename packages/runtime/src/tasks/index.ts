/** What runs in the background: tasks, their notifications and their questions. */

export {
  type Notification,
  notificationOf,
  notificationText,
  parseNotifications,
  summarizeReport,
} from "./notification.ts";
export { Denials, Questions } from "./questions.ts";
export { findReportedEnd, Inbox, TaskTable, tasksIn } from "./table.ts";
export {
  applyStep,
  describeState,
  isEnded,
  parseTask,
  TASK_ENDS,
  type Task,
  type TaskKind,
  type TaskState,
  type TaskStep,
} from "./task.ts";
