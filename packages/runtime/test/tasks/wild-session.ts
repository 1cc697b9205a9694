/** A session that starts all kinds of tasks, one round after another, and its model's reactions.
 *  Invariant: everything follows from the seed and from the request. A round that began is not started again, in
 *  whatever run of the session it is requested.
 *  Elsewhere: the process that plays it (wild-session-process.ts), killing it (wild-lives.ts), what must hold
 *  afterwards (wild-laws.ts). */

import { join } from "node:path";
import { callTools, type SimAnswer, type SimScript, say } from "@prefork/simulator";
import { type SeededRandom, seededRandom } from "@prefork/testing/chance";
import type { JsonObject } from "@prefork/wire";
import { startedIn } from "./fixture.ts";
import { type Seen, seenIn } from "./model-view.ts";

/** works: asks, leaves a trace, reads, reports. denied: is denied until it reports. stuck: until it is stopped.
 *  fails: its provider does. loops: until it is out of turns. */
export type Kind = "works" | "denied" | "stuck" | "fails" | "loops";

export type Work = { readonly name: string; readonly kind: Kind };

export type Round = {
  readonly number: number;
  readonly forks: readonly Work[];
  /** A command next to the Agent calls that takes too long to wait for. */
  readonly isSlow: boolean;
  /** The main agent waits for its forks with a call. */
  readonly joins: boolean;
  /** Whoever prompts does not wait for the tasks. */
  readonly leaves: boolean;
  /** The exchange is interrupted this long after it began. */
  readonly abortAfterMs?: number;
  /** A fork that the program starts and waits for, until it no longer does. */
  readonly own?: { readonly name: string; readonly backgroundAfterMs?: number };
};

export type Story = { readonly seed: number; readonly rounds: readonly Round[] };

const KINDS: readonly Kind[] = ["works", "works", "works", "works", "denied", "stuck", "fails", "loops"];

const roundOf = (number: number, chance: SeededRandom): Round => {
  const forks = Array.from({ length: 2 + chance.below(5) }, (_, at) => {
    const kind = chance.one(KINDS);
    return { name: `r${number}-f${at + 1}-${kind}`, kind };
  });
  const backgroundAfterMs = chance.happens(0.6) ? chance.below(60) : undefined;
  return {
    number,
    forks,
    isSlow: chance.happens(0.4),
    joins: chance.happens(0.4),
    leaves: chance.happens(0.3),
    ...(chance.happens(0.2) ? { abortAfterMs: 60 + chance.below(250) } : {}),
    ...(number > 1 && chance.happens(0.6)
      ? { own: { name: `r${number}-own-works`, ...(backgroundAfterMs === undefined ? {} : { backgroundAfterMs }) } }
      : {}),
  };
};

export const storyOf = (seed: number, rounds: number): Story => {
  const chance = seededRandom(seed);
  return { seed, rounds: Array.from({ length: rounds }, (_, at) => roundOf(at + 1, chance)) };
};

export const promptOf = (number: number): string => `Round ${number}.`;
export const LAST_PROMPT = "That is all.";

/** The round that was requested last; 0 before the first. */
export const roundIn = (told: readonly string[]): number =>
  Number(told.findLast((text) => /^Round \d+\.$/.test(text))?.slice(6, -1) ?? 0);

/** Where a piece of work leaves its trace, one line each time. */
export const traceOf = (folder: string, name: string): string => join(folder, `${name}.trace`);

export const SLOW_CALL = /^Bash \(toolu_(r\d+-slow)/;

// --- the model -------------------------------------------------------------------------------------------------------

const bash = (command: string): { readonly name: string; readonly input: JsonObject } => ({
  name: "Bash",
  input: { command },
});

const tracing = (folder: string, name: string): string => `printf '%s\\n' ${name} >> ${traceOf(folder, name)}`;

const MAIN_WAITS = "I wait.";

const direct = (story: Story, folder: string, seen: Seen): SimAnswer => {
  const round = story.rounds[roundIn(seen.told) - 1];
  if (!round || seen.told.at(-1) === LAST_PROMPT) return say("So it is.");
  const { forks, number, isSlow, joins } = round;
  const isBegun = ({ name }: Work): boolean =>
    seen.calls.some(({ input, result }) => input.description === name && !result?.startsWith("Not run:"));
  const missing = forks.filter((work) => !isBegun(work));
  if (missing.length > 0) {
    const slow = { id: `toolu_r${number}-slow`, ...bash(`sleep 0.15; ${tracing(folder, `r${number}-slow`)}`) };
    const agents = missing.map(({ name }) => ({ name: "Agent", input: { description: name, prompt: name } }));
    return callTools([...(isSlow && missing.length === forks.length ? [slow] : []), ...agents]);
  }
  const ids = startedIn(seen);
  const own = forks.flatMap(({ name }) => ids.get(name) ?? []);
  const waiting = own.filter((id) => !seen.notifications.some(({ task }) => task === id));
  const hasJoined = seen.calls.some(
    ({ name, input }) => name === "TaskOutput" && own.some((id) => String(input.task_ids).includes(id)),
  );
  if (joins && !hasJoined && waiting.length > 0)
    return callTools([{ name: "TaskOutput", input: { task_ids: waiting, wait: "all", timeout_ms: 300 } }]);
  return say(MAIN_WAITS);
};

const never = new Promise<never>(() => {});

const workOn = (name: string, folder: string, { calls }: Seen): SimAnswer => {
  const last = calls.at(-1)?.result ?? "";
  switch (name.split("-").at(-1)) {
    case "denied":
      if (last.includes("report now")) return say(`Scope: ${name}\nResult: I was not allowed to.`);
      return callTools([{ name: "Write", input: { file_path: join(folder, name), content: "" } }]);
    case "stuck":
      return { ...say("…"), hold: never };
    case "fails":
      throw new Error("there is no answer to this");
    case "loops":
      return callTools([bash("pwd")]);
    default: {
      // Interrupted work may have happened, and is not repeated. Work that never began is done.
      const traced = calls.find(
        ({ input, result }) => String(input.command).startsWith("printf") && !result?.startsWith("Not run:"),
      );
      if (!traced) return callTools([bash(tracing(folder, name))]);
      if (!calls.some(({ input }) => String(input.command).startsWith("ls")))
        return callTools([bash(`ls ${folder}`)], `${name}: I have left a trace.`);
      return say(`Scope: ${name}\nResult: ${traced.result}`);
    }
  }
};

/** `folder`: where traces are left. */
export const modelOf =
  (story: Story, folder: string): SimScript =>
  (request) => {
    const seen = seenIn(request);
    return seen.directive === undefined ? direct(story, folder, seen) : workOn(seen.directive, folder, seen);
  };
