/** What must hold for a wild session, however often its process was killed?
 *  Invariant: each law returns its violations in words, and nothing if it holds.
 *  Elsewhere: making such sessions (wild-lives.ts). */

import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { LedgerRow } from "@prefork/simulator";
import { FORK_PLACEHOLDER_RESULT } from "@prefork/wire";
import type { Task, TaskEnd } from "../../src/index.ts";
import { readSession } from "../../src/observe.ts";
import type { Asked } from "./fixture.ts";
import type { Seen } from "./model-view.ts";
import { storeIn, type Wild } from "./wild-lives.ts";
import { type Kind, SLOW_CALL, traceOf } from "./wild-session.ts";

type Law = (wild: Wild) => readonly string[] | Promise<readonly string[]>;

const tasksOf = ({ lives }: Wild): readonly Task[] => lives.at(-1)?.left ?? [];

/** Everything the main agent was ever told is in its last request, because nothing was compacted. */
const lastSeen = ({ asked }: Wild): Seen | undefined => asked.findLast(({ seen }) => seen.isMain)?.seen;

const isOwn = ({ label }: Task): boolean => label.includes("-own-");

const endOf = ({ state }: Task): string => (state.kind === "ended" ? state.end : state.kind);

// --- the process -----------------------------------------------------------------------------------------------------

const comesToItsEnd: Law = ({ lives }) => {
  const last = lives.at(-1);
  return last?.exitCode === 0 ? [] : [`the last process ended with ${last?.exitCode ?? last?.signal}`];
};

const foldersOf = ({ base }: Wild): readonly string[] => {
  const sessions = join(base, "state", "sessions");
  return readdirSync(sessions).map((id) => join(sessions, id));
};

const locksAreFree: Law = (wild) =>
  foldersOf(wild).flatMap((folder) => {
    const numbers = readdirSync(folder).flatMap((name) => (name.startsWith("lock-") ? [Number(name.slice(5))] : []));
    if (numbers.length === 0) return []; // killed before it had one
    const last = `lock-${Math.max(...numbers)}`;
    // Nobody takes over the lock of a fork that was killed before it had a row: the dead hold nothing.
    const text = readlinkSync(join(folder, last));
    const isHeld = text !== "free" && isAlive(Number.parseInt(text, 10));
    return isHeld ? [`${folder} is locked by ${text}`] : [];
  });

const isAlive = (pid: number): boolean => {
  try {
    return !/^[ZX]/.test(statOf(pid));
  } catch {
    return false;
  }
};

const statOf = (pid: number): string => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2);
};

/** Processes that work in the folder or were started for it. */
const processesIn = (base: string): readonly string[] =>
  readdirSync("/proc").flatMap((pid) => {
    try {
      if (!/^\d+$/.test(pid) || Number(pid) === process.pid || !isAlive(Number(pid))) return [];
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      return readlinkSync(`/proc/${pid}/cwd`).startsWith(base) || line.includes(base) ? [`${pid}: ${line}`] : [];
    } catch {
      return []; // it ended in the meantime, or is not ours
    }
  });

/** What a killed process had started soon ends by itself. */
const noProcessIsLeft: Law = async ({ base }) => {
  for (let tries = 0; tries < 400 && processesIn(base).length > 0; tries += 1) await delay(30);
  return processesIn(base).map((line) => `a process was left behind: ${line}`);
};

// --- what the model hears --------------------------------------------------------------------------------------------

const timesGiven = ({ id, label }: Task, { calls }: Seen): number =>
  calls.filter(({ name, result = "" }) => {
    const head = `${id} (${label}): `;
    const at = name === "TaskOutput" ? result.indexOf(head) : -1;
    return at >= 0 && !/^(running|queued|waiting)/.test(result.slice(at + head.length));
  }).length;

/** The conversation is only told about a program's own fork if the program no longer waited for it. */
const isHeardOf = (task: Task, { lives }: Wild): boolean | undefined => {
  if (!isOwn(task)) return true;
  const facts = lives.flatMap(({ shown }) => shown.filter(({ taskId }) => taskId === task.id));
  const wasCut = lives
    .slice(0, -1)
    .some(({ left }) => left.some(({ id, state }) => id === task.id && state.kind !== "ended"));
  if (wasCut || facts.some(({ type }) => type === "task_backgrounded")) return true;
  // If a kill took the line that says so, both are right.
  return facts.some(({ type, status }) => type === "own_ended" && status === "ended") ? false : undefined;
};

