/** Everything in a session that runs in the background, composed: tasks, forks, shells, kept cache entries, and
 *  requests from other processes to stop a task.
 *  Nothing here knows the conversation except through its line. What an earlier run of the session left running is
 *  resumed or reported as interrupted before anything else happens.
 *  Elsewhere: the main line (open.ts), the parts (../tasks, ../fork, ../children). */

import { type FSWatcher, watch } from "node:fs";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { modelFacts, noUsage, subtractUsage } from "@prefork/wire";
import {
  type Account,
  type Agent,
  type AgentSettings,
  type Engines,
  estimatePrompt,
  type Lineage,
} from "../agent/index.ts";
import { ChildLauncher, type ChildOrigin, ChildWorktrees, LocalHost, Runs, TaskTools } from "../children/index.ts";
import type { Extensions } from "../extensions/index.ts";
import {
  type CacheSafeParams,
  type ForkGate,
  forkAllowed,
  KeepAlive,
  parsePlan,
  SnapshotSlot,
  type StoredPrefixes,
} from "../fork/index.ts";
import { isSessionId, type JournalWriter, type Replayed, readSession, type SessionStore } from "../journal/index.ts";
import type { TaskResult } from "../ports.ts";
import { findReportedEnd, Inbox, type Notification, type Questions, type Task, TaskTable } from "../tasks/index.ts";
import type { Registry, ShellEnded, ShellStarted, ShellsOptions } from "../tools/index.ts";
import type { EventHub } from "./event-hub.ts";
import { toForkSettings } from "./forking.ts";
import type { ResolvedOptions } from "./options.ts";

export type BackgroundParts = {
  readonly options: ResolvedOptions;
  readonly registry: Registry;
  readonly journal: JournalWriter;
  readonly engines: Engines;
  readonly stored: StoredPrefixes;
  readonly hub: EventHub;
  readonly settings: AgentSettings;
  readonly questions: Questions | undefined;
  readonly extensions: Extensions;
  readonly line: Lineage;
  readonly parent: () => Agent;
  readonly replayed?: Replayed;
};

export type Background = {
  readonly launcher: ChildLauncher;
  readonly taskTools: TaskTools;
  readonly runs: Runs;
  readonly table: TaskTable;
  readonly inbox: Inbox;
  readonly slot: SnapshotSlot;
  readonly keepAlive: KeepAlive | undefined;
  readonly isolated: ChildWorktrees;
  readonly shells: Pick<ShellsOptions, "onStart" | "onEnd" | "onEndShown" | "clock">;
  /** What an earlier run of the session left running. */
  readonly takeOver: (now: number) => Promise<void>;
};

/** Where sessions are kept, and how they are named. */
export const sessionStore = ({
  state,
  clock,
  ids,
}: Pick<ResolvedOptions, "state" | "clock" | "ids">): SessionStore => ({
  state,
  now: clock.now,
  newId: () => ids.next("session").replace(/^session-/, ""),
});

