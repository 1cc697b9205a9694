/** Whatever is given, x-ray answers or says in one line why it cannot. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { InputError, type JsonObject } from "@prefork/wire";
import { diffRequests, xrayChain } from "@prefork/xray";
import fc from "fast-check";
import { a, b, marked, text, tool, user, words } from "./corpus/conversation.ts";

const refusal = (given: unknown): string => {
  try {
    diffRequests(given as JsonObject, a);
  } catch (error) {
    assert.ok(error instanceof InputError, String(error));
    return error.message;
  }
  return "taken";
};

test("anything that is not a request is refused in one line", () => {
  const circular: { self?: unknown } = {};
  circular.self = circular;
  const told = Object.entries({
    nothing: "",
    space: " \n ",
    "no JSON": "{model:",
    "an array": "[]",
    "a number": "7",
    "a string": '"messages"',
    null: "null",
    "an empty object": "{}",
    "messages that are no list": '{"messages":7}',
    "contents that are no list": '{"contents":{}}',
    "bytes that are no text": Buffer.from([0x7b, 0xff, 0x7d]),
    "an object in a circle": circular,
    "a number too large for JSON": { messages: [], n: 1n },
  }).map(([name, given]) => [name, refusal(given).replace(/\(line.*|Unexpected.*|Expected property.*/, "…")]);
  assert.deepEqual(Object.fromEntries(told), {
    nothing: "the first request is empty",
    space: "the first request is empty",
    "no JSON": "the first request is not valid JSON: …",
    "an array": "the first request must be a JSON object, the body of a request",
    "a number": "the first request must be a JSON object, the body of a request",
    "a string": "the first request must be a JSON object, the body of a request",
    null: "the first request must be a JSON object, the body of a request",
    "an empty object":
      "the first request is not a request that x-ray knows: expected `messages` (Anthropic Messages, OpenAI Chat), `input` (OpenAI Responses) or `contents` (Gemini)",
    "messages that are no list": "the first request: messages must be an array",
    "contents that are no list": "the first request: contents must be an array",
    "bytes that are no text": "the first request is not valid UTF-8",
    "an object in a circle": told.find(([name]) => name === "an object in a circle")?.[1] ?? "",
    "a number too large for JSON": "the first request cannot be written as JSON: Do not know how to serialize a BigInt",
  });
  assert.match(refusal(circular), /^the first request cannot be written as JSON: Converting circular structure/);
});

test("two formats have nothing to compare", () => {
  assert.throws(() => diffRequests(a, { model: "gpt-6-sol", input: "Who?" }), {
    name: "InputError",
    message: "the first request is an Anthropic Messages body, the second request an OpenAI Responses body",
  });
});

test("wrong types anywhere are pieces like any other", () => {
  const odd = {
    model: 7,
    max_tokens: "x",
    tools: ["Read", 3, null],
    system: { deep: 1 },
    messages: [null, 5, "x", {}, { role: 1, content: 7 }, { role: "user", content: [1, null, "x", [2], { type: 3 }] }],
  };
  const changed = { ...odd, tools: ["Read", 4, null] };
  const { cause, divergence } = diffRequests(
    { ...odd, system: "x", thinking: 7 },
    { ...changed, system: "x", thinking: 7 },
  );
  assert.equal(cause.kind, "marker-missing");
  assert.equal(divergence?.path, "tools[1]");
});

test("of two members with one key the last counts, and a note says so", () => {
  const twice = JSON.stringify(a).replace('"model":', '"model":"claude-opus-5","model":');
  const { cause, notes } = diffRequests(twice, b);
  assert.equal(cause.kind, "none");
  assert.deepEqual(notes, ['the first request: the body has "model" twice; the last one counts']);
});

test("one lone surrogate equals another, as no provider can tell them apart", () => {
  const lone = (unit: string): string => JSON.stringify(a).replace("oak ", `\\u${unit}ak `);
  assert.equal(diffRequests(lone("d800"), lone("d801")).divergence, undefined);
  assert.equal(diffRequests(lone("d800"), lone("0061")).divergence?.b.text, "a");
});

test("a byte order mark shifts no offset", () => {
  const changed = JSON.stringify({ ...b, model: "claude-opus-5" });
  const plain = diffRequests(a, changed).divergence?.b.offset ?? 0;
  assert.equal(diffRequests(a, Buffer.from(`\ufeff${changed}`)).divergence?.b.offset, plain + 3);
});

const MEGABYTE = 1024 * 1024;

