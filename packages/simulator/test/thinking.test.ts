import assert from "node:assert/strict";
import { test } from "node:test";
import { callTools, ManualClock, type Simulator, say, startSimulator, textOfTokens, think } from "@prefork/simulator";
import { cpuSecondsOf } from "./cpu-time.ts";
import { type Body, marked, parts, post, refusal, request, row, textBlock } from "./sending.ts";

/** 2,000 of user text, then a turn with 400 of thinking and one call, then its result and perhaps more. */
const loop = (model: string, tail: readonly Body[], inside = "ok"): Body =>
  request({
    model,
    messages: [
      { role: "user", content: [textBlock(2_000, 1, marked)] },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: textOfTokens(400, 2), signature: "made elsewhere" },
          { type: "tool_use", id: "t1", name: "R", input: {} },
        ],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: inside, ...marked }, ...tail] },
    ],
  });

const directive = { type: "text", text: textOfTokens(100, 3) };

test("a last-turn model leaves earlier thinking out at new user text, and the cache ends there", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  assert.deepEqual(parts(await row(sim, loop("claude-sonnet-4-5", []))), [0, 2_402, 0, 0]);
  const stripped = await row(sim, loop("claude-sonnet-4-5", [directive]));
  assert.deepEqual(parts(stripped), [2_000, 2, 0, 100]);
  assert.deepEqual([stripped.firstDivergence, stripped.missCause], ["messages[1].content[0]", "diverged"]);
});

test("inside the last tool result the same words keep earlier thinking, and the cache", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  const turn = (results: readonly Body[]): Body => {
    const body = loop("claude-sonnet-4-5", []);
    const [opening, answer] = body.messages as { content: Body[] }[];
    const calls = answer?.content.map((block) => (block.type === "tool_use" ? { ...block, ...marked } : block));
    return { ...body, messages: [opening, { ...answer, content: calls }, { role: "user", content: results }] };
  };
  const result = (content: string): Body => ({ type: "tool_result", tool_use_id: "t1", content });
  await row(sim, turn([result("ok")]));
  assert.deepEqual(parts(await row(sim, turn([result(`ok  ${textOfTokens(100)}`)]))), [2_401, 0, 0, 101]);
  assert.deepEqual(parts(await row(sim, turn([result("ok"), directive]))), [2_000, 1, 0, 101]);
});

test("a keep-all model keeps earlier thinking and reads past it", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  await row(sim, loop("claude-sonnet-4-6", []));
  assert.deepEqual(parts(await row(sim, loop("claude-sonnet-4-6", [directive]))), [2_402, 0, 0, 100]);
});

type Reply = { readonly content: readonly Body[] };

test("thinking the simulator made must come back unchanged", async () => {
  await using sim = await startSimulator({ script: () => think("step by step", callTools([{ name: "R" }])) });
  const first = request({ messages: [{ role: "user", content: "go" }] });
  const { content } = (await (await post(sim, first)).json()) as Reply;
  const next = (thinking: Body): Body => ({
    ...first,
    messages: [
      { role: "user", content: "go" },
      { role: "assistant", content: [thinking, content[1]] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: content[1]?.id, content: "ok" }] },
    ],
  });
  assert.equal((await post(sim, next(content[0] as Body))).status, 200);
  assert.equal(
    await refusal(sim, next({ ...content[0], thinking: "step by stop" })),
    "400 invalid_request_error: messages.1.content.0: Invalid `signature` in `thinking` block",
  );
});

test("thinking of the current tool-use turn must be sent back with its calls; thinking of earlier turns may be omitted", async () => {
  await using sim = await startSimulator({ script: () => think("step by step", callTools([{ name: "R" }])) });
  const opening = { role: "user", content: "go" };
  const { content } = (await (await post(sim, request({ messages: [opening] }))).json()) as Reply;
  const call = content[1] as Body;
  const result = { type: "tool_result", tool_use_id: call.id, content: "ok" };
  const robbed = [opening, { role: "assistant", content: [call] }, { role: "user", content: [result] }];
  assert.equal(
    await refusal(sim, request({ messages: robbed })),
    `400 invalid_request_error: messages.1: \`thinking\` blocks of the current tool-use turn must be sent back unmodified; missing beside \`tool_use\` ${call.id}`,
  );
  const over = [...robbed, { role: "assistant", content: "done" }, { role: "user", content: "next" }];
  assert.equal((await post(sim, request({ messages: over }))).status, 200);
});

/** A conversation that opens with 1,000 tokens, and the thinking that answered it, by seed of the opening. */
const grown = (model: string, seed: number, content: readonly Body[]): Body =>
  request({
    model,
    messages: [
      { role: "user", content: [textBlock(1_000, seed, marked)] },
      { role: "assistant", content },
      { role: "user", content: "more" },
    ],
  });

const answered = async (sim: Simulator, model: string): Promise<readonly Body[]> => {
  const opening = request({ model, messages: [{ role: "user", content: [textBlock(1_000, 1, marked)] }] });
  return ((await (await post(sim, opening)).json()) as Reply).content;
};

const thinks = () => think(textOfTokens(100), say("done"));
const bindingBeta = { headers: { "anthropic-beta": "thinking-binding-controls-2026-08-01" } };
const bound = "claude-opus-5-5";