const eachEndIsHeardOnce: Law = (wild) => {
  const seen = lastSeen(wild);
  if (!seen) return ["the main agent was never asked"];
  return tasksOf(wild).flatMap((task) => {
    const { id, label, result } = task;
    const told = seen.notifications.filter((one) => one.task === id);
    const given = timesGiven(task, seen);
    const isHeard = isHeardOf(task, wild);
    const times = told.length + given;
    const isRight = isHeard === undefined ? times <= 1 : times === (isHeard ? 1 : 0);
    const wrong = told.find((one) => one.status !== endOf(task) || one.result !== result?.text);
    return [
      ...(isRight ? [] : [`${label}, ${endOf(task)}, was told ${told.length} times and given ${given} times`]),
      ...(wrong ? [`${label}, ${endOf(task)}, was told as ${wrong.status}`] : []),
    ];
  });
};

const noCallIsForgotten: Law = (wild) =>
  (lastSeen(wild)?.calls ?? []).flatMap(({ id, name, input, result }) => {
    if (result === undefined) return [`${name} ${id} was never answered`];
    const isStarted = result === FORK_PLACEHOLDER_RESULT;
    const label = name === "Agent" ? input.description : `${name} (${id})`;
    return isStarted && !tasksOf(wild).some((task) => task.label === label)
      ? [`${label} was answered, and is no task`]
      : [];
  });

// --- how tasks end ---------------------------------------------------------------------------------------------------

const NATURAL: Readonly<Record<Kind, TaskEnd>> = {
  works: "reported",
  denied: "reported",
  stuck: "aborted",
  fails: "failed",
  loops: "out-of-turns",
};

const isFaulty = ({ outcome, status }: LedgerRow): boolean => outcome === "interrupted" || status >= 400;

const kindOf = (label: string): Kind => {
  const word = label.split("-").at(-1);
  return (Object.keys(NATURAL) as Kind[]).find((kind) => kind === word) ?? "works";
};

/** What a provider may do to one request before its agent gives up. */
const MAX_FAULTS = 3;

/** It ends as its kind does, unless it was killed and not resumed, its exchange was interrupted, or its provider
 *  kept failing. */
const endsOf = ({ id, label, kind }: Task, { lives, story, interrupted, asked }: Wild): readonly string[] => {
  for (const { left } of lives.slice(0, -1)) {
    const then = left.find((task) => task.id === id);
    if (!then) continue;
    if (then.state.kind === "ended") return [then.state.end];
    if (interrupted === "report" || then.session === undefined) return ["interrupted"];
  }
  const round = story.rounds.find(({ number }) => label.startsWith(`r${number}-`) || label.includes(`_r${number}-`));
  const mayAbort = round?.abortAfterMs !== undefined && !label.includes("-own-");
  const faults = asked.filter(({ seen, row }) => seen.directive === label && isFaulty(row)).length;
  return [
    NATURAL[kindOf(label)],
    ...(mayAbort ? ["aborted"] : []),
    // An interrupted command does not count as its report.
    ...((mayAbort && kind === "call") || faults >= MAX_FAULTS ? ["failed"] : []),
  ];
};

const endsAreTrue: Law = (wild) =>
  tasksOf(wild).flatMap((task) => {
    const allowed = endsOf(task, wild);
    return allowed.includes(endOf(task))
      ? []
      : [`${task.label} ended as ${endOf(task)}, not as ${allowed.join(" or ")}: ${task.result?.text}`];
  });

// --- nothing runs twice ----------------------------------------------------------------------------------------------

const tracesOf = ({ base }: Wild, name: string): number => {
  try {
    return readFileSync(traceOf(join(base, "traces"), name), "utf8")
      .split("\n")
      .filter(Boolean).length;
  } catch {
    return 0;
  }
};

