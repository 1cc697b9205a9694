/** Budgets of families in money and tokens: no request is sent that could exceed a limit, whatever is sent, answered or
 *  broken off. Actual and worst-case costs come from the simulator's ledger, which has its own figures. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as after } from "node:timers/promises";
import {
  callTools,
  type LedgerRow,
  type SimAnswer,
  type SimBody,
  type SimRequest,
  type Simulator,
  say,
  textOfTokens,
} from "@prefork/simulator";
import { type JsonObject, knownModels, noUsage, promptTokens } from "@prefork/wire";
import fc from "fast-check";
import type { SpendLimits } from "../../src/index.ts";
import { countedIds, endsOf, openFamily, part, prompted, type Seen, seenIn } from "./family-ground.ts";

type Taken = { readonly usd: number; readonly tokens: number };

/** A request of a fork: whose it is, and what it may take at most. */
type Watched = { readonly fork: string; readonly most: (row: LedgerRow) => Taken };

/** Of every request that forks have sent: what is billed where it is over, what it could still take where it is not. A
 *  server hears late of a client that has gone, so whoever was stopped takes no more than it was billed for. */
class Bill {
  readonly #simulator: () => Simulator;
  readonly #stopped: ReadonlySet<string>;
  readonly #watched = new Map<number, Watched | undefined>();
  readonly passed: string[] = [];

  constructor(simulator: () => Simulator, stopped: ReadonlySet<string>) {
    this.#simulator = simulator;
    this.#stopped = stopped;
  }

  /** Holds what is taken and could be against the limits. */
  check(family: SpendLimits, fork: SpendLimits): void {
    const forks = new Map<string, Taken>();
    for (const [name, { usd, tokens }] of this.#rows()) {
      const before = forks.get(name) ?? { usd: 0, tokens: 0 };
      forks.set(name, { usd: before.usd + usd, tokens: before.tokens + tokens });
    }
    const all = [...forks.values()].reduce(
      (sum, { usd, tokens }) => ({ usd: sum.usd + usd, tokens: sum.tokens + tokens }),
      { usd: 0, tokens: 0 },
    );
    for (const [name, taken, limits] of [
      ["family", all, family] as const,
      ...[...forks].map(([name, taken]) => [name, taken, fork] as const),
    ]) {
      if (taken.usd > (limits.usd ?? Number.POSITIVE_INFINITY) + 1e-9)
        this.passed.push(`${name}: $${taken.usd} of $${limits.usd}`);
      if (taken.tokens > (limits.tokens ?? Number.POSITIVE_INFINITY))
        this.passed.push(`${name}: ${taken.tokens} tokens of ${limits.tokens}`);
    }
  }

  #rows(): readonly (readonly [fork: string, taken: Taken])[] {
    const simulator = this.#simulator();
    for (const { sequence, body } of simulator.requests())
      if (!this.#watched.has(sequence)) this.#watched.set(sequence, watchedIn(JSON.parse(body.toString("utf8"))));
    return simulator.ledger().flatMap((row) => {
      const watched = this.#watched.get(row.sequence);
      if (!watched) return [];
      const billed = { usd: row.billed.usd ?? 0, tokens: row.promptTokens + row.output };
      const isOpen = row.outcome === "open" && !this.#stopped.has(watched.fork);
      return [[watched.fork, isOpen ? watched.most(row) : billed] as const];
    });
  }
}

const watchedIn = (body: JsonObject): Watched | undefined => {
  const { directive } = seenIn({ body: body as SimBody, headers: {}, model: "" });
  if (directive === undefined) return undefined;
  const { model, max_tokens: maxTokens } = body;
  const facts = knownModels.get(String(model));
  assert.ok(facts);
  const isLong = JSON.stringify(body).includes('"ttl":"1h"');
  return {
    fork: directive,
    most: ({ promptTokens }) => {
      const { prices } = facts.tiers?.findLast(({ above }) => promptTokens > above) ?? facts;
      const write = (isLong ? prices.write["1h"] : prices.write["5m"]) ?? 0;
      const usd = (promptTokens * write + Number(maxTokens) * prices.output) / 1e6;
      return { usd, tokens: promptTokens + Number(maxTokens) };
    },
  };
};

