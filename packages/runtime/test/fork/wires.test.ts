/** Forks on every wire: is a family as warm as its provider's rules allow, and are its bytes shared?
 *  The table of docs/providers.md is what is measured here. */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { mergeLayers } from "@prefork/guard";
import {
  callTools,
  type LedgerRow,
  ManualClock,
  type ProviderName,
  type SimRequest,
  type Simulator,
  type SimulatorOptions,
  say,
  startSimulator,
  toolResults,
} from "@prefork/simulator";
import { scratch } from "@prefork/testing/scratch";
import { directiveText, FORK_DIRECTIVE_PREFIX } from "@prefork/wire";
import { createSession, engineFor, type RuntimeEvent } from "../../src/index.ts";

type Wire = {
  readonly rules: ProviderName;
  readonly profile: string;
  readonly model: string;
  readonly path: string;
  /** Why a family reads less than all that it inherits, where the provider's rules do not let it. */
  readonly because?: string;
  /** How much the parent reads. Default: 300. */
  readonly lines?: number;
  /** Rules of the simulator that are others than the provider's. */
  readonly changed?: SimulatorOptions["rules"];
  /** What is read depends on who comes first, so the page shows a usual run. */
  readonly varies?: true;
};

const WIRES: readonly Wire[] = [
  { rules: "anthropic", profile: "anthropic", model: "claude-sonnet-5", path: "" },
  { rules: "openai", profile: "openai", model: "gpt-6.1-sol", path: "/v1" },
  { rules: "openai", profile: "openai-chat", model: "gpt-6.1-sol", path: "/v1" },
  { rules: "openai-legacy", profile: "openai", model: "gpt-5.4", path: "/v1", because: "whole steps of 128 tokens" },
  { rules: "gemini", profile: "gemini", model: "gemini-3.8-flash", path: "/v1beta" },
  {
    ...{ rules: "deepseek", profile: "deepseek", model: "deepseek-flash", path: "/v1" },
    because: "the entry of the parent's answer is still being built",
    varies: true,
  },
  { rules: "minimax", profile: "minimax", model: "MiniMax-M2.7", path: "" },
  { rules: "dashscope", profile: "dashscope", model: "qwen3.7-max", path: "/v1" },
  { rules: "vllm", profile: "vllm", model: "any", path: "/v1", because: "blocks of 16 tokens, and never the last one" },
  {
    rules: "llamacpp",
    profile: "llama.cpp",
    model: "any",
    path: "/v1",
    because: "everything if sent one after another: slots share nothing",
  },
];

const PARTS = 5;
const names = (count: number): readonly string[] => Array.from({ length: count }, (_, part) => `part${part + 10}`);
const PLAN = "Each part is looked at by a fork of mine, which reports what it found there. ".repeat(80);

const textOf = ({ body }: SimRequest): string => JSON.stringify(body);

/** Reads, then has each part looked at. What it does follows from the request alone; every answer takes five seconds. */
const script = (clock: ManualClock, count: number) => (request: SimRequest) => {
  clock.advance(5_000);
  const text = textOf(request);
  const directive = text.lastIndexOf(`${FORK_DIRECTIVE_PREFIX} part`);
  if (directive >= 0) return say(`Scope: ${text.slice(directive + 16, directive + 22)}\nResult: done`);
  if (text.includes("<task-id>")) return say("All parts are done.");
  if (toolResults(request).length === 0) return callTools([{ name: "Read", input: { file_path: "a.txt" } }]);
  if (text.includes("look at part10")) return say("I wait.");
  return callTools(
    names(count).map((part) => ({ name: "Agent", input: { description: `look at ${part}`, prompt: part } })),
    PLAN,
  );
};

type Missed = Extract<RuntimeEvent, { readonly type: "fork_cache_missed" }>;

type Run = {
  readonly rows: readonly LedgerRow[];
  readonly bodies: readonly string[];
  readonly missed: readonly Missed[];
};

const run = async ({ rules, profile, model, path, changed, lines = 300 }: Wire, count: number): Promise<Run> => {
  using folder = scratch();
  for (const name of ["work", "home"]) mkdirSync(folder.at(name));
  folder.put("work/a.txt", "every line is read by the parent, and known to its forks\n".repeat(lines));
  const clock = new ManualClock();
  await using simulator: Simulator = await startSimulator({
    ...{ provider: rules, clock, keepBodies: true, script: script(clock, count) },
    ...(changed ? { rules: changed } : {}),
  });
  const credential = { kind: "api-key", value: "any" } as const;
  await using session = await createSession({
    engine: engineFor(profile, { baseUrl: simulator.url + path, model, credential }),
    ...{ cwd: folder.at("work"), home: folder.at("home"), state: folder.at("state") },
    environment: { PATH: "/usr/bin:/bin" },
    permissions: { policy: { ...mergeLayers([]), sandbox: "off" }, mode: "bypass" },
    clock: { now: () => clock.now(), sleep: passing(clock) },
    forking: { store: false }, // what is read without anything stored by name
  });
  const exchange = session.prompt("Have all parts looked at.");
  const missed: Missed[] = [];
  for await (const event of exchange) if (event.type === "fork_cache_missed") missed.push(event);
  const { end, text } = await exchange.result();
  assert.deepEqual(
    [end, text, new Set(session.tasks.map(({ state }) => JSON.stringify(state))).size],
    ["done", "All parts are done.", 1],
  );
  return { rows: simulator.ledger(), bodies: simulator.requests().map(({ body }) => body.toString()), missed };
};

/** Time that is waited for passes at once, but not before those who are under way have had theirs. */
const passing =
  (clock: ManualClock) =>
  (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => {
        clock.advance(ms);
        resolve();
      }, 400);
      const end = (): void => {
        clearTimeout(timer);
        resolve();
      };
      signal.addEventListener("abort", end, { once: true });
    });

