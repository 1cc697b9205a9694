/** What times and stated usage add to the bodies, and what is recognised in them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type JsonObject, modelFacts, type Usage } from "@prefork/wire";
import { diffRequests, readUsage, type SentFacts, type Xray, type XrayFacts, xrayChain } from "@prefork/xray";
import { a, b, call, HEAD, KEPT, marked, result, text, unmarked, user, words } from "./corpus/conversation.ts";

const usage = (read: number, written: number, plain = 0): { usage: Usage } => ({
  usage: { plain, read, written: { "5m": written }, output: 10 },
});

const seen = ({ cause, tokens, lost }: Xray) => ({
  cause,
  kept: tokens.kept,
  read: tokens.read,
  lost: lost.tokens,
  estimated: tokens.estimated,
});

test("tokens are the provider's own where it states them, and estimates are scaled by them", () => {
  // A tokenizer that counts a third more than four bytes each.
  const facts = { a: usage(0, 5_812), b: usage(0, 5_999) };
  const xray = diffRequests(a, { ...b, system: [text(`${words(1_000, 1)}!`), text(words(500, 2), marked)] }, facts);
  assert.deepEqual(seen(xray), {
    cause: { kind: "system", change: "edited" },
    kept: 5_812,
    read: 0,
    lost: 5_812,
    estimated: false,
  });
  assert.deepEqual(
    xray.segments.map(({ a: ours, b: theirs }) => [ours, theirs]),
    [
      [2_000, 2_000],
      [2_000, 2_001],
      [1_812, 1_998],
    ],
  );
});

test("a read that the rules allow and the provider did not make is unexplained", () => {
  assert.deepEqual(seen(diffRequests(a, b, { a: usage(0, KEPT), b: usage(0, KEPT + 140) })), {
    cause: { kind: "unexplained" },
    kept: KEPT,
    read: 0,
    lost: KEPT,
    estimated: false,
  });
});

/** A short head and a long tail, of which a provider may count each in its own way. */
const dumped = (tail: string): JsonObject => ({
  ...a,
  messages: [...unmarked(a.messages), { role: "assistant", content: "Here." }, user(text(tail, marked))],
});

test("what the first request stated measures what both share, however dense the rest of the second is", () => {
  const dense = diffRequests(a, dumped("0f3a,".repeat(8_000)), { a: usage(0, KEPT, 3), b: usage(KEPT, 18_180, 3) });
  assert.deepEqual(
    [seen(dense), dense.tokens.a, dense.tokens.shared, dense.tokens.b],
    [{ cause: { kind: "none" }, kept: KEPT, read: KEPT, lost: 0, estimated: false }, KEPT + 3, KEPT, KEPT + 18_183],
  );
  const sparse = diffRequests(a, dumped(words(12_000, 9)), { a: usage(0, 8_000), b: usage(4_000, 13_000) });
  assert.deepEqual(seen(sparse), {
    cause: { kind: "unexplained" },
    kept: 8_000,
    read: 4_000,
    lost: 4_000,
    estimated: false,
  });
});

test("what stood before a change and was not read is lost with what stood behind it", () => {
  const asked = (first: string, ...more: readonly string[]): JsonObject => ({
    model: a.model,
    max_tokens: 9,
    system: [text(words(2_000, 1), marked)],
    messages: [user(text(first), ...more.map((said) => text(said)), text(words(500, 3), marked))],
  });
  // Of the 5,200 tokens of the first request its system text was 1,400, and that was read.
  const [one, other] = [asked(words(1_500, 2)), asked(`${words(1_500, 2)}!`)];
  const { cause, lost, tokens, segments } = diffRequests(one, other, { a: usage(0, 5_200), b: usage(1_400, 3_801) });
  assert.deepEqual([cause.kind, tokens.read, lost.tokens], ["message-edited", 1_400, 3_800]);
  assert.deepEqual(
    segments.map(({ read }) => read),
    [0, 1_400, 0],
  );
});

test("if the provider read more than the rules allow, nothing is lost", () => {
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "cG5n" } };
  const pictured = { ...b, messages: [...b.messages, user(image)] };
  assert.equal(diffRequests(a, pictured).cause.kind, "images");
  assert.equal(diffRequests(a, pictured, { a: usage(0, KEPT), b: usage(KEPT, 1_740) }).cause.kind, "none");
});

test("a first request that cached nothing leaves nothing to read", () => {
  const { cause, tokens } = diffRequests(a, b, { a: usage(0, 0, KEPT), b: usage(0, 0, KEPT + 140) });
  assert.deepEqual([cause, tokens.kept], [{ kind: "unexplained" }, 0]);
});

