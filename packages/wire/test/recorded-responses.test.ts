/** Forks of recorded OpenAI Responses bodies, written by hand as SDKs and agents send them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { diffRequests } from "@prefork/xray";
import {
  bytesOf,
  FORK_PLACEHOLDER_RESULT,
  type ForkRequestsOptions,
  forkRequests,
  type Json,
  openaiResponses,
  type Prepared,
  toolResult,
} from "../src/index.ts";

type Item = { readonly [key: string]: Json };

/** An SDK that writes members by the alphabet, with white space of its own. */
const body = (more = "", input = `[ {"role": "user", "content": "Migrate it."} ]`): string =>
  `{"instructions":"Be \\u0062rief.", "model":"gpt-6-sol","temperature":1.0,"tools":[{"type":"function","name":"Agent","parameters":{"type":"object"}}],${more}"input":${input} , "stream":true }\n`;

const reasoning = `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA=="}`;
const call = (id: string, name = "Agent"): string =>
  `{"type":"function_call","id":"fc_${id}","call_id":"${id}","name":"${name}","arguments":"{\\"n\\": 1.50}","status":"completed"}`;
const response = (...output: readonly string[]): string =>
  `{"id":"resp_1","object":"response","status":"completed","output":[${output.join(" , ")}],"usage":null}`;
const answer = response(reasoning, call("call_a"), call("call_b", "Read"));
const placeholder = [{ type: "input_text", text: FORK_PLACEHOLDER_RESULT }];
const breakpoint = { prompt_cache_breakpoint: { mode: "explicit" } };

const fork = (recorded: string, options: ForkRequestsOptions = {}) =>
  forkRequests(recorded, ["one", "two"], { answer, protocol: "none", parentNote: "launched", ...options });

const textOf = (prepared: Prepared | undefined): string => (prepared ? bytesOf(prepared).toString() : "");
const first = (recorded: string, options: ForkRequestsOptions = {}): string =>
  textOf(fork(recorded, options).members[0]);
const inputOf = (sent: string): readonly Item[] => (JSON.parse(sent) as { readonly input: readonly Item[] }).input;
const placesOf = ({ members: [member] }: ReturnType<typeof fork>): readonly string[] =>
  member?.markers.map(({ at, role, ttl }) => `${role} ${openaiResponses.encoder.pathOf(at)} ${ttl}`) ?? [];
const directive = (words: string, more: Item = {}): Item => ({
  type: "message",
  role: "user",
  content: [{ type: "input_text", text: words, ...more }],
});

test("forks have the parent's bytes, the answer's bytes, a result for each call, and their own directive", () => {
  const family = fork(body(), { results: [toolResult("call_b", "the file")] });
  const recorded = body();
  const shared =
    recorded.slice(0, recorded.indexOf("} ] , ") + 1) +
    `,${reasoning},${call("call_a")},${call("call_b", "Read")}` +
    `,{"type":"function_call_output","call_id":"call_a","output":[{"type":"input_text","text":"${FORK_PLACEHOLDER_RESULT}"}]}` +
    `,{"type":"function_call_output","call_id":"call_b","output":[{"type":"input_text","text":"the file","prompt_cache_breakpoint":{"mode":"explicit"}}]}`;
  const closing = ` ] , "stream":true }\n`;
  assert.deepEqual(
    [...family.members, family.parentNext].map(textOf),
    ["one", "two", "launched"].map(
      (words) =>
        `${shared},{"type":"message","role":"user","content":[{"type":"input_text","text":"${words}"}]}${closing}`,
    ),
  );
  assert.deepEqual([family.notes, family.members[0]?.stream], [[], true]);
});

test("text, bytes and an object give the same forks; a note says that an object has lost its formatting", () => {
  const plain = JSON.stringify(JSON.parse(body()));
  const [text, bytes, object] = [plain, Buffer.from(plain), JSON.parse(plain)].map((recorded) =>
    forkRequests(recorded, ["one"], { answer }),
  );
  assert.equal(textOf(bytes?.members[0]), textOf(text?.members[0]));
  assert.equal(textOf(object?.members[0]), textOf(text?.members[0]));
  assert.deepEqual(
    [text?.notes, object?.notes],
    [[], ["given as an object: number and key forms may differ from the bytes that were sent"]],
  );
});