const isFork = (body: string): boolean => body.includes(`${FORK_DIRECTIVE_PREFIX} part`);

/** Of the parent's request before the fan-out, of the forks' first ones, and of the parent's next. */
const partsOf = ({ rows, bodies }: Run) => {
  const launched = bodies.findIndex(isFork);
  const forks = rows.filter((_, at) => isFork(bodies[at] ?? ""));
  const next = rows.find((_, at) => at > launched && !isFork(bodies[at] ?? ""));
  const parent = rows[launched - 1];
  assert.ok(parent && next);
  return { parent, forks, next };
};

const OWN = Math.round(Buffer.byteLength(directiveText("part10")) / 4);

type Shares = { readonly leader: number; readonly others: number; readonly next: number };

/** What was read, as a share of what is inherited: P for whoever leads, P and S for all others. */
const sharesOf = (measured: Run): Shares => {
  const { parent, forks, next } = partsOf(measured);
  const [leader, ...others] = forks;
  const shared = (leader?.promptTokens ?? 0) - OWN;
  return {
    leader: (leader?.read ?? 0) / parent.promptTokens,
    others: Math.min(...others.map(({ read }) => read / shared)),
    next: next.read / shared,
  };
};

const percent = (share: number): string => `${(Math.floor(Math.min(1, share) * 1_000) / 10).toFixed(1)} %`;

const page = readFileSync(new URL("../../../../docs/providers.md", import.meta.url), "utf8");
const measuredRows: string[] = [];

const ENOUGH = 0.995;

for (const wire of WIRES)
  test(`${wire.rules}, by ${wire.profile}: ${PARTS} forks read what they inherit, as far as the provider's rules allow`, async () => {
    const measured = await run(wire, PARTS);
    const shares = sharesOf(measured);
    const { leader, others, next } = shares;
    const name = `| ${wire.rules} (\`${wire.profile}\`) |`;
    const shown = page.split("\n").find((line) => line.startsWith(name));
    const figures = `${name} ${wire.model} | ${percent(leader)} | ${percent(others)} | ${percent(next)} | ${wire.because ?? ""} |`;
    measuredRows.push(wire.varies && shown ? shown : figures);
    if (wire.because === undefined)
      assert.ok(leader >= ENOUGH && others >= ENOUGH && next >= ENOUGH, JSON.stringify(shares));
    for (const { outcome } of measured.rows) assert.equal(outcome, "complete");
    // What the provider documents is nothing to warn of.
    assert.deepEqual(
      measured.missed.filter(({ isWarning }) => isWarning),
      [],
    );
  });

test("reads in steps of 2,048 tokens raise no alarm", async () => {
  const wire: Wire = { rules: "openai-legacy", profile: "openai", model: "gpt-5.5", path: "/v1", lines: 20 };
  const { missed } = await run(wire, 3);
  assert.deepEqual(
    missed.filter(({ isWarning }) => isWarning),
    [],
  );
});

test("a family whose cache is broken raises one alarm, which counts its siblings", async () => {
  const wire: Wire = {
    ...{ rules: "anthropic", profile: "anthropic", model: "claude-sonnet-5", path: "" },
    changed: { cache: { minimumPrefix: 10_000_000 } }, // nothing is ever cached
  };
  const { missed } = await run(wire, PARTS);
  const alarms = missed.filter(({ isWarning }) => isWarning);
  assert.deepEqual(
    [missed.length, alarms.map(({ siblings, level, read }) => ({ siblings, level, read }))],
    [PARTS, [{ siblings: PARTS - 1, level: "warn", read: 0 }]],
  );
  assert.equal(new Set(missed.map(({ taskId }) => taskId)).size, PARTS);
});

test("the measurements match docs/providers.md", () => {
  const [, shown = ""] = /<!-- forks -->\n([\s\S]*?)\n<!-- \/forks -->/.exec(page) ?? [];
  const head = [
    "| rules (profile) | model | the first fork reads of P | the others of P and S | the parent's next of P and S | why not all |",
    "|---|---|---|---|---|---|",
  ];
  const table = [...head, ...measuredRows].join("\n");
  assert.ok(shown === table, `docs/providers.md: the table between the comments "forks" should be\n${table}`);
});

/** Bodies without what marks an entry, and without the words that are a fork's own. */
const shared = (body: string): string => {
  const own = body.lastIndexOf("<fork-boilerplate>");
  return withoutMarkers(body.slice(0, own));
};
const withoutMarkers = (json: string): string =>
  json.replaceAll(/,"cache_control":\{[^{}]*\}/g, "").replaceAll(/,"prompt_cache_breakpoint":\{[^{}]*\}/g, "");

for (const wire of WIRES.filter(({ rules }) => !["llamacpp", "vllm"].includes(rules)))
  test(`${wire.rules}, by ${wire.profile}: twenty forks have the same bytes up to their own directives`, async () => {
    const measured = await run(wire, 20);
    const first = measured.bodies.findIndex(isFork);
    const parent = withoutMarkers(measured.bodies[first - 1] ?? "");
    const forks = measured.bodies.filter(isFork).map(shared);
    assert.equal(new Set(forks).size, 1);
    const inherited = parent.slice(0, commonLength(parent, forks[0] ?? ""));
    // After the parent's last item there is nothing but what closes the lists and what is in no cache key.
    assert.ok(inherited.length > parent.length - 600, `${parent.length - inherited.length} bytes are not inherited`);
    const { forks: rows } = partsOf(measured);
    const missed = rows.filter(({ missCause }) => missCause === "overflowed");
    assert.deepEqual(missed, []);
  });

const commonLength = (one: string, other: string): number => {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
};
