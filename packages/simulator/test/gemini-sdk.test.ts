import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, type Content, type GenerateContentResponse, GoogleGenAI } from "@google/genai";
import {
  callTools,
  type LedgerRow,
  lastUserText,
  type Simulator,
  say,
  textOfTokens,
  think,
  toolResults,
} from "@prefork/simulator";
import { started } from "./wire-sending.ts";

const model = "gemini-3.8-flash";
const clientOf = (sim: Simulator) => new GoogleGenAI({ apiKey: "any", httpOptions: { baseUrl: sim.url } });

const reported = ({ usageMetadata: usage }: GenerateContentResponse) => ({
  promptTokens: usage?.promptTokenCount,
  read: usage?.cachedContentTokenCount ?? 0,
  output: (usage?.candidatesTokenCount ?? 0) + (usage?.thoughtsTokenCount ?? 0),
});
const inLedger = ({ promptTokens, read, output }: LedgerRow) => ({ promptTokens, read, output });

const streamed = async (stream: AsyncGenerator<GenerateContentResponse>) => {
  const chunks: GenerateContentResponse[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  const last = chunks.at(-1);
  assert.ok(last);
  const parts = chunks.flatMap((chunk) => chunk.candidates?.[0]?.content?.parts ?? []);
  return { chunks, last, parts };
};

const declarations = [
  {
    name: "Read",
    description: "reads",
    parametersJsonSchema: { type: "object", properties: { path: { type: "string" } } },
  },
];

test("generateContent and its stream give text and usage in the SDK's own types, as the ledger has them", async () => {
  await using sim = await started("gemini", { script: (request) => say(`you said: ${lastUserText(request)} 🌲`) });
  const ai = clientOf(sim);
  const config = { systemInstruction: textOfTokens(5_000, 1), maxOutputTokens: 500 };
  const first = await ai.models.generateContent({ model, contents: "hello there", config });
  assert.equal(first.text, "you said: hello there 🌲");
  assert.equal(first.candidates?.[0]?.finishReason, "STOP");
  const { chunks, last } = await streamed(
    await ai.models.generateContentStream({ model, contents: "hello there", config }),
  );
  assert.equal(chunks.map(({ text }) => text ?? "").join(""), "you said: hello there 🌲");
  assert.deepEqual([reported(first), reported(last)], sim.ledger().map(inLedger));
  assert.deepEqual(
    sim.ledger().map(({ read }) => read),
    [0, 5_003],
  );
});

test("a tool loop with thoughts and signatures runs to its end, streamed and whole", async () => {
  await using sim = await started("gemini", {
    script: (request) => {
      const results = toolResults(request);
      return results.length === 0
        ? think(
            "which file?",
            callTools([
              { name: "Read", input: { path: "a/ü.ts" } },
              { name: "Read", input: { path: "b.ts" } },
            ]),
          )
        : say(results.map(({ text, isError }) => `${isError ? "failed: " : ""}${text}`).join(", "));
    },
  });
  const ai = clientOf(sim);
  const config = {
    systemInstruction: textOfTokens(5_000, 1),
    tools: [{ functionDeclarations: declarations }],
    thinkingConfig: { includeThoughts: true },
  };
  const question: Content = { role: "user", parts: [{ text: "read both" }] };
  const { parts, last } = await streamed(
    await ai.models.generateContentStream({ model, contents: [question], config }),
  );
  const calls = parts.flatMap(({ functionCall }) => functionCall ?? []);
  assert.deepEqual(
    calls.map(({ name, args }) => ({ name, args })),
    [
      { name: "Read", args: { path: "a/ü.ts" } },
      { name: "Read", args: { path: "b.ts" } },
    ],
  );
  assert.deepEqual(
    parts.flatMap(({ thought, text }) => (thought ? [text] : [])),
    ["which file?"],
  );
  assert.equal(parts.filter(({ thoughtSignature }) => thoughtSignature !== undefined).length, 1);
  const turn: Content = { role: "model", parts: parts.filter(({ text }) => text === undefined) };
  const answers: Content = {
    role: "user",
    parts: calls.map(({ id, name }, index) => ({
      functionResponse: {
        ...(id === undefined ? {} : { id }),
        ...(name === undefined ? {} : { name }),
        response: index === 0 ? { output: "42" } : { error: "no such file" },
      },
    })),
  };
  const second = await ai.models.generateContent({ model, contents: [question, turn, answers], config });
  assert.equal(second.text, "42, failed: no such file");
  assert.deepEqual([reported(last), reported(second)], sim.ledger().map(inLedger));
  assert.equal(sim.ledger()[1]?.read, sim.ledger()[0]?.promptTokens);
});

test("caches.create, get, update, list and delete work, and a request that names one reads it whole", async () => {
  await using sim = await started("gemini-explicit");
  const ai = clientOf(sim);
  const created = await ai.caches.create({
    model,
    config: {
      contents: [{ role: "user", parts: [{ text: textOfTokens(5_000, 3) }] }],
      systemInstruction: textOfTokens(1_000, 4),
      tools: [{ functionDeclarations: declarations }],
      ttl: "600s",
      displayName: "family",
    },
  });
  const name = created.name ?? "";
  const held = created.usageMetadata?.totalTokenCount;
  assert.deepEqual((await ai.caches.get({ name })).displayName, "family");
  const updated = await ai.caches.update({ name, config: { ttl: "1200s" } });
  assert.equal(updated.expireTime, "2026-01-01T00:20:00.000Z");
  const names: (string | undefined)[] = [];
  for await (const each of await ai.caches.list()) names.push(each.name);
  assert.deepEqual(names, [name]);
  const answer = await ai.models.generateContent({ model, contents: "go on", config: { cachedContent: name } });
  assert.equal(answer.usageMetadata?.cachedContentTokenCount, held);
  assert.deepEqual(reported(answer), inLedger(sim.ledger()[1] as LedgerRow));
  await ai.caches.delete({ name });
  await assert.rejects(
    ai.models.generateContent({ model, contents: "go on", config: { cachedContent: name } }),
    (error: unknown) => error instanceof ApiError && error.status === 403,
  );
});

test("errors, counts and limits arrive in the SDK's own types", async () => {
  await using sim = await started("gemini", { script: () => ({ ...say("cut"), stopReason: "max_tokens" }) });
  const ai = clientOf(sim);
  const ask = () => ai.models.generateContent({ model, contents: "x" });
  sim.fault({ kind: "status", status: 429 });
  await assert.rejects(ask(), (error: unknown) => error instanceof ApiError && error.status === 429);
  sim.fault({ kind: "status", status: 503 });
  await assert.rejects(ask(), (error: unknown) => error instanceof ApiError && error.status === 503);
  assert.equal((await ask()).candidates?.[0]?.finishReason, "MAX_TOKENS");
  assert.equal((await ai.models.countTokens({ model, contents: textOfTokens(77) })).totalTokens, 77);
});