export const composeBackground = (parts: BackgroundParts): Background => {
  const { options, registry, journal, engines, stored, hub, settings, questions, parent, replayed, extensions } = parts;
  const { clock, ids } = options;
  const state = replayed?.state ?? new Map();
  const inbox = new Inbox(journal, replayed);
  const table = new TaskTable({ journal, inbox, state, newNoticeId: () => ids.next("notice") });
  const slot = new SnapshotSlot();
  const requests = new StopRequests(dirname(journal.outputs.path), (task) => void launcher.stop(task));
  const isolated = new ChildWorktrees(options, { session: journal.id, emit: (event) => hub.emit(event) });
  const origins = new Map<string, ChildOrigin>();
  const store = sessionStore(options);
  const local = new LocalHost({
    ...{ options, store, journal, engines, registry, settings, parent, extensions, origins, worktrees: isolated },
    follow: (follower) => hub.follow(follower),
    firstAddress: replayed ? replayed.opened?.address : options.engine.address,
  });
  const childHost = options.childHost?.(local) ?? local;
  const runs = new Runs({
    ...{ table, clock, atOnce: options.mostTasks ?? 50, parent: "main", host: childHost },
    ask: questions && ((question, signal) => questions.ask(question, signal)),
    emit: (event, agent) => hub.emit(event, agent),
    busy: (isBusy) => requests.watch("runs", isBusy),
    ...(options.signal ? { lasting: options.signal } : {}),
    // The bill of a session includes runs of which nothing else is kept.
    spent: ({ usage, usd }) => void journal.append({ kind: "billed", turn: 0, usage, usd }),
  });
  const launcher = new ChildLauncher({
    ...{ table, inbox, runs, clock, ids, stored, origins, host: childHost, session: journal.id },
    settings: toForkSettings(options),
    gate: () => gateOf(parts),
    account: () => parent().account,
    snapshot: () => slot.get() ?? unasked(parts),
    conditionsFor: (model) => ({
      facts: modelFacts(model),
      ttl: settings.ttl,
      insideLastResult: settings.thinks && modelFacts(model)?.earlierThinking === "last-turn",
      diagnoses: parent().engine.engine.diagnoses ?? false,
    }),
    startsFork: extensions.startsFork,
    stopShell: (id) => parent().world.shells.stop(id),
    line: () => parent().line,
    listen: () => hub.read(),
    emit: (event, agent) => hub.emit(event, agent),
  });
  const taskTools = new TaskTools({ table, inbox, runs, ids, host: launcher });
  const keepAlive =
    options.forking?.keepAlive === false
      ? undefined
      : new KeepAlive({
          ...{ clock, journal, ttl: settings.ttl },
          client: () => parent().engine.client,
          snapshot: () => slot.get(),
          account: () => parent().account,
          isNeeded: () => runs.hasNotifying,
          emit: (event) => hub.emit(event),
        });
  const takeOver = async (now: number): Promise<void> => {
    await isolated.repair(table.running);
    await stored.takeOver(state, parent().account);
    for (const task of table.running) {
      // Reported first, and withdrawn by the write that resumes it: a process that dies in between loses nothing.
      const reportedEnd = findReportedEnd(task, replayed);
      await interrupt(task, { table, store, account: parent().account, now, reportedEnd });
      if (reportedEnd) continue;
      if (options.forking?.interrupted !== "resume" || task.session === undefined || task.plan === undefined) continue;
      const problem = await launcher.resume(task.id);
      if (problem !== undefined) hub.emit({ type: "journal_troubled", problem: `${task.id}: ${problem}` });
    }
    const last = replayed?.forks.at(-1);
    if (replayed?.forkedFrom && last)
      launcher.rejoin(parent().line, { shared: replayed.forkedFrom, session: last.session });
  };
  return {
    launcher,
    taskTools,
    runs,
    table,
    inbox,
    slot,
    keepAlive,
    isolated,
    shells: shellRows({ table, inbox, options, requests }),
    takeOver,
  };
};

/** Before the first answer: what was entered so far. */
const unasked = ({ line, options }: BackgroundParts): CacheSafeParams => ({
  ...line.state,
  maxTokens: options.maxTokens,
});

const gateOf = ({ options, settings, parent, journal, replayed }: BackgroundParts): ForkGate => {
  const { permissions, environment } = options;
  const { line, engine } = parent();
  return forkAllowed({
    isEnabled: options.forks !== "off",
    interactive: permissions.ask !== undefined,
    policyStated: permissions.stated,
    insideFork: isInsideFork(environment, replayed) || journal.isFork,
    headroom: engine.window - estimatePrompt(line.prefix.byteLength, line.state) - settings.maxTokens,
  });
};

/** Known from the environment, from the journal, or from our own words that make a fork. Words that only look like them are
 *  somebody's prompt. */
const isInsideFork = (
  { PREFORK_LINEAGE: lineage }: ResolvedOptions["environment"],
  replayed: Replayed | undefined,
): boolean => lineage?.startsWith("fork:") === true || replayed?.hasDirective === true;

type Interrupting = {
  readonly table: TaskTable;
  readonly store: SessionStore;
  readonly account: Account;
  readonly now: number;
  /** What its parent was told about its end, if only the line with that end is lost. */
  readonly reportedEnd: Notification | undefined;
};

/** For a command or another call, which has no journal. */
const UNKNOWN = "What it has done until then is unknown; look at the present state before you go on.";

type PartialWork = Pick<TaskResult, "text" | "turns" | "usage" | "usd">;

/** What an interrupted task had done. */
const readPartialWork = async (store: SessionStore, session: string): Promise<PartialWork> => {
  const { replayed } = await readSession(store, session);
  const texts = replayed.messages
    .slice(replayed.inherited?.messages.length ?? 0)
    .flatMap(({ role, content }) =>
      role === "assistant" ? content.flatMap((block) => (block.type === "text" ? [block.text] : [])) : [],
    );
  const { turns, usage, usd } = replayed;
  const begun = `It had made ${turns} ${turns === 1 ? "turn" : "turns"}; its entries are in session ${session}.`;
  const text = texts.length === 0 ? begun : `${begun} What it had said:\n${texts.at(-1)}`;
  return { text, turns, usage, usd };
};

