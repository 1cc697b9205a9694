/** A family that is killed at every moment of its life, and resumed: is each fork reported once, and done once?
 *  Invariant: a moment is what the disk holds right before an entry is written or a port is used, if it differs from
 *  the moment before. Together these are all states that a kill can leave. Observing the run does not disturb it.
 *  Elsewhere: real processes that are really killed (wild-lives.ts), the laws (crash-laws.ts). */

import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { mergeLayers } from "@prefork/guard";
import { callTools, ManualClock, type SimScript, type Simulator, say, startSimulator } from "@prefork/simulator";
import { type Scratch, scratch } from "@prefork/testing/scratch";
import {
  anthropicEngine,
  builtInTools,
  createSession,
  resumeSession,
  type Session,
  type SessionOptions,
  type Task,
} from "../../src/index.ts";
import { readSession, type SessionStore } from "../../src/observe.ts";
import { tasksIn } from "../../src/tasks/index.ts";
import { type Passing, passingAsk, passingClock, passingEngine, passingIds } from "../fork/moments.ts";
import { type Asked, askedOf, hastyTiming, recordTool } from "./fixture.ts";
import { type Seen, seenIn } from "./model-view.ts";

/** How the main agent delegates its work: forks that notify it at the end, forks that it joins, agents whose calls
 *  wait, or such agents that are moved to the background meanwhile. */
export type Way = "told" | "joined" | "waited for" | "moved";
export const WAYS: readonly Way[] = ["told", "joined", "waited for", "moved"];

const NOON = Date.UTC(2026, 2, 3, 12);
export const PARTS: readonly string[] = ["north", "south"];

/** Each part records itself, reads something and reports. Interrupted work is not repeated. */
const workOn = (part: string, { calls }: Seen) => {
  const record = calls.find(({ name, result }) => name === "Record" && !result?.startsWith("Not run:"));
  if (!record) return callTools([{ name: "Record", input: { part } }]);
  if (!calls.some(({ name }) => name === "Glob"))
    return callTools([{ name: "Glob", input: { pattern: "*" } }], `${part}: I have recorded it.`);
  return say(`Scope: ${part}\nResult: ${record.result}`);
};

const direct = (way: Way, { calls, told, notifications }: Seen) => {
  if (calls.length === 0)
    return callTools(PARTS.map((part) => ({ name: "Agent", input: { description: part, prompt: part } })));
  const ids = told
    .flatMap((text) => [...text.matchAll(/^- (task-\S+): /gm)].map(([, id = ""]) => id))
    .filter((id) => !notifications.some(({ task }) => task === id));
  if (way === "joined" && ids.length > 0 && !calls.some(({ name }) => name === "TaskOutput"))
    return callTools([{ name: "TaskOutput", input: { task_ids: ids, wait: "all" } }]);
  return say("I have heard.");
};

const script =
  (way: Way): SimScript =>
  (request) => {
    const seen = seenIn(request);
    const part = PARTS.find((one) => seen.directive === one || (!seen.isMain && seen.told.includes(one)));
    return part === undefined ? direct(way, seen) : workOn(part, seen);
  };

/** Everything that had happened at one moment. */
export type Moment = {
  readonly at: number;
  readonly where: string;
  /** A copy of the state folder. */
  readonly state: string;
  readonly session: string;
  readonly recorded: readonly string[];
  /** How many tasks had ended. */
  readonly ended: number;
};

export type Theatre = AsyncDisposable & {
  readonly way: Way;
  readonly folder: Scratch;
  readonly simulator: Simulator;
};

export const openTheatre = async (way: Way): Promise<Theatre> => {
  const folder = scratch();
  for (const name of ["work", "home", "copies"]) mkdirSync(folder.at(name));
  const simulator = await startSimulator({ script: script(way), clock: new ManualClock(), keepBodies: true });
  return {
    ...{ way, folder, simulator },
    [Symbol.asyncDispose]: async () => {
      await simulator.close();
      folder[Symbol.dispose]();
    },
  };
};

type Life = { readonly state: string; readonly recorded: string[]; readonly pass: Passing; readonly name: string };

const optionsOf = ({ way, folder, simulator }: Theatre, { state, recorded, pass, name }: Life): SessionOptions => {
  const ids = passingIds(pass);
  return {
    engine: passingEngine(
      pass,
      anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" }, timing: hastyTiming }),
    ),
    cwd: folder.at("work"),
    home: folder.at("home"),
    state,
    environment: { PATH: "/usr/bin:/bin" },
    tools: [...builtInTools, recordTool(recorded)],
    clock: passingClock(pass, NOON),
    // Two runs create different ids, as random ids would.
    ids: { next: (kind) => `${ids.next(kind)}${name}` },
    forks: way === "waited for" || way === "moved" ? "off" : "on",
    permissions: {
      policy: { ...mergeLayers([]), sandbox: "off" },
      ask: passingAsk(pass, async () => ({ kind: "allow" })),
    },
  };
};

