/** Gemini, requests and errors: how they are spelled, by hand.
 *  Elsewhere: answers (gemini-answers.ts), what is done with them (protocol-suite.ts). */

import fc from "fast-check";
import { type Block, gemini, type Head, type Message, text, toolResult, userText } from "../../src/index.ts";
import { answers, chunk, ended, frame, stops, wholeBody } from "./gemini-answers.ts";
import { failures } from "./gemini-failures.ts";
import type { Conformance } from "./protocol-suite.ts";
import { anyInput, anyText, ask, cutInto, everySetting, linkedPicture, picture, readsFiles } from "./said.ts";

const model = "gemini-3.8-flash";
const bare: Head = { model, tools: [], system: [], settings: {} };
const older: Head = { ...bare, model: "gemini-2.5-pro" };
const start = `{"safetySettings":[]`;
/** What follows the contents of a request that asks for nothing special. */
const asked = `"generationConfig":{"maxOutputTokens":64}}`;

const hi = `{"parts":[{"text":"Hi"}],"role":"user"}`;
const callsTwo: Message = {
  role: "assistant",
  content: [
    {
      type: "tool_use",
      id: "a1",
      name: "Read",
      input: "{}",
      raw: `{"functionCall":{"id":"a1","name":"Read"},"thoughtSignature":"Cg=="}`,
    },
    {
      type: "tool_use",
      id: "a2",
      name: "Grep",
      input: "{}",
      raw: `{"functionCall":{"id":"a2","name":"Grep","args":{}}}`,
    },
  ],
};
const twoCalls = `{"role":"model","parts":[{"functionCall":{"id":"a1","name":"Read"},"thoughtSignature":"Cg=="},{"functionCall":{"id":"a2","name":"Grep","args":{}}}]}`;
const result = (id: string, name: string, said: string): string =>
  `{"functionResponse":{"id":"${id}","name":"${name}","response":{"output":"${said}"}}}`;
const inlined = `{"inlineData":{"mimeType":"image/png","data":"iVBO"}}`;
const handled = "No result stands here: this call is handled in the background.";

