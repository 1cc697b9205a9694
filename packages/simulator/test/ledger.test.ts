import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, say, startSimulator, textOfTokens } from "@prefork/simulator";
import { type Body, marked, request, row, textBlock } from "./sending.ts";

const tools = Array.from({ length: 9 }, (_, index) => ({
  name: `tool_${index}`,
  description: `does ${index}`,
  input_schema: { type: "object", properties: { path: { type: "string" } } },
}));

const conversation = (changes: Body = {}): Body =>
  request({
    tools,
    system: [textBlock(1_500, 1, marked)],
    messages: [
      { role: "user", content: "first" },
      { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "tool_1", input: { path: "a" } }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "t1", content: "result" },
          { type: "text", text: "go", ...marked },
        ],
      },
    ],
    ...changes,
  });

const messages = conversation().messages as Body[];
const withMessage = (index: number, message: Body): Body =>
  conversation({ messages: messages.map((each, at) => (at === index ? message : each)) });

const divergences: readonly (readonly [string, Body, string | null, string | null])[] = [
  ["the same request", conversation(), null, null],
  [
    "one that extends it",
    conversation({ messages: [...messages, { role: "assistant", content: "ok" }, { role: "user", content: "next" }] }),
    null,
    null,
  ],
  ["a part of it", conversation({ messages: messages.slice(0, 1) }), null, null],
  [
    "another description",
    conversation({ tools: tools.map((tool, at) => (at === 7 ? { ...tool, description: "new" } : tool)) }),
    "tools[7].description",
    "diverged",
  ],
  [
    "another schema",
    conversation({ tools: tools.map((tool, at) => (at === 2 ? { ...tool, input_schema: { type: "object" } } : tool)) }),
    "tools[2].input_schema",
    "diverged",
  ],
  ["another system prompt", conversation({ system: [textBlock(1_500, 2, marked)] }), "system[0].text", "diverged"],
  ["another model", conversation({ model: "claude-opus-5" }), "model", "diverged"],
  ["another tool choice", conversation({ tool_choice: { type: "none" } }), "tool_choice", "diverged"],
  ["another first message", withMessage(0, { role: "user", content: "changed" }), "messages[0].content", "diverged"],
  [
    "another first message as a block",
    withMessage(0, { role: "user", content: [{ type: "text", text: "changed" }] }),
    "messages[0].content[0].text",
    "diverged",
  ],
  [
    "another tool input",
    withMessage(1, {
      role: "assistant",
      content: [{ type: "tool_use", id: "t1", name: "tool_1", input: { path: "b" } }],
    }),
    "messages[1].content[0].input",
    "diverged",
  ],
  [
    "another result",
    withMessage(2, {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "t1", content: "other" },
        { type: "text", text: "go", ...marked },
      ],
    }),
    "messages[2].content[0].content",
    null,
  ],
  [
    "another last block",
    withMessage(2, {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "t1", content: "result" },
        { type: "text", text: "stop" },
      ],
    }),
    "messages[2].content[1].text",
    null,
  ],
];

for (const [what, second, path, cause] of divergences)
  test(`${what} diverges at ${path ?? "no location"}`, async () => {
    await using sim = await startSimulator({ clock: new ManualClock() });
    assert.equal((await row(sim, conversation())).firstDivergence, null);
    const after = await row(sim, second);
    assert.deepEqual([after.firstDivergence, after.missCause], [path, cause]);
  });

test("divergence is measured against the best earlier request, not the last one", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  await row(sim, conversation());
  await row(sim, request({ messages: [{ role: "user", content: "something else" }] }));
  assert.equal((await row(sim, conversation())).firstDivergence, null);
});

test("a second continuation of a conversation extends it, as the first one did", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  const grown = (answer: string): Body =>
    conversation({
      messages: [...messages, { role: "assistant", content: answer }, { role: "user", content: "next" }],
    });
  await row(sim, conversation());
  await row(sim, grown("one way"));
  const other = await row(sim, grown("another way"));
  assert.deepEqual([other.firstDivergence, other.missCause], [null, null]);
});

test("a row states the whole bill of a request, as literal figures", async () => {
  const clock = new ManualClock(1_000);
  await using sim = await startSimulator({ clock, script: () => ({ ...say("x"), outputTokens: 1_000 }) });
  const body = (tail: number): Body =>
    request({
      model: "claude-opus-4-8",
      messages: [
        { role: "user", content: [textBlock(10_000, 1, marked), { type: "text", text: textOfTokens(tail, 2) }] },
      ],
    });
  await row(sim, body(200));
  clock.advance(500);
  const { requestId, messageId, ...second } = await row(sim, body(300));
  assert.match(requestId, /^req_sim2_[0-9a-f]{16}$/);
  assert.match(messageId ?? "", /^msg_sim2_[0-9a-f]{16}$/);
  assert.deepEqual(second, {
    sequence: 2,
    timeMs: 1_500,
    workspace: "workspace-1",
    model: "claude-opus-4-8",
    stream: false,
    status: 200,
    outcome: "complete",
    error: null,
    promptTokens: 10_300,
    read: 10_000,
    written: { "5m": 0, "1h": 0 },
    plain: 300,
    output: 1_000,
    expectedRead: 10_000,
    nextRead: 10_000,
    firstDivergence: "messages[0].content[1].text",
    missCause: null,
    missWords: null,
    // 10,000 at 0.50 + 300 at 5 + 1,000 at 25 dollars a million
    billed: { inputUnits: 1_300, usd: 0.0315 },
  });
  assert.equal((await row(sim, { ...body(300), speed: "fast" })).billed.usd, 0.178);
  assert.equal((await row(sim, { ...body(300), inference_geo: "us" })).billed.usd, 0.03465);
});

test("a model without published prices is counted but not priced", async () => {
  await using sim = await startSimulator();
  const { billed, promptTokens } = await row(
    sim,
    request({ model: "my-own", messages: [{ role: "user", content: "12345" }] }),
  );
  assert.deepEqual([billed, promptTokens], [{ inputUnits: null, usd: null }, 2]);
});

test("a stand-in gives ids without figures its rules and its prices", async () => {
  await using sim = await startSimulator({ unknownModelsAs: "claude-opus-5", script: () => say("") });
  const body = request({ model: "my-own", messages: [{ role: "user", content: [textBlock(512, 1, marked)] }] });
  const { billed, written } = await row(sim, body);
  assert.deepEqual([written["5m"], billed], [512, { inputUnits: 640, usd: 0.0032 }]);
});

test("ids come from sequence and content: two equal runs give equal ledgers", async () => {
  const run = async () => {
    await using sim = await startSimulator({ clock: new ManualClock() });
    await row(sim, conversation());
    await row(sim, conversation());
    return sim.ledger();
  };
  assert.deepEqual(await run(), await run());
});
