/** The long session itself: a place, tools with traces, and whoever asks for one task after the other.
 *  Invariant: everything that enters a request follows from the place and the tasks; the date follows from the turn. Two
 *  runs in the same place send the same bytes.
 *  Elsewhere: the tasks (tasks.ts), the answers (scripted-model.ts). */

import { appendFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Mode } from "@prefork/guard";
import {
  anthropicEngine,
  builtInTools,
  defineTool,
  type ExchangeResult,
  type Ids,
  type RuntimeEvent,
  type Session,
  type SessionOptions,
  type Tool,
} from "@prefork/runtime";
import type { SessionStore } from "@prefork/runtime/observe";
import * as z from "zod";
import { generateProject, type Project, projectIn } from "./generated-repository.ts";
import { promptOf, tasks } from "./tasks.ts";

const SEED = 4;
const NOON = Date.UTC(2026, 2, 3, 12);
const DAY_MS = 86_400_000;

/** The night falls twice, each time in the middle of an exchange. */
const NIGHTS: readonly number[] = [11, 42];

export const SESSION_ID = "0123456789";

export type Place = {
  readonly home: string;
  readonly state: string;
  readonly project: Project;
  /** Where tools leave a trace of each run: the call's id, a line each. */
  readonly effects: string;
  readonly looks: string;
};

const placeIn = (base: string, project: Project): Place => ({
  home: join(base, "home"),
  state: join(base, "state"),
  project,
  effects: join(base, "effects"),
  looks: join(base, "looks"),
});

/** A new place below `base`, which must be empty. */
export const makePlace = (base: string): Place => {
  const place = placeIn(base, generateProject(join(base, "project"), SEED));
  mkdirSync(place.home);
  return place;
};

export const openPlace = (base: string): Place => placeIn(base, projectIn(join(base, "project")));

/** Ids of the calls that had an effect, once for each time: those of Record, and of commands that write their own. */
export const effectsIn = ({ effects, project }: Place): readonly string[] =>
  [effects, project.at("docs/found.txt")].flatMap((file) => {
    try {
      return readFileSync(file, "utf8").split("\n").filter(Boolean);
    } catch {
      return []; // nothing ran yet
    }
  });

/** Long enough for something to happen between an effect and its end. */
const TOOL_MS = 12;

const tracing = (file: string, name: string, input: z.ZodType): Tool =>
  defineTool({
    name,
    description: `${name}s a thing, and leaves a trace.`,
    input,
    readOnly: name === "Look",
    run: async (_, { callId }) => {
      appendFileSync(file, `${callId}\n`);
      await delay(TOOL_MS);
      return { content: `${name}: done for ${callId}.` };
    },
  });

export const toolsOf = ({ effects, looks }: Place): readonly Tool[] => [
  ...builtInTools,
  tracing(effects, "Record", z.strictObject({ line: z.string() })),
  tracing(looks, "Look", z.strictObject({ what: z.string() })),
];

const ids: Ids = { next: (kind) => `${kind}-${SESSION_ID}` };

export const storeOf = ({ state }: Place): SessionStore => ({ state, now: () => NOON, newId: () => SESSION_ID });

/** Where a run stands: what a person who resumes it would know. */
export type Standing = { readonly turn: number; readonly mode: Mode };

/** Time in the session: noon of the first day, and one more day after each night. */
export class Calendar {
  #turn: number;

  constructor(turn = 0) {
    this.#turn = turn;
  }

  readonly now = (): number => NOON + NIGHTS.filter((turn) => turn <= this.#turn).length * DAY_MS;

  passed(event: RuntimeEvent): void {
    if (event.type === "turn_started") this.#turn = event.turn;
  }
}

type Opening = { readonly url: string; readonly calendar: Calendar; readonly mode?: Mode };

/** Small enough for one compaction in the later half of the session. */
const WINDOW = 29_000;

export const optionsFor = (place: Place, { url, calendar, mode = "default" }: Opening): SessionOptions => ({
  engine: anthropicEngine({ baseUrl: url, credential: { kind: "api-key", value: "test" }, name: "simulator" }),
  cwd: place.project.folder,
  home: place.home,
  state: place.state,
  tools: toolsOf(place),
  permissions: { allow: ["Record"], mode },
  window: WINDOW,
  clock: { now: calendar.now },
  ids,
  environment: { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8" },
});

/** Asks for every task after the first `done` ones. */
export const converse = async (session: Session, place: Place, done = 0): Promise<readonly ExchangeResult[]> => {
  const results: ExchangeResult[] = [];
  for (const [index, { mode, before }] of tasks.entries()) {
    if (index < done) continue;
    before?.(place.project);
    session.setMode(mode);
    results.push(await session.prompt(promptOf(index + 1)).result());
  }
  return results;
};

/** Reads events until the session is closed; time passes with them. */
export const watch = async (
  session: Session,
  { calendar, seen }: { readonly calendar: Calendar; readonly seen: (event: RuntimeEvent) => void },
): Promise<void> => {
  for await (const event of session.events()) {
    calendar.passed(event);
    seen(event);
  }
};