const encoded: Conformance["encoded"] = {
  "the settings, each in its place": {
    head: {
      model,
      tools: [
        { type: "provider", name: "search", json: ` { "googleSearch":{} } ` },
        readsFiles,
        { type: "function", name: "Now", description: "", inputSchema: {} },
      ],
      system: [text("One."), text(""), text("Two.")],
      settings: {
        ...everySetting,
        effort: "medium",
        outputFormat: { type: "json_schema", schema: { type: "object" } },
      },
    },
    messages: [userText("Hi")],
    closing: { ...ask, userId: "user-1", diagnoseAgainst: "Il0t" },
    body: `${start},"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["Read"]}},"tools":[{ "googleSearch":{} },{"functionDeclarations":[{"name":"Read","description":"Reads \\"files\\".","parametersJsonSchema":{"type":"object","properties":{"b":{"type":"string"},"a":{}}}},{"name":"Now","description":""}]}],"systemInstruction":{"parts":[{"text":"One."},{"text":"Two."}]},"contents":[${hi}],"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"MEDIUM"},"responseMimeType":"application/json","responseJsonSchema":{"type":"object"},"temperature":1,"topP":0.9,"topK":40,"stopSequences":["###"],"maxOutputTokens":64},"serviceTier":"flex"}`,
  },
  "a budget where thinking has no levels, and only tools of the provider's own": {
    head: {
      ...older,
      tools: [{ type: "provider", name: "code", json: `{"codeExecution":{}}` }],
      settings: { thinking: { type: "enabled", budgetTokens: 2_048 }, effort: "high", toolChoice: { type: "none" } },
    },
    messages: [userText("Hi")],
    closing: ask,
    body: `${start},"toolConfig":{"functionCallingConfig":{"mode":"NONE"}},"tools":[{"codeExecution":{}}],"contents":[${hi}],"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":2048},"maxOutputTokens":64}}`,
  },
  "thinking that cannot be switched off, kept low": {
    head: { ...bare, settings: { thinking: { type: "disabled" }, effort: "high" } },
    messages: [userText("Hi")],
    closing: ask,
    body: `${start},"contents":[${hi}],"generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW"},"maxOutputTokens":64}}`,
  },
  "thinking left to a model that has a budget for it": {
    head: { ...bare, model: "gemini-2.5-flash", settings: { thinking: { type: "adaptive" } } },
    messages: [userText("Hi")],
    closing: ask,
    body: `${start},"contents":[${hi}],"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":-1},"maxOutputTokens":64}}`,
  },
  "a model that does not think": {
    head: { ...bare, model: "gemini-2.0-flash", settings: { thinking: { type: "adaptive" }, effort: "low" } },
    messages: [userText("Hi")],
    closing: ask,
    body: `${start},"contents":[${hi}],${asked}`,
  },
  "a request that only fills the cache, as near as it comes": {
    head: bare,
    messages: [userText("Hi")],
    closing: { maxTokens: 0, stream: true },
    body: `${start},"contents":[${hi}],"generationConfig":{"maxOutputTokens":1}}`,
  },
  "images and documents from every source": {
    head: bare,
    messages: [
      {
        role: "user",
        content: [
          picture,
          linkedPicture,
          { type: "image", source: { kind: "file", fileId: "files/abc" } },
          { type: "document", source: { kind: "text", text: "words" }, title: "Plan" },
          { type: "document", source: { kind: "base64", mediaType: "application/pdf", data: "JVBE" } },
        ],
      },
    ],
    closing: ask,
    body: `${start},"contents":[{"parts":[${inlined},{"fileData":{"fileUri":"https://example.com/a.png"}},{"fileData":{"fileUri":"files/abc"}},{"text":"Plan\\n\\nwords"},{"inlineData":{"mimeType":"application/pdf","data":"JVBE"}}],"role":"user"}],${asked}`,
  },
  "results in a content of their own, in the order of the calls, and words in the next": {
    head: bare,
    messages: [
      userText("Hi"),
      callsTwo,
      { role: "user", content: [text("and?"), toolResult("a2", "two"), toolResult("a1", "one"), picture] },
    ],
    closing: ask,
    body: `${start},"contents":[${hi},${twoCalls},{"role":"user","parts":[${result("a1", "Read", "one")},${result("a2", "Grep", "two")}]},{"parts":[{"text":"and?"},${inlined}],"role":"user"}],${asked}`,
  },
  "results with errors, several texts, a picture, and one without content": {
    head: bare,
    messages: [
      userText("Hi"),
      {
        role: "assistant",
        content: ["a1", "a2", "a3"].map((id) => ({
          type: "tool_use",
          id,
          name: "Read",
          input: "{}",
          raw: `{"functionCall":{"id":"${id}","name":"Read"}}`,
        })),
      },
      {
        role: "user",
        content: [
          { type: "tool_result", toolUseId: "a1", content: [text("seen"), picture, text("twice")] },
          { type: "tool_result", toolUseId: "a2", content: [text("no such file")], isError: true },
          { type: "tool_result", toolUseId: "a3", content: [] },
        ],
      },
    ],
    closing: ask,
    body: `${start},"contents":[${hi},{"role":"model","parts":[{"functionCall":{"id":"a1","name":"Read"}},{"functionCall":{"id":"a2","name":"Read"}},{"functionCall":{"id":"a3","name":"Read"}}]},{"role":"user","parts":[{"functionResponse":{"id":"a1","name":"Read","response":{"output":"seen\\n\\ntwice"},"parts":[${inlined}]}},{"functionResponse":{"id":"a2","name":"Read","response":{"error":"no such file"}}},{"functionResponse":{"id":"a3","name":"Read","response":{"output":""}}}]}],${asked}`,
  },
  "calls without ids, answered without, their pictures in the next content": {
    head: older,
    messages: [
      userText("Hi"),
      {
        role: "assistant",
        content: [
          { type: "tool_use", id: "r-0", name: "Read", input: "{}", raw: `{"functionCall":{"name":"Read","args":{}}}` },
        ],
      },
      { role: "user", content: [{ type: "tool_result", toolUseId: "r-0", content: [picture] }] },
    ],
    closing: ask,
    body: `${start},"contents":[${hi},{"role":"model","parts":[{"functionCall":{"name":"Read","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"output":"(The picture stands in the next message.)"}}}]},{"parts":[${inlined}],"role":"user"}],${asked}`,
  },
  "calls without an answer, answered by the constant": {
    head: bare,
    messages: [userText("Hi"), callsTwo, userText("and?")],
    closing: ask,
    body: `${start},"contents":[${hi},${twoCalls},{"role":"user","parts":[${result("a1", "Read", handled)},${result("a2", "Grep", handled)}]},{"parts":[{"text":"and?"}],"role":"user"}],${asked}`,
  },
  "a note inside the conversation, which is the user's": {
    head: bare,
    messages: [userText("Hi"), { role: "system", content: [text("The date has changed.")] }],
    closing: ask,
    body: `${start},"contents":[${hi},{"parts":[{"text":"The date has changed."}],"role":"user"}],${asked}`,
  },
  "an answer of another provider, less what only that one can read": {
    head: bare,
    messages: [
      userText("Hi"),
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", signature: "EqQB", raw: `{"type":"thinking","thinking":"hm"}` },
          { type: "thinking", thinking: "hm", signature: "EqQB" },
          { type: "redacted_thinking", data: "Emw" },
          { type: "text", text: "Yes.", raw: `{"type":"text","text":"Yes."}` },
          { type: "tool_use", id: "toolu_1", name: "Read", input: `{"path":` },
          { type: "tool_use", id: "toolu_2", name: "Read", input: `{"a": 1}` },
        ],
      },
      { role: "user", content: [toolResult("toolu_1", "one"), toolResult("toolu_2", "two")] },
    ],
    closing: ask,
    body: `${start},"contents":[${hi},{"role":"model","parts":[{"text":"Yes."},{"functionCall":{"id":"toolu_1","name":"Read","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"toolu_2","name":"Read","args":{"a": 1}}}]},{"role":"user","parts":[${result("toolu_1", "Read", "one")},${result("toolu_2", "Read", "two")}]}],${asked}`,
  },
  "a call of another provider for a model that signs none": {
    head: older,
    messages: [
      userText("Hi"),
      { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "Read", input: "{}" }] },
    ],
    closing: ask,
    body: `${start},"contents":[${hi},{"role":"model","parts":[{"functionCall":{"name":"Read","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"output":"${handled}"}}}]}],${asked}`,
  },
  "an answer that ended inside its thoughts": {
    head: bare,
    messages: [
      userText("Hi"),
      { role: "assistant", content: [{ type: "thinking", thinking: "hm", signature: "" }] },
      userText("Hi"),
    ],
    closing: ask,
    body: `${start},"contents":[${hi},{"role":"model","parts":[{"text":"(This answer was cut off before anything was said.)"}]},${hi}],${asked}`,
  },
};

