/** OpenAI Responses against the suite that every protocol passes. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { fold, ModelError, type ModelEvent, openaiResponses } from "../../src/index.ts";
import { encodingLaws } from "./encoding-laws.ts";
import { conformanceSuite } from "./protocol-suite.ts";
import { added, begunCall, call, ended, frame, started, wholeBody } from "./responses-answers.ts";
import { responsesConformance } from "./responses-conformance.ts";

conformanceSuite(responsesConformance);

// The same laws where caching is automatic: nothing can be marked, and results are bare text.
encodingLaws({
  ...responsesConformance,
  protocol: { ...openaiResponses, name: "openai-responses, older models" },
  head: { ...responsesConformance.head, model: "gpt-5.5" },
});

const read = (frames: readonly { readonly event: string; readonly data: string }[]): readonly ModelEvent[] => {
  let state = openaiResponses.initial;
  return frames.flatMap((sent) => {
    const [next, events] = openaiResponses.step(state, sent);
    state = next;
    return events;
  });
};

test("openai-responses: unknown events are ignored", () => {
  const { step, initial } = openaiResponses;
  assert.deepEqual(step(initial, frame("response.news", `"output_index":0`)), [initial, []]);
});

test("openai-responses: an answer cut off inside a call keeps what arrived of the call, and sends it back readable", () => {
  const half = call(1, "Read", `{"path":"a`);
  const cut = { status: "incomplete", details: `{"reason":"max_output_tokens"}` };
  const { response, complete } = fold(read([started, added(0, begunCall(1, "Read")), ended([half], cut)]));
  assert.ok(complete);
  assert.equal(response.stop, "max-tokens");
  assert.deepEqual(response.message.content, [{ type: "tool_use", id: "call_1", name: "Read", input: `{"path":"a` }]);
});

test("openai-responses: a comparison with a response that no longer exists says so", () => {
  const cause = "comparison_response_not_found";
  const body = wholeBody([], { more: `,"prompt_cache_diagnostics":{"type":"${cause}"}` });
  assert.deepEqual(fold(openaiResponses.whole(body)).response.diagnosis, { status: "missed", cause });
});

test("openai-responses: a comparison that found a hit reports nothing", () => {
  const body = wholeBody([], { more: `,"prompt_cache_diagnostics":{"type":"cache_hit"}` });
  assert.equal(fold(openaiResponses.whole(body)).response.diagnosis, undefined);
});

test("openai-responses: a failed response throws its error, streamed and not streamed", () => {
  const failed = wholeBody([], { status: "failed" }).replace(
    `"error":null`,
    `"error":{"code":"rate_limit_exceeded","message":"slower"}`,
  );
  const isLimit = (error: unknown): boolean =>
    error instanceof ModelError && error.reason.kind === "rate-limited" && error.retryable;
  assert.throws(() => read([started, frame("response.failed", `"response":${failed}`)]), isLimit);
  assert.throws(() => openaiResponses.whole(failed), isLimit);
});
