/** Every pair of the corpus: what x-ray says of the bodies alone, beside what the simulator billed for them. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { type LedgerRow, ManualClock, type Simulator, startSimulator } from "@prefork/simulator";
import { diffRequests, type SentFacts, type Xray } from "@prefork/xray";
import { a as conversation, b as goesOn } from "./corpus/conversation.ts";
import { pairs } from "./corpus/index.ts";
import type { Pair } from "./corpus/pair.ts";

const simulators = new Map<string, Promise<Simulator>>();
after(async () => {
  for (const simulator of simulators.values()) await (await simulator).close();
});

const simulatorFor = (singly: boolean): Promise<Simulator> => {
  const lookback = singly ? "singly" : "runs";
  const there = simulators.get(lookback) ?? startSimulator({ clock: new ManualClock(), lookback });
  simulators.set(lookback, there);
  return there;
};

const post = async (sim: Simulator, body: unknown, betas: readonly string[] = []): Promise<void> => {
  const response = await fetch(`${sim.url}/v1/messages`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-api-key": "any",
      ...(betas.length > 0 ? { "anthropic-beta": betas.join(",") } : {}),
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const answer = await response.text();
  if (response.status !== 200) throw new Error(answer);
};

type Judged = { readonly a: LedgerRow; readonly b: LedgerRow };

/** Both requests really sent, one after the other. */
const judge = async ({
  a = conversation,
  b,
  betas,
  waitMs = 0,
  together,
  singly,
}: Omit<Pair, "cause" | "name" | "read" | "lost">): Promise<Judged> => {
  const sim = await simulatorFor(singly === true);
  sim.reset();
  if (together) {
    sim.fault({ kind: "together", times: 2 });
    // The first must have arrived before the second is sent.
    const first = post(sim, a, betas?.a);
    while (sim.ledger().length === 0) await new Promise(setImmediate);
    await Promise.all([first, post(sim, b, betas?.b)]);
  } else {
    await post(sim, a, betas?.a);
    sim.clock.advance(waitMs);
    await post(sim, b, betas?.b);
  }
  const [rowA, rowB] = sim.ledger();
  if (!rowA || !rowB) throw new Error("no rows");
  return { a: rowA, b: rowB };
};

const usageOf = ({ plain, read, written, output }: LedgerRow): SentFacts["usage"] & {} => ({
  plain,
  read,
  written,
  output,
});

const kept = ({ read, written }: LedgerRow): number => read + written["5m"] + written["1h"];

const factsOf = ({ betas, waitMs, together }: Pair): { a: SentFacts; b: SentFacts } => ({
  a: { ...(betas ? { betas: betas.a } : {}), ...(waitMs || together ? { startedAt: 0, firstEventAt: 900 } : {}) },
  b: { ...(betas ? { betas: betas.b } : {}), ...(waitMs || together ? { startedAt: waitMs ?? 0 } : {}) },
});

const seen = ({ cause, divergence, tokens, lost }: Xray) => ({
  cause,
  path: divergence?.path,
  promptA: tokens.a,
  promptB: tokens.b,
  kept: tokens.kept,
  read: tokens.read,
  lost: lost.tokens,
});

for (const pair of pairs)
  test(`${pair.name}: ${pair.cause.kind}`, async () => {
    const judged = await judge(pair);
    const facts = factsOf(pair);
    const reading = pair.singly ? "singly" : "runs";
    const xray = diffRequests(pair.a ?? conversation, pair.b, { ...facts, reading });
    const expected = {
      cause: pair.cause,
      path: pair.path,
      promptA: judged.a.promptTokens,
      promptB: judged.b.promptTokens,
      kept: kept(judged.a),
      read: judged.b.read,
      lost: pair.lost,
    };
    assert.deepEqual(seen(xray), expected);
    assert.equal(judged.b.read, pair.read, "what the description says was read");
    assert.ok(pair.lost <= judged.b.promptTokens - judged.b.read, "more lost than was paid for");
    const stated = { a: { ...facts.a, usage: usageOf(judged.a) }, b: { ...facts.b, usage: usageOf(judged.b) } };
    assert.deepEqual(seen(diffRequests(pair.a ?? conversation, pair.b, { ...stated, reading })), expected);
  });

/** Parameters that the simulator names, and a body says elsewhere or nowhere. */
const NAMED: Readonly<Record<string, RegExp>> = {
  effort: /^output_config/,
  output_format: /^output_config/,
  images: /^messages/,
  citations: /^messages/,
};

test("the first difference is at the location that the simulator names", async () => {
  for (const pair of pairs) {
    const { firstDivergence } = (await judge(pair)).b;
    if (firstDivergence === null) continue;
    const { path = "" } = pair;
    // The simulator names the second request's place, also of something that only the first one has.
    const inB = diffRequests(pair.a ?? conversation, pair.b, factsOf(pair)).divergence?.b.path ?? "-";
    const agrees = [path, inB].some(
      (named) => named !== "" && (named.startsWith(firstDivergence) || firstDivergence.startsWith(named)),
    );
    assert.ok(agrees || NAMED[firstDivergence]?.test(path), `${pair.name}: ${path}, and ${firstDivergence}`);
  }
});

test("the money lost is what the simulator bills beyond the same conversation without the change", async () => {
  const plain = await judge({ b: goesOn });
  const compared: string[] = [];
  for (const pair of pairs) {
    // Without a published price for it the fast class has no money here.
    if (pair.a !== undefined || pair.waitMs !== undefined || pair.together || pair.cause.kind === "speed") continue;
    const { b } = await judge(pair);
    const samePrompt =
      b.promptTokens === plain.b.promptTokens &&
      b.plain === plain.b.plain &&
      b.model === plain.b.model &&
      b.read + pair.lost === plain.b.read;
    if (!samePrompt) continue;
    const { lost } = diffRequests(conversation, pair.b, factsOf(pair));
    const more = (b.billed.usd ?? Number.NaN) - (plain.b.billed.usd ?? Number.NaN);
    assert.equal(lost.usd?.toFixed(9), more.toFixed(9), pair.name);
    compared.push(pair.name);
  }
  assert.ok(compared.length >= 15, `only ${compared.length} pairs could be compared`);
});
