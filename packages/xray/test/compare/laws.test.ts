/** What must hold of any two requests. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, startSimulator } from "@prefork/simulator";
import type { JsonObject, Usage } from "@prefork/wire";
import { diffRequests, type XrayLocation } from "@prefork/xray";
import fc from "fast-check";
import { marked, prose, type Request, words } from "./corpus/conversation.ts";
import { anyChanges, anyPlaces, anyRequest, anyTurn, edited, withMarkers } from "./random.ts";

const numRuns = 150;
const seed = 11;

const grown = (request: Request, turn: Request["messages"]): Request => ({
  ...request,
  messages: [...request.messages, ...turn],
});

/** What a place points at, read from the bytes. */
const pointedAt = (body: string, { offset, length }: XrayLocation): string =>
  JSON.parse(`"${Buffer.from(body).toString("utf8", offset, offset + length)}"`) as string;

test("one inserted character is found: its path, its bytes in both bodies, and the character itself", () => {
  fc.assert(
    fc.property(anyRequest, anyTurn, fc.tuple(fc.nat(), fc.nat()), (request, turn, [which, where]) => {
      const change = edited(request, which, where);
      fc.pre(change !== undefined);
      const [a, b] = [JSON.stringify(request), JSON.stringify(grown(change?.request ?? request, turn), null, 1)];
      const { divergence } = diffRequests(a, b);
      assert.ok(divergence);
      assert.equal(divergence.path, change?.path);
      assert.deepEqual([divergence.a.text, divergence.b.text], ["", "¤"]);
      assert.deepEqual([pointedAt(a, divergence.a), pointedAt(b, divergence.b)], ["", "¤"]);
      const rest = (body: string, { offset, length }: XrayLocation): string =>
        Buffer.from(body).toString("utf8", offset + length);
      assert.ok(rest(a, divergence.a).startsWith(JSON.stringify(divergence.a.after).slice(1, -1).slice(0, 5)));
    }),
    { numRuns, seed },
  );
});

test("of two edits the one that is rendered first is named", () => {
  fc.assert(
    fc.property(anyRequest, fc.tuple(fc.nat(), fc.nat()), fc.nat(), (request, [one, other], where) => {
      const first = edited(request, Math.min(one, other), where);
      const both = first && edited(first.request, Math.max(one, other), where);
      const alone = edited(request, Math.max(one, other), where);
      fc.pre(first !== undefined && both !== undefined && alone !== undefined);
      const paths = [first, alone].map((change) => diffRequests(request, change?.request ?? request).divergence?.path);
      const named = diffRequests(request, both?.request ?? request).divergence?.path;
      assert.ok(paths.includes(named));
      const order = orderOf(request);
      assert.equal(named, paths.sort((x, y) => order.indexOf(x ?? "") - order.indexOf(y ?? ""))[0]);
    }),
    { numRuns: 60, seed },
  );
});

/** Paths in the order of the prompt: every path that an edit can have, tools first, then system, then messages. */
const orderOf = (request: Request): readonly string[] => {
  const paths = new Set<string>();
  for (let which = 0; ; which += 1) {
    const path = edited(request, which, 0)?.path;
    if (path === undefined || paths.has(path)) return [...paths];
    paths.add(path);
  }
};

