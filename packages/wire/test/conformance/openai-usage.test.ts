/** What OpenAI and those who speak like it report of tokens, whatever they report. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fold, openaiChat, openaiResponses, promptTokens, type Usage } from "../../src/index.ts";
import { chatWords } from "./chat-fixtures.ts";
import { wholeBody } from "./responses-answers.ts";

const anyCount = fc.nat({ max: 100_000 });

const assertParts = (usage: Usage, total: number): void => {
  assert.equal(promptTokens(usage), total);
  for (const part of [usage.plain, usage.read, ...Object.values(usage.written)]) assert.ok(part >= 0);
};

const ofResponses = (usage: object): Usage =>
  fold(openaiResponses.whole(wholeBody([], { usage: JSON.stringify(usage) }))).response.usage;
const ofChat = (usage: object): Usage =>
  fold(openaiChat.whole(chatWords("gpt-6-sol").whole(`"content":""`, `"stop"`, JSON.stringify(usage)))).response.usage;

test("the parts of a prompt never overlap and sum to the reported total, even if a report contradicts itself", () => {
  fc.assert(
    fc.property(fc.tuple(anyCount, anyCount, anyCount, anyCount), ([total, cached, write, long]) => {
      const details = { cached_tokens: cached, cache_write_tokens: write };
      const split = { cache_write_tokens_details: { ttl_30m_tokens: Math.max(0, write - long), ttl_12h_tokens: long } };
      assertParts(ofResponses({ input_tokens: total, input_tokens_details: { ...details, ...split } }), total);
      assertParts(ofChat({ prompt_tokens: total, prompt_tokens_details: details }), total);
    }),
    { numRuns: 200, seed: 11 },
  );
});

test("a report without details is all uncached, and no report is nothing", () => {
  assert.deepEqual(ofChat({ prompt_tokens: 7, completion_tokens: 2, prompt_tokens_details: null }), {
    plain: 7,
    read: 0,
    written: {},
    output: 2,
  });
  assert.deepEqual(ofResponses({}), { plain: 0, read: 0, written: {}, output: 0 });
});
