/** Does a task that moves to the background do the same work, at whatever moment it moves?
 *  Each run is compared, value by value, with a run in the foreground. Only the move itself may differ.
 *  Elsewhere: the moments (moments.ts). */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { mergeLayers } from "@prefork/guard";
import { callTools, ManualClock, type SimScript, type Simulator, say, startSimulator } from "@prefork/simulator";
import { type Scratch, scratch } from "@prefork/testing/scratch";
import type { Block } from "@prefork/wire";
import {
  anthropicEngine,
  builtInTools,
  createSession,
  type ForkOutcome,
  type Session,
  type SessionOptions,
} from "../../src/index.ts";
import type { JournalEntry } from "../../src/journal/index.ts";
import { readSession } from "../../src/observe.ts";
import { type Notification, parseNotifications } from "../../src/tasks/index.ts";
import { recordTool } from "../tasks/fixture.ts";
import { seenIn } from "../tasks/model-view.ts";
import { type Passing, passingAsk, passingClock, passingEngine, passingIds } from "./moments.ts";

const NOON = Date.UTC(2026, 2, 3, 12);
const WORK = "keep what you know";
const REPORT = `Scope: ${WORK}\nResult: recorded ${WORK}`;

type Stage = AsyncDisposable & {
  readonly folder: Scratch;
  readonly simulator: Simulator;
  readonly newState: () => string;
};

/** A worker records something, which somebody is asked about, and reports. The main agent has that done, by a call of its
 *  own where it is told to, and says what it heard. */
const script: SimScript = (request) => {
  const { directive, calls, told, news } = seenIn(request);
  const [first] = calls;
  if (directive === WORK || told.includes(WORK))
    return first
      ? say(`Scope: ${WORK}\nResult: ${first.result}`)
      : callTools([{ id: "toolu_record", name: "Record", input: { part: WORK } }]);
  if (told.includes("only talk")) return say("I do.");
  if (!first) return callTools([{ id: "toolu_agent", name: "Agent", input: { description: "keep", prompt: WORK } }]);
  if (first.result?.startsWith("async_launched") && news.length === 0) return say("I wait.");
  return say(`heard: ${news[0]?.result ?? first.result}`);
};

const openStage = async (): Promise<Stage> => {
  const folder = scratch();
  for (const name of ["work", "home"]) mkdirSync(folder.at(name));
  const simulator = await startSimulator({ script, clock: new ManualClock() });
  let states = 0;
  return {
    folder,
    simulator,
    newState: () => {
      states += 1;
      return folder.at(`state-${states}`);
    },
    [Symbol.asyncDispose]: async () => {
      await simulator.close();
      folder[Symbol.dispose]();
    },
  };
};

type Clear = { readonly pass: Passing; readonly recorded: string[] };

/** The same place, empty again: its name is in what the model is told. That of the state is not. */
const cleared = (
  { folder, simulator, newState }: Stage,
  { pass, recorded }: Clear,
): SessionOptions & { readonly state: string } => {
  simulator.reset();
  return {
    engine: passingEngine(
      pass,
      anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } }),
    ),
    cwd: folder.at("work"),
    home: folder.at("home"),
    state: newState(),
    environment: { PATH: "/usr/bin:/bin" },
    tools: [...builtInTools, recordTool(recorded)],
    clock: passingClock(pass, NOON),
    ids: passingIds(pass),
    permissions: {
      policy: { ...mergeLayers([]), sandbox: "off" },
      ask: passingAsk(pass, async () => ({ kind: "allow" })),
    },
  };
};

/** A run with what it passed; at the moment `at` everything that is waited for moves to the background. */
type Ran = {
  readonly moments: readonly Moment[];
  readonly isMoved: boolean;
  readonly parent: readonly JournalEntry[];
  readonly child: readonly JournalEntry[];
  readonly recorded: readonly string[];
};

type Moment = { readonly at: number; readonly where: string };

