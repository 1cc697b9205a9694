/** A folder, a simulator behind a proxy, and sessions on them: what tests of faults have in common.
 *  Invariant: nothing of the user's own home or state is touched; whoever leaves finds everything closed. */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { mergeLayers } from "@prefork/guard";
import {
  lastUserText,
  type SimAnswer,
  type SimRequest,
  type SimScript,
  type Simulator,
  say,
  startSimulator,
  toolResults,
} from "@prefork/simulator";
import { type Scratch, scratch } from "@prefork/testing/scratch";
import type { RetryTiming } from "@prefork/wire";
import {
  anthropicEngine,
  createSession,
  type EngineOptions,
  type Exchange,
  type ExchangeResult,
  type Permissions,
  type RuntimeEvent,
  resumeSession,
  type Session,
  type SessionOptions,
} from "../../src/index.ts";
import { startProxy, type TwistingProxy } from "./twisting-proxy.ts";

export const KEY = "sk-secret-0123456789";

/** What the model answers to a prompt; to results it says what it saw. */
export type Answers = Readonly<Record<string, SimAnswer | ((request: SimRequest) => SimAnswer | Promise<SimAnswer>)>>;

export type Ground = AsyncDisposable & {
  readonly folder: Scratch;
  readonly work: string;
  readonly simulator: Simulator;
  readonly proxy: TwistingProxy;
  readonly options: (more?: Partial<SessionOptions>, client?: EngineOptions) => SessionOptions;
  readonly open: (more?: Partial<SessionOptions>, client?: EngineOptions) => Promise<Session>;
};

export const openGround = async (answers: Answers | SimScript = {}): Promise<Ground> => {
  const folder = scratch();
  for (const name of ["work", "home"]) mkdirSync(folder.at(name));
  const script: SimScript = typeof answers === "function" ? answers : (request) => answerTo(request, answers);
  const simulator = await startSimulator({ keepBodies: true, script });
  const proxy = await startProxy(simulator.url);
  const options = (more: Partial<SessionOptions> = {}, client: EngineOptions = {}): SessionOptions => ({
    engine: anthropicEngine({
      baseUrl: proxy.url,
      credential: { kind: "api-key", value: KEY },
      timing: jumpingTiming(),
      ...client,
    }),
    cwd: folder.at("work"),
    home: folder.at("home"),
    state: folder.at("state"),
    environment: { PATH: "/usr/bin:/bin" },
    permissions: unasked,
    ...more,
  });
  return {
    folder,
    work: folder.at("work"),
    simulator,
    proxy,
    options,
    open: (more, client) => createSession(options(more, client)),
    [Symbol.asyncDispose]: async () => {
      await proxy[Symbol.asyncDispose]();
      await simulator.close();
      folder[Symbol.dispose]();
    },
  };
};

/** Everything runs, and outside a sandbox: the commands of these tests are harmless. */
export const unasked: Permissions = {
  policy: { ...mergeLayers([]), sandbox: "off" },
  mode: "bypass",
};

const answerTo = async (request: SimRequest, answers: Answers): Promise<SimAnswer> => {
  const results = toolResults(request);
  const prompt = lastUserText(request);
  if (results.length > 0 && prompt === "")
    return say(`saw ${results.map(({ text, isError }) => (isError ? "! " : "") + text).join(" | ")}`);
  const found = Object.entries(answers).find(([words]) => prompt.includes(words))?.[1];
  if (found === undefined) return say(`heard ${prompt}`);
  return typeof found === "function" ? found(request) : found;
};

/** Time that jumps over every wait, and keeps them. */
export const jumpingTiming = (): RetryTiming & { readonly waits: readonly number[] } => {
  const waits: number[] = [];
  let now = 0;
  return {
    waits,
    now: () => now,
    random: () => 0,
    wait: async (ms) => {
      waits.push(ms);
      now += ms;
    },
  };
};

export type Gate = { readonly passed: Promise<void>; readonly open: () => void };

/** Something that a test lets go on. */
export const gate = (): Gate => {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { passed: promise, open: resolve };
};

/** Reads an exchange to its end; `at` is called with each event. */
export const followed = async (
  exchange: Exchange,
  at: (event: RuntimeEvent) => void = () => {},
): Promise<{ readonly result: ExchangeResult; readonly events: readonly RuntimeEvent[] }> => {
  const events: RuntimeEvent[] = [];
  for await (const event of exchange) {
    events.push(event);
    at(event);
  }
  return { result: await exchange.result(), events };
};

/** How an exchange ended, as its last event says it. */
export const endOf = (events: readonly RuntimeEvent[]): string | undefined => {
  const last = events.at(-1);
  return last?.type === "exchange_ended" ? `${last.end}: ${last.reason}` : undefined;
};

export const reopened = (ground: Ground, id: string, more: Partial<SessionOptions> = {}): Promise<Session> =>
  resumeSession(id, ground.options(more));

/** The session goes on in this process and, closed, in another life; every request was legal, and none changed a byte of
 *  those before it. Closes the session. */
export const assertGoesOn = async (
  ground: Ground,
  session: Session,
  more: Partial<SessionOptions> = {},
): Promise<void> => {
  assert.deepEqual(ended(await session.prompt("go on").result()), { end: "done", text: "heard go on" });
  await session.close();
  await using again = await reopened(ground, session.id, more);
  assert.deepEqual(ended(await again.prompt("and on").result()), { end: "done", text: "heard and on" });
  assertOnlyGrown(ground.simulator);
};

const ended = ({ end, text }: ExchangeResult): Pick<ExchangeResult, "end" | "text"> => ({ end, text });

/** Of the requests that the simulator got, each begins with the bytes of the one before; it refused none as illegal. */
export const assertOnlyGrown = (simulator: Simulator): void => {
  const illegal = simulator.ledger().flatMap(({ status, error }) => (status === 400 ? [error] : []));
  assert.deepEqual(illegal, []);
  // A summary is asked for beside the conversation, which goes on without the question.
  const bodies = simulator
    .requests()
    .map(({ body }) => withoutMarkers(body))
    .filter((body) => !body.includes(SUMMARY));
  for (const [at, body] of bodies.entries()) {
    const before = bodies[at - 1];
    if (before === undefined) continue;
    const kept = before.slice(0, before.lastIndexOf('],"max_tokens"'));
    assert.ok(kept.length > 1_000 && body.startsWith(kept), `request ${at + 1} does not begin with request ${at}`);
  }
};

/** What a request for a summary says, and no other. */
export const SUMMARY = "goes on from a summary that you write now";

const withoutMarkers = (body: Buffer): string => body.toString("utf8").replaceAll(/,"cache_control":\{[^{}]*\}/g, "");
