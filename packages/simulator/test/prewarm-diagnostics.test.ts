import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, type Simulator, startSimulator } from "@prefork/simulator";
import { type Body, marked, parts, post, refusal, request, row, textBlock } from "./sending.ts";

const base = request({
  tools: [{ name: "t", input_schema: { type: "object" } }],
  system: [textBlock(2_000, 1, marked)],
  messages: [{ role: "user", content: [textBlock(500, 2, marked)] }],
});

test("max_tokens 0 fills the cache, answers nothing and bills the write", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  const answer = (await (await post(sim, { ...base, max_tokens: 0 })).json()) as Body;
  assert.deepEqual([answer.content, answer.stop_reason], [[], "max_tokens"]);
  const [warm] = sim.ledger();
  assert.ok(warm);
  assert.deepEqual([warm.written["5m"], warm.output], [2_512, 0]);
  assert.deepEqual(parts(await row(sim, base)), [2_512, 0, 0, 0]);
  assert.deepEqual(parts(await row(sim, { ...base, max_tokens: 0 })), [2_512, 0, 0, 0]);
});

test("max_tokens 0 is refused together with anything that shapes an answer", async () => {
  await using sim = await startSimulator();
  const refused: readonly Body[] = [
    { stream: true },
    { thinking: { type: "enabled", budget_tokens: 2_048 } },
    { output_config: { format: { type: "json_schema", schema: {} } } },
    { tool_choice: { type: "any" } },
    { tool_choice: { type: "tool", name: "t" } },
  ];
  for (const extra of refused)
    assert.match(
      await refusal(sim, { ...base, max_tokens: 0, ...extra }),
      /^400 invalid_request_error: max_tokens: 0 /,
    );
});

const diagnosed = async (sim: Simulator, changes: Body, baseline: string | null): Promise<unknown> => {
  const body = { ...base, ...changes, diagnostics: { previous_message_id: baseline } };
  return ((await (await post(sim, body)).json()) as Body).diagnostics;
};

test("diagnostics name what changed against an earlier response, and how many tokens that missed", async () => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  const { id } = (await (await post(sim, base)).json()) as { id: string };
  const reason = (type: string, tokens: number) => ({
    cache_miss_reason: { type, cache_missed_input_tokens: tokens },
  });
  const grown = {
    messages: [...(base.messages as Body[]), { role: "assistant", content: "a" }, { role: "user", content: "b" }],
  };
  assert.equal(await diagnosed(sim, {}, null), null);
  assert.equal(await diagnosed(sim, grown, id), null);
  assert.deepEqual(await diagnosed(sim, { model: "claude-opus-5" }, id), reason("model_changed", 2_512));
  assert.deepEqual(await diagnosed(sim, { tools: [] }, id), reason("tools_changed", 2_512));
  assert.deepEqual(await diagnosed(sim, { system: "other" }, id), reason("system_changed", 2_512));
  assert.deepEqual(
    await diagnosed(sim, { messages: [{ role: "user", content: [textBlock(500, 3, marked)] }] }, id),
    reason("messages_changed", 500),
  );
  assert.deepEqual(await diagnosed(sim, { tool_choice: { type: "any" } }, id), {
    cache_miss_reason: { type: "unavailable" },
  });
  assert.deepEqual(await diagnosed(sim, {}, "msg_never"), {
    cache_miss_reason: { type: "previous_message_not_found" },
  });
});

test("a response of another workspace cannot be a baseline", async () => {
  await using sim = await startSimulator();
  const { id } = (await (await post(sim, base)).json()) as { id: string };
  const body = { ...base, diagnostics: { previous_message_id: id } };
  const answer = (await (await post(sim, body, { key: "key-b" })).json()) as Body;
  assert.deepEqual(answer.diagnostics, { cache_miss_reason: { type: "previous_message_not_found" } });
});

test("when streaming, diagnostics come with message_start", async () => {
  await using sim = await startSimulator();
  const body = { ...base, stream: true, diagnostics: { previous_message_id: "msg_never" } };
  const first = (await (await post(sim, body)).text()).split("\n\n")[0] ?? "";
  assert.match(
    first,
    /^event: message_start\ndata: .*"diagnostics":\{"cache_miss_reason":\{"type":"previous_message_not_found"\}\}/,
  );
});