// --- by chance -------------------------------------------------------------------------------------------------------

const anySignature = fc.base64String({ minLength: 4 });

const anyBlock: fc.Arbitrary<Block> = fc.oneof(
  anyText.map((said) => ({ type: "text" as const, text: said })),
  anyText.map((thinking) => ({ type: "thinking" as const, thinking, signature: "" })),
  fc.tuple(fc.oneof(fc.constant(""), anyText), anySignature).map(([said, signature]) => ({
    type: "text" as const,
    text: said,
    raw: `{"text" : ${JSON.stringify(said)},"thoughtSignature":"${signature}"}`,
  })),
  fc.tuple(anyText, anySignature).map(([thinking, signature]) => ({
    type: "thinking" as const,
    thinking,
    signature,
    raw: `{"thought":true,"text":${JSON.stringify(thinking)}, "thoughtSignature":"${signature}"}`,
  })),
  fc.tuple(fc.uuid(), fc.constantFrom("Read", "Bash"), anyInput).map(([id, name, input]) => ({
    type: "tool_use" as const,
    id,
    name,
    input,
    raw: `{"functionCall":{"args": ${input},"name":"${name}","id":"${id}"},"thoughtSignature":"Cg=="}`,
  })),
  anyInput.map((input) => ({
    type: "provider" as const,
    kind: "toolCall",
    json: `{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB", "args":${input}},"thoughtSignature":"Cg=="}`,
  })),
);