test("a model that binds thinking refuses it behind an edited conversation, and allows appending", async () => {
  await using sim = await startSimulator({ script: () => think("hm", say("done")) });
  const body = (model: string, opening: string, content: readonly Body[]): Body =>
    request({
      model,
      messages: [
        { role: "user", content: opening },
        { role: "assistant", content },
        { role: "user", content: [{ type: "text", text: "more", ...marked }] },
      ],
    });
  for (const [model, edited] of [
    ["claude-opus-5-5", 400],
    ["claude-opus-4-8", 200],
  ] as const) {
    const first = request({ model, messages: [{ role: "user", content: "go" }] });
    const { content } = (await (await post(sim, first)).json()) as Reply;
    assert.equal((await post(sim, body(model, "go", content))).status, 200);
    assert.equal((await post(sim, body(model, "gone", content))).status, edited);
    assert.equal((await post(sim, { ...body(model, "go", content), system: "new system" })).status, edited);
  }
  const { content } = (await (
    await post(sim, request({ model: "claude-opus-5-5", messages: [{ role: "user", content: "go" }] }))
  ).json()) as Reply;
  assert.match(
    await refusal(sim, body("claude-opus-5-5", "gone", content)),
    /messages\.1\.content\.0: Invalid signature in thinking block\. The block is bound to a different conversation/,
  );
});

test("count_tokens judges bound thinking too", async () => {
  await using sim = await startSimulator({ script: thinks });
  const content = await answered(sim, bound);
  const count = async (seed: number): Promise<string> => {
    const { max_tokens: _limit, ...body } = grown(bound, seed, content);
    const headers = { "x-api-key": "key-a" };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    return (await fetch(`${sim.url}/v1/messages/count_tokens`, init)).text();
  };
  assert.equal(await count(1), '{"input_tokens":1102}');
  assert.match(await count(2), /messages\.1\.content\.0: Invalid signature in thinking block\./);
});

const dropping = (seed: number, content: readonly Body[]): Body => ({
  ...grown(bound, seed, content),
  thinking: { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } },
});

test("with drop_block, thinking behind an edited conversation leaves the prompt, and the answer says so", async () => {
  await using sim = await startSimulator({ clock: new ManualClock(), script: thinks });
  const [made, words] = await answered(sim, bound);
  const hidden = { type: "redacted_thinking", data: textOfTokens(50) };
  const content = [made, hidden, words] as Body[];
  const told = async (seed: number): Promise<unknown> => {
    const response = await post(sim, dropping(seed, content), bindingBeta);
    return ((await response.json()) as { input_transformations?: unknown }).input_transformations;
  };
  assert.deepEqual(await told(1), []);
  assert.equal(sim.ledger().at(-1)?.promptTokens, 1_152);
  const reason = "prefix_binding_mismatch";
  assert.deepEqual(await told(2), [
    { type: "thinking_dropped", path: "messages.1.content.0", reason },
    { type: "thinking_dropped", path: "messages.1.content.1", reason },
  ]);
  assert.equal(sim.ledger().at(-1)?.promptTokens, 1_002);
  assert.deepEqual(parts(await row(sim, dropping(2, content), bindingBeta)), [1_000, 0, 0, 2]);
});

test("the choice of drop_block is not in the key, and needs its beta", async () => {
  await using sim = await startSimulator({ clock: new ManualClock(), script: thinks });
  const content = await answered(sim, bound);
  const plain = { ...grown(bound, 1, content), thinking: { type: "adaptive" } };
  await row(sim, plain, bindingBeta);
  assert.equal((await row(sim, dropping(1, content), bindingBeta)).read, 1_000);
  assert.equal(
    await refusal(sim, dropping(1, content)),
    "400 invalid_request_error: thinking.block_binding: Extra inputs are not permitted without the beta thinking-binding-controls-2026-08-01",
  );
  assert.match(
    await refusal(sim, { ...plain, thinking: { type: "adaptive", block_binding: { prefix_mismatch_behavior: "x" } } }),
    /thinking\.block_binding\.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'/,
  );
});

test("thinking that another model made leaves the prompt without a word, unless the beta asks for one", async () => {
  await using sim = await startSimulator({ script: thinks });
  const content = await answered(sim, "claude-opus-5");
  assert.equal((await row(sim, grown("claude-opus-5", 1, content))).promptTokens, 1_102);
  const response = await post(sim, grown("claude-opus-4-8", 1, content));
  assert.equal("input_transformations" in ((await response.json()) as object), false);
  assert.equal(sim.ledger().at(-1)?.promptTokens, 1_002);
  const told = await post(sim, grown("claude-opus-4-8", 1, content), bindingBeta);
  assert.deepEqual(((await told.json()) as { input_transformations: unknown }).input_transformations, [
    { type: "thinking_dropped", path: "messages.1.content.0", reason: "model_binding_mismatch" },
  ]);
});

test("5,000 turns of bound thinking take time in proportion", async () => {
  await using sim = await startSimulator({ script: thinks });
  const content = await answered(sim, bound);
  const turns = Array.from({ length: 5_000 }, () => [
    { role: "assistant", content },
    { role: "user", content: "more" },
  ]);
  const body = { ...dropping(2, content), messages: [{ role: "user", content: "go" }, ...turns.flat()] };
  const seconds = await cpuSecondsOf(async () => {
    assert.equal((await row(sim, body, bindingBeta)).promptTokens, 1 + 5_000 * 2);
  });
  assert.ok(seconds < 12, `${seconds} s`);
});