const NO_LOCKS = (path: string): boolean => !/\/lock-\d+$/.test(path);

/** The undisturbed run: what the disk held at each moment, and all its requests. */
export type FirstLife = { readonly moments: readonly Moment[]; readonly asked: readonly Asked[] };

export const firstLife = async (theatre: Theatre): Promise<FirstLife> => {
  const { folder, simulator } = theatre;
  const state = folder.at("state");
  const recorded: string[] = [];
  const moments: Moment[] = [];
  let session: Session | undefined;
  let before = "";
  const pass: Passing = (where) => {
    const now = `${sizesIn(state)} ${recorded.length}`;
    if (!session || now === before) return;
    if (theatre.way === "moved" && session.tasks.some((task) => task.state.kind === "waiting")) session.background();
    before = now;
    const at = moments.length + 1;
    const copy = folder.at("copies", String(at));
    cpSync(state, copy, { recursive: true, filter: NO_LOCKS });
    const ended = session.tasks.filter((task) => task.state.kind === "ended").length;
    moments.push({ at, where, state: copy, session: session.id, recorded: [...recorded], ended });
  };
  await using open = await createSession(optionsOf(theatre, { state, recorded, pass, name: "" }));
  session = open;
  await open.prompt("Have both parts done.").result();
  session = undefined;
  return { moments, asked: askedOf(simulator) };
};

/** Journals only grow: equal sizes are equal journals. */
const sizesIn = (state: string): string => {
  const sessions = join(state, "sessions");
  const journals = existsSync(sessions) ? readdirSync(sessions).map((id) => join(sessions, id, "journal.jsonl")) : [];
  return journals.map((journal) => (existsSync(journal) ? statSync(journal).size : 0)).join(" ");
};

/** What the next run made of it. */
export type Resumed = {
  readonly moment: Moment;
  readonly interrupted: "report" | "resume";
  /** As the first run left them. */
  readonly left: readonly Task[];
  readonly tasks: readonly Task[];
  readonly recorded: readonly string[];
  /** What the main agent saw last. */
  readonly seen: Seen;
  /** For each fork that continued: what it last had in the cache, and how much of it its next request read. */
  readonly warmth: readonly Warmth[];
};

type Warmth = { readonly label: string; readonly had: number; readonly read: number };

type Cut = Pick<Resumed, "moment" | "interrupted"> & { readonly first: FirstLife };

export const resumeAt = async (theatre: Theatre, { first, moment, interrupted }: Cut): Promise<Resumed> => {
  const { simulator, folder } = theatre;
  const recorded = [...moment.recorded];
  const state = folder.at("copies", `${moment.at}-${interrupted}`);
  cpSync(moment.state, state, { recursive: true });
  const since = simulator.requests().length;
  const life = { state, recorded, pass: () => {}, name: "-again" };
  const left = await rowsIn(state, moment.session);
  const options: SessionOptions = { ...optionsOf(theatre, life), forking: { interrupted } };
  const tasks = await goOn(moment.session, options);
  const asked = askedOf(simulator, since);
  const seen = asked.findLast((one) => one.seen.isMain)?.seen;
  if (!seen) throw new Error("the main agent was not asked anything");
  const warmth = await Promise.all(
    left.map((task) => warmthOf(task, { state: moment.state, first: first.asked, asked })),
  );
  rmSync(state, { recursive: true });
  return { ...{ moment, interrupted, left, tasks, recorded, seen }, warmth: warmth.flat() };
};

const goOn = async (id: string, options: SessionOptions): Promise<readonly Task[]> => {
  await using session = await resumeSession(id, options);
  await session.prompt("Go on.").result();
  return session.tasks;
};

const storeIn = (state: string): SessionStore => ({ state, now: () => NOON, newId: () => "" });

const rowsIn = async (state: string, session: string): Promise<readonly Task[]> =>
  tasksIn((await readSession(storeIn(state), session)).replayed.state);

type Lives = { readonly state: string; readonly first: readonly Asked[]; readonly asked: readonly Asked[] };

/** Its last request of the first run, as far as its journal knew it, and its first one of the second. */
const warmthOf = async ({ label, session }: Task, { state, first, asked }: Lives): Promise<readonly Warmth[]> => {
  if (session === undefined) return [];
  const { reading } = await readSession(storeIn(state), session);
  const turns = reading.entries.filter(({ entry }) => entry.kind === "request").length;
  const isOwn = ({ seen }: Asked): boolean => seen.directive === label || (!seen.isMain && seen.told.includes(label));
  const last = first.filter(isOwn)[turns - 1]?.row;
  const next = asked.find(isOwn)?.row;
  return last && next ? [{ label, had: last.promptTokens - last.plain, read: next.read }] : [];
};
