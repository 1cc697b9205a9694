/** Forks of recorded Chat Completions bodies, of OpenAI and of others who speak the format, written by hand. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { diffRequests } from "@prefork/xray";
import {
  anthropic,
  bytesOf,
  FORK_PLACEHOLDER_RESULT,
  type ForkRequestsOptions,
  forkRequests,
  type Json,
  openaiChat,
  openaiResponses,
  type Prepared,
  profiles,
  toolResult,
} from "../src/index.ts";

type Item = { readonly [key: string]: Json };

const system = `{"role":"system","content":"Be \\u0062rief."}`;
const body = (
  messages = `[ ${system}, {"content":"Migrate it.", "role":"user"} ]`,
  more = "",
  model = "gpt-6-sol",
): string =>
  `{ "model":"${model}","temperature":1.0,${more}"tools":[{"type":"function","function":{"name":"Agent"}}],"messages":${messages} , "stream":true }\n`;

const call = (id: string): string =>
  `{"id":"${id}","type":"function","function":{"name":"Agent","arguments":"{ \\"n\\": 1.50 }"}}`;
/** As a provider spells it: members that nobody sends, in an order of its own. */
const message = `{"content":null,"refusal":null,"role":"assistant","annotations":[],"tool_calls":[${call("call_a")}, ${call("call_b")}] }`;
const completion = (...messages: readonly string[]): string =>
  `{"id":"c","object":"chat.completion","choices":[${messages.map((said, index) => `{"index":${index},"message": ${said},"finish_reason":"tool_calls"}`)}]}\n`;
const answer = completion(message);
const text = (said: string): string => completion(`{"role":"assistant","content":"${said}"}`);

const fork = (recorded: string, options: ForkRequestsOptions = {}) =>
  forkRequests(recorded, ["one", "two"], { answer, protocol: "none", parentNote: "launched", ...options });

const textOf = (prepared: Prepared | undefined): string => (prepared ? bytesOf(prepared).toString() : "");
const first = (recorded: string, options: ForkRequestsOptions = {}): string =>
  textOf(fork(recorded, options).members[0]);
const messagesOf = (sent: string): readonly Item[] =>
  (JSON.parse(sent) as { readonly messages: readonly Item[] }).messages;
const placesOf = ({ members: [member] }: ReturnType<typeof fork>): readonly string[] =>
  member?.markers.map(({ at, role, ttl }) => `${role} ${openaiChat.encoder.pathOf(at)} ${ttl}`) ?? [];
const protocolOf = (recorded: string, options: ForkRequestsOptions = {}): string =>
  forkRequests(recorded, ["one"], options).members[0]?.protocol.name ?? "";

test("forks have the parent's bytes, the answer's bytes, a result for each call, and their own directive", () => {
  const family = fork(body(), { results: [toolResult("call_b", "the file")] });
  const recorded = body();
  const shared =
    recorded.slice(0, recorded.indexOf("} ] , ") + 1) +
    `,${message}` +
    `,{"role":"tool","tool_call_id":"call_a","content":[{"type":"text","text":"${FORK_PLACEHOLDER_RESULT}"}]}` +
    `,{"role":"tool","tool_call_id":"call_b","content":[{"type":"text","text":"the file","prompt_cache_breakpoint":{"mode":"explicit"}}]}`;
  assert.deepEqual(
    [...family.members, family.parentNext].map(textOf),
    ["one", "two", "launched"].map(
      (words) => `${shared},{"role":"user","content":[{"type":"text","text":"${words}"}]} ] , "stream":true }\n`,
    ),
  );
  assert.deepEqual([family.notes, family.members[0]?.stream], [[], true]);
});

test("the answer may be the message alone, or come at the end of the recording", () => {
  const expected = messagesOf(first(body()));
  assert.deepEqual(messagesOf(first(body(), { answer: ` ${message}\n` })), expected);
  const held = body(`[${system},{"role":"user","content":"Migrate it."},${message}]`);
  assert.deepEqual(messagesOf(textOf(forkRequests(held, ["one"], { protocol: "none" }).members[0])), expected);
  assert.throws(() => forkRequests(held, ["one"], { inFlight: "trim" }), /already end with the in-flight turn$/);
  const roles = messagesOf(first(held, { answer: text("done") })).map(({ role }) => role);
  assert.deepEqual(
    roles,
    ["system", "user", "assistant", "tool", "tool", "assistant", "user"],
    "open calls come first",
  );
});

test("a trimmed fork follows the parent's last message, and its parent keeps the turn", () => {
  const family = fork(body(), { inFlight: "trim" });
  assert.deepEqual(messagesOf(textOf(family.members[0])).slice(1), [
    { role: "user", content: "Migrate it." },
    { role: "user", content: [{ type: "text", text: "one" }] },
  ]);
  assert.equal(messagesOf(textOf(family.parentNext)).length, 6);
});