test("a recording that ends with the answer needs no other", () => {
  const held = body("", `[{"role":"user","content":"Migrate it."},${JSON.parse(answer).output.map(JSON.stringify)}]`);
  assert.deepEqual(
    inputOf(textOf(forkRequests(held, ["one"], { protocol: "none" }).members[0])),
    inputOf(first(body())),
  );
  assert.throws(() => forkRequests(held, ["one"], { inFlight: "trim" }), /already end with the in-flight turn$/);
});

test("a trimmed fork follows the parent's last item, and its parent keeps the turn", () => {
  const family = fork(body(), { inFlight: "trim" });
  assert.deepEqual(inputOf(textOf(family.members[0])), [{ role: "user", content: "Migrate it." }, directive("one")]);
  assert.equal(inputOf(textOf(family.parentNext)).length, 7);
});

test("an input that is a string becomes a message, with a note", () => {
  const { members, notes } = fork(body("", `"caf\\u00e9"`), { inFlight: "trim" });
  assert.deepEqual(notes, ["input was a string: sent as the list of one message that it stands for"]);
  assert.ok(textOf(members[0]).includes(`"input":[{"type":"message","role":"user","content":"caf\\u00e9"},{`));
});

test("tools and instructions written after the input are moved before it, with a note", () => {
  const sdk = `{"input":[{"role":"user","content":"x"}],"instructions":"Be brief.","model":"gpt-6-sol","tools":[{"type":"function","name":"t"}]}`;
  const { members, notes } = fork(sdk, { inFlight: "trim" });
  assert.deepEqual(notes, ["moved before input: instructions, tools"]);
  assert.equal(
    textOf(members[0]),
    `{"instructions":"Be brief.","tools":[{"type":"function","name":"t"}],"input":[{"role":"user","content":"x"},{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}],"model":"gpt-6-sol"}`,
  );
});

// --- markers ---------------------------------------------------------------------------------------------------------

const explicit = `"prompt_cache_options":{"mode":"explicit"},`;
const marked = (text: string, marker = `"prompt_cache_breakpoint": {"mode":"explicit"}`): string =>
  `{"type":"input_text", ${marker}, "text":"${text}"}`;
const developer = (...parts: readonly string[]): string =>
  `{"type":"message","role":"developer","content":[${parts.join(",")}]}`;
const user = (...parts: readonly string[]): string => `{"role":"user","content":[${parts.join(",")}]}`;

test("in implicit mode only the end of what all share is marked: the provider marks the rest", () => {
  for (const mode of ["", `"prompt_cache_options":{"mode":"implicit"},`, `"prompt_cache_options":null,`])
    assert.deepEqual(placesOf(fork(body(mode))), ["shared input[5] 30m"]);
  assert.deepEqual(
    placesOf(fork(body(), { answer: response(`{"type":"message","role":"assistant","content":[]}`) })),
    [],
  );
});

test("in explicit mode without a marker the head, the shared end and the own tail are marked, plain text as a part", () => {
  const recorded = body(explicit, `[{"role":"developer","content":"D"},{"role":"user","content":"x"}]`);
  assert.deepEqual(placesOf(fork(recorded)), [
    "system input[0].content 30m",
    "shared input[6] 30m",
    "tail input[7].content[0] 30m",
  ]);
  const items = inputOf(first(recorded));
  assert.deepEqual(items[0], {
    role: "developer",
    content: [{ type: "input_text", text: "D", ...breakpoint }],
  });
  assert.deepEqual(items.at(-1), directive("one", breakpoint));
});

test("kept markers go back byte for byte, never more than four writes in all, and others are dropped", () => {
  const input = `[${developer(marked("D1"), marked("D2"))},${user(marked("a"))},${user(marked("b"))},{"role":"user","content":"c"}]`;
  const sent = first(body(explicit, input));
  assert.deepEqual(placesOf(fork(body(explicit, input))), [
    "system input[0].content[1] 30m",
    "inherited input[2].content[0] 30m",
    "shared input[8] 30m",
    "tail input[9].content[0] 30m",
  ]);
  assert.ok(sent.includes(`[{"type":"input_text", "text":"D1"},${marked("D2")}]`));
  assert.ok(sent.includes(user(marked("b"))));
  assert.deepEqual(placesOf(fork(body("", input))), [
    "system input[0].content[1] 30m",
    "inherited input[2].content[0] 30m",
    "shared input[8] 30m",
  ]);
});

