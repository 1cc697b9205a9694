/** Gemini against the suite that every protocol passes, and what only it has. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  FrozenPrefix,
  fold,
  gemini,
  type Head,
  InputError,
  ModelError,
  type ModelEvent,
  userText,
} from "../../src/index.ts";
import { encodingLaws } from "./encoding-laws.ts";
import { chunk, ended, frame, wholeBody } from "./gemini-answers.ts";
import { geminiConformance } from "./gemini-conformance.ts";
import { conformanceSuite } from "./protocol-suite.ts";

conformanceSuite(geminiConformance);

// The same laws where calls have neither ids nor signatures, and nothing but the provider's own tools is declared.
encodingLaws({
  ...geminiConformance,
  protocol: { ...gemini, name: "gemini, older models" },
  head: {
    ...geminiConformance.head,
    model: "gemini-2.5-pro",
    tools: [{ type: "provider", name: "code", json: `{"codeExecution":{}}` }],
    system: [],
  },
});
encodingLaws({
  ...geminiConformance,
  protocol: { ...gemini, name: "gemini, a bare head" },
  head: { model: "gemini-flash-latest", tools: [], system: [], settings: {} },
});

const read = (frames: readonly { readonly event: string; readonly data: string }[]): readonly ModelEvent[] => {
  let state = gemini.initial;
  const events = frames.flatMap((sent) => {
    const [next, told] = gemini.step(state, sent);
    state = next;
    return told;
  });
  return [...events, ...(gemini.end(state, "closed")?.[1] ?? [])];
};

test("gemini: calls without ids get unique ones, and keep their bytes", () => {
  const call = `{"functionCall":{"name":"Read","args":{"a":1}}}`;
  const { content } = fold(read([chunk(`{"text":"Two:"}`), chunk(call), chunk(call), ended()])).response.message;
  assert.deepEqual(content, [
    { type: "text", text: "Two:" },
    { type: "tool_use", id: "Il0taoSYJ5Cez7-1", name: "Read", input: `{"a":1}`, raw: call },
    { type: "tool_use", id: "Il0taoSYJ5Cez7-2", name: "Read", input: `{"a":1}`, raw: call },
  ]);
  const anonymous = wholeBody([call]).replace(`,"responseId":"Il0taoSYJ5Cez7"`, "");
  const ids = [anonymous, anonymous.replace(`"promptTokenCount":10`, `"promptTokenCount":11`)].flatMap((body) =>
    fold(gemini.whole(body)).response.message.content.flatMap((block) => (block.type === "tool_use" ? [block.id] : [])),
  );
  assert.equal(new Set(ids).size, 2);
  assert.match(ids[0] ?? "", /^[0-9a-f]{24}-0$/);
});

test("gemini: a stop reason in every chunk ends nothing before the stream does", () => {
  const frames = [ended({}, `{"text":"Hel"}`), ended({}, `{"text":"lo"}`)];
  const { response, complete } = fold(read(frames));
  assert.ok(complete);
  assert.deepEqual(response.message.content, [{ type: "text", text: "Hello" }]);
});

test("gemini: thoughts that an endpoint also counts in the answer are not counted twice", () => {
  const usage = (report: string) => fold(gemini.whole(wholeBody([`{"text":"x"}`], { usage: report }))).response.usage;
  assert.deepEqual(
    usage(`{"promptTokenCount":100,"candidatesTokenCount":50,"thoughtsTokenCount":30,"totalTokenCount":150}`),
    { plain: 100, read: 0, written: {}, output: 50, thinking: 30 },
  );
  assert.deepEqual(usage(`{"promptTokenCount":100,"cachedContentTokenCount":400}`), {
    plain: 0,
    read: 100,
    written: {},
    output: 0,
  });
  assert.deepEqual(usage("{}"), { plain: 0, read: 0, written: {}, output: 0 });
});

test("gemini: figures that one report leaves out keep their earlier value", () => {
  const first = wholeBody([`{"text":"x"}`], {
    usage: `{"promptTokenCount":100,"cachedContentTokenCount":90,"candidatesTokenCount":1}`,
  });
  const { usage } = fold(
    read([frame(first), ended({ usage: `{"promptTokenCount":100,"candidatesTokenCount":5}` })]),
  ).response;
  assert.deepEqual(usage, { plain: 10, read: 90, written: {}, output: 5 });
});

test("gemini: an error inside a stream is thrown with its own meaning", () => {
  const error = frame(`{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}`);
  assert.throws(
    () => read([chunk(`{"text":"x"}`), error]),
    (caught) => caught instanceof ModelError && caught.reason.kind === "overloaded",
  );
});

test("gemini: the address names the model and how the answer should arrive", () => {
  const { path } = gemini;
  assert.ok(typeof path === "function");
  assert.deepEqual(
    [path("gemini-3.8-flash", true), path("models/gemini-4-argon", false), path("tunedModels/mine-1", true)],
    [
      "/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
      "/models/gemini-4-argon:generateContent",
      "/tunedModels/mine-1:streamGenerateContent?alt=sse",
    ],
  );
  for (const name of ["", "..", "models/..", "../files/x", "a b", "a?key=1", "a:delete", "a/b/c", "a%2e"])
    assert.throws(() => path(name, true), InputError, name);
});

test("gemini: what is in the key but not in the body still distinguishes two prefixes", () => {
  const opened = (changed: Partial<Head>): FrozenPrefix =>
    FrozenPrefix.open(gemini.encoder, { ...geminiConformance.head, ...changed }).append(userText("Hi"));
  const base = opened({});
  const divergence = (changed: Partial<Head>) => base.firstDivergence(opened(changed))?.path;
  assert.equal(divergence({}), undefined);
  assert.equal(divergence({ model: "gemini-4-argon" }), "model");
  assert.equal(divergence({ settings: { toolChoice: { type: "auto" }, effort: "high" } }), "generationConfig");
  assert.equal(divergence({ settings: { toolChoice: { type: "auto" }, serviceTier: "flex" } }), "serviceTier");
  assert.equal(divergence({ settings: { toolChoice: { type: "auto" }, temperature: 0 } }), undefined);
  assert.equal(divergence({ settings: { toolChoice: { type: "none" } } }), "toolConfig.functionCallingConfig.mode");
});