test("tools written after the messages, as some SDKs do, are moved before them, with a note", () => {
  const sdk = `{"messages":[{"role":"user","content":"x"}],"model":"gpt-4.1","tools":[{"type":"function","function":{"name":"t"}}]}`;
  const { members, notes } = fork(sdk, { inFlight: "trim" });
  assert.deepEqual(notes, ["moved before messages: tools"]);
  assert.equal(
    textOf(members[0]),
    `{"tools":[{"type":"function","function":{"name":"t"}}],"messages":[{"role":"user","content":"x"},{"role":"user","content":[{"type":"text","text":"one"}]}],"model":"gpt-4.1"}`,
  );
});

test("images, parts, results as text and as parts, developer notes and old functions pass unchanged", () => {
  const messages = [
    `{"role":"developer","content":[{"type":"text","text":"D"}]}`,
    `{"role":"user","name":"ann","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"low"}},{"type":"text","text":"?"}]}`,
    `{"role":"assistant","tool_calls":[${call("a")},{"id":"b","type":"custom","custom":{"name":"patch","input":"*"}}],"content":"Both."}`,
    `{"role":"tool","tool_call_id":"a","content":"text"}`,
    `{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"parts"}]}`,
    `{"role":"developer","content":"a note"}`,
    `{"role":"assistant","content":"","reasoning_content":"hm","function_call":{"name":"f","arguments":"{}"}}`,
    `{"role":"function","name":"f","content":"1"}`,
    `{"role":"assistant","content":[{"type":"text","text":"said"}],"audio":null}`,
    `{"role":"user","content":""}`,
  ];
  const recorded = body(`[${messages.join(" ,\n")}]`);
  const end = recorded.indexOf("] , ");
  assert.equal(first(recorded).slice(0, end), recorded.slice(0, end));
  assert.equal(messagesOf(first(recorded)).length, messages.length + 4);
});

test("n is kept with a note; which of several answers the parent continued with must be stated too", () => {
  const recorded = body(undefined, `"n":2,`);
  assert.deepEqual(fork(recorded).notes, ["n is 2: each fork is asked for 2 answers, and the first is read"]);
  assert.equal((JSON.parse(first(recorded)) as Item).n, 2);
  assert.throws(
    () => fork(recorded, { answer: completion(message, message) }),
    /^InputError: the parent's answer has 2 choices: give the message that the parent continued with$/,
  );
});

test("an answer without any content is replaced by a line that says so", () => {
  const { members, notes } = fork(body(), { answer: completion(`{"role":"assistant","content":null}`) });
  assert.deepEqual(notes, ["the answer says nothing: a line in its place says so"]);
  assert.deepEqual(messagesOf(textOf(members[0]))[2], {
    role: "assistant",
    content: "(This answer was cut off before anything was said.)",
  });
  const refusal = `{"role":"assistant","content":null,"refusal":"No."}`;
  assert.ok(first(body(), { answer: completion(refusal) }).includes(refusal));
});

// --- markers ---------------------------------------------------------------------------------------------------------

const explicit = `"prompt_cache_options":{"mode":"explicit"},`;
const breakpoint = `"prompt_cache_breakpoint":{"mode":"explicit"}`;

test("OpenAI's models: implicit mode marks the shared end, explicit mode the head and the own tail too", () => {
  assert.deepEqual(placesOf(fork(body())), ["shared messages[4] 30m"]);
  assert.deepEqual(placesOf(fork(body(undefined, explicit))), [
    "system messages[0].content 30m",
    "shared messages[4] 30m",
    "tail messages[5].content[0] 30m",
  ]);
  assert.ok(
    first(body(undefined, explicit)).includes(
      `{"role":"system","content":[{"type":"text","text":"Be \\u0062rief.",${breakpoint}}]}`,
    ),
  );
  assert.deepEqual(placesOf(fork(body(undefined, "", "gpt-4.1"))), []);
});

test("recorded breakpoints are kept byte for byte, also in results", () => {
  const result = `{"role":"tool","content":[{${breakpoint} ,"type":"text","text":"r"}],"tool_call_id":"a"}`;
  const recorded = body(
    `[${system},{"role":"user","content":"x"},{"role":"assistant","tool_calls":[${call("a")}]},${result}]`,
  );
  assert.deepEqual(placesOf(fork(recorded)), ["inherited messages[3] 30m", "shared messages[6] 30m"]);
  assert.ok(first(recorded).includes(result));
});

