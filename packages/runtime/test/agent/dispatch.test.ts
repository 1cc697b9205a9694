import assert from "node:assert/strict";
import { test } from "node:test";
import type { GuardContext } from "@prefork/guard";
import { contextOf } from "@prefork/testing/policies";
import type { ToolResultBlock, ToolUseBlock } from "@prefork/wire";
import * as z from "zod";
import { type Batch, type Content, type Dispatch, runBatch } from "../../src/agent/index.ts";
import type { EventBody } from "../../src/events.ts";
import { JournalError } from "../../src/journal/index.ts";
import type { Answer, Question } from "../../src/ports.ts";
import { createRegistry, defineTool, type Tool, type ToolContext, type ToolOutput } from "../../src/tools/index.ts";
import { gate } from "../session/fault-ground.ts";
import { bench } from "../tools/tool-bench.ts";

type Body = (name: string, context: ToolContext) => Promise<ToolOutput>;

/** Look only reads, Change does not; what they do is up to the test. */
const tools = (body: Body): readonly Tool[] =>
  ["Look", "Change"].map((name) =>
    defineTool({
      name,
      description: `${name}s`,
      input: z.strictObject({ at: z.string() }),
      readOnly: name === "Look",
      run: ({ at }, context) => body(at, context),
    }),
  );

const call = (name: string, at: string): ToolUseBlock => ({
  type: "tool_use",
  id: `id-${at}`,
  name,
  input: JSON.stringify({ at }),
});

type Staging = {
  readonly body: Body;
  readonly guard?: Partial<GuardContext>;
  readonly ask?: (question: Omit<Question, "id" | "agent">, signal: AbortSignal) => Promise<Answer>;
  readonly signal?: AbortSignal;
  readonly known?: ReadonlyMap<string, ToolResultBlock>;
  readonly shorten?: Dispatch["shorten"];
  readonly record?: Dispatch["record"];
  readonly enters?: boolean;
  readonly graceMs?: number;
};

type Staged = Batch & { readonly log: readonly string[]; readonly events: readonly EventBody[] };

const staged = async (calls: readonly ToolUseBlock[], staging: Staging): Promise<Staged> => {
  await using around = await bench();
  const log: string[] = [];
  const events: EventBody[] = [];
  const { body, guard = {}, signal = new AbortController().signal, known } = staging;
  const registry = createRegistry(tools(body));
  const dispatch: Dispatch = {
    registry,
    guard: () => contextOf({}, { mode: "bypass", readingTools: ["Look"], ...guard }),
    ask: staging.ask ?? (async () => ({ kind: "deny" })),
    allowAlways: async (rule) => void log.push(`always ${rule}`),
    contextOf: async ({ callId }, heard) => ({ ...around.context, callId, signal: heard }),
    shorten: staging.shorten ?? (async (_id, _tool, content) => content),
    shortenBatch: async (results) => results,
    record: staging.record ?? {
      started: (callId) => void log.push(`started ${callId}`),
      ended: (callId) => void log.push(`ended ${callId}`),
      read: ({ toolUseId }) => void log.push(`read ${toolUseId}`),
    },
    emit: (event) => void events.push(event),
    now: () => 0,
    ...(staging.graceMs === undefined ? {} : { graceMs: staging.graceMs }),
  };
  const { enters = false } = staging;
  const batch = await runBatch(calls, dispatch, { signal, enters, ...(known ? { known } : {}) });
  return { ...batch, log, events };
};

const textsOf = (results: readonly ToolResultBlock[]): readonly string[] =>
  results.map(({ toolUseId, content: [block], isError }) => {
    const text = block?.type === "text" ? block.text : "";
    return `${toolUseId}: ${isError ? "! " : ""}${text}`;
  });

const saying: Body = async (at) => ({ content: `did ${at}` });

test("read-only calls run in parallel, and their results are in the order of the calls", async () => {
  const all = gate();
  const inside = new Set<string>();
  const finished: string[] = [];
  const { results } = await staged([call("Look", "a"), call("Look", "b"), call("Look", "c")], {
    body: async (at) => {
      inside.add(at);
      if (inside.size === 3) all.open();
      await all.passed; // none can end before all have begun
      if (at === "a") await new Promise((resolve) => setImmediate(resolve));
      finished.push(at);
      return { content: `did ${at}` };
    },
  });
  assert.deepEqual(finished, ["b", "c", "a"]);
  assert.deepEqual(textsOf(results), ["id-a: did a", "id-b: did b", "id-c: did c"]);
});