test("a marker is found in the parts of a result, at any position among the members", () => {
  for (const part of [
    `{"prompt_cache_breakpoint":{"mode":"explicit"},"type":"input_text","text":"r"}`,
    `{"type":"input_text","prompt_cache_breakpoint":{"mode":"explicit"},"text":"r"}`,
    `{"type":"input_text","text":"r" ,"prompt_cache_breakpoint":{"mode":"explicit"} }`,
  ]) {
    const output = `{"type":"function_call_output","call_id":"c","output":[${part}] }`;
    const recorded = body(explicit, `[{"role":"user","content":"x"},${call("c")},${output}]`);
    assert.equal(placesOf(fork(recorded))[0], "inherited input[2] 30m");
    assert.ok(first(recorded).includes(output));
  }
});

test("lifetimes are those of the recording; a cold family writes no longer lifetime than it asks for", () => {
  const input = `[${developer(marked("D", `"prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}`))},${user(marked("a"))}]`;
  assert.deepEqual(placesOf(fork(body(explicit, input))), [
    "system input[0].content[0] 12h",
    "inherited input[1].content[0] 30m",
    "shared input[6] 30m",
    "tail input[7].content[0] 30m",
  ]);
  const cold = first(body(explicit, input), { cold: true });
  assert.ok(!cold.includes("12h") && cold.includes(user(marked("a"))), "only the longer one is spelled anew");
  const long = body(`"prompt_cache_options":{"mode":"explicit","ttl":"12h"},`, input);
  assert.deepEqual(
    placesOf(fork(long)).map((place) => place.split(" ").at(-1)),
    ["12h", "12h", "12h", "12h"],
  );
});

test("models that cache automatically get no marker, and keep the recorded ones", () => {
  const old = (recorded: string): string => recorded.replace("gpt-6-sol", "gpt-5.2");
  assert.deepEqual(placesOf(fork(old(body()))), []);
  assert.equal(inputOf(first(old(body())))[4]?.output, FORK_PLACEHOLDER_RESULT);
  const deployment = body("", `[${user(marked("a"))}]`).replace("gpt-6-sol", "my-deployment");
  assert.deepEqual(placesOf(fork(deployment)), ["inherited input[0].content[0] 30m"]);
  assert.ok(first(deployment).includes(marked("a")));
});

