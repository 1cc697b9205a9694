/** Formats tasks: a table of many, one in full, and both as JSON.
 *  Invariant: labels and texts of tasks cannot control the terminal; a task that no process runs is not shown as running.
 *  Elsewhere: which tasks (@prefork/runtime), the table of requests (explain-report.ts). */

import type { TaskDetail, TaskRow } from "@prefork/runtime/observe";
import { promptTokens, writtenTokens } from "@prefork/wire";
import { jsonLine } from "../lines.ts";
import { formatMoney, formatTokens } from "../numbers.ts";
import { type Row, renderTable } from "../table.ts";
import { visible } from "../visible.ts";
import { requestTable } from "./explain-report.ts";
import { inLine, shortId } from "./tasks-store.ts";

const LONGEST_LABEL = 40;

export const taskTable = (rows: readonly TaskRow[], colour: boolean): string =>
  renderTable({
    columns: [
      { title: "task" },
      { title: "session", dispensable: 2 },
      { title: "kind", dispensable: 1 },
      { title: "state" },
      { title: "label" },
      { title: "turns", align: "right" },
      { title: "tokens", align: "right" },
      { title: "cost", align: "right" },
      { title: "age", align: "right" },
    ],
    rows: rows.map(({ task, session, state, turns, usage, usd, ageMs, isOrphan }): Row => {
      const { id, kind, label } = task;
      return {
        cells: [
          shortId(id),
          inLine(session),
          inLine(kind),
          state,
          inLine(label, LONGEST_LABEL),
          String(turns),
          formatTokens(promptTokens(usage) + usage.output),
          formatMoney(usd),
          formatAge(ageMs),
        ],
        ...(isOrphan ? { style: "bad" } : {}),
      };
    }),
    colour,
  });

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** In the largest unit with a value of at least one. */
export const formatAge = (ms: number): string => {
  const seconds = Math.floor(Math.max(0, ms) / 1_000); // the clocks of two processes may differ
  if (seconds < MINUTE) return `${seconds} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`;
  return seconds < DAY ? `${Math.floor(seconds / HOUR)} h` : `${Math.floor(seconds / DAY)} d`;
};

/** A task as one object: `state` is its state, `words` is the text in the table. */
const asObject = ({ task, owner, state, ...row }: TaskRow): object => {
  const { session: journal, ...about } = task;
  return { ...about, journal: journal ?? null, words: state, owner: owner ?? null, ...row };
};

export const tasksAsJson = (rows: readonly TaskRow[]): string => rows.map((row) => jsonLine(asObject(row))).join("");

export const taskAsJson = ({ rows, directive, ...row }: TaskDetail): string =>
  jsonLine({ ...asObject(row), directive: directive ?? null, requests: rows });

export type TaskTextOptions = {
  readonly colour: boolean;
  /** Its session runs, and can be attached to. */
  readonly isAttachable?: boolean; // default: false
};

export const taskAsText = (detail: TaskDetail, { colour, isAttachable = false }: TaskTextOptions): string => {
  const { task, session, cwd, state, turns, usage, usd, ageMs, owner, rows, directive } = detail;
  const attached = inLine(task.state.kind === "ended" ? session : task.id);
  const open = owner
    ? ` (open in process ${owner.pid}${isAttachable ? `; attach: prefork attach ${attached}` : ""})`
    : "";
  const facts: Readonly<Record<string, string>> = {
    task: inLine(task.id),
    label: inLine(task.label),
    kind: inLine(task.kind),
    state,
    session: `${inLine(session)}${open}`,
    folder: inLine(cwd),
    journal: task.session === undefined ? "none" : inLine(task.session),
    age: formatAge(ageMs),
    turns: String(turns),
    tokens: `${formatTokens(usage.read)} read, ${formatTokens(writtenTokens(usage))} written, ${formatTokens(usage.plain)} uncached, ${formatTokens(usage.output)} output`,
    cost: formatMoney(usd),
  };
  const lines = Object.entries(facts).map(([name, value]) => `${name.padEnd(8)} ${value}\n`);
  return [
    ...lines,
    directive === undefined ? "" : `\nDirective\n${indented(directive)}`,
    task.result === undefined ? "" : `\nReport\n${indented(task.result.text)}`,
    rows.length === 0 ? "" : `\n${requestTable(rows, colour)}`,
  ].join("");
};

const indented = (text: string): string =>
  visible(text)
    .trimEnd()
    .split("\n")
    .map((line) => `${`  ${line}`.trimEnd()}\n`)
    .join("");