test("where only counting every block explains what was read, blocks are counted so", () => {
  const ids = Array.from({ length: 25 }, (_, index) => `toolu_${100 + index}`);
  const grown = {
    ...a,
    messages: [
      ...unmarked(a.messages),
      { role: "assistant", content: ids.map((id) => call(id)) },
      user(...ids.map((id, index) => result(id, 10, index === 24 ? marked : {}))),
    ],
  };
  const noted = diffRequests(a, grown);
  assert.equal(noted.cause.kind, "none");
  assert.deepEqual(noted.notes, [
    `if every call and result counts as its own block, ${HEAD} tokens would be read instead of ${KEPT}`,
  ]);
  const { cause, lost } = diffRequests(a, grown, { a: usage(0, KEPT), b: usage(HEAD, KEPT - HEAD + 475) });
  assert.deepEqual(
    [cause, lost.tokens],
    [{ kind: "look-back-exceeded", positions: { runs: 2, singly: 50 } }, KEPT - HEAD],
  );
});

test("requests milliseconds apart raced even where the start of the first answer was not recorded", () => {
  const at = (startedAt: number): SentFacts => ({ startedAt });
  assert.deepEqual(diffRequests(a, b, { a: at(1_000), b: at(1_020) }).cause, { kind: "raced", afterMs: 20 });
  assert.deepEqual(diffRequests(a, b, { a: at(1_000), b: at(900) }).cause, { kind: "raced", afterMs: -100 });
  assert.deepEqual(diffRequests(a, b, { a: at(1_000), b: at(3_000) }).cause, { kind: "none" });
});

test("money is counted at the model's prices, or not at all", () => {
  const changed = { ...b, system: "Be brief." };
  const { lost } = diffRequests(a, changed);
  assert.deepEqual([lost.tokens, lost.units, lost.usd], [2_859, 3_287.85, 0.0065757]);
  const own = new Map([["my-model", { ...(modelFacts("claude-sonnet-5") ?? fail()), id: "my-model" }]]);
  const [mine, theirs] = [
    { ...a, model: "my-model" },
    { ...changed, model: "my-model" },
  ];
  assert.equal(diffRequests(mine, theirs).lost.usd, undefined);
  assert.equal(diffRequests(mine, theirs, { models: own }).lost.usd, 0.0065757);
  assert.equal(diffRequests(mine, theirs, { model: "claude-sonnet-5" }).lost.usd, 0.0065757);
});

const fail = (): never => assert.fail("no facts");

test("other differences are reported too, in the order of the prompt", () => {
  const changed = {
    ...b,
    model: "claude-opus-5",
    system: "Be brief.",
    tool_choice: { type: "any" },
    tools: a.tools.toReversed(),
  };
  const { cause, also } = diffRequests(a, changed);
  assert.deepEqual(
    [cause, ...also].map(({ kind }) => kind),
    ["model", "tools-reordered", "system", "tool-choice"],
  );
});

test("unknown members are named where they differ, and blamed for nothing", () => {
  const { cause, notes } = diffRequests(
    { ...a, compaction: { at: 1 }, max_tokens: 5 },
    { ...b, compaction: { at: 2 }, odd: null },
  );
  assert.deepEqual(
    [cause.kind, notes],
    ["none", ["compaction differs, and it is not documented whether it is in the key"]],
  );
});

test("usage is read in every provider's words", () => {
  const parts = { plain: 10, read: 900, written: { "5m": 90 }, output: 7 };
  const stated: readonly (readonly [JsonObject, Usage])[] = [
    [{ input_tokens: 10, cache_read_input_tokens: 900, cache_creation_input_tokens: 90, output_tokens: 7 }, parts],
    [
      {
        input_tokens: 10,
        cache_read_input_tokens: 900,
        cache_creation_input_tokens: 90,
        cache_creation: { ephemeral_1h_input_tokens: 60, ephemeral_5m_input_tokens: 30 },
        output_tokens: 7,
      },
      { ...parts, written: { "5m": 30, "1h": 60 } },
    ],
    [
      { input_tokens: 1_000, input_tokens_details: { cached_tokens: 900, cache_write_tokens: 90 }, output_tokens: 7 },
      { ...parts, written: { "30m": 90 } },
    ],
    [
      { prompt_tokens: 1_000, prompt_tokens_details: { cached_tokens: 900 }, completion_tokens: 7 },
      { ...parts, plain: 100, written: {} },
    ],
    [
      { prompt_tokens: 1_000, prompt_cache_hit_tokens: 900, prompt_cache_miss_tokens: 100, completion_tokens: 7 },
      { ...parts, plain: 100, written: {} },
    ],
    [{ ...parts }, parts],
  ];
  for (const [given, wanted] of stated) assert.deepEqual(readUsage(given), wanted);
  for (const none of [undefined, null, 7, {}, { output_tokens: 3 }, { input_tokens: "x" }])
    assert.equal(readUsage(none), undefined);
});

