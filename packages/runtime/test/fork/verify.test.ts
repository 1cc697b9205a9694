/** Did a fork's first request read as much from the cache as it could? */

import assert from "node:assert/strict";
import { test } from "node:test";
import { anthropic, FrozenPrefix, type Usage, userText } from "@prefork/wire";
import { type Expectation, findCacheMiss, findDivergence } from "../../src/fork/index.ts";

const head = { model: "claude-sonnet-5", tools: [], system: [], settings: {} };
const parent = FrozenPrefix.open(anthropic.encoder, head).append(userText("the parent's words"));

const usage = (read: number, written: number): Usage => ({ plain: 0, read, written: { "5m": written }, output: 1 });
const expecting = (tokens: number, more: Partial<Expectation> = {}): Expectation => ({
  ...{ tokens, estimated: 0, parent },
  ...more,
});

test("a fork that read everything it could has no miss, within the error of an estimate", () => {
  assert.equal(findCacheMiss({ expectation: expecting(10_000), usage: usage(9_960, 300) }), undefined);
  assert.equal(
    findCacheMiss({ expectation: expecting(10_500, { estimated: 500 }), usage: usage(10_000, 800) }),
    undefined,
  );
});

test("reading less than half when half was readable is a warning, with the provider's own explanation", () => {
  assert.deepEqual(
    findCacheMiss({ expectation: expecting(10_000), usage: usage(0, 10_300), diagnosed: "tools_changed" }),
    {
      expected: 10_000,
      read: 0,
      prompt: 10_300,
      cause: "the provider says: tools_changed",
      isWarning: true,
    },
  );
});

test("the alarm is raised below half of the prompt, if half of it was readable", () => {
  const alarm = (expected: number, read: number): boolean | undefined =>
    findCacheMiss({ expectation: expecting(expected), usage: usage(read, 10_000 - read) })?.isWarning;
  assert.deepEqual([alarm(9_000, 4_999), alarm(9_000, 5_000)], [true, false]);
  assert.deepEqual([alarm(5_000, 3_500), alarm(4_999, 3_500)], [true, false]);
});

test("a partial miss and an expected miss are reported without an alarm", () => {
  const part = findCacheMiss({ expectation: expecting(10_000), usage: usage(8_000, 2_300) });
  assert.deepEqual(
    [part?.isWarning, part?.cause],
    [false, "the bytes are the parent's; the provider no longer had the entry, or not yet"],
  );
  const cold = findCacheMiss({
    expectation: expecting(0, { knownMissReason: "it was cold" }),
    usage: usage(0, 10_300),
  });
  assert.deepEqual(cold, { expected: 0, read: 0, prompt: 10_300, cause: "it was cold", isWarning: false });
});

test("bytes that differ from the parent's are named by their JSON path", () => {
  const other = FrozenPrefix.open(anthropic.encoder, head).append(userText("the parent's wards"));
  const missed = findCacheMiss({
    expectation: expecting(10_000),
    diverged: findDivergence(parent, other),
    usage: usage(0, 10_300),
  });
  assert.deepEqual(
    [missed?.diverged, missed?.cause],
    ["messages[0].content[0].text", "the bytes differ from the parent's at messages[0].content[0].text"],
  );
});

test("if a provider does not report cache reads there is no alarm, unless the bytes differ", () => {
  const expectation = expecting(10_000, { unreported: "this endpoint counts no reads" });
  const told = findCacheMiss({ expectation, usage: usage(0, 10_300) });
  const other = FrozenPrefix.open(anthropic.encoder, head).append(userText("the parent's wards"));
  const differs = findCacheMiss({ expectation, diverged: findDivergence(parent, other), usage: usage(0, 10_300) });
  assert.deepEqual(
    [told, differs].map((miss) => [miss?.isWarning, miss?.cause]),
    [
      [false, "cache reads were not reported: this endpoint counts no reads"],
      [true, "the bytes differ from the parent's at messages[0].content[0].text"],
    ],
  );
});