test("a call that changes something waits for all calls before it, runs alone, and later calls wait for it", async () => {
  const steps: string[] = [];
  const calls = [call("Look", "a"), call("Change", "b"), call("Change", "c"), call("Look", "d"), call("Look", "e")];
  const { results } = await staged(calls, {
    body: async (at) => {
      steps.push(`+${at}`);
      for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      steps.push(`-${at}`);
      return { content: `did ${at}` };
    },
  });
  assert.deepEqual(steps, ["+a", "-a", "+b", "-b", "+c", "-c", "+d", "+e", "-d", "-e"]);
  assert.deepEqual(
    textsOf(results),
    ["a", "b", "c", "d", "e"].map((at) => `id-${at}: did ${at}`),
  );
});

test("a call is recorded before and after its effect, and its events follow the records", async () => {
  const order: string[] = [];
  const { events } = await staged([call("Change", "a")], {
    body: async () => {
      order.push("effect");
      return { content: "done" };
    },
    record: { started: () => void order.push("started"), ended: () => void order.push("ended"), read: () => {} },
  });
  assert.deepEqual(order, ["started", "effect", "ended"]);
  assert.deepEqual(events, [
    { type: "call_proposed", callId: "id-a", tool: "Change", args: { at: "a" } },
    { type: "call_started", callId: "id-a", tool: "Change", reason: "bypass mode" },
    { type: "call_ended", callId: "id-a", tool: "Change", text: "done", ms: 0 },
  ]);
});

test("the event of a single read-only call follows the entry of its result, which is its record", async () => {
  const { results, log, events, entered } = await staged([call("Look", "a")], { body: saying, enters: true });
  assert.deepEqual(textsOf(results), ["id-a: did a"]);
  assert.deepEqual(log, ["started id-a", "read id-a"]);
  const types = (): readonly string[] => events.map(({ type }) => type);
  assert.deepEqual(types(), ["call_proposed", "call_started"]);
  entered();
  assert.deepEqual(events.at(-1), { type: "call_ended", callId: "id-a", tool: "Look", text: "did a", ms: 0 });
});

test("calls that wait for others, change something or are refused are recorded when they end, and then emit their events", async () => {
  const batches: readonly (readonly ToolUseBlock[])[] = [
    [call("Look", "a"), call("Look", "b")],
    [call("Change", "a")],
    [call("Lok", "a")],
  ];
  for (const calls of batches) {
    const { log, events, entered } = await staged(calls, { body: saying, enters: true });
    assert.deepEqual(
      log.filter((line) => !line.startsWith("started")),
      calls.map(({ id }) => `ended ${id}`),
    );
    const told = events.length;
    entered();
    assert.equal(events.length, told);
  }
});

test("an abort in the middle of a batch leaves every call with a result, and starts no further call", async () => {
  const stop = new AbortController();
  const ran: string[] = [];
  const calls = [call("Look", "a"), call("Change", "b"), call("Change", "c"), call("Look", "d")];
  const { results, log } = await staged(calls, {
    signal: stop.signal,
    body: async (at, { signal }) => {
      ran.push(at);
      if (at !== "b") return { content: "done" };
      stop.abort();
      signal.throwIfAborted();
      return { content: "never" };
    },
  });
  assert.deepEqual(ran, ["a", "b"]);
  assert.deepEqual(textsOf(results), [
    "id-a: done",
    "id-b: ! Interrupted by the user; what it had begun may be half done.",
    "id-c: ! Not run: the user interrupted before it began.",
    "id-d: ! Not run: the user interrupted before it began.",
  ]);
  assert.deepEqual(log.slice(-3), ["ended id-b", "ended id-c", "ended id-d"]);
});

test("a call that changes something does not start if the abort came while it waited for others", async () => {
  const stop = new AbortController();
  const { results } = await staged([call("Look", "a"), call("Change", "b")], {
    signal: stop.signal,
    body: async (at) => {
      if (at === "b") throw new Error("it ran");
      await new Promise((resolve) => setImmediate(resolve));
      stop.abort();
      return { content: "done" };
    },
  });
  assert.deepEqual(textsOf(results), ["id-a: done", "id-b: ! Not run: the user interrupted before it began."]);
});