const nothingRunsTwice: Law = (wild) => {
  const tasks = tasksOf(wild);
  return tasks.flatMap((task) => {
    const name = SLOW_CALL.exec(task.label)?.[1] ?? task.label;
    const times = tracesOf(wild, name);
    const claims = endOf(task) === "reported" && task.result?.text.includes("[exit code 0]") === true;
    return [
      ...(tasks.filter(({ label }) => label === task.label).length > 1 ? [`${task.label} was started twice`] : []),
      ...(times > 1 ? [`${name} left ${times} traces`] : []),
      ...(claims && times !== 1 ? [`${name} says that it left its trace, and left ${times}`] : []),
    ];
  });
};

/** A journal that no row knows belongs to a fork that was never started. */
const noRunWithoutARow: Law = async (wild) => {
  const known = new Set([wild.id, ...tasksOf(wild).flatMap(({ session }) => session ?? [])]);
  const found: string[] = [];
  for (const id of foldersOf(wild).map((folder) => folder.split("/").at(-1) ?? "")) {
    if (known.has(id)) continue;
    const entries = await readSession(storeIn(wild.base), id).then(
      ({ reading }) => reading.entries,
      () => [],
    );
    if (entries.some(({ entry }) => entry.kind === "response" || entry.kind === "call_started")) found.push(id);
  }
  return found.map((id) => `session ${id} ran, and no task knows it`);
};

// --- warm ------------------------------------------------------------------------------------------------------------

/** Who asks: the main agent, or a fork by its directive. */
const askers = ({ asked }: Wild): ReadonlyMap<string, readonly Asked[]> =>
  Map.groupBy(asked, ({ seen }) => seen.directive ?? "main");

type Resumption = { readonly who: string; readonly had: number; readonly read: number };

/** The first request of each agent that resumes in another run, and what it had in the cache. */
const resumptionsOf = (wild: Wild): readonly Resumption[] =>
  [...askers(wild)].flatMap(([who, asked]) =>
    wild.lives.slice(1).flatMap((_, at): readonly Resumption[] => {
      const from = wild.lives[at]?.requests ?? 0;
      const to = wild.lives[at + 1]?.requests ?? 0;
      const taken = asked.filter(({ row }) => row.promptTokens > 0);
      const last = taken.findLast(({ row }) => row.sequence <= from)?.row;
      const next = taken.find(({ row }) => row.sequence > from && row.sequence <= to)?.row;
      return last && next ? [{ who, had: last.promptTokens - last.plain, read: next.read }] : [];
    }),
  );

const goesOnWarm: Law = (wild) =>
  resumptionsOf(wild).flatMap(({ who, had, read }) =>
    read >= had ? [] : [`${who} read ${read} of its own ${had} tokens`],
  );

const nothingIsRefused: Law = ({ asked }) =>
  asked.flatMap(({ row, seen }) =>
    row.status === 400 ? [`${seen.directive ?? "main"} was refused: ${row.error}`] : [],
  );

const LAWS: Readonly<Record<string, Law>> = {
  ...{ comesToItsEnd, locksAreFree, noProcessIsLeft, eachEndIsHeardOnce, noCallIsForgotten, endsAreTrue },
  ...{ nothingRunsTwice, noRunWithoutARow, goesOnWarm, nothingIsRefused },
};

export const broken = async (wild: Wild): Promise<readonly string[]> => {
  const all = Object.entries(LAWS).map(async ([name, law]) => (await law(wild)).map((words) => `${name}: ${words}`));
  return (await Promise.all(all)).flat();
};

/** What was tested: one name per case. */
export const casesOf = (wild: Wild): readonly string[] => [
  ...tasksOf(wild).map((task) => `${task.kind} ${endOf(task)}`),
  ...wild.lives
    .slice(0, -1)
    .flatMap(({ left }) =>
      left.flatMap(({ state }) => (state.kind === "ended" ? [] : [`${wild.interrupted}: killed while ${state.kind}`])),
    ),
  ...wild.lives.flatMap(({ shown }) =>
    shown.flatMap(({ type }) => (type === "task_backgrounded" ? ["moved to the background"] : [])),
  ),
  ...resumptionsOf(wild).map(({ who }) => `${who === "main" ? "the main agent" : "a fork"} went on in another life`),
  ...wild.asked.flatMap(({ row }) => (isFaulty(row) ? ["a fault of the provider"] : [])),
];
