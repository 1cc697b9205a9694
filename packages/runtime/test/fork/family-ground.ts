/** A folder, a simulator and sessions on them whose model is a script that tells parent and forks apart.
 *  Invariant: nothing of the user's own home, state or keys is seen. A script uses only what is in its request. Ids
 *  are counted, so that a script can name a task that it does not know. */

import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as after, setImmediate as immediate } from "node:timers/promises";
import { mergeLayers } from "@prefork/guard";
import {
  type SeenToolResult,
  type SimAnswer,
  type SimRequest,
  type SimScript,
  type Simulator,
  type SimulatorOptions,
  say,
  startSimulator,
  type ToolCall,
  textOfTokens,
  toolResults,
} from "@prefork/simulator";
import { type Scratch, scratch } from "@prefork/testing/scratch";
import type { Json, JsonObject } from "@prefork/wire";
import {
  anthropicEngine,
  createSession,
  type EngineOptions,
  type ExchangeResult,
  type ForkHandle,
  type ForkOutcome,
  type Permissions,
  type RuntimeEvent,
  resumeSession,
  type Session,
  type SessionOptions,
} from "../../src/index.ts";
import type { ChildPlan, ForkPlan, Ids } from "../../src/ports.ts";
import { type Notification, parseNotifications } from "../../src/tasks/index.ts";

export type FamilyGround = AsyncDisposable & {
  readonly folder: Scratch;
  /** The folder that sessions work in. */
  readonly work: string;
  readonly simulator: Simulator;
  readonly options: (more?: Partial<SessionOptions>, client?: EngineOptions) => SessionOptions;
  readonly open: (more?: Partial<SessionOptions>, client?: EngineOptions) => Promise<Session>;
  readonly resume: (id: string, more?: Partial<SessionOptions>) => Promise<Session>;
  /** Ids of all sessions that are kept, forks included. */
  readonly kept: (folder?: string) => readonly string[];
  /** Requests as they came, parsed. */
  readonly bodies: () => readonly JsonObject[];
};

export type GroundOptions = Omit<SimulatorOptions, "script"> & {
  /** Tokens of a conventions file, so that a parent is long enough to be cached. */
  readonly conventions?: number; // default: none
};

/** Everything runs, and outside a sandbox: the commands of these tests are harmless. */
export const unasked: Permissions = { policy: { ...mergeLayers([]), sandbox: "off" }, mode: "bypass" };

export const openFamily = async (
  script: SimScript,
  { conventions = 0, ...rest }: GroundOptions = {},
): Promise<FamilyGround> => {
  const folder = scratch();
  for (const name of ["work", "home"]) mkdirSync(folder.at(name));
  if (conventions > 0) folder.put("work/AGENTS.md", textOfTokens(conventions));
  const simulator = await startSimulator({ keepBodies: true, ...rest, script });
  const options = (more: Partial<SessionOptions> = {}, client: EngineOptions = {}): SessionOptions => ({
    engine: anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" }, ...client }),
    ...{ cwd: folder.at("work"), home: folder.at("home"), state: folder.at("state") },
    environment: { PATH: "/usr/bin:/bin" },
    permissions: unasked,
    ids: countedIds(),
    ...more,
  });
  return {
    ...{ folder, simulator, options, work: folder.at("work") },
    open: (more, client) => createSession(options(more, client)),
    resume: (id, more) => resumeSession(id, options({ ids: countedIds(1_000), ...more })),
    kept: (name = "sessions") => readdirSync(folder.at("state", name)),
    bodies: () => simulator.requests().map(({ body }) => JSON.parse(body.toString("utf8")) as JsonObject),
    [Symbol.asyncDispose]: async () => {
      await simulator.close();
      folder[Symbol.dispose]();
    },
  };
};

/** `task-1`, `task-2`, and so on for each kind. */
export const countedIds = (from = 0): Ids => {
  const counts = new Map<string, number>();
  return {
    next: (kind) => {
      const count = (counts.get(kind) ?? from) + 1;
      counts.set(kind, count);
      return `${kind}-${count}`;
    },
  };
};

// --- the model ---------------------------------------------------------------------------------------------------------

/** What a script knows of the request before it. */
export type Seen = {
  readonly request: SimRequest;
  /** What a fork is to do; undefined for the main agent. */
  readonly directive: string | undefined;
  /** Answers since the directive, or since the last prompt of the main agent. */
  readonly answers: number;
  /** In the last message. */
  readonly results: readonly SeenToolResult[];
  readonly told: readonly Notification[];
  /** All text of the last message. */
  readonly words: string;
};

const listOf = (value: Json | undefined): readonly JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);

const isObject = (value: Json): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const DIRECTIVE = /fork-directive: (.*)/;

/** Text blocks of a message, those inside results included. */
const textsOf = (message: JsonObject | undefined): readonly string[] =>
  listOf(message?.content).flatMap((block) =>
    block.type === "tool_result" ? textsOf(block) : typeof block.text === "string" ? [block.text] : [],
  );