test("what is cached, read and counted is what the simulator bills, whatever is marked and whatever is changed", async () => {
  await using runs = await startSimulator({ clock: new ManualClock() });
  await using singly = await startSimulator({ clock: new ManualClock(), lookback: "singly" });
  const post = async (url: string, body: Request): Promise<void> => {
    const headers = { "content-type": "application/json", "x-api-key": "any" };
    const response = await fetch(`${url}/v1/messages`, { method: "POST", headers, body: JSON.stringify(body) });
    const answer = await response.text();
    assert.equal(response.status, 200, answer);
  };
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        request: anyRequest,
        turn: anyTurn,
        first: anyPlaces,
        second: anyPlaces,
        edits: fc.array(fc.nat(), { maxLength: 2 }),
        change: anyChanges,
        isSingle: fc.boolean(),
      }),
      async ({ request, turn, first, second, edits, change, isSingle }) => {
        const sim = isSingle ? singly : runs;
        sim.reset();
        const changed = edits.reduce((body, which) => edited(body, which, which)?.request ?? body, change(request));
        const [a, b] = [withMarkers(request, first), withMarkers(grown(changed, turn), second)];
        await post(sim.url, a);
        await post(sim.url, b);
        const [rowA, rowB] = sim.ledger();
        const { tokens, lost } = diffRequests(a, b, { reading: isSingle ? "singly" : "runs" });
        assert.deepEqual(
          { a: tokens.a, b: tokens.b, kept: tokens.kept, read: tokens.read },
          {
            a: rowA?.promptTokens,
            b: rowB?.promptTokens,
            kept: (rowA?.read ?? 0) + (rowA?.written["5m"] ?? 0),
            read: rowB?.read,
          },
        );
        assert.ok(lost.tokens <= tokens.b - tokens.read, "no more is lost than was paid for");
        assert.ok(lost.tokens >= 0);
      },
    ),
    { numRuns, seed },
  );
});

/** Models of every way to keep, with the steps in which each reads. */
const KEEPERS = [
  ["claude-sonnet-5", 1],
  ["anthropic/claude-sonnet-5", 1],
  ["qwen3.7-max", 1],
  ["gpt-6-sol", 1],
  ["gpt-5.4", 128],
  ["deepseek-flash", 64],
  ["MiniMax-M3", 1],
  ["google/gemini-3.8-flash", 1],
] as const;

const spoken = (model: string, tail: number): JsonObject => {
  const said = [
    { role: "user", content: [prose(500, 2, marked)] },
    ...(tail === 0
      ? []
      : [
          { role: "assistant", content: [prose(9, 3)] },
          { role: "user", content: [prose(tail, 4, marked)] },
        ]),
  ];
  return model.startsWith("claude")
    ? { model, max_tokens: 9, system: [prose(5_500, 1, marked)], messages: said }
    : { model, messages: [{ role: "system", content: [{ type: "text", text: words(5_500, 1), ...marked }] }, ...said] };
};

test("a request that read all that the first one stated lost nothing, and one that read less lost the rest, at any density", () => {
  const density = fc.double({ min: 0.9, max: 3, noNaN: true });
  const terms = fc.record({
    keeper: fc.constantFrom(...KEEPERS),
    head: density,
    tail: fc.double({ min: 0.2, max: 4, noNaN: true }),
    length: fc.integer({ min: 1, max: 9_000 }),
    share: fc.double({ min: 0, max: 0.98, noNaN: true }),
  });
  fc.assert(
    fc.property(terms, ({ keeper: [model, step], head, tail, length, share }) => {
      const first = Math.round(6_000 * head);
      const whole = first + Math.max(1, Math.round((9 + length) * tail));
      const stated = (prompt: number, read: number): { usage: Usage } => ({
        usage:
          step === 1 && !model.startsWith("MiniMax")
            ? { plain: 0, read, written: { "5m": prompt - read }, output: 1 }
            : { plain: prompt - read, read, written: {}, output: 1 },
      });
      const judged = (read: number) => {
        const { cause, lost, tokens } = diffRequests(spoken(model, 0), spoken(model, length), {
          a: stated(first, 0),
          b: stated(whole, read),
        });
        return [cause.kind, lost.tokens, tokens.shared <= first];
      };
      const all = Math.floor(first / step) * step;
      const less = Math.floor((all * share) / step) * step;
      assert.deepEqual(judged(all), ["none", 0, true]);
      assert.deepEqual(judged(less), ["unexplained", all - less, true]);
    }),
    { numRuns, seed },
  );
});