test("a tool that ignores the abort is not waited for forever", async () => {
  const stop = new AbortController();
  const { results } = await staged([call("Change", "a")], {
    signal: stop.signal,
    graceMs: 1,
    body: () => {
      stop.abort();
      return new Promise(() => {});
    },
  });
  assert.deepEqual(textsOf(results), ["id-a: ! Interrupted by the user; what it had begun may be half done."]);
});

test("an unknown tool and invalid input are answered with what would be valid", async () => {
  const calls = [
    call("Lok", "a"),
    call("Paint", "b"),
    { ...call("Look", "c"), input: '{"where":1}' },
    { ...call("Look", "d"), input: '{"at":"x","at":"y"}' },
  ];
  const { results, events } = await staged(calls, { body: saying });
  assert.deepEqual(textsOf(results).slice(0, 2), [
    "id-a: ! There is no tool Lok. Did you mean Look?",
    "id-b: ! There is no tool Paint. There are Look, Change.",
  ]);
  assert.match(textsOf(results)[2] ?? "", /^id-c: ! Look: .*"at"/);
  assert.match(textsOf(results)[3] ?? "", /^id-d: ! Look: the input is ambiguous: /);
  const faults = events.flatMap((event) => (event.type === "call_ended" ? [event.fault] : []));
  assert.deepEqual(faults, ["unknown-tool", "unknown-tool", "bad-input", "bad-input"]);
});

test("with nobody to ask, a call that needs a question is denied, and no question event is emitted", async () => {
  const { results, events } = await staged([call("Change", "a"), call("Look", "b")], {
    body: saying,
    guard: { mode: "default", asks: "nobody" },
  });
  assert.match(textsOf(results)[0] ?? "", /^id-a: ! Not allowed: .*; there is nobody to ask, /);
  assert.equal(textsOf(results)[1], "id-b: did b");
  assert.deepEqual(
    events.flatMap((event) => (event.type === "call_ended" ? [event.fault] : [event.type])),
    ["call_proposed", "denied", "call_proposed", "call_started", undefined],
  );
});