class Moments {
  readonly #passed: string[] = [];
  #from = Number.POSITIVE_INFINITY;
  #to = 0;
  readonly #at: number | undefined;
  #session: Session | undefined;

  constructor(at: number | undefined) {
    this.#at = at;
  }

  readonly pass: Passing = (where) => {
    if (!this.#session) return;
    this.#passed.push(where);
    const now = this.#passed.length;
    if (this.#session.tasks.some(({ state }) => state.kind !== "ended")) {
      this.#from = Math.min(this.#from, now - 1);
      this.#to = now + 1;
    }
    if (now === this.#at) this.#session.background();
  };

  watch(session: Session | undefined): void {
    this.#session = session;
  }

  /** Those at which something was there that could be moved, and one on either side. */
  get worthTrying(): readonly Moment[] {
    return this.#passed
      .map((where, index) => ({ at: index + 1, where }))
      .filter(({ at }) => at >= this.#from && at <= this.#to);
  }
}

const journalOf = async (state: string, id: string | undefined): Promise<readonly JournalEntry[]> => {
  const { reading, replayed } = await readSession({ state, now: () => NOON, newId: () => "" }, id ?? "");
  assert.deepEqual([replayed.problems, replayed.exact], [[], true]);
  return reading.entries.map(({ entry }) => entry);
};

const ended = async (session: Session, events: ReturnType<Session["events"]>): Promise<void> => {
  const isOver = (): boolean => session.tasks.every(({ state }) => state.kind === "ended");
  if (!isOver()) for await (const { type } of events) if (type === "task_ended" && isOver()) break;
};

// --- a fork that a program waits for ---------------------------------------------------------------------------------

const runFork = async (stage: Stage, at?: number): Promise<Ran & { readonly outcome: ForkOutcome }> => {
  const moments = new Moments(at);
  const recorded: string[] = [];
  const options = cleared(stage, { pass: moments.pass, recorded });
  await using session = await createSession(options);
  await session.prompt("only talk").result();
  const events = session.events();
  moments.watch(session);
  const handle = session.fork({ prompt: WORK });
  const outcome = await handle.result();
  await ended(session, events);
  moments.watch(undefined);
  const [task] = session.tasks;
  return {
    outcome,
    moments: moments.worthTrying,
    isMoved: outcome.status === "async_launched",
    parent: await journalOf(options.state, session.id),
    child: await journalOf(options.state, task?.session),
    recorded,
  };
};

/** What the parent's model will be told at its next boundary. */
const noticesIn = (entries: readonly JournalEntry[]): readonly Notification[] =>
  entries.flatMap((entry) => (entry.kind === "notice" ? parseNotifications(entry.text) : []));

/** What it was told. */
const toldIn = (entries: readonly JournalEntry[]): readonly Notification[] =>
  entries
    .flatMap((entry) => (entry.kind === "message" && entry.message.role === "user" ? entry.message.content : []))
    .flatMap((block) => (block.type === "text" ? parseNotifications(block.text) : []));

export type Moved = { readonly moments: number; readonly tried: number; readonly moved: number };

/** Every so many moments, and all of the last ones, when it ends. */
const chosen = (moments: readonly Moment[], stride: number): readonly Moment[] =>
  moments.filter((_, index) => index % stride === 0 || index >= moments.length - LAST);
const LAST = 6;

export const moveForks = async (stride: number): Promise<Moved> => {
  await using stage = await openStage();
  const alone = await runFork(stage);
  assert.equal(alone.outcome.status === "ended" && alone.outcome.report?.result, `recorded ${WORK}`);
  assert.deepEqual([noticesIn(alone.parent), alone.recorded], [[], [WORK]]);
  let moved = 0;
  const tried = chosen(alone.moments, stride);
  for (const { at, where } of tried) {
    const ran = await runFork(stage, at);
    const what = `moved at moment ${at}, ${where}`;
    assert.deepEqual(ran.child, alone.child, what);
    assert.deepEqual(
      ran.parent.filter(({ kind }) => kind !== "notice"),
      alone.parent,
      what,
    );
    const notices = noticesIn(ran.parent).map(({ task, status, result }) => ({ task, status, result }));
    assert.deepEqual(notices, ran.isMoved ? [{ task: "task-1", status: "reported", result: REPORT }] : [], what);
    assert.deepEqual(ran.recorded, [WORK], what);
    if (ran.isMoved) moved += 1;
    else assert.deepEqual(ran.outcome, alone.outcome, what);
  }
  return { moments: alone.moments.length, tried: tried.length, moved };
};

// --- an Agent call that waits ----------------------------------------------------------------------------------------

const runCall = async (stage: Stage, at?: number): Promise<Ran & { readonly said: string }> => {
  const moments = new Moments(at);
  const recorded: string[] = [];
  const options = cleared(stage, { pass: moments.pass, recorded });
  await using session = await createSession({ ...options, forks: "off" });
  moments.watch(session);
  const { text } = await session.prompt("have it done").result();
  moments.watch(undefined);
  const [task] = session.tasks;
  const parent = await journalOf(options.state, session.id);
  return {
    moments: moments.worthTrying,
    isMoved: JSON.stringify(parent).includes("async_launched"),
    said: text,
    parent,
    child: (await journalOf(options.state, task?.session)).map(unnumbered),
    recorded,
  };
};

/** The provider numbers its answers as they come, and the parent's comes in between. */
const unnumbered = (entry: JournalEntry): JournalEntry => (entry.kind === "response" ? { ...entry, id: "" } : entry);

const textOf = (content: readonly Block[]): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");

const rowsIn = (entries: readonly JournalEntry[]): readonly JournalEntry[] =>
  entries.filter((entry) => entry.kind === "state" && entry.slot.startsWith("task:"));

/** What was said, without what the switch adds: the answer to the call, one turn of waiting, and then what the call would
 *  have given, as a notification. */
const conversationIn = (entries: readonly JournalEntry[]): readonly unknown[] => {
  const messages = entries.flatMap((entry) => (entry.kind === "message" ? [entry.message] : []));
  const calls = entries.flatMap((entry) => (entry.kind === "call_started" ? [entry] : []));
  const said = messages.map(({ role, content }) => [
    role,
    ...content
      .map((block) => {
        if (block.type === "text") return parseNotifications(block.text)[0]?.result ?? block.text;
        return block.type === "tool_result" ? textOf(block.content) : block;
      })
      .filter((part) => part !== MOVED && part !== "I wait."),
  ]);
  return [...calls, ...said.filter(({ length }) => length > 1)];
};

const MOVED = "async_launched: task-1 continues in the background, and will report through a task notification.";

export const moveCalls = async (stride: number): Promise<Moved> => {
  await using stage = await openStage();
  const alone = await runCall(stage);
  const { child, ...rest } = alone;
  assert.equal(rest.said, `heard: ${REPORT}`);
  assert.deepEqual(
    rowsIn(rest.parent).map((entry) => entry.kind === "state" && Object(entry.value).state.kind),
    ["queued", "running", "waiting", "running", "ended"],
  );
  let moved = 0;
  const tried = chosen(alone.moments, stride);
  for (const { at, where } of tried) {
    const ran = await runCall(stage, at);
    const what = `moved at moment ${at}, ${where}`;
    assert.deepEqual(ran.child, child, what);
    assert.deepEqual(rowsIn(ran.parent), rowsIn(alone.parent), what);
    assert.deepEqual(conversationIn(ran.parent), conversationIn(alone.parent), what);
    assert.deepEqual([ran.recorded, ran.said], [[WORK], alone.said], what);
    assert.equal(toldIn(ran.parent).length, ran.isMoved ? 1 : 0, what);
    if (ran.isMoved) moved += 1;
    else assert.deepEqual(ran.parent, alone.parent, what);
  }
  return { moments: alone.moments.length, tried: tried.length, moved };
};