test("a plain result that must carry the shared marker becomes a list of one part", () => {
  const said = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}`;
  const output = (value: string): string => `{"type":"function_call_output","call_id":"c","output":${value}}`;
  for (const [value, parts] of [
    [`"r\\u0061"`, `[{"type":"input_text","text":"r\\u0061","prompt_cache_breakpoint":{"mode":"explicit"}}]`],
    [
      `[{"type":"input_image","image_url":"data:,x"} ]`,
      `[{"type":"input_image","image_url":"data:,x","prompt_cache_breakpoint":{"mode":"explicit"}} ]`,
    ],
  ] as const) {
    const recorded = body(explicit, `[${user(marked("a"))},${call("c")},${output(value)}]`);
    assert.ok(first(recorded, { answer: response(said) }).includes(`${output(parts)},${said}`));
  }
});

test("x-ray agrees: a fork reads everything that its parent wrote, and its sibling the shared tail too", () => {
  const long = (words: number): string => "word ".repeat(words);
  for (const mode of ["", explicit]) {
    const parts = [`{"type":"input_text","text":"${long(2_000)}"}`, marked(long(500))];
    const recorded = body(mode, `[${developer(...parts)},${user(marked(long(900)))}]`);
    const { members } = fork(recorded, { results: [toolResult("call_b", long(700))] });
    const [leader, follower] = members.map(textOf);
    const inherited = diffRequests(recorded, leader ?? "");
    assert.deepEqual([inherited.cause.kind, inherited.lost.tokens], ["none", 0]);
    assert.ok(inherited.tokens.read > 3_400, String(inherited.tokens.read));
    const shared = diffRequests(leader ?? "", follower ?? "");
    assert.ok(shared.tokens.read > inherited.tokens.read + 700, "the tail is read too");
  }
});

// --- what an item can be ---------------------------------------------------------------------------------------------

test("developer and system items, images, files, results and unknown items pass unchanged", () => {
  const items = [
    `{"role":"system","content":"S"}`,
    `{"role":"developer","content":[{"type":"input_text","text":"D"}]}`,
    `{"type":"message","role":"user","content":[{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,AA=="},{"type":"input_file","file_id":"f"}]}`,
    reasoning,
    call("c"),
    `{"type":"function_call_output","call_id":"c","output":"text"}`,
    `{"role":"developer","content":"a note"}`,
    `{"type":"item_reference","id":"msg_1"}`,
    `{"type":"web_search_call","id":"ws_1","status":"completed"}`,
    `{"role":"user","content":""}`,
    `{"role":"user","content":[]}`,
  ];
  const recorded = body("", `[${items.join(", ")}]`);
  const sent = first(recorded);
  const end = recorded.indexOf("] , ");
  assert.equal(sent.slice(0, end), recorded.slice(0, end));
  assert.equal(inputOf(sent).length, items.length + 6);
});

test("custom tool calls are answered with their own kind of result", () => {
  const custom = `{"type":"custom_tool_call","id":"ctc_1","call_id":"p","name":"apply_patch","input":"*** Begin"}`;
  const items = (options: ForkRequestsOptions): readonly Item[] =>
    inputOf(first(body(), { answer: response(custom), ...options })).slice(2);
  const output = (text: string): Item => ({
    type: "custom_tool_call_output",
    call_id: "p",
    output: [{ type: "input_text", text, ...breakpoint }],
  });
  assert.deepEqual(items({}), [output(FORK_PLACEHOLDER_RESULT), directive("one")]);
  assert.deepEqual(items({ results: [toolResult("p", "patched")] })[0], output("patched"));
  assert.deepEqual(
    items({ results: [toolResult("p", "patched")], placeholders: "all" })[0],
    output(placeholder[0]?.text ?? ""),
  );
  const held = body("", `[{"role":"user","content":"x"},${custom}]`);
  assert.deepEqual(inputOf(first(held, { inFlight: "keep", answer: response(reasoning, call("c")) })).length, 7);
  assert.throws(
    () => fork(body(), { answer: response(`{"type":"computer_call","id":"cu","call_id":"s","actions":[]}`) }),
    /^InputError: the parent's answer has a computer_call without a result, which only its own loop can give: record the request that has it$/,
  );
});

test("reasoning with nothing after it is dropped from the recording and from the answer, with a note", () => {
  const held = fork(body("", `[{"role":"user","content":"x"},${reasoning}]`), { inFlight: "trim" });
  assert.deepEqual(inputOf(textOf(held.members[0])), [{ role: "user", content: "x" }, directive("one")]);
  assert.deepEqual(held.notes, ["left out: reasoning at the end of input, from input[1] on, as nothing follows it"]);
  const cutOff = fork(body(), { answer: response(reasoning) });
  assert.deepEqual(cutOff.notes, ["left out of the answer: reasoning at its end, as nothing follows it"]);
  assert.equal(inputOf(textOf(cutOff.members[0]))[1]?.type, "message");
  assert.throws(() => fork(body("", `[${reasoning}]`)), /`input` has nothing but reasoning$/);
});

test("reasoning that was not stored is dropped from the answer, and a call that was cut off has no input", () => {
  const bare = `{"id":"rs_1","type":"reasoning","summary":[]}`;
  const broken = call("call_a").replace(`{\\"n\\": 1.50}`, `{\\"n\\": 1.`);
  const { members, notes } = fork(body(`"store":false,`), { answer: response(bare, broken) });
  assert.deepEqual(notes, [
    "left out of the answer: reasoning that was neither stored nor sealed",
    "call call_a was cut off: it is sent without its input",
  ]);
  assert.deepEqual(inputOf(textOf(members[0]))[1], {
    type: "function_call",
    call_id: "call_a",
    name: "Agent",
    arguments: "{}",
  });
  assert.equal(inputOf(first(body(), { answer: response(bare, call("call_a")) }))[1]?.type, "reasoning", "stored");
});

test("a model that forgets its reasoning gets the directive inside the last result, and trimming its loop is refused", () => {
  const loop = `[{"role":"user","content":"x"},${reasoning},${call("c")},{"type":"function_call_output","call_id":"c","output":"r"}]`;
  const old = body("", loop).replace("gpt-6-sol", "gpt-5.2");
  assert.deepEqual(inputOf(first(old)).at(-1)?.output, [
    { type: "input_text", text: FORK_PLACEHOLDER_RESULT },
    { type: "input_text", text: "one" },
  ]);
  assert.throws(() => fork(old, { inFlight: "trim" }), /^InputError: cannot trim: gpt-5.2 drops earlier thinking/);
  const said = response(`{"type":"message","role":"assistant","content":[]}`);
  assert.deepEqual(fork(old, { answer: said }).notes, [
    "gpt-5.2 drops earlier thinking when the directive arrives, and the cache ends there",
  ]);
  const keeps = old.replace(`"temperature":1.0`, `"reasoning":{"context":"all_turns"}`);
  assert.deepEqual(inputOf(first(keeps)).at(-1), directive("one"));
});

test("thousands of marked parts, and results deeper than any stack, are read in one pass", () => {
  const parts = Array.from({ length: 8_000 }, () => marked("a"));
  const { members } = fork(body(explicit, `[${user(...parts)}]`));
  assert.equal(textOf(members[0]).split("prompt_cache_breakpoint").length - 1, 3);
  const deep = `${'{"type":"x","output":['.repeat(5_000)}${"]}".repeat(5_000)}`;
  const recorded = body(
    "",
    `[{"role":"user","content":"x"},${call("c")},{"type":"function_call_output","call_id":"c","output":[${deep}]}]`,
  );
  assert.ok(first(recorded).includes(deep));
});

// --- what is refused -------------------------------------------------------------------------------------------------

test("what cannot be forked is refused in one line that names the location and the way out", () => {
  const small = (more: string): string => `{"model":"gpt-6-sol",${more}}`;
  const refusals: readonly (readonly [string, RegExp])[] = [
    [
      body(`"previous_response_id":"resp_0",`),
      /^the recorded request has previous_response_id: the rest of its prompt is kept by the provider and in no bytes; record one that carries its whole input, without previous_response_id$/,
    ],
    [body(`"conversation":{"id":"conv_1"},`), /^the recorded request has conversation: /],
    [`{"input":"x"}`, /^the recorded request has no `model`$/],
    [small(`"instructions":"x"`), /^the recorded request has no `input`, a string or an array$/],
    [small(`"input":[]`), /^the recorded request's `input` is empty$/],
    [small(`"input":""`), /^the recorded request's `input` is empty$/],
    [small(`"input":["x"]`), /^input\[0\] is not an object$/],
    [small(`"input":[{}]`), /^input\[0\] has neither a type nor a role$/],
    [
      small(`"input":[{"role":"tool","content":"x"}]`),
      /^input\[0\]\.role must be user, assistant, system or developer$/,
    ],
    [small(`"input":[{"role":"user"}]`), /^input\[0\]\.content must be a string or an array$/],
    [small(`"input":[{"role":"user","content":[{}]}]`), /^input\[0\]\.content\[0\] is not a part with a type$/],
    [small(`"input":"x","tools":{}`), /^tools must be an array of objects$/],
    [small(`"input":"x","instructions":[]`), /^instructions must be a string$/],
    [small(`"input":"x","prompt_cache_options":{"prewarm":true}`), /only fills the cache: prewarm is true$/],
    [small(`"input":"x","input":"y"`), /^the recorded request has "input" twice$/],
    [small(`"input":[{"role":"user","content":"x","content":"y"}]`), /^input\[0\] has "content" twice$/],
  ];
  for (const [recorded, message] of refusals)
    assert.throws(() => forkRequests(recorded, ["one"]), { name: "InputError", message }, recorded);
  const wrongAnswers: readonly (readonly [string, RegExp])[] = [
    ["{", /^the parent's answer is not valid JSON: /],
    ["[]", /^the parent's answer must be a JSON object$/],
    [`{"output":[]}`, /^the parent's answer must be a response with an `output` array that is not empty$/],
    [`{"role":"assistant","content":"x"}`, /^the parent's answer must be a response with an `output` array/],
    [`{"output":[{"type":"message","role":"user"}]}`, /^the parent's answer: output\[0\]\.content must be a string/],
    [`{"output":[{}],"output":[{}]}`, /^the parent's answer has "output" twice$/],
  ];
  for (const [given, message] of wrongAnswers)
    assert.throws(() => fork(body(), { answer: given }), { name: "InputError", message }, given);
});