const large: readonly (readonly [string, () => readonly [string, string]])[] = [
  ["nested arrays in a call", () => nested("[", "]")],
  ["nested objects in a call", () => nested('{"a":', "}")],
  ["nested objects in a block that nobody knows", () => nested('{"a":', "}", "odd")],
  [
    "one string",
    () =>
      pairOf((end) =>
        JSON.stringify({ model: "m", max_tokens: 1, system: "x".repeat(2 * MEGABYTE) + end, messages: [] }),
      ),
  ],
  [
    "a string of escapes",
    () =>
      pairOf(
        (end) =>
          `{"model":"m","max_tokens":1,"system":"${"\\u0061\\\\\\n".repeat(MEGABYTE / 10)}${end}","messages":[]}`,
      ),
  ],
  [
    "many messages",
    () =>
      pairOf((end) =>
        JSON.stringify({
          model: "m",
          max_tokens: 1,
          system: "x",
          messages: [
            ...Array.from({ length: 5_000 }, (_, index) => ({
              role: index % 2 ? "assistant" : "user",
              content: "y",
            })),
            { role: "user", content: end },
          ],
        }),
      ),
  ],
  [
    "many numbers in a call",
    () =>
      pairOf(
        (end) =>
          `{"model":"m","max_tokens":1,"system":"x","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"list":[${"1,".repeat(MEGABYTE / 16)}"${end}"]}}]}]}`,
      ),
  ],
  [
    "many keys",
    () =>
      pairOf(
        (end) =>
          `{"model":"m","max_tokens":1,"system":"x","messages":[{"role":"user","content":[{"type":"odd",${Array.from({ length: 8_000 }, (_, index) => `"k${index}":1`).join(",")},"z":"${end}"}]}]}`,
      ),
  ],
  [
    "many results with markers",
    () =>
      pairOf((end) =>
        JSON.stringify({
          model: "claude-sonnet-5",
          max_tokens: 1,
          messages: [
            user(
              ...Array.from({ length: 1_500 }, (_, index) => ({
                type: "tool_result",
                tool_use_id: `t${index}`,
                content: "y",
                ...marked,
              })),
              text(end),
            ),
          ],
        }),
      ),
  ],
  [
    "many tools",
    () =>
      pairOf((end) =>
        JSON.stringify({
          model: "claude-sonnet-5",
          max_tokens: 1,
          tools: [
            ...Array.from({ length: 1_500 }, (_, index) => ({ name: `t${index}`, input_schema: {} })),
            tool(`z${end}`),
          ],
          messages: [],
        }),
      ),
  ],
];

const pairOf = (make: (end: string) => string): readonly [string, string] => [make("1"), make("2")];

function nested(open: string, close: string, type = "tool_use"): readonly [string, string] {
  const depth = Math.floor(MEGABYTE / 4 / (open.length + close.length));
  const block = (end: string): string =>
    `{"type":"${type}","id":"t","name":"n","input":${open.repeat(depth)}"${end}"${close.repeat(depth)}}`;
  return pairOf(
    (end) => `{"model":"m","max_tokens":1,"system":"x","messages":[{"role":"assistant","content":[${block(end)}]}]}`,
  );
}

for (const [name, make] of large)
  test(`large: ${name}`, { timeout: 60_000 }, () => {
    const [one, other] = make();
    const { divergence } = diffRequests(one, other);
    assert.ok(divergence, "the difference is found");
    assert.ok(divergence.a.text.length <= 200 && divergence.b.text.length <= 200);
    assert.ok(divergence.path.length < 1_000);
  });

test("any JSON is accepted or refused in one line, never anything else", () => {
  const object = fc.dictionary(
    fc.constantFrom(
      "model",
      "messages",
      "input",
      "tools",
      "system",
      "content",
      "role",
      "type",
      "cache_control",
      "thinking",
    ),
    fc.jsonValue({ maxDepth: 5 }),
  );
  const structured = fc.record({
    messages: fc.array(
      fc.oneof(
        object,
        fc.record({
          role: fc.constantFrom("user", "assistant", "system", "tool"),
          content: fc.oneof(fc.string(), fc.array(fc.oneof(object, fc.jsonValue()))),
        }),
      ),
    ),
    tools: fc.oneof(fc.jsonValue(), fc.array(object)),
    system: fc.jsonValue(),
  });
  fc.assert(
    fc.property(fc.oneof(object, structured), fc.oneof(object, structured), (one, other) => {
      try {
        const { lost, tokens } = diffRequests(JSON.stringify(one), JSON.stringify(other));
        assert.ok(lost.tokens >= 0 && lost.tokens <= tokens.b);
        xrayChain([{ body: JSON.stringify(one) }, { body: JSON.stringify(other) }, { body: JSON.stringify(one) }]);
      } catch (error) {
        assert.ok(error instanceof InputError && !error.message.includes("\n"), String(error));
      }
    }),
    { numRuns: 300, seed: 9 },
  );
});

test("the text around a difference is never cut inside a character", () => {
  const one = { ...a, system: `${words(300, 1)}${"𝔘".repeat(80)}A${"語".repeat(80)}` };
  const other = { ...a, system: `${words(300, 1)}${"𝔘".repeat(80)}B${"語".repeat(80)}` };
  const { divergence } = diffRequests(one, other);
  assert.ok(divergence?.a.before.isWellFormed() && divergence.a.after.isWellFormed());
  assert.deepEqual([divergence?.a.text, divergence?.b.text], ["A", "B"]);
});