/** Reports it with what it had done and spent; its journal holds the rest. */
const interrupt = async (task: Task, interrupting: Interrupting): Promise<void> => {
  const { table, store, account, now, reportedEnd } = interrupting;
  const nothing = { turns: 0, usage: noUsage, usd: 0 };
  const partial: PartialWork =
    task.session === undefined
      ? { ...nothing, text: task.state.kind === "queued" ? "Nothing of it was begun." : UNKNOWN }
      : await readPartialWork(store, task.session).catch(() => ({
          ...nothing,
          text: `Its session ${task.session} cannot be read.`,
        }));
  const { turns } = partial;
  // For a resumed task, the cost of earlier runs is already counted.
  const usage = task.spent ? subtractUsage(partial.usage, task.spent.usage) : partial.usage;
  const usd = Math.max(0, partial.usd - (task.spent?.usd ?? 0));
  const copy = parsePlan(task.plan)?.isolation ? ` What it changed is on branch prefork/${task.id}.` : "";
  const outcome = {
    summary: reportedEnd?.summary ?? "interrupted",
    end: reportedEnd?.status ?? "interrupted",
  } as const;
  const text = reportedEnd
    ? (reportedEnd.result ?? "")
    : `Interrupted: the session ended while this task was ${task.state.kind}. ${partial.text}${copy}`;
  const result = { summary: outcome.summary, text, usage, usd, turns, toolUses: 0, ms: reportedEnd?.usage?.ms ?? 0 };
  table.step(task.id, { type: "ended", end: outcome.end, at: now, result }, { notify: !reportedEnd });
  account.settle({ usd: 0, tokens: 0 }, { usage, usd });
};

type ShellRows = {
  readonly table: TaskTable;
  readonly inbox: Inbox;
  readonly options: ResolvedOptions;
  readonly requests: StopRequests;
};

/** Background shells of the main agent are tasks like any other. */
const shellRows = ({ table, inbox, options, requests }: ShellRows): Background["shells"] => {
  const { clock } = options;
  return {
    clock,
    onStart: ({ id, command }: ShellStarted) => {
      const row = { id, kind: "shell", label: command.slice(0, 120), agentType: "shell", querySource: "main" } as const;
      table.add({ ...row, family: id, state: { kind: "running" }, startedAt: clock.now() });
      requests.watch(id, true);
    },
    onEnd: ({ id, exit, by, output, seen, ms }: ShellEnded) => {
      requests.watch(id, false);
      const end = by === "itself" ? (exit === 0 ? "reported" : "failed") : "aborted";
      const text = `${typeof exit === "number" ? `exit code ${exit}` : `ended by ${exit}`}\n${output}`.trimEnd();
      const result = { summary: text.split("\n")[0] ?? "", text, usage: noUsage, usd: 0, turns: 0, toolUses: 0, ms };
      try {
        table.step(id, { type: "ended", end, at: clock.now(), result }, { notify: !seen && by === "itself" });
      } catch {
        // The journal is closed or full: the next run of the session reports it as interrupted.
      }
    },
    onEndShown: (id: string) => inbox.dismiss(id),
  };
};

/** Stop requests of other processes, as files in the session's folder. The folder is the user's own and private, so whoever
 *  can write there may ask. A request is a file name; its content is not read. It is removed before it is carried out, so
 *  it is carried out once. */

const FOLDER = "requests";
const STOP = /^stop-(task-[0-9a-f]{1,32}|[A-Za-z0-9_-]{1,64})$/;

const folderOf = (session: string): string => join(session, FOLDER);

/** Asks the process that runs this session to stop a task. */
export const requestStop = async ({ state }: SessionStore, session: string, task: string): Promise<void> => {
  const name = `stop-${task}`;
  if (!isSessionId(session) || !STOP.test(name)) throw new TypeError(`"${task}" is not the id of a task`);
  const folder = folderOf(join(state, "sessions", session));
  await mkdir(folder, { mode: 0o700, recursive: true });
  await writeFile(join(folder, name), "", { mode: 0o600 });
};

/** Watches while something runs. */
export class StopRequests {
  readonly #folder: string;
  readonly #stop: (task: string) => void;
  #watcher: FSWatcher | undefined;
  readonly #watching = new Set<string>();

  /** `session`: its folder. */
  constructor(session: string, stop: (task: string) => void) {
    this.#folder = folderOf(session);
    this.#stop = stop;
  }

  /** `by`: what has started or stopped running. */
  watch(by: string, isBusy: boolean): void {
    if (isBusy) this.#watching.add(by);
    else this.#watching.delete(by);
    if (this.#watching.size === 0) this.#end();
    else if (!this.#watcher) void this.#begin();
  }

  #end(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  async #begin(): Promise<void> {
    try {
      await mkdir(this.#folder, { mode: 0o700, recursive: true });
      if (this.#watching.size === 0 || this.#watcher) return;
      this.#watcher = watch(this.#folder, { persistent: false }, () => void this.#take());
      this.#watcher.on("error", () => this.#end());
      await this.#take(); // what came before
    } catch {
      // Best effort: without it, tasks run as usual, but no other process can stop them.
    }
  }

  async #take(): Promise<void> {
    for (const name of await readdir(this.#folder).catch(() => [])) {
      const task = STOP.exec(name)?.[1];
      if (task === undefined) continue;
      await rm(join(this.#folder, name), { force: true });
      this.#stop(task);
    }
  }
}
