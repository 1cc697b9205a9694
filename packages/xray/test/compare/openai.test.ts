import assert from "node:assert/strict";
import { test } from "node:test";
import { diffRequests } from "@prefork/xray";
import { chatPairs, type OpenAiPair, responsesPairs } from "./corpus/openai.ts";

const check = ({ a, b, cause, path, kept, read, lost }: OpenAiPair, protocol: string): void => {
  const xray = diffRequests(a, b);
  assert.deepEqual(
    {
      protocol: xray.protocol,
      cause: xray.cause,
      path: xray.divergence?.path,
      kept: xray.tokens.kept,
      read: xray.tokens.read,
      lost: xray.lost.tokens,
    },
    { protocol, cause, path, kept, read, lost },
  );
};

for (const pair of responsesPairs) test(`Responses: ${pair.name}`, () => check(pair, "openai-responses"));
for (const pair of chatPairs) test(`Chat: ${pair.name}`, () => check(pair, "openai-chat"));

test("what was lost has a price on every provider's models, by the hour where prices change with it", () => {
  const body = (model: string, rules: string): string =>
    JSON.stringify({
      model,
      messages: [
        { role: "system", content: `${rules} ${"Every line is one of the rules of this house. ".repeat(800)}` },
        { role: "user", content: "Hi" },
      ],
    });
  const lostBy = (model: string, startedAt?: number): { readonly tokens: number; readonly usd: number } => {
    const sent = startedAt === undefined ? {} : { a: { startedAt }, b: { startedAt } };
    const { lost } = diffRequests(body(model, "At nine."), body(model, "At ten."), sent);
    return { tokens: lost.tokens, usd: lost.usd ?? Number.NaN };
  };
  const each = ({ tokens, usd }: { readonly tokens: number; readonly usd: number }): number =>
    Math.round((usd / tokens) * 1e12) / 1e6;
  const [peak, usual] = [Date.UTC(2026, 0, 5, 2), Date.UTC(2026, 0, 5, 12)];
  assert.deepEqual(
    [
      each(lostBy("deepseek-flash", usual)),
      each(lostBy("deepseek-flash", peak)),
      each(lostBy("MiniMax-M3")),
      each(lostBy("qwen3.7-max")),
    ],
    // Input less a read: 0.15 − 0.003, twice that, 0.3 − 0.06, and without a marker 1.475 − 0.295.
    [0.147, 0.294, 0.24, 1.18],
  );
});