export const seenIn = (request: SimRequest): Seen => {
  const messages = listOf(request.body.messages);
  const told = (message: JsonObject): string | undefined =>
    textsOf(message).flatMap((text) => DIRECTIVE.exec(text)?.slice(1) ?? [])[0];
  const at = messages.findLastIndex((message) => message.role === "user" && told(message) !== undefined);
  const directive = at < 0 ? undefined : told(messages[at] ?? {});
  const words = textsOf(messages.at(-1)).join("\n");
  return {
    request,
    directive,
    answers: messages.slice(at + 1).filter(({ role }) => role === "assistant").length,
    results: toolResults(request),
    told: parseNotifications(words),
    words,
  };
};

/** Is this the question for a summary? No other speaks of such a tag at its end. */
export const asksForSummary = ({ words }: Seen): boolean => words.includes("between <summary> and </summary>");

export type FamilyScript = {
  /** By the words of the last message of the main agent. Default: it waits for what it started and says what it heard. */
  readonly main: (seen: Seen) => SimAnswer | Promise<SimAnswer>;
  readonly fork: (seen: Seen & { readonly directive: string }) => SimAnswer | Promise<SimAnswer>;
};

export const familyScript =
  ({ main, fork }: FamilyScript): SimScript =>
  (request) => {
    const seen = seenIn(request);
    return seen.directive === undefined ? main(seen) : fork({ ...seen, directive: seen.directive });
  };

/** A main agent that starts one fork for each of these, waits, and then says how each ended. */
export const starts =
  (calls: readonly JsonObject[]) =>
  ({ told, results }: Seen): SimAnswer => {
    if (told.length > 0) return say(told.map(({ label, status }) => `${label}: ${status}`).join("\n"));
    if (results.length > 0) return say("I wait.");
    return { content: calls.map((input) => ({ type: "tool_use" as const, name: "Agent", input })) };
  };

/** The call that starts one. */
export const part = (prompt: string): JsonObject => ({ description: prompt, prompt });

// --- what a test compares ----------------------------------------------------------------------------------------------

export type Gate = { readonly passed: Promise<void>; readonly open: () => void };

/** Something that a test lets go on. */
export const gate = (): Gate => {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { passed: promise, open: resolve };
};

/** Prompts and reads to the end; `at` is called with each event. */
export const prompted = async (
  session: Session,
  words: string,
  at: (event: RuntimeEvent) => void = () => {},
): Promise<{ readonly result: ExchangeResult; readonly events: readonly RuntimeEvent[] }> => {
  const exchange = session.prompt(words);
  const events: RuntimeEvent[] = [];
  for await (const event of exchange) {
    events.push(event);
    at(event);
  }
  return { result: await exchange.result(), events };
};

export const endsOf = (session: Session): Readonly<Record<string, string>> =>
  Object.fromEntries(session.tasks.map(({ label, state }) => [label, state.kind === "ended" ? state.end : state.kind]));

/** Processes whose command line has this text. */
export const processesWith = (text: string): readonly string[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ");
      } catch {
        return ""; // it has ended
      }
    })
    .filter((line) => line.includes(text));

/** Those of them that do not go: what watches over a command ends a moment after it. */
export const leftWith = async (text: string): Promise<readonly string[]> => {
  for (let waited = 0; waited < 10_000 && processesWith(text).length > 0; waited += 20) await after(20);
  return processesWith(text);
};

// --- forks of a program ------------------------------------------------------------------------------------------------

/** A parent that only listens; forks by their directive. */
export const openListening = (fork: FamilyScript["fork"], conventions = 0): Promise<FamilyGround> =>
  openFamily(familyScript({ main: () => say("heard"), fork }), { conventions });

/** What a fork without a transcript is started with. */
const unkeptFork = (task: string): ForkPlan => ({
  ...{ task, runId: "run-1", label: "look", agentType: "fork", querySource: "agent:builtin:fork", mode: "sync" },
  ...{ directive: "look", protocol: "standard", tail: { inFlight: "keep", placeholders: "forks" }, limits: {} },
  ...{ skipTranscript: true, isFiltered: false },
});

export const unkeptPlan = (task: string): ChildPlan => ({
  fork: unkeptFork(task),
  siblings: { family: task, tasks: [task] },
  begins: { kind: "empty" },
});

/** A session that has something to inherit. */
export const begun = async (place: FamilyGround, more: Partial<SessionOptions> = {}): Promise<Session> => {
  const session = await place.open(more);
  await prompted(session, "hello");
  return session;
};

export const ended = async (handle: ForkHandle): Promise<Extract<ForkOutcome, { readonly status: "ended" }>> => {
  const outcome = await handle.result();
  if (outcome.status !== "ended") throw new Error(`${outcome.taskId} was moved to the background`);
  return outcome;
};

export const bash = (command: string): ToolCall => ({ name: "Bash", input: { command } });

/** Everything that happens while `work` goes on. */
export const watched = async (session: Session, work: () => Promise<unknown>): Promise<readonly RuntimeEvent[]> => {
  const seen: RuntimeEvent[] = [];
  const reader = session.events();
  const reading = (async () => {
    for await (const event of reader) seen.push(event);
  })();
  await work();
  await immediate(); // what was given last is read
  reader[Symbol.dispose]();
  await reading;
  return seen;
};

export const withoutMarkers = (json: string): string => json.replaceAll(/,"cache_control":\{[^{}]*\}/g, "");
