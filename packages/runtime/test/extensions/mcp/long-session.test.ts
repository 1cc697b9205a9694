/** Fifty turns with two tool servers, one that returns with another list and one that dies for good: is every token
 *  still written to the cache once, and can late tools be called? */

import assert from "node:assert/strict";
import { test } from "node:test";
import { createSession, type ExchangeResult, type RuntimeEvent, type Session } from "@prefork/runtime";
import { callTools, type SimScript, startSimulator, type ToolCall, toolResults } from "@prefork/simulator";
import { hideBwrap } from "@prefork/testing/optional";
import { scratch } from "@prefork/testing/scratch";
import type { JsonObject } from "@prefork/wire";
import { extendsMessages, headTokens, readable, rewriteFactor, type Sent, sentTo } from "../../session/as-sent.ts";
import { Calendar, makePlace, optionsFor, watch } from "../../session/long-session.ts";
import { asksForSummary, doneWith, progressIn, scriptedModel } from "../../session/scripted-model.ts";
import { promptOf, tasks } from "../../session/tasks.ts";
import { stdioEntry } from "./fixture.ts";
import { described } from "./fixture-tools.ts";

hideBwrap();

const mcp = (server: string, tool: string, args: JsonObject = {}): ToolCall => ({
  name: "McpCall",
  input: { server, tool, args },
});

/** What the model calls on servers, in addition to its other work: by task and step. */
const BESIDE: Readonly<Record<string, readonly ToolCall[]>> = {
  "1.1": [
    { name: "mcp__board__echo", input: { value: "first" } },
    { name: "mcp__oracle__echo", input: { value: "second" } },
  ],
  "2.0": [{ name: "mcp__board__die", input: {} }],
  "3.1": [mcp("board", "mixed"), { name: "mcp__board__echo", input: { value: "old form" } }],
  "5.1": [{ name: "mcp__oracle__die", input: {} }],
  "6.3": [{ name: "mcp__oracle__echo", input: { value: "anybody there?" } }, mcp("oracle", "echo")],
  "7.3": [mcp("board", "echo", { value: "after the summary" }), mcp("board", "mixed")],
};

type Ran = {
  readonly results: readonly ExchangeResult[];
  readonly events: readonly RuntimeEvent[];
  readonly requests: readonly Sent[];
  readonly head: number;
};

const listed = async (session: Session, server: string): Promise<void> => {
  for await (const event of session.events()) if (event.type === "server_listed" && event.server === server) return;
};

const run = async (): Promise<Ran> => {
  using base = scratch();
  const place = makePlace(base.path);
  const model = scriptedModel(place.project);
  const script: SimScript = (request) => {
    const { task, answers } = progressIn(request.body);
    const more = asksForSummary(request.body) ? undefined : BESIDE[`${task}.${answers}`];
    const step = tasks[task - 1]?.steps[answers];
    if (!more || !step) return model(request);
    const own = step(
      place.project,
      toolResults(request).map(({ text }) => text),
    );
    return callTools([...own, ...more].map((call, at) => ({ ...call, id: `toolu_${task}_${answers}_${at}` })));
  };
  await using simulator = await startSimulator({ script, keepBodies: true });
  const calendar = new Calendar();
  const options = optionsFor(place, { url: simulator.url, calendar });
  const session = await createSession({
    ...options,
    permissions: { allow: ["Record", "mcp__board", "mcp__oracle"], mode: "default" },
    clock: { now: calendar.now, sleep: async () => {} },
    servers: [
      stdioEntry(base, "oracle", [described("echo"), described("die")]),
      stdioEntry(base, "board", [described("echo"), described("die")]),
    ],
    serverTimes: { listMs: 60_000, waitMs: 60_000, startMs: 60_000 },
  });
  const events: RuntimeEvent[] = [];
  const watching = watch(session, { calendar, seen: (event) => void events.push(event) });
  base.put("board.json", JSON.stringify([described("echo", { description: "Echoes louder." }), described("mixed")]));
  base.put("oracle.json", "it starts no more");
  const results: ExchangeResult[] = [];
  for (const [index, { mode, before }] of tasks.entries()) {
    before?.(place.project);
    session.setMode(mode);
    const isBack = index === 1 ? listed(session, "board") : undefined;
    results.push(await session.prompt(promptOf(index + 1)).result());
    await isBack;
  }
  await session.close();
  await watching;
  const requests = sentTo(simulator);
  const [first] = requests;
  assert.ok(first);
  return { results, events, requests, head: await headTokens(simulator, first) };
};

test("fifty turns with a server that returns changed and one that dies write every token once", async (context) => {
  const { results, events, requests, head } = await run();
  assert.deepEqual(
    results.map(({ end, text }) => [end, text]),
    tasks.map((_, index) => ["done", doneWith(index + 1)]),
  );
  assert.equal(events.filter(({ type }) => type === "turn_ended").length, 50);
  assert.equal(events.filter(({ type }) => type === "compaction_ended").length, 1);
  const served = events.flatMap((event) =>
    event.type === "call_ended" && /^(?:mcp__|McpCall$)/.test(event.tool)
      ? [`${event.callId} ${event.fault ? "! " : ""}${event.text.split("\n")[0]}`]
      : [],
  );
  assert.deepEqual(served, [
    'toolu_1_1_3 {"value":"first"}',
    'toolu_1_1_4 {"value":"second"}',
    "toolu_2_0_1 ! Server board is not available: it ended with exit code 3: dying with nothing",
    "toolu_3_1_3 [audio (audio/wav) was left out]",
    'toolu_3_1_4 {"value":"old form"}',
    "toolu_5_1_1 ! Server oracle is not available: it ended with exit code 3: dying with nothing",
    ...["toolu_6_3_2", "toolu_6_3_3"].map(
      (id) => `${id} ! Server oracle is not available: it ended with exit code 1: its tools cannot be read`,
    ),
    'toolu_7_3_3 {"value":"after the summary"}',
    "toolu_7_3_4 [audio (audio/wav) was left out]",
  ]);
  assert.equal(events.filter((event) => event.type === "note_entered" && event.kind === "servers").length, 1);

  for (const [at, sent] of requests.entries()) {
    const before = requests.slice(0, at).findLast(({ body }) => !asksForSummary(body));
    const isNew = requests[at - 1] !== undefined && asksForSummary(requests[at - 1]?.body ?? {});
    if (before && !isNew && !asksForSummary(sent.body))
      assert.ok(extendsMessages(sent, before), `request ${at + 1} does not extend the one before it`);
    assert.equal(sent.row.read, readable(sent, requests.slice(0, at), head), `request ${at + 1}`);
  }
  const factor = rewriteFactor(requests, head);
  context.diagnostic(`re-write factor ${factor}`);
  assert.ok(factor <= 1.02, `re-write factor ${factor}`);
});