test("a usage may be in its provider's format, and anything that is not a usage is refused in one line", () => {
  const theirs = { input_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: KEPT, output_tokens: 1 };
  const next = { ...theirs, cache_read_input_tokens: KEPT, cache_creation_input_tokens: 140 };
  const [first, second] = [theirs, next].map((stated) => ({ usage: stated as unknown as Usage }));
  const facts: XrayFacts = { ...(first ? { a: first } : {}), ...(second ? { b: second } : {}) };
  const { cause, tokens } = diffRequests(a, b, facts);
  assert.deepEqual([cause, tokens.a, tokens.read], [{ kind: "none" }, KEPT, KEPT]);
  assert.equal(
    xrayChain([
      { body: a, ...first },
      { body: b, ...second },
    ]).steps[1]?.prompt,
    KEPT + 140,
  );
  const wrong = { usage: { tokens: 3 } as unknown as Usage };
  const message = (name: string): string =>
    `${name}: its usage must be { plain, read, written, output } or a usage as its provider stated it`;
  assert.throws(() => diffRequests(a, b, { b: wrong }), { name: "InputError", message: message("the second request") });
  assert.throws(() => xrayChain([{ body: a, ...wrong }]), { name: "InputError", message: message("request 1") });
});

test("a system text that is cut into other blocks is lost whole", () => {
  const said = words(1_600, 5);
  for (const at of [100, 3_000, 5_000]) {
    const cut = [text(said.slice(0, at)), text(said.slice(at), marked)];
    const [whole, parts] = [
      { ...a, system: [text(said, marked)] },
      { ...b, system: cut },
    ];
    const { cause, lost } = diffRequests(whole, parts);
    const edited = diffRequests(whole, { ...b, system: [text(`${said}!`, marked)] });
    assert.deepEqual([cause.kind, Math.abs(lost.tokens - edited.lost.tokens) <= 1], ["system", true]);
  }
});

test("a few tokens for less than a hundredth of a cent are counted, and nothing is advised", () => {
  const grown = (tail: number) => ({
    ...a,
    messages: [...a.messages, { role: "user", content: [text(words(tail, 3))] }],
  });
  const next = (request: typeof a): typeof a => ({
    ...request,
    messages: [...request.messages, { role: "user", content: [text("And?", marked)] }],
  });
  const [few, many] = [3, 300].map((tail) => diffRequests(grown(tail), next(grown(tail))));
  assert.deepEqual([few?.cause.kind, few?.lost.tokens, few?.fix], ["marker-missing", 3, undefined]);
  assert.deepEqual([many?.lost.tokens, many?.fix === undefined], [300, false]);
});

test("formats are recognised by their shape", () => {
  const turn = { role: "user", content: "Hi." };
  const shapes: readonly (readonly [JsonObject, string])[] = [
    [{ model: "claude-sonnet-5", max_tokens: 9, messages: [turn] }, "anthropic-messages"],
    [{ model: "glm-5", max_tokens: 9, system: "Be brief.", messages: [turn] }, "anthropic-messages"],
    [
      {
        model: "my-model",
        max_tokens: 9,
        messages: [{ role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "x" }] }],
      },
      "anthropic-messages",
    ],
    [{ model: "gpt-5", messages: [turn] }, "openai-chat"],
    [{ model: "anthropic/claude-sonnet-5", messages: [{ role: "system", content: "Be brief." }, turn] }, "openai-chat"],
    [{ model: "qwen", max_tokens: 9, messages: [turn, { role: "assistant", tool_calls: [] }] }, "openai-chat"],
    [{ model: "gpt-6", input: "Hi." }, "openai-responses"],
    [{ model: "gpt-6", input: [turn], instructions: "Be brief." }, "openai-responses"],
  ];
  for (const [body, protocol] of shapes)
    assert.equal(diffRequests(body, body).protocol, protocol, JSON.stringify(body));
});

/** The sort of thing that is said to differ, in a system text with these words in it. */
const volatileIn = (from: string, to: string): string | undefined => {
  const said = (words: string): JsonObject => ({
    ...a,
    system: [text(`You work for Ann. ${words} Be brief.`, marked)],
  });
  const { cause } = diffRequests(said(from), said(to));
  return cause.kind === "system" ? cause.volatile : cause.kind;
};

test("what differs every time is recognised, and what does not is not", () => {
  const found = [
    ["Date: 2026-03-01.", "Date: 2026-03-02."],
    ["On 03/01/2026.", "On 12/24/2026."],
    ["Monday, 5 January 2026", "Tuesday, 6 January 2026"],
    ["January 5, 2026", "January 16, 2026"],
    ["at 9:15", "at 10:02"],
    ["stamp 1772355302", "stamp 1772355464"],
    ["session 7c9e6679-7425-40de-944b-e07fc1f90ae7", "session 16fd2706-8baf-433b-82eb-8c7fada847da"],
    ["run_01HXYZ7Q", "run_01HXYZ9B"],
    ["cwd /home/ann/app", "cwd /home/bob/app"],
    ["C:\\Users\\ann", "C:\\Users\\bob"],
    ["commit 72ea62c1", "commit 9e43e28b"],
    ["3 files", "12 files"],
    ["Be kind.", "Be exact."],
    ["and so on", "and so forth"],
  ].map(([from = "", to = ""]) => volatileIn(from, to));
  assert.deepEqual(found, [
    "date",
    "date",
    "date",
    "date",
    "time",
    "time",
    "id",
    "id",
    "path",
    "path",
    "hash",
    "number",
    undefined,
    undefined,
  ]);
});