const control = `"cache_control":{"type":"ephemeral"}`;
const controlled = (mark = control): string =>
  `[{"role":"system","content":[{"type":"text","text":"S",${mark}}]},{"role":"user","content":[{${mark},"type":"text","text":"x"}]}]`;

test("cache_control is kept where it was, and new markers have the same form", () => {
  const recorded = body(controlled(), "", "qwen3.7-max");
  assert.deepEqual(placesOf(fork(recorded)), [
    "system messages[0].content[0] 5m",
    "inherited messages[1].content[0] 5m",
    "shared messages[4] 5m",
    "tail messages[5].content[0] 5m",
  ]);
  const sent = first(recorded);
  assert.ok(sent.includes(controlled().slice(1, -1)));
  assert.ok(sent.includes(`{"role":"user","content":[{"type":"text","text":"one",${control}}]}`));
  assert.equal(protocolOf(recorded), "dashscope");
  const gateway = body(controlled(`"cache_control":{"type":"ephemeral","ttl":"1h"}`), "", "anthropic/claude-sonnet-5");
  assert.equal(protocolOf(gateway), "openrouter");
  assert.deepEqual(
    placesOf(fork(gateway)).map((place) => place.split(" ").at(-1)),
    ["1h", "1h", "5m", "5m"],
  );
});

test("a gateway's automatic marker becomes an explicit one at the same position", () => {
  const recorded = body(undefined, `${control},`, "anthropic/claude-sonnet-5");
  const { notes } = fork(recorded);
  assert.deepEqual(notes, ["automatic caching replaced by explicit markers, one of them where it would have been put"]);
  assert.deepEqual(placesOf(fork(recorded))[0], "inherited messages[1].content 5m");
  assert.ok(first(recorded).includes(`{"content":[{"type":"text","text":"Migrate it.",${control}}], "role":"user"}`));
});

test("a recorded marker on the model's own text is kept, even if its lifetime is not", () => {
  const said = (mark: string): string => `{"role":"assistant","content":[{${mark}"type":"text","text":"b"}]}`;
  const messages = (mark: string): string => `[{"role":"user","content":"x"},${said(mark)}]`;
  const hour = `"cache_control":{"type":"ephemeral","ttl":"1h"},`;
  const recorded = body(messages(hour), "", "qwen/qwen3.7-max");
  assert.ok(first(recorded).includes(said(hour)));
  assert.deepEqual(messagesOf(first(recorded, { cold: true }))[1]?.content, [
    { type: "text", text: "b", cache_control: { type: "ephemeral" } },
  ]);
});

test("x-ray agrees: a fork reads everything that its parent wrote", () => {
  const words = "word ".repeat(1_500);
  for (const model of ["gpt-6-sol", "gpt-4.1", "deepseek-chat"]) {
    const recorded = body(`[{"role":"system","content":"${words}"},{"role":"user","content":"${words}"}]`, "", model);
    const { cause, lost, tokens } = diffRequests(recorded, first(recorded));
    assert.deepEqual([cause.kind, lost.tokens], ["none", 0], model);
    assert.ok(tokens.read > 3_600, `${model} reads ${tokens.read}`);
  }
});

// --- who speaks it ---------------------------------------------------------------------------------------------------

test("an unknown endpoint gets plain text and no marker, and is waited for until its answer is complete", () => {
  const [member] = fork(body(undefined, "", "deepseek-chat")).members;
  assert.deepEqual(messagesOf(textOf(member)).slice(3), [
    { role: "tool", tool_call_id: "call_a", content: FORK_PLACEHOLDER_RESULT },
    { role: "tool", tool_call_id: "call_b", content: FORK_PLACEHOLDER_RESULT },
    { role: "user", content: "one" },
  ]);
  assert.deepEqual([member?.protocol.name, member?.protocol.readable, member?.markers], ["chat", "complete", []]);
});

