/** How a parent hears of a task: one tagged text that a model reads and a program can take apart. Pure.
 *  Invariant: whatever the result says, it cannot close the tag or forge another; reading gives back what was written;
 *  text that is no notification is left alone. It says that no human spoke.
 *  Elsewhere: when it is delivered (../session), the task itself (task.ts). */

import { promptTokens, writtenTokens } from "@prefork/wire";
import { TASK_ENDS, type Task, type TaskEnd, type TaskResult } from "./task.ts";

export type Notification = {
  /** Of the notification itself: the same one is never shown twice. */
  readonly id: string;
  readonly task: string;
  readonly label: string;
  readonly status: TaskEnd;
  readonly summary: string;
  readonly result?: string;
  readonly usage?: NotedUsage;
};

export type NotedUsage = {
  readonly promptTokens: number;
  readonly readTokens: number;
  readonly writtenTokens: number;
  readonly outputTokens: number;
  readonly toolUses: number;
  readonly ms: number;
  readonly usd: number;
};

const TAG = "task-notification";
const NOBODY = "No human wrote this: a task that you started has ended.";

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
    ...(task.result.ms === 0 ? {} : { usage: notedUsage(task.result) }),
  };
};

const notedUsage = ({ usage, toolUses, ms, usd }: TaskResult): NotedUsage => ({
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

const escaped = (text: string): string =>
  ENTITIES.reduce((plain, [sign, entity]) => plain.replaceAll(sign, entity), text);
const unescaped = (text: string): string =>
  ENTITIES.toReversed().reduce((plain, [sign, entity]) => plain.replaceAll(entity, sign), text);

const element = (name: string, value: string | undefined): readonly string[] =>
  value === undefined ? [] : [`<${name}>${escaped(value)}</${name}>`];

export const notificationText = ({ id, task, label, status, summary, result, usage }: Notification): string =>
  [
    `<${TAG}>`,
    `<!-- ${NOBODY} -->`,
    ...element("id", id),
    ...element("task-id", task),
    ...element("description", label),
    ...element("status", status),
    ...element("summary", summary),
    ...element("result", result),
    ...(usage === undefined ? [] : [usageText(usage)]),
    `</${TAG}>`,
  ].join("\n");

const USAGE: readonly (readonly [keyof NotedUsage, string])[] = [
  ["promptTokens", "prompt-tokens"],
  ["readTokens", "cache-read-tokens"],
  ["writtenTokens", "cache-written-tokens"],
  ["outputTokens", "output-tokens"],
  ["toolUses", "tool-uses"],
  ["ms", "duration-ms"],
  ["usd", "cost-usd"],
];

const usageText = (usage: NotedUsage): string =>
  `<usage>${USAGE.map(([key, name]) => `<${name}>${usage[key]}</${name}>`).join("")}</usage>`;

/** Every notification in a text, in its order; what is broken is passed over. */
export const notificationsIn = (text: string): readonly Notification[] =>
  [...text.matchAll(new RegExp(`<${TAG}>([\\s\\S]*?)</${TAG}>`, "gi"))].flatMap(([, inside = ""]) => readOne(inside));

const readOne = (inside: string): readonly Notification[] => {
  const status = partOf(inside, "status")?.trim().toLowerCase();
  const end = TASK_ENDS.find((one) => one === status);
  const task = partOf(inside, "task-id");
  if (end === undefined || task === undefined) return [];
  const result = partOf(inside, "result");
  const usage = readUsage(inside);
  return [
    {
      id: partOf(inside, "id") ?? "",
      task,
      label: partOf(inside, "description") ?? "",
      status: end,
      summary: partOf(inside, "summary") ?? "",
      ...(result === undefined ? {} : { result }),
      ...(usage === undefined ? {} : { usage }),
    },
  ];
};

const partOf = (text: string, name: string): string | undefined => {
  const found = new RegExp(`<${name}>([\\s\\S]*?)</${name}>`, "i").exec(text)?.[1];
  return found === undefined ? undefined : unescaped(found);
};

const readUsage = (inside: string): NotedUsage | undefined => {
  const text = partOf(inside, "usage");
  if (text === undefined) return undefined;
  const number = (name: string): number => Number(partOf(text, name) ?? 0) || 0;
  return Object.fromEntries(USAGE.map(([key, name]) => [key, number(name)])) as NotedUsage;
};

const SUMMARY_CHARACTERS = 80;

/** The first line that says something, or a word for how it ended. */
export const summaryOf = (text: string, end: TaskEnd): string => {
  const line = text
    .split("\n")
    .map((each) => each.replace(/^Scope:\s*/, "").trim())
    .find((each) => each !== "");
  if (line === undefined) return end;
  return line.length <= SUMMARY_CHARACTERS ? line : `${line.slice(0, SUMMARY_CHARACTERS - 1)}…`;
};
