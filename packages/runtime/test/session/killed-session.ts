/** Runs the long session in another process, kills that at a chosen moment, and lets a third one finish it.
 *  Elsewhere: what must hold afterwards (crash-laws.ts), the process (long-session-process.ts). */

import { spawn } from "node:child_process";
import { readdirSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Mode } from "@prefork/guard";
import type { RuntimeEvent } from "@prefork/runtime";
import { readSession, type SessionReading } from "@prefork/runtime/observe";
import { ManualClock, type Simulator, startSimulator } from "@prefork/simulator";
import { headTokens, type Sent, sentTo } from "./as-sent.ts";
import { effectsIn, makePlace, type Place, SESSION_ID, type Standing, storeOf } from "./long-session.ts";
import { scriptedModel } from "./scripted-model.ts";

const PROGRAM = fileURLToPath(new URL("long-session-process.ts", import.meta.url));
/** A process that takes longer hangs. */
const MOST_MS = 240_000;

/** So many events after the beginning, and then so much later. `ended`: when this call's end is shown instead, because calls
 *  that run at the same time may end in another order. */
export type Moment = { readonly events: number; readonly ms: number; readonly ended?: string };

export type Life = {
  readonly pid: number;
  readonly shown: readonly RuntimeEvent[];
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
};

type Living = { readonly base: string; readonly url: string; readonly stood?: Standing; readonly until?: Moment };

const live = async ({ base, url, stood, until }: Living): Promise<Life> => {
  const parameters = [base, url, ...(stood ? [JSON.stringify(stood)] : [])];
  const child = spawn(process.execPath, [...process.execArgv, PROGRAM, ...parameters], {
    stdio: ["ignore", "pipe", "inherit"],
    // If there is none yet, beside the place: later processes start faster, and the place stays as it was made.
    env: { NODE_COMPILE_CACHE: `${base}-compiled`, ...process.env },
    timeout: MOST_MS,
    killSignal: "SIGKILL",
  });
  const ended = new Promise<Pick<Life, "exitCode" | "signal">>((done) =>
    child.once("close", (exitCode, signal) => done({ exitCode, signal })),
  );
  const shown: RuntimeEvent[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const event = eventIn(line);
    if (event) shown.push(event);
    if (until && event && isReached(until, event, shown.length)) {
      if (until.ms > 0) await delay(until.ms);
      child.kill("SIGKILL");
    }
  }
  return { pid: child.pid ?? 0, shown, ...(await ended) };
};

const isReached = ({ events, ended }: Moment, event: RuntimeEvent, count: number): boolean =>
  ended === undefined ? count === events : event.type === "call_ended" && event.callId === ended;

/** The last line of a process that was killed may be cut. */
const eventIn = (line: string): RuntimeEvent | undefined => {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
};

/** What whoever sat before the screen would know. */
const standingAfter = (shown: readonly RuntimeEvent[]): Standing => {
  const turn = shown.findLast((event) => event.type === "turn_started")?.turn ?? 0;
  const mode = shown.findLast((event) => event.type === "mode_changed")?.to ?? "default";
  return { turn, mode: mode as Mode };
};

export type Whole = {
  readonly life: Life;
  readonly requests: readonly Sent[];
  readonly session: SessionReading;
  readonly head: number;
};

export type Killed = {
  readonly moment: Moment;
  readonly first: Life;
  readonly second: Life;
  /** As the first life left it. */
  readonly atKill: SessionReading;
  readonly lockedBy: readonly number[];
  readonly atEnd: SessionReading;
  readonly requests: readonly Sent[];
  /** How many of the requests the first life sent. */
  readonly before: number;
  readonly head: number;
  readonly effects: readonly string[];
};

type Stage = { readonly base: string; readonly place: Place; readonly simulator: Simulator };

/** Always the same folder, since its name is in what the model is told. */
const onStage = async <T>(base: string, play: (stage: Stage) => Promise<T>): Promise<T> => {
  rmSync(base, { recursive: true, force: true });
  const place = makePlace(base);
  const script = scriptedModel(place.project);
  await using simulator = await startSimulator({ script, clock: new ManualClock(), keepBodies: true });
  return await play({ base, place, simulator });
};

/** Process ids in the session's locks. */
const lockedBy = ({ state }: Place): readonly number[] => {
  const folder = join(state, "sessions", SESSION_ID);
  return readdirSync(folder)
    .filter((name) => name.startsWith("lock-"))
    .map((name) => Number.parseInt(readlinkSync(join(folder, name)), 10));
};

const headOf = async (simulator: Simulator, requests: readonly Sent[]): Promise<number> => {
  const [first] = requests;
  return first ? headTokens(simulator, first) : 0;
};

/** The run that nobody disturbs. */
export const wholeSession = (base: string): Promise<Whole> =>
  onStage(base, async ({ place, simulator }) => {
    const life = await live({ base, url: simulator.url });
    const requests = sentTo(simulator);
    const session = await readSession(storeOf(place), SESSION_ID);
    return { life, requests, session, head: await headOf(simulator, requests) };
  });

export const killedSession = (base: string, moment: Moment): Promise<Killed> =>
  onStage(base, async ({ place, simulator }) => {
    const first = await live({ base, url: simulator.url, until: moment });
    const before = sentTo(simulator).length;
    const atKill = await readSession(storeOf(place), SESSION_ID);
    const locks = lockedBy(place);
    const second = await live({ base, url: simulator.url, stood: standingAfter(first.shown) });
    const requests = sentTo(simulator);
    const atEnd = await readSession(storeOf(place), SESSION_ID);
    const head = await headOf(simulator, requests);
    return {
      ...{ moment, first, second, atKill, atEnd, requests, before, head },
      lockedBy: locks,
      effects: effectsIn(place),
    };
  });