type Asked = {
  readonly model: string;
  readonly ttl: "5m" | "1h";
  readonly isCold: boolean;
  /** Tokens of the parent, about. */
  readonly parent: number;
  readonly maxTokens: number;
  /** In worst cases of a first request. */
  readonly family: number;
  readonly fork: number;
  readonly limited: "usd" | "tokens";
  /** For each fork: its turns, the share of the longest answer that each takes, and whether it is stopped in its last. */
  readonly forks: readonly { readonly turns: number; readonly share: number; readonly isStopped: boolean }[];
  readonly wakes: boolean;
};

const asking: fc.Arbitrary<Asked> = fc.record({
  model: fc.constantFrom("claude-sonnet-5", "claude-opus-4-1", "claude-fable-5-1", "claude-haiku-5-5", "claude-opus-5"),
  ttl: fc.constantFrom("5m", "1h"),
  isCold: fc.boolean(),
  parent: fc.integer({ min: 4_000, max: 12_000 }),
  maxTokens: fc.integer({ min: 500, max: 8_000 }),
  family: fc.double({ min: 0.3, max: 6, noNaN: true }),
  fork: fc.double({ min: 0.8, max: 4, noNaN: true }),
  limited: fc.constantFrom("usd", "tokens"),
  forks: fc.array(
    fc.record({
      turns: fc.integer({ min: 1, max: 3 }),
      share: fc.constantFrom(0.01, 0.5, 1),
      isStopped: fc.boolean(),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  wakes: fc.boolean(),
});

const limitsOf = (asked: Asked, times: number): SpendLimits => {
  const { model, maxTokens, parent, limited } = asked;
  const facts = knownModels.get(model);
  assert.ok(facts);
  const tokens = Math.round(times * (parent + 4_000 + maxTokens));
  const usd = (times * ((parent + 4_000) * facts.prices.input * 2 + maxTokens * facts.prices.output)) / 1e6;
  return limited === "usd" ? { usd } : { tokens };
};

/** Runs it, and gives what passed a limit at any moment, and how the forks ended. */
const run = async (asked: Asked): Promise<{ readonly passed: readonly string[]; readonly ends: readonly string[] }> => {
  const { model, ttl, maxTokens, forks } = asked;
  const [family, fork] = [limitsOf(asked, asked.family), limitsOf(asked, asked.fork)];
  const work = async ({ directive = "", answers, request }: Seen): Promise<SimAnswer> => {
    bill.check(family, fork);
    await after(2); // so that others are asked meanwhile
    const { turns = 1, share = 0 } = forks[Number(directive.slice(5)) - 1] ?? {};
    const outputTokens = Math.max(1, Math.floor(Number(request.body.max_tokens) * share));
    if (answers < turns - 1)
      return { ...callTools([{ name: "Read", input: { file_path: "some.txt" } }]), outputTokens };
    return { ...say(`Scope: ${directive}\nResult: done`), outputTokens };
  };
  const main = ({ told, results, answers }: Seen): SimAnswer => {
    if (told.length > 0) return say("told");
    if (results.length > 0) return say("I wait.");
    const calls = forks.map((_, at) => ({ name: "Agent", input: part(`part ${at + 1}`) }));
    return answers === 0
      ? callTools(calls)
      : callTools([{ name: "SendMessage", input: { to: "task-1", message: "more" } }]);
  };
  await using ground = await openFamily(
    (request) => {
      const seen = seenIn(request);
      return seen.directive === undefined ? main(seen) : work(seen);
    },
    { conventions: asked.parent - 3_500, latency: { betweenEventsMs: 2 } },
  );
  ground.folder.put("work/some.txt", textOfTokens(1_500));
  await using session = await ground.open({ model, ttl, maxTokens, forking: { family, fork } });
  const stopped = new Set<string>();
  const bill = new Bill(() => ground.simulator, stopped);
  const { result } = await prompted(session, "go", (event) => {
    if (asked.isCold && event.type === "turn_ended" && event.agent === "main" && event.turn === 1)
      ground.simulator.clock.advance(2 * 3_600_000);
    // In the middle of an answer: what has come of it is paid for.
    const number = Number(event.agent.slice(5));
    if (event.type === "text_grew" && forks[number - 1]?.isStopped) {
      stopped.add(`part ${number}`);
      void session.stopTask(event.agent);
    }
    bill.check(family, fork);
  });
  assert.equal(result.end, "done");
  stopped.clear();
  if (asked.wakes) await prompted(session, "again", () => bill.check(family, fork));
  bill.check(family, fork);
  return { passed: bill.passed, ends: Object.values(endsOf(session)) };
};

const RUNS = 12;

test("no request of a family can exceed its budget, for any prices, sizes and limits", async (context) => {
  const ends: Record<string, number> = {};
  await fc.assert(
    fc.asyncProperty(asking, async (asked) => {
      const { passed, ends: all } = await run(asked);
      for (const end of all) ends[end] = (ends[end] ?? 0) + 1;
      assert.deepEqual(passed, []);
      assert.deepEqual(
        all.filter((end) => !["reported", "over-budget", "aborted"].includes(end)),
        [],
      );
    }),
    { numRuns: RUNS, seed: 20_261_115 },
  );
  context.diagnostic(`the forks ended ${JSON.stringify(ends)}`);
  assert.ok((ends.reported ?? 0) > 0 && (ends["over-budget"] ?? 0) > 0 && (ends.aborted ?? 0) > 0);
});

/** 15 dollars a million in, 18.75 written, 75 out. */
const OPUS = "claude-opus-4-1";

test("in a family with one dollar, three requests that could spend it together are sent one after another, and none exceeds it", async () => {
  let [open, most] = [0, 0];
  const work = async ({ directive, answers }: Seen): Promise<SimAnswer> => {
    open += 1;
    most = Math.max(most, open);
    await after(5);
    open -= 1;
    // Each takes 8,000 tokens of answer: sixty cents.
    if (answers === 0) return { ...callTools([{ name: "Bash", input: { command: "true" } }]), outputTokens: 4_000 };
    return { ...say(`Scope: ${directive}\nResult: done`), outputTokens: 4_000 };
  };
  const main = ({ told, results }: Seen): SimAnswer => {
    if (told.length > 0) return say(told.map(({ status, result }) => `${status}: ${result}`).join("\n"));
    if (results.length > 0) return say("I wait.");
    return callTools(["one", "two", "three"].map((name) => ({ name: "Agent", input: part(name) })));
  };
  await using ground = await openFamily((request) => {
    const seen = seenIn(request);
    return seen.directive === undefined ? main(seen) : work(seen);
  });
  await using session = await ground.open({ model: OPUS, maxTokens: 8_000, forking: { family: { usd: 1 } } });
  const { result } = await prompted(session, "go");
  const forks = new Set(session.tasks.flatMap(({ session: id }) => id ?? []));
  const billed = session.tasks.reduce((sum, { spent }) => sum + (spent?.usd ?? 0), 0);
  assert.deepEqual([result.end, most, forks.size], ["done", 1, 3]);
  assert.ok(billed > 0.6 && billed <= 1, String(billed));
  assert.match(
    result.text,
    /over-budget: Ended as over-budget: the next request could cost \$\d\.\d{4}, and \$0\.\d{4} of the budget is left/,
  );
});

for (const [whose, forking] of [
  // Each takes some 4,700 tokens; once more it would take 5,900 at least.
  ["its family", { family: { tokens: 14_000 } }],
  ["itself", { fork: { tokens: 9_000 } }],
] as const) {
  test(`resuming a fork gives ${whose} no new budget, in this run of the session and the next`, async () => {
    await using ground = await openFamily((request) => {
      const { directive, told, words } = seenIn(request);
      if (directive !== undefined) return { ...say(`Scope: ${directive}\nResult: done`), outputTokens: 1_000 };
      if (told.length > 0) return say(told.map(({ label, status }) => `${label}: ${status}`).join("\n"));
      return words.includes("async_launched")
        ? say("I wait.")
        : callTools(["one", "two"].map((name) => ({ name: "Agent", input: part(name) })));
    });
    const limits = { maxTokens: 2_000, forking };
    let id = "";
    {
      await using session = await ground.open(limits);
      id = session.id;
      await prompted(session, "go");
      assert.deepEqual(endsOf(session), { one: "reported", two: "reported" });
      const { state } = await session.resumeTask("task-1", { message: "more" });
      assert.deepEqual(state, { kind: "ended", end: "over-budget" });
    }
    const before = ground.simulator.requests().length;
    await using session = await ground.resume(id, limits);
    const { state } = await session.resumeTask("task-2", { message: "more" });
    assert.deepEqual(state, { kind: "ended", end: "over-budget" });
    assert.equal(ground.simulator.requests().length, before);
  });
}

test("agents that start empty share the budget of the forks of their family", async () => {
  await using ground = await openFamily((request) => {
    const { directive, told, results } = seenIn(request);
    const isEmpty = JSON.stringify(request.body.system).includes("You know nothing of the conversation before");
    if (directive !== undefined || isEmpty) return { ...say("Scope: it\nResult: done"), outputTokens: 2_000 };
    if (told.length > 0 || results.length > 0) return say("heard");
    const inputs = [part("fork"), { ...part("empty"), subagent_type: "general-purpose" }];
    return callTools(inputs.map((input) => ({ name: "Agent", input })));
  });
  // Whoever is first leaves less than the other needs.
  await using session = await ground.open({ maxTokens: 2_000, forking: { family: { tokens: 9_000 } } });
  await prompted(session, "go");
  assert.deepEqual(Object.values(endsOf(session)).sort(), ["over-budget", "reported"]);
});

test("without a known price, a budget in dollars refuses every request and says so; a budget in tokens is enforced", async () => {
  await using ground = await openFamily((request) => {
    const { directive, told, results } = seenIn(request);
    if (directive !== undefined) return say("Scope: it\nResult: done");
    if (told.length > 0) return say(String(told[0]?.result));
    return results.length > 0 ? say("I wait.") : callTools([{ name: "Agent", input: part("it") }]);
  });
  const model = "model-of-nobody";
  await using session = await ground.open({ model, forking: { family: { usd: 1 } } });
  assert.equal(
    (await prompted(session, "go")).result.text,
    "Ended as over-budget: the price of the model is unknown, so a budget in dollars cannot be enforced",
  );
  assert.equal(ground.simulator.requests().filter(({ body }) => body.includes("fork-directive")).length, 0);
  await using other = await ground.open({ model, forking: { family: { tokens: 100_000 } }, ids: countedIds(50) });
  assert.equal((await prompted(other, "go")).result.text, "Scope: it\nResult: done");
});

test("an answer that breaks off is billed for what arrived, and retried only if the budget allows", async () => {
  const script = (request: SimRequest): SimAnswer => {
    const { directive, told, results } = seenIn(request);
    if (directive !== undefined) return say(`Scope: it\nResult: ${"word ".repeat(200)}`);
    if (told.length > 0 || results.length > 0) return say("heard");
    return callTools([{ name: "Agent", input: part("it") }]);
  };
  for (const [tokens, ends] of [
    [40_000, "reported"],
    [9_000, "failed"],
  ] as const) {
    await using ground = await openFamily(script);
    await using session = await ground.open({ maxTokens: 2_000, forking: { fork: { tokens } } });
    await prompted(session, "go", (event) => {
      if (event.type === "fork_started") ground.simulator.fault({ kind: "error-mid-stream", moment: "after-content" });
    });
    assert.deepEqual(endsOf(session), { it: ends });
    const asked = ground.simulator
      .requests()
      .flatMap(({ body, sequence }) => (watchedIn(JSON.parse(body.toString("utf8"))) ? [sequence] : []));
    const rows = ground.simulator.ledger().filter(({ sequence }) => asked.includes(sequence));
    assert.deepEqual(
      rows.map(({ outcome }) => outcome),
      ends === "reported" ? ["interrupted", "complete"] : ["interrupted"],
    );
    const { usage = noUsage } = session.tasks[0]?.spent ?? {};
    assert.equal(
      promptTokens(usage),
      rows.reduce((sum, row) => sum + row.promptTokens, 0),
    );
    assert.ok(usage.output >= rows.reduce((sum, row) => sum + row.output, 0));
  }
});
