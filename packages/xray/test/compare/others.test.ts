/** What agents of others send, in words of our own: who is whom, what is an edit, and advice that can be followed. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { modelFacts } from "@prefork/wire";
import {
  diffRequests,
  readRequests,
  readUsage,
  type Xray,
  type XrayFacts,
  xrayCauseWords,
  xrayChain,
} from "@prefork/xray";
import { type Block, marked, prose, text, tool, user, words } from "./corpus/conversation.ts";

const seen = ({ cause, lost, fix }: Xray) => ({ cause, lost: lost.tokens, fix });

// --- Claude behind a gateway -----------------------------------------------------------------------------------------

const routed = (system: string | readonly Block[], ...more: readonly Block[]): Block => ({
  model: "anthropic/claude-sonnet-5",
  messages: [{ role: "system", content: system }, { role: "user", content: words(300, 2) }, ...more],
});
const reply: readonly Block[] = [
  { role: "assistant", content: words(20, 3) },
  { role: "user", content: words(30, 4) },
];

test("a gateway's Claude without markers keeps nothing", () => {
  assert.deepEqual(seen(diffRequests(routed(words(1_200, 1)), routed(words(1_200, 1), ...reply))), {
    cause: { kind: "marker-missing", in: "a", at: "messages[1].content" },
    lost: 1_500,
    fix: "put a marker (cache_control) at messages[1].content: the last block that the next request repeats",
  });
});

test("other models of the same gateway cache automatically, each by its own rules", () => {
  const lostBy = (model: string): string => {
    const [a, b] = [routed(words(4_200, 1)), routed(words(4_200, 1), ...reply)];
    return diffRequests({ ...a, model }, { ...b, model }).cause.kind;
  };
  const models = ["openai/gpt-5.4", "openai/gpt-6-sol", "google/gemini-3.8-flash", "deepseek/deepseek-flash", "qwen/q"];
  assert.deepEqual(models.map(lostBy), ["none", "none", "none", "none", "none"]);
});

test("a gateway's Claude loses its messages with the choice of a tool, and nothing with the default one by its name", () => {
  const head = [{ type: "text", text: words(1_200, 1), ...marked }];
  const asked: Block = {
    role: "user",
    content: [{ type: "text", text: words(300, 2), ...marked }],
  };
  const a = { model: "anthropic/claude-sonnet-5", messages: [{ role: "system", content: head }, asked] };
  const b = { ...a, messages: [...a.messages, ...reply] };
  assert.equal(diffRequests(a, { ...b, tool_choice: "auto" }).cause.kind, "none");
  const { cause, lost } = diffRequests(a, { ...b, tool_choice: "required" });
  assert.deepEqual([cause, lost.tokens], [{ kind: "tool-choice", from: "its default", to: "required" }, 300]);
});

test("a model is known by whatever name a gateway or a client gives it", () => {
  const names = [
    "anthropic/claude-haiku-4.5:nitro",
    "anthropic/claude-haiku-4.5:beta",
    "openrouter/anthropic/claude-haiku-4.5",
    "vertex_ai/claude-haiku-4-5",
    "vertex_ai/claude-haiku-4-5@20251001",
    "bedrock/global.anthropic.claude-haiku-4-5-20251001-v1:0",
    "bedrock/us-gov.anthropic.claude-haiku-4-5-20251001-v1:0",
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0",
    "claude-haiku-4-5[1m]",
  ];
  const head = [{ type: "text", text: words(2_000, 1), ...marked }];
  const causes = names.map((model) => {
    const a = {
      model,
      messages: [
        { role: "system", content: head },
        { role: "user", content: [prose(9, 2, marked)] },
      ],
    };
    return diffRequests(a, { ...a, messages: [...a.messages, ...reply] }).cause.kind;
  });
  assert.deepEqual(
    causes,
    names.map(() => "below-minimum"),
  );
  assert.deepEqual(
    ["claude-sonnet-5[1m]", "azure/gpt-5.4", "gemini/gemini-3.8-flash", "my/claude-haiku", "glm-5:free"].map(
      (model) => modelFacts(model)?.id,
    ),
    ["claude-sonnet-5", "gpt-5.4", "gemini-3.8-flash", undefined, undefined],
  );
});

test("for an unknown model no short prompt counts as cached, unless its provider says so", () => {
  const grown = (tokens: number, facts: XrayFacts = {}): string => {
    const a = { ...routed(words(tokens, 1)), model: "my-model" };
    return diffRequests(a, { ...routed(words(tokens, 1), ...reply), model: "my-model" }, facts).why;
  };
  const all = "everything that both have in common was read";
  const stated = { usage: { plain: 60, read: 2_300, written: {}, output: 1 } };
  assert.deepEqual(
    [grown(2_000), grown(4_000), grown(2_000, { b: stated })],
    [
      "everything that both have in common is read if this model caches such a short prompt; its minimum is unknown",
      all,
      all,
    ],
  );
});

// --- OpenAI ----------------------------------------------------------------------------------------------------------

test("instructions take no breakpoint: a developer message does", () => {
  const request = (question: string): Block => ({
    model: "gpt-6-sol",
    instructions: words(2_000, 1),
    input: [{ role: "user", content: question }],
  });
  assert.deepEqual(seen(diffRequests(request(words(300, 2)), request(words(300, 3)))), {
    cause: { kind: "marker-missing", in: "a", at: "instructions", form: "developer-message" },
    lost: 2_000,
    fix: "instructions cannot carry a breakpoint: send it as a developer message with a breakpoint at its end",
  });
});

test("a separate session with its own cache key is a start, and lost what both begin with", () => {
  const request = (key: string, question: string): Block => ({
    model: "gpt-6-sol",
    prompt_cache_key: key,
    input: [
      { role: "developer", content: [{ type: "input_text", text: words(2_000, 1), prompt_cache_breakpoint: {} }] },
      { role: "user", content: question },
    ],
  });
  const { steps } = xrayChain([{ body: request("s-1", "Which?") }, { body: request("s-2", "And what of it?") }]);
  const [, second] = steps;
  assert.deepEqual(
    [second?.relation, second?.lineage, second?.xray?.cause, second?.xray?.lost.tokens],
    ["starts", 1, { kind: "cache-key", name: "prompt_cache_key", from: "s-1", to: "s-2" }, 2_000],
  );
});

test("tools that are declared at the head of the input are tools, and what follows them is the system text", () => {
  const declared = (name: string): Block => ({ type: "function", name, description: words(300, 5), parameters: {} });
  const request = (names: readonly string[], system: string): Block => ({
    model: "gpt-6-sol",
    input: [
      { type: "additional_tools", role: "developer", tools: names.map(declared) },
      { role: "developer", content: system },
      { role: "user", content: words(900, 2) },
    ],
  });
  const [a, b] = [request(["run", "find"], words(600, 1)), request(["run"], words(600, 1))];
  assert.deepEqual(diffRequests(a, b).cause, { kind: "tools-removed", tools: ["find"] });
  assert.deepEqual(diffRequests(a, request(["find", "run"], words(600, 1))).cause.kind, "tools-reordered");
  assert.deepEqual(diffRequests(a, request(["run", "find"], `${words(600, 1)} More.`)).cause.kind, "system");
});

test("a request that continues a conversation stored by the provider is named, and compared with nothing", () => {
  const request = (index: number, held: Block = {}) => ({
    body: {
      model: "gpt-6-sol",
      instructions: words(2_000, 1),
      ...held,
      input: [{ role: "user", content: words(500, index) }],
    },
    usage: { plain: 0, read: (index - 1) * 2_500, written: { "30m": 2_500 }, output: 3 },
  });
  const why = (key: string): string =>
    `continues a conversation that the provider stores (${key}): no body shows it, so it is not compared`;
  const requests = [request(1), request(2, { previous_response_id: "resp_1" }), request(3, { conversation: "conv_1" })];
  const { steps, skipped, lost } = xrayChain(requests);
  assert.deepEqual(
    [steps.map(({ index }) => index), skipped, lost],
    [
      [0],
      [
        { index: 1, why: `request 2 ${why("previous_response_id")}` },
        { index: 2, why: `request 3 ${why("conversation")}` },
      ],
      { tokens: 0 },
    ],
  );
  const [first, second] = requests;
  assert.throws(() => diffRequests(first?.body ?? {}, second?.body ?? {}), {
    name: "InputError",
    message: `the second request ${why("previous_response_id")}`,
  });
  assert.equal(diffRequests(first?.body ?? {}, { ...first?.body, previous_response_id: null }).cause.kind, "none");
});

test("DeepSeek keeps a cache for each user_id, in Anthropic's format too; Claude does not", () => {
  const asked = (model: string, user: string, ...more: readonly Block[]) => ({
    model,
    max_tokens: 9,
    metadata: { user_id: user },
    system: [prose(2_000, 1, marked)],
    messages: [{ role: "user", content: [prose(20, 2, marked)] }, ...more],
  });
  const judged = (model: string) => diffRequests(asked(model, "ann"), asked(model, "bob", ...reply)).cause;
  assert.deepEqual(
    [judged("deepseek-flash"), judged("claude-sonnet-5")],
    [{ kind: "cache-key", name: "user_id", from: "ann", to: "bob" }, { kind: "none" }],
  );
});

test("a gateway's session id only chooses a server, and the report says so", () => {
  const head = [{ type: "text", text: words(2_000, 1), ...marked }];
  const asked = (session: string, ...more: readonly Block[]) => ({ ...routed(head, ...more), session_id: session });
  const { cause, why } = diffRequests(asked("s1"), asked("s2", ...reply));
  assert.deepEqual(
    [cause, xrayCauseWords(cause), why],
    [
      { kind: "cache-key", name: "session_id", from: "s1", to: "s2", routes: true },
      "session id changed",
      "the session_id went from s1 to s2: the request may have gone to another server, which has not cached the prompt",
    ],
  );
});

test("what a tool choice loses is stated only if the provider documents it", () => {
  const asked = (...more: readonly Block[]) => ({
    systemInstruction: { parts: [{ text: words(5_000, 1) }] },
    contents: [{ role: "user", parts: [{ text: words(300, 2) }] }, ...more],
  });
  const next: readonly Block[] = [
    { role: "model", parts: [{ text: "So." }] },
    { role: "user", parts: [{ text: "And?" }] },
  ];
  const forced = { ...asked(...next), toolConfig: { functionCallingConfig: { mode: "ANY" } } };
  const { cause, why } = diffRequests(asked(), forced, { a: GEMINI, b: GEMINI });
  assert.deepEqual([cause.kind, cause.kind === "tool-choice" && cause.unpublished], ["tool-choice", true]);
  assert.match(why, /, which may lose the whole prompt: this provider does not say whether it is in the cache key$/);
});

test("Kimi and GLM, which do not say when, are counted on once an answer is complete", () => {
  const times = { a: { startedAt: 0, firstEventAt: 500, endedAt: 9_000 }, b: { startedAt: 2_000 } };
  const judged = (model: string): string =>
    diffRequests({ ...routed(words(5_000, 1)), model }, { ...routed(words(5_000, 1), ...reply), model }, times).cause
      .kind;
  assert.deepEqual(["moonshotai/kimi-k2", "glm-5", "my-engine"].map(judged), ["raced", "raced", "none"]);
});

// --- Gemini's entries ------------------------------------------------------------------------------------------------

const naming = (entry: string, turns: number, ask = "q"): Block => ({
  cachedContent: `cachedContents/${entry}`,
  contents: Array.from({ length: 2 * turns - 1 }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "model",
    parts: [{ text: `${ask}${index} ${words(60, index)}` }],
  })),
});
const GEMINI = { model: "gemini-3.8-flash" };

test("a named entry is read completely, and no minimum applies to it", () => {
  const grown = xrayChain([1, 2, 3].map((turns) => ({ body: naming("abc", turns), ...GEMINI })));
  assert.deepEqual([grown.lost, grown.families], [{ tokens: 0 }, []]);
  const counted = [1, 2, 3].map((turns) => ({
    body: naming("abc", turns),
    ...GEMINI,
    usage: { plain: 120 * turns - 60, read: 9_000, written: {}, output: 5 },
  }));
  assert.deepEqual(
    xrayChain(counted).steps.map(({ xray }) => xray && [xray.cause.kind, xray.lost.tokens, xray.tokens.read]),
    [undefined, ["none", 0, 9_000], ["none", 0, 9_000]],
  );
  const [first, second] = counted;
  const unread = { usage: { plain: 9_180, read: 0, written: {}, output: 5 } };
  const { cause, lost } = diffRequests(first?.body ?? {}, second?.body ?? {}, {
    a: { ...first },
    b: { ...GEMINI, ...unread },
  });
  assert.deepEqual([cause.kind, lost.tokens], ["unexplained", 9_000]);
});

test("another entry's name is another cache, whether or not anybody counted", () => {
  const { cause } = diffRequests(naming("abc", 4), naming("abd", 5), { a: GEMINI, b: GEMINI });
  assert.deepEqual(cause, {
    kind: "cache-key",
    name: "cachedContent",
    from: "cachedContents/abc",
    to: "cachedContents/abd",
  });
});

test("agents that name one stored entry form one family", () => {
  const usage = { plain: 60, read: 9_000, written: {}, output: 5 };
  const bodies = [naming("abc", 1, "one "), naming("abc", 1, "two "), naming("zzz", 1, "three ")];
  const { families, steps } = xrayChain(bodies.map((body) => ({ body, ...GEMINI, usage })));
  assert.deepEqual(families, [{ from: 0, members: [0, 1] }]);
  assert.deepEqual(
    steps.map(({ inherited }) => inherited),
    [9_000, 9_000, 9_000],
  );
});

// --- who is whom -----------------------------------------------------------------------------------------------------

const main = (question: string): Block => ({
  model: "claude-sonnet-5",
  max_tokens: 64,
  tools: [tool("Read"), tool("Edit")],
  system: [prose(900, 1, marked)],
  messages: [user(text(question, marked))],
});

test("two short questions that resemble each other are two questions", () => {
  const [a, b] = [main("Please explain the module for routes."), main("Please explain the module for models.")];
  assert.equal(diffRequests(a, b).cause.kind, "none");
  const steps = xrayChain([{ body: a }, { body: b }]).steps;
  assert.deepEqual(
    steps.map(({ relation, lineage }) => [relation, lineage]),
    [
      ["starts", 0],
      ["starts", 1],
    ],
  );
});

test("near miss: a long first message with a time at its start is one that was edited", () => {
  const long = (time: string): Block => main(`It is ${time}. ${words(600, 9)}`);
  assert.deepEqual(diffRequests(long("09:15"), long("09:16")).cause, {
    kind: "message-edited",
    message: 0,
    role: "user",
    change: "edited",
    volatile: "time",
  });
});

test("a small request for a title, by another model, is not the start of the conversation", () => {
  const title: Block = {
    model: "claude-haiku-4-5",
    max_tokens: 64,
    system: [prose(400, 5)],
    messages: [user(text("Name this:"), text("Which files are here?"))],
  };
  const { steps, lost } = xrayChain([{ body: title }, { body: main("Which files are here?") }]);
  assert.deepEqual([steps.map(({ relation }) => relation), lost.tokens], [["starts", "starts"], 0]);
});

test("a request that continues a whole earlier request is matched with it, whatever few words it repeats of another", () => {
  const grown = (...messages: readonly Block[]): Block => ({ ...main(""), messages: [...messages] });
  const call: Block = {
    role: "assistant",
    content: [{ type: "tool_use", id: "t_1", name: "Read", input: { path: "a" } }],
  };
  const result: Block = { role: "user", content: [{ type: "tool_result", tool_use_id: "t_1", content: "one two" }] };
  const [ask, again] = [user(text("Which?")), user(text("Which? And now?", marked))] as unknown as readonly [
    Block,
    Block,
  ];
  const chain = [grown(ask), grown(ask, call, result), grown(again), grown(again, call, result)];
  assert.deepEqual(
    xrayChain(chain.map((body) => ({ body }))).steps.map(({ relation, against }) => [relation, against]),
    [
      ["starts", undefined],
      ["extends", 0],
      ["starts", 1],
      ["extends", 2],
    ],
  );
});

test("a request is compared with the one it is most like, not only with the latest of each lineage", () => {
  const base = { ...main("Which files are here, and what do they hold?") };
  const fewer = { ...base, tools: [tool("Read")], system: [prose(900, 2, marked)] };
  const again = { ...base, output_config: { effort: "low" } };
  const [, , third] = xrayChain([base, fewer, again].map((body) => ({ body }))).steps;
  assert.deepEqual([third?.against, third?.xray?.cause], [0, { kind: "effort", from: "its default", to: "low" }]);
});

test("a tool under another name is renamed, and sentences do not begin with a name", () => {
  const [a, b] = [main("Which?"), { ...main("Which?"), tools: [{ ...tool("Read"), name: "View" }, tool("Edit")] }];
  const { cause, why } = diffRequests(a, b);
  assert.deepEqual(cause, { kind: "tools-changed", tool: "View", key: "name", was: "Read" });
  assert.equal(why, "the tool Read was renamed to View");
  const removed = diffRequests(a, { ...a, tools: [tool("Read")] });
  assert.equal(removed.why, "the tool Edit was removed");
});

// --- recordings of several formats -----------------------------------------------------------------------------------

test("in a recording of several formats each format is compared separately, and lines that are not requests are named and skipped", () => {
  const question = { role: "user", content: words(1_500, 1) };
  const more = [
    { role: "assistant", content: "Yes." },
    { role: "user", content: "Why?" },
  ];
  const chat = { model: "gpt-5.4", messages: [question] };
  const responses = { model: "gpt-5.4", input: [question] };
  const gemini = { contents: [{ role: "user", parts: [{ text: words(5_000, 2) }] }] };
  const { steps, skipped } = xrayChain([
    { body: chat },
    { body: responses },
    { body: gemini, model: "gemini-3.8-flash" },
    { body: '{"prompt":"no request"}' },
    { body: { ...responses, input: [question, ...more] } },
    { body: { ...chat, messages: [question, ...more] } },
    { body: gemini, model: "gemini-3.6-flash" },
  ]);
  assert.deepEqual(
    steps.map(({ index, relation, against, lineage, xray }) => [index, relation, against, lineage, xray?.cause.kind]),
    [
      [0, "starts", undefined, 0, undefined],
      [1, "starts", undefined, 1, undefined],
      [2, "starts", undefined, 2, undefined],
      [4, "extends", 1, 1, "none"],
      [5, "extends", 0, 0, "none"],
      [6, "changes", 2, 2, "model"],
    ],
  );
  assert.deepEqual(
    skipped.map(({ index, why }) => [index, why.split(":")[0]]),
    [[3, "request 4 is not a request that x-ray knows"]],
  );
});

test("a line that is not JSON is skipped if the caller asked to be told", () => {
  const file = Buffer.from('{"messages":[]}\n{"messages":\n{"messages":[1]}\n');
  const heard: string[] = [];
  const found = readRequests(file, "r", (line) => heard.push(line));
  assert.deepEqual(
    [found.map(({ name }) => name), heard.map((line) => line.split(":", 2).join(":"))],
    [["r:1", "r:3"], ["r:2 is not valid JSON"]],
  );
  assert.throws(() => readRequests(file, "r"), /r:2 is not valid JSON/);
});

// --- Gemini ----------------------------------------------------------------------------------------------------------

test("both styles of Gemini's field names, its default choice and its signatures do not count as differences", () => {
  const call = { functionCall: { name: "run", args: { command: "ls" } } };
  const one = {
    systemInstruction: { parts: [{ text: words(4_500, 1) }] },
    contents: [
      { role: "user", parts: [{ text: "Which?" }] },
      { role: "model", parts: [{ ...call, thoughtSignature: "YQ==" }] },
    ],
  };
  const other = {
    system_instruction: { parts: [{ text: words(4_500, 1) }] },
    toolConfig: { functionCallingConfig: { mode: "AUTO" } },
    contents: [one.contents[0] ?? {}, { role: "model", parts: [call] }],
  };
  const { cause, divergence, protocol } = diffRequests(one, other, { model: "gemini-3.8-flash" });
  assert.deepEqual([cause.kind, divergence, protocol], ["none", undefined, "gemini"]);
});

test("content stored by name is a cache key", () => {
  const request = (name: string): Block => ({
    cachedContent: name,
    contents: [{ role: "user", parts: [{ text: words(4_500, 1) }] }],
  });
  const { cause, notes } = diffRequests(request("cachedContents/a"), request("cachedContents/b"), {
    model: "gemini-3.8-flash",
  });
  assert.deepEqual(cause, {
    kind: "cache-key",
    name: "cachedContent",
    from: "cachedContents/a",
    to: "cachedContents/b",
  });
  assert.deepEqual(notes, [
    "cachedContent: part of the prompt is stored by the provider under that name, and no body shows it",
  ]);
});

test("a model is read from an address, and usage in Gemini's words", () => {
  const paths = ["/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse", "/v1/models/a:countTokens", "/v1/m"];
  const lines = paths.map((path) => JSON.stringify({ path, body: { contents: [] } })).join("\n");
  assert.deepEqual(
    readRequests(Buffer.from(lines), "r").map(({ model }) => model),
    ["gemini-3.8-flash", undefined, undefined],
  );
  const usage = readUsage({
    promptTokenCount: 90,
    cachedContentTokenCount: 60,
    candidatesTokenCount: 5,
    thoughtsTokenCount: 2,
  });
  assert.deepEqual(usage, { plain: 30, read: 60, written: {}, output: 7, thinking: 2 });
});