const asked = (answer: Answer | Error): Promise<Staged> =>
  staged([call("Change", "a"), call("Change", "b")], {
    body: saying,
    guard: { mode: "default" },
    ask: async ({ args }) => {
      if (args.at !== "a") return { kind: "allow" };
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });

test("each answer to a question takes effect: allow, always, deny, deny and stop, and no answer", async () => {
  const allowed = await asked({ kind: "allow" });
  assert.deepEqual([textsOf(allowed.results), allowed.stopped], [["id-a: did a", "id-b: did b"], false]);
  const always = await asked({ kind: "always", rule: "Change" });
  assert.deepEqual(always.log[0], "always Change");
  assert.deepEqual(textsOf(always.results), ["id-a: did a", "id-b: did b"]);
  const denied = await asked({ kind: "deny", reason: "rather not" });
  assert.deepEqual(
    [textsOf(denied.results), denied.stopped],
    [["id-a: ! Not allowed: rather not", "id-b: did b"], false],
  );
  const stopped = await asked({ kind: "deny", stop: true });
  assert.deepEqual(textsOf(stopped.results), [
    "id-a: ! Not allowed: the user said no",
    "id-b: ! Not run: the user interrupted before it began.",
  ]);
  assert.equal(stopped.stopped, true);
  const failed = await asked(new Error("gone"));
  assert.deepEqual(textsOf(failed.results), [
    "id-a: ! Not allowed: the question could not be answered: gone",
    "id-b: did b",
  ]);
});

test("a question is asked only when the calls before it have ended", async () => {
  const order: string[] = [];
  await staged([call("Look", "a"), call("Change", "b")], {
    guard: { mode: "default" },
    ask: async () => {
      order.push("asked");
      return { kind: "deny" };
    },
    body: async (at) => {
      for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      order.push(at);
      return { content: "" };
    },
  });
  assert.deepEqual(order, ["a", "asked"]);
});

test("a tool that throws fails only its own call, and a tool without output says so", async () => {
  const { results, events } = await staged([call("Look", "a"), call("Change", "b"), call("Look", "c")], {
    body: async (at) => {
      if (at === "a") throw new RangeError("out of range");
      if (at === "b") throw "a text";
      return { content: "" };
    },
  });
  assert.deepEqual(textsOf(results), [
    "id-a: ! The tool failed: out of range",
    "id-b: ! The tool failed: a text",
    "id-c: (no output)",
  ]);
  const faults = events.flatMap((event) => (event.type === "call_ended" ? [event.fault] : []));
  assert.deepEqual(faults, ["failed", "failed", undefined]);
});

test("a tool that returns undefined fails only its own call, and undefined never enters the conversation", async () => {
  const returned: Readonly<Record<string, unknown>> = {
    nothing: undefined,
    null: null,
    text: "a text",
    empty: {},
    missing: { content: undefined },
    number: { content: 5 },
    object: { content: { text: "x" } },
    blocks: { content: [{ type: "text", text: undefined }] },
    other: { content: [{ type: "video" }] },
    good: { content: [{ type: "text", text: "good" }] },
  };
  const { results, events } = await staged(
    Object.keys(returned).map((at) => call("Look", at)),
    { body: async (at) => returned[at] as ToolOutput },
  );
  const told = (at: string, problem: string): string =>
    `id-${at}: ! The tool failed: it returned ${problem}. A tool returns { content: text or blocks }.`;
  const block = "content with a block that is neither text nor an image";
  assert.deepEqual(textsOf(results), [
    ...[told("nothing", "undefined"), told("null", "null"), told("text", "a string")],
    ...[told("empty", "undefined as its content"), told("missing", "undefined as its content")],
    ...[told("number", "a number as its content"), told("object", "an object as its content")],
    ...[told("blocks", block), told("other", block), "id-good: good"],
  ]);
  const faults = events.flatMap((event) => (event.type === "call_ended" ? [event.fault] : []));
  assert.deepEqual(faults, [...Array.from({ length: 9 }, () => "failed"), undefined]);
});

test("an output that is too long is shortened before it is recorded, emitted and entered", async () => {
  const kept: ToolResultBlock[] = [];
  const short: Content = [{ type: "text", text: "short" }];
  const { results, events } = await staged([call("Look", "a")], {
    body: async () => ({ content: "x".repeat(20_000_000) }),
    shorten: async () => short,
    record: { started: () => {}, ended: (_id, result) => void kept.push(result), read: () => {} },
  });
  assert.deepEqual(results, [{ type: "tool_result", toolUseId: "id-a", content: short }]);
  assert.deepEqual(kept, results);
  assert.deepEqual(events.at(-1), { type: "call_ended", callId: "id-a", tool: "Look", text: "short", ms: 0 });
});

test("known results are returned unchanged, and their calls do not run", async () => {
  const known: ToolResultBlock = {
    type: "tool_result",
    toolUseId: "id-a",
    content: [{ type: "text", text: "before" }],
  };
  const { results, log } = await staged([call("Change", "a"), call("Look", "b")], {
    body: saying,
    known: new Map([["id-a", known]]),
  });
  assert.equal(results[0], known);
  assert.deepEqual(log, ["started id-b", "ended id-b"]);
});

test("a record that cannot be written ends the batch, but only after the calls that run in parallel have ended", async () => {
  const order: string[] = [];
  const full = new JournalError("disk-full", "the disk is full");
  const batch = staged([call("Look", "a"), call("Look", "b"), call("Change", "c")], {
    body: async (at) => {
      // Long enough for a batch that does not wait to be over first.
      await new Promise((resolve) => setTimeout(resolve, 50));
      order.push(at);
      return { content: "done" };
    },
    record: {
      started: (callId) => {
        if (callId === "id-b") throw full;
      },
      ended: () => {},
      read: () => {},
    },
  });
  await assert.rejects(batch, full);
  order.push("told");
  assert.deepEqual(order, ["a", "told"]);
});

/** Computes for a while, as a repository with thousands of refs makes the guard do. */
const compute = (): void => {
  const start = process.cpuUsage();
  for (let used = 0; used < 60_000; ) {
    const { user, system } = process.cpuUsage(start);
    used = user + system;
  }
};

test("however long the calls of a message take to judge, an abort is noticed between two of them", async () => {
  const stop = new AbortController();
  const calls = ["a", "b", "c", "d", "e", "f"].map((at) => call("Look", at));
  const { results } = await staged(calls, {
    body: saying,
    signal: stop.signal,
    guard: {
      filter: () => {
        compute();
        setImmediate(() => stop.abort());
        return { allowed: true };
      },
    },
  });
  const notRun = "! Not run: the user interrupted before it began.";
  assert.deepEqual(
    textsOf(results).slice(2),
    ["c", "d", "e", "f"].map((at) => `id-${at}: ${notRun}`),
  );
});