const isPlain = (block: Block): boolean => !("raw" in block) && block.type !== "provider";

/** Plain texts of one kind that follow each other are one, however many parts they came in. */
const anyContent = fc.array(anyBlock, { minLength: 1, maxLength: 5 }).map((blocks) =>
  blocks.filter((block, at) => {
    const before = blocks[at - 1];
    return !(before && isPlain(block) && isPlain(before) && block.type === before.type);
  }),
);

const partOf = (block: Block): string => {
  if (block.type === "provider") return block.json;
  if ("raw" in block) return block.raw ?? "";
  if (block.type === "thinking") return JSON.stringify({ text: block.thinking, thought: true });
  return JSON.stringify({ text: block.type === "text" ? block.text : "" });
};

const piecesOf = (block: Block, cut: number): readonly string[] => {
  if (!isPlain(block)) return [partOf(block)];
  if (block.type === "thinking")
    return cutInto(block.thinking, cut).map((said) => JSON.stringify({ text: said, thought: true }));
  return cutInto(block.type === "text" ? block.text : "", cut).map((said) => JSON.stringify({ text: said }));
};

export const geminiConformance: Conformance = {
  protocol: gemini,
  head: {
    model,
    tools: [
      { type: "provider", name: "search", json: `{"googleSearch":{}}` },
      { type: "function", name: "Read", description: "Reads.", inputSchema: { type: "object" } },
      { type: "function", name: "Bash", description: "Runs.", inputSchema: { type: "object" } },
    ],
    system: [text("You are a test."), text("A small one.")],
    settings: { toolChoice: { type: "auto" } },
  },
  answers,
  stops,
  malformed: {
    "a frame that is not JSON": [chunk(`{"text":"x"}`), frame(`{"candidates":[`)],
    "a frame that is no object": [chunk(`{"text":"x"}`), frame(`["candidates"]`)],
    "a call without a name": [chunk(`{"functionCall":{"id":"a1","args":{}}}`), ended()],
  },
  malformedWhole: {
    "half of its JSON": wholeBody([]).slice(0, 60),
    "no reason to stop": `{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}`,
    "something that is no object": `"ok"`,
  },
  encoded,
  outsideKey: {
    closing: { maxTokens: 99, stream: true, userId: "user-1", diagnoseAgainst: "Il0t" },
    fields: ["contents", "generationConfig"],
  },
  failures,
  headers: {
    "an API key": {
      credential: { kind: "api-key", value: "key" },
      betas: ["unknown-here"],
      headers: { "content-type": "application/json", "x-goog-api-key": "key" },
    },
    "a bearer": {
      credential: { kind: "bearer", value: "ya29" },
      betas: [],
      headers: { "content-type": "application/json", authorization: "Bearer ya29" },
    },
    "no key": { credential: undefined, betas: [], headers: { "content-type": "application/json" } },
  },
  spell: {
    whole: ({ content }) => wholeBody(content.map(partOf)),
    frames: ({ content }, cut) => [
      ...content.flatMap((block) => piecesOf(block, cut).map((part) => chunk(part))),
      ended(),
    ],
  },
  anyContent,
};