test("the format can be named, and then nothing is guessed", () => {
  const vllm = profiles.get("vllm")?.protocol;
  assert.equal(protocolOf(body(), { format: vllm }), "vllm");
  const either = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`;
  assert.equal(protocolOf(either, { format: anthropic }), "anthropic");
  assert.equal(protocolOf(either, { format: openaiChat }), "openai-chat");
  assert.throws(() => protocolOf(either, { format: openaiResponses }), /has no `input`, a string or an array$/);
});

test("a body is recognised by its shape; one that could be two formats, or none, is refused in one line", () => {
  const plain = `"messages":[{"role":"user","content":"x"}]`;
  const told: readonly (readonly [string, string])[] = [
    [`{"model":"claude-sonnet-5","max_tokens":9,${plain}}`, "anthropic"],
    [`{"model":"glm-5","max_tokens":9,"system":"s",${plain}}`, "anthropic"],
    [`{"model":"gpt-4o","max_tokens":9,${plain}}`, "openai-chat"],
    [`{"model":"ft:gpt-4o:me","max_tokens":9,${plain}}`, "openai-chat"],
    [`{"model":"openai/o3","max_tokens":9,${plain}}`, "openai-chat"],
    [`{"model":"openai/gpt-oss-120b","seed":1,${plain}}`, "chat"],
    [`{"model":"m",${plain}}`, "chat"],
    [`{"model":"m","max_tokens":9,"messages":[{"role":"system","content":"s"},{"role":"user","content":"x"}]}`, "chat"],
    [
      `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}`,
      "chat",
    ],
    [`{"model":"gpt-4o","input":"x"}`, "openai-responses"],
  ];
  for (const [recorded, name] of told) assert.equal(protocolOf(recorded), name, recorded);
  const refusals: readonly (readonly [string, RegExp])[] = [
    [
      `{"model":"m","max_tokens":9,${plain}}`,
      /^the recorded request can be an Anthropic Messages or an OpenAI Chat body: say which with `format`$/,
    ],
    [
      `{"model":"m","input":"x",${plain}}`,
      /^the recorded request has both `messages` and `input`: say which with `format`$/,
    ],
    [`{"contents":[]}`, /^the recorded request looks like a Gemini request, which cannot be forked$/],
    [
      `{"prompt":"x"}`,
      /^the recorded request cannot be forked: expected `messages` \(Anthropic Messages, OpenAI Chat\) or `input` \(OpenAI Responses\)$/,
    ],
    ["[]", /^the recorded request must be a JSON object$/],
  ];
  for (const [recorded, message] of refusals)
    assert.throws(() => protocolOf(recorded), { name: "InputError", message }, recorded);
  assert.throws(() => forkRequests(Buffer.from([0x7b, 0xff, 0x7d]), ["x"]), /^InputError: .* is not valid UTF-8$/);
});

test("what is not a chat body or not an answer to one is refused in one line that names the location", () => {
  const small = (more: string): string => `{"model":"gpt-4o",${more}}`;
  const user = `{"role":"user","content":"x"}`;
  const refusals: readonly (readonly [string, RegExp])[] = [
    [`{"messages":[${user}]}`, /^the recorded request has no `model`$/],
    [small(`"messages":{}`), /^the recorded request has no `messages` array$/],
    [small(`"messages":[]`), /^the recorded request's `messages` is empty$/],
    [small(`"messages":[1]`), /^messages\[0\] is not an object$/],
    [small(`"messages":[{"role":"me","content":"x"}]`), /^messages\[0\]\.role must be system, developer, user,/],
    [small(`"messages":[{"role":"user","content":null}]`), /^messages\[0\]\.content must be a string or an array$/],
    [small(`"messages":[{"role":"user","content":[1]}]`), /^messages\[0\]\.content\[0\] is not a part with a type$/],
    [
      small(`"messages":[{"role":"assistant","tool_calls":[{}]}]`),
      /^messages\[0\]\.tool_calls must be an array of calls/,
    ],
    [small(`"messages":[${user}],"tools":[1]`), /^tools must be an array of objects$/],
    [small(`"messages":[${user}],"max_tokens":0`), /only fills the cache: max_tokens is 0$/],
    [small(`"messages":[${user}],"messages":[${user}]`), /^the recorded request has "messages" twice$/],
    [small(`"messages":[{"role":"user","content":"x","role":"user"}]`), /^messages\[0\] has "role" twice$/],
    [
      small(`"messages":[${user},{"role":"assistant","function_call":{"name":"f"}}]`),
      /^the recorded request has a function_call without a result: only tool_calls can be answered in forks$/,
    ],
  ];
  for (const [recorded, message] of refusals)
    assert.throws(() => forkRequests(recorded, ["one"]), { name: "InputError", message }, recorded);
  const wanted = /^the parent's answer must be a chat completion or an assistant message$/;
  const wrongAnswers: readonly (readonly [string, RegExp])[] = [
    [`{"output":[]}`, wanted],
    [`{"choices":[]}`, wanted],
    [`{"choices":[{"delta":{"role":"assistant"}}]}`, wanted],
    [completion(user), wanted],
    [completion(`{"role":"assistant","content":5}`), /^the parent's answer\.content must be a string or an array$/],
    [completion(`{"role":"assistant","content":"","content":""}`), /^the parent's answer has "content" twice$/],
  ];
  for (const [given, message] of wrongAnswers)
    assert.throws(() => fork(body(), { answer: given }), { name: "InputError", message }, given);
  assert.equal(messagesOf(first(body(), { answer: text("done") })).length, 4);
});
