import assert from "node:assert/strict";
import { test } from "node:test";
import { diffRequests } from "../../src/index.ts";
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
