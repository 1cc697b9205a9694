/** A wild session in its own process, to be killed. Prints each event as a line of JSON once it was emitted. Its
 *  parameters are one JSON text: `Playing`. */

import { writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { mergeLayers } from "@prefork/guard";
import {
  type Answer,
  anthropicEngine,
  createSession,
  type Question,
  resumeSession,
  type Session,
  type SessionOptions,
} from "@prefork/runtime";
import { seededRandom } from "@prefork/testing/chance";
import { InputError } from "@prefork/wire";
import { hastyTiming } from "./fixture.ts";
import { LAST_PROMPT, promptOf, type Round, storyOf } from "./wild-session.ts";

export type Playing = {
  readonly base: string;
  readonly url: string;
  readonly seed: number;
  readonly rounds: number;
  readonly interrupted: "report" | "resume";
  /** An earlier run of it, and the round that was in progress then. */
  readonly earlier?: { readonly id: string; readonly round: number };
  /** Differs from run to run. */
  readonly life: number;
};

const playing: Playing = JSON.parse(process.argv[2] ?? "");
const { base, url, seed, rounds, interrupted, earlier, life } = playing;
const story = storyOf(seed, rounds);
const chance = seededRandom(seed * 1_000 + life);

/** A person who takes a moment to answer, and has a rule. */
const ask = async ({ args }: Question): Promise<Answer> => {
  await delay(chance.below(12));
  return String(args.file_path).includes("denied") ? { kind: "deny" } : { kind: "allow" };
};

const options: SessionOptions = {
  engine: anthropicEngine({ baseUrl: url, credential: { kind: "api-key", value: "any" }, timing: hastyTiming }),
  cwd: join(base, "work"),
  home: join(base, "home"),
  state: join(base, "state"),
  environment: { PATH: "/usr/bin:/bin" },
  permissions: { policy: { ...mergeLayers([]), sandbox: "off" }, ask },
  forking: { interrupted, otherToolsMs: 60, fork: { turns: 5 } },
};

const say = (fact: object): void => {
  writeSync(1, `${JSON.stringify(fact)}\n`);
};

const session = earlier ? await resumeSession(earlier.id, options) : await createSession(options);

/** A stuck task is stopped after a while. */
const stopLater = async (id: string): Promise<void> => {
  await delay(10 + chance.below(60));
  await session.stopTask(id);
};

const watch = async (): Promise<void> => {
  for await (const event of session.events()) {
    if (event.level === "debug") continue;
    const { type, agent } = event;
    say({ type, agent, ...("taskId" in event ? { taskId: event.taskId } : {}) });
    if (event.type === "fork_started" && event.label.endsWith("stuck")) void stopLater(event.taskId);
  }
};

/** An idle session may be speaking by itself. */
const promptWhenFree = async (
  prompt: string,
  how: Parameters<Session["prompt"]>[1],
): Promise<ReturnType<Session["prompt"]>> => {
  for (;;) {
    try {
      return session.prompt(prompt, how);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      await delay(2);
    }
  }
};

const startOwn = ({ own }: Round): void => {
  if (!own || session.tasks.some(({ label }) => label === own.name)) return;
  const handle = session.fork({ prompt: own.name, label: own.name });
  if (own.backgroundAfterMs !== undefined) setTimeout(() => handle.background(), own.backgroundAfterMs);
  void handle.result().then(({ status }) => say({ type: "own_ended", taskId: handle.id, status }));
};

const play = async (round: Round): Promise<void> => {
  startOwn(round);
  const exchange = await promptWhenFree(promptOf(round.number), { tasks: round.leaves ? "leave" : "wait" });
  if (round.abortAfterMs !== undefined) setTimeout(() => exchange.abort(), round.abortAfterMs);
  await exchange.result();
};

const watching = watch();
say({ type: "opened", id: session.id });
for (const { id, label, state } of session.tasks)
  if (state.kind !== "ended" && label.endsWith("stuck")) void stopLater(id);
for (const round of story.rounds) if (round.number >= (earlier?.round ?? 1)) await play(round);
// Waits for everything that still runs, and for its notifications.
while (session.tasks.some(({ state }) => state.kind !== "ended")) await delay(5);
await (await promptWhenFree(LAST_PROMPT, { tasks: "wait" })).result();
await session.close();
await watching;
