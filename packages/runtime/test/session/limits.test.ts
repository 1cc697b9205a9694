/** Invalid limits: each is refused by its name before anything is sent, and never treated as no limit. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { say } from "@prefork/simulator";
import { InputError } from "@prefork/wire";
import { Engines } from "../../src/agent/index.ts";
import { anthropicEngine, type ForkOptions, type PromptOptions, type SessionOptions } from "../../src/index.ts";
import { resolveOptions } from "../../src/session/options.ts";
import { begun, openListening } from "../fork/family-ground.ts";

const LONGEST = 2_147_483_647;

const amount = (name: string, got: unknown): string => `${name} must be a non-negative number, got ${got}`;
const count = (name: string, got: unknown): string => `${name} must be a non-negative whole number, got ${got}`;
const time = (name: string, got: unknown): string => `${name} must be from 0 to ${LONGEST} ms, got ${got}`;

/** A number as a program in plain JavaScript may give it. */
const words = "0.01" as unknown as number;

const CREATED: readonly (readonly [Partial<SessionOptions>, string])[] = [
  [{ limits: { usd: Number.NaN } }, amount("limits.usd", "NaN")],
  [{ limits: { usd: words } }, amount("limits.usd", "0.01")],
  [{ limits: { tokens: -1 } }, amount("limits.tokens", "-1")],
  [{ limits: { maxTurns: 1.5 } }, count("limits.maxTurns", "1.5")],
  [{ limits: { ms: LONGEST + 1 } }, time("limits.ms", "2147483648")],
  [{ forking: { fork: { usd: Number.POSITIVE_INFINITY } } }, amount("fork.usd", "Infinity")],
  [{ forking: { fork: { tokens: Number.NaN } } }, amount("fork.tokens", "NaN")],
  [{ forking: { fork: { turns: -3 } } }, count("fork.turns", "-3")],
  [{ forking: { fork: { ms: Number.NaN } } }, time("fork.ms", "NaN")],
  [{ forking: { family: { usd: -0.01 } } }, amount("family.usd", "-0.01")],
  [{ forking: { family: { tokens: Number.NaN } } }, amount("family.tokens", "NaN")],
  [{ forking: { mostPerFamily: 2.5 } }, count("mostPerFamily", "2.5")],
  [{ forking: { mostPerSession: Number.NaN } }, count("mostPerSession", "NaN")],
  [{ forking: { otherToolsMs: -1 } }, time("otherToolsMs", "-1")],
  [{ forking: { autoBackgroundMs: words } }, time("autoBackgroundMs", "0.01")],
  [{ mostTasks: Number.NaN }, count("mostTasks", "NaN")],
];

const FORKED: readonly (readonly [Omit<ForkOptions, "prompt">, string])[] = [
  [{ maxTurns: 1.5 }, count("maxTurns", "1.5")],
  [{ maxTurns: Number.NaN }, count("maxTurns", "NaN")],
  [{ timeoutMs: 2 ** 40 }, time("timeoutMs", "1099511627776")],
  [{ timeoutMs: -1 }, time("timeoutMs", "-1")],
  [{ timeoutMs: Number.NaN }, time("timeoutMs", "NaN")],
  [{ limits: { usd: Number.NaN } }, amount("limits.usd", "NaN")],
  [{ limits: { usd: words } }, amount("limits.usd", "0.01")],
  [{ limits: { tokens: -1 } }, amount("limits.tokens", "-1")],
];

const PROMPTED: readonly (readonly [PromptOptions, string])[] = [
  [{ limits: { ms: Number.NaN } }, time("limits.ms", "NaN")],
  [{ limits: { ms: LONGEST + 1 } }, time("limits.ms", "2147483648")],
  [{ limits: { maxTurns: -1 } }, count("limits.maxTurns", "-1")],
  [{ limits: { maxTurns: 0.5 } }, count("limits.maxTurns", "0.5")],
];

test("a session with an invalid limit is not created, and the limit is named", async () => {
  await using place = await openListening(() => say("done"));
  for (const [options, reason] of CREATED) await assert.rejects(place.open(options), new InputError(reason));
});

test("a fork or a prompt with an invalid limit is refused by the limit's name, and the session continues", async () => {
  await using place = await openListening(() => say("Scope: x\nResult: done"));
  await using session = await begun(place);
  for (const [options, reason] of FORKED)
    assert.throws(() => session.fork({ prompt: "x", ...options }), new InputError(reason));
  for (const [options, reason] of PROMPTED) assert.throws(() => session.prompt("x", options), new InputError(reason));
  assert.deepEqual([session.tasks, place.simulator.ledger().length], [[], 1]);
  assert.equal((await session.prompt("go on").result()).text, "heard");
});

test("limits at their edges work: zero, and the longest time that a timer can wait", async () => {
  await using place = await openListening(() => say("Scope: x\nResult: done"));
  const limits = { usd: 100, tokens: 1_000_000, maxTurns: 1, ms: LONGEST };
  await using session = await begun(place, { limits, mostTasks: 1 });
  const ends = async (options: Omit<ForkOptions, "prompt">): Promise<string> => {
    const outcome = await session.fork({ prompt: "x", ...options }).result();
    return outcome.status === "ended" ? outcome.end : outcome.status;
  };
  assert.deepEqual(
    [
      await ends({ timeoutMs: LONGEST, maxTurns: 1 }),
      await ends({ maxTurns: 0 }),
      await ends({ limits: { usd: 0 } }),
      await ends({ limits: { tokens: 0 } }),
    ],
    ["reported", "out-of-turns", "over-budget", "over-budget"],
  );
});

test("the window is the caller's, else the engine's, else the model's, else 200,000", () => {
  const sonnet = anthropicEngine({ model: "claude-sonnet-5" });
  const gateway = anthropicEngine({ model: "claude-sonnet-5", window: 400_000 });
  const own = anthropicEngine({ model: "my-own-model" });
  const asked: readonly SessionOptions[] = [
    ...[{ engine: sonnet, window: 50_000 }, { engine: gateway, window: 50_000 }, { engine: gateway }],
    ...[{ engine: sonnet }, { engine: sonnet, model: "claude-haiku-4-5" }, { engine: own }],
  ];
  assert.deepEqual(
    asked.map((options) => new Engines(resolveOptions(options)).open(resolveOptions(options).model).window),
    [50_000, 50_000, 400_000, 1_000_000, 200_000, 200_000],
  );
});
