/** How is a parent notified of a task? By one tagged text that a model can read and a program can parse. Pure.
 *  Invariant: whatever the result says, it cannot close the tag or forge another one. Parsing returns what was written,
 *  and ignores text that is not a notification. The text says that no human wrote it.
 *  Elsewhere: delivery (the Inbox in table.ts), the task itself (task.ts). */

import { promptTokens, writtenTokens } from "@prefork/wire";
import type { TaskEnd, TaskResult } from "../ports.ts";
import { TASK_ENDS, type Task } from "./task.ts";

export type Notification = {
  /** Of the notification itself, so that the same one is never shown twice. */
  readonly id: string;
  readonly task: string;
  readonly label: string;
  readonly status: TaskEnd;
  readonly summary: string;
  readonly result?: string;
  readonly usage?: NotificationUsage;
};

export type NotificationUsage = {
  readonly promptTokens: number;
  readonly readTokens: number;
  readonly writtenTokens: number;
  readonly outputTokens: number;
  readonly toolUses: number;
  readonly ms: number;
  readonly usd: number;
};

const TAG = "task-notification";
const NOT_HUMAN = "No human wrote this: a task that you started has ended.";

export const notificationOf = (id: string, task: Task): Notification | undefined => {
  if (task.state.kind !== "ended" || !task.result) return undefined;
  const { summary, text } = task.result;
  return {
    id,
    task: task.id,
    label: task.label,
    status: task.state.end,
    summary,
    ...(text === "" ? {} : { result: text }),
    ...(task.result.ms === 0 ? {} : { usage: usageOf(task.result) }),
  };
};

const usageOf = ({ usage, toolUses, ms, usd }: TaskResult): NotificationUsage => ({
  promptTokens: promptTokens(usage),
  readTokens: usage.read,
  writtenTokens: writtenTokens(usage),
  outputTokens: usage.output,
  toolUses,
  ms: Math.round(ms),
  usd: Math.round(usd * 1e6) / 1e6,
});

const ENTITIES: readonly (readonly [string, string])[] = [
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
  ["'", "&apos;"],
];

const escapeText = (text: string): string =>
  ENTITIES.reduce((plain, [sign, entity]) => plain.replaceAll(sign, entity), text);
const unescapeText = (text: string): string =>
  ENTITIES.toReversed().reduce((plain, [sign, entity]) => plain.replaceAll(entity, sign), text);

const element = (name: string, value: string | undefined): readonly string[] =>
  value === undefined ? [] : [`<${name}>${escapeText(value)}</${name}>`];

export const notificationText = ({ id, task, label, status, summary, result, usage }: Notification): string =>
  [
    `<${TAG}>`,
    `<!-- ${NOT_HUMAN} -->`,
    ...element("id", id),
    ...element("task-id", task),
    ...element("description", label),
    ...element("status", status),
    ...element("summary", summary),
    ...element("result", result),
    ...(usage === undefined ? [] : [usageText(usage)]),
    `</${TAG}>`,
  ].join("\n");

const USAGE: readonly (readonly [keyof NotificationUsage, string])[] = [
  ["promptTokens", "prompt-tokens"],
  ["readTokens", "cache-read-tokens"],
  ["writtenTokens", "cache-written-tokens"],
  ["outputTokens", "output-tokens"],
  ["toolUses", "tool-uses"],
  ["ms", "duration-ms"],
  ["usd", "cost-usd"],
];

const usageText = (usage: NotificationUsage): string =>
  `<usage>${USAGE.map(([key, name]) => `<${name}>${usage[key]}</${name}>`).join("")}</usage>`;

/** All notifications in a text, in order. Malformed ones are skipped. */
export const parseNotifications = (text: string): readonly Notification[] =>
  [...text.matchAll(new RegExp(`<${TAG}>([\\s\\S]*?)</${TAG}>`, "gi"))].flatMap(([, inside = ""]) =>
    parseNotification(inside),
  );

const parseNotification = (inside: string): readonly Notification[] => {
  const status = readElement(inside, "status")?.trim().toLowerCase();
  const end = TASK_ENDS.find((one) => one === status);
  const task = readElement(inside, "task-id");
  if (end === undefined || task === undefined) return [];
  const result = readElement(inside, "result");
  const usage = parseUsage(inside);
  return [
    {
      id: readElement(inside, "id") ?? "",
      task,
      label: readElement(inside, "description") ?? "",
      status: end,
      summary: readElement(inside, "summary") ?? "",
      ...(result === undefined ? {} : { result }),
      ...(usage === undefined ? {} : { usage }),
    },
  ];
};

const readElement = (text: string, name: string): string | undefined => {
  const found = new RegExp(`<${name}>([\\s\\S]*?)</${name}>`, "i").exec(text)?.[1];
  return found === undefined ? undefined : unescapeText(found);
};

const parseUsage = (inside: string): NotificationUsage | undefined => {
  const text = readElement(inside, "usage");
  if (text === undefined) return undefined;
  const number = (name: string): number => Number(readElement(text, name) ?? 0) || 0;
  return Object.fromEntries(USAGE.map(([key, name]) => [key, number(name)])) as NotificationUsage;
};

const SUMMARY_CHARACTERS = 80;

/** The first line with content, or a word for how the task ended. */
export const summarizeReport = (text: string, end: TaskEnd): string => {
  const line = text
    .split("\n")
    .map((each) => each.replace(/^Scope:\s*/, "").trim())
    .find((each) => each !== "");
  if (line === undefined) return end;
  return line.length <= SUMMARY_CHARACTERS ? line : `${line.slice(0, SUMMARY_CHARACTERS - 1)}…`;
};
