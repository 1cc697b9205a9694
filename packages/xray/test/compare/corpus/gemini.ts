/** Requests in Gemini's format, for the simulator to judge. The model stands in the path. */

import type { XrayCause } from "@prefork/xray";
import { type Block, words } from "./conversation.ts";
import { nothing } from "./pair.ts";
import type { Scene } from "./providers.ts";

const GEMINI = { provider: "gemini", path: "/v1beta/models/gemini-3.8-flash:generateContent" } as const;

const text = (tokens: number, seed: number): Block => ({ text: words(tokens, seed) });
const user = (...parts: readonly Block[]): Block => ({ role: "user", parts });
const model = (...parts: readonly Block[]): Block => ({ role: "model", parts });
const declared = (name: string, tokens = 500): Block => ({
  name,
  description: words(tokens, 11),
  parametersJsonSchema: { type: "object", properties: { command: { type: "string" } } },
});
const tools = (...functionDeclarations: readonly Block[]): Block => ({ tools: [{ functionDeclarations }] });
const call: Block = { functionCall: { name: "run", args: { command: "ls" } }, thoughtSignature: "c2tpcA==" };
const answered: Block = { functionResponse: { name: "run", response: { output: words(300, 12) } } };

/** 4,500 of instruction, 300 of a question, and the tools. */
const first: Block = {
  ...tools(declared("run")),
  systemInstruction: { parts: [text(4_500, 1)] },
  contents: [user(text(300, 2))],
  generationConfig: { temperature: 1, thinkingConfig: { includeThoughts: true, thinkingLevel: "HIGH" } },
};
const RUN = 529;
const ALL = RUN + 4_800;
const next: Block = { ...first, contents: [user(text(300, 2)), model(text(7, 8)), user(text(30, 3))] };

type Pair = {
  readonly name: string;
  readonly b: Block;
  readonly a?: Block;
  readonly cause: XrayCause;
} & Partial<Scene>;

const lost: readonly Pair[] = [
  {
    name: "a tool more",
    b: { ...next, ...tools(declared("run"), declared("find", 20)) },
    cause: { kind: "tools-added", tools: ["find"] },
    at: "tools[0].functionDeclarations[1]",
    read: 0,
    lost: ALL,
  },
  {
    name: "a tool under another name",
    b: { ...next, ...tools(declared("exec")) },
    cause: { kind: "tools-changed", tool: "exec", key: "name", was: "run" },
    at: "tools[0].functionDeclarations[0].name",
    read: 0,
    lost: ALL,
  },
  {
    name: "the day in the instruction",
    a: { ...first, systemInstruction: { parts: [{ text: `Today is 2026-03-01. ${words(4_500, 1)}` }] } },
    b: { ...next, systemInstruction: { parts: [{ text: `Today is 2026-03-02. ${words(4_500, 1)}` }] } },
    cause: { kind: "system", change: "edited", volatile: "date" },
    at: "systemInstruction.parts[0].text",
    read: 0,
    lost: ALL + 6,
  },
  {
    name: "less thinking",
    b: { ...next, generationConfig: { thinkingConfig: { includeThoughts: true, thinkingLevel: "LOW" } } },
    cause: {
      kind: "thinking",
      from: '{"includeThoughts":true,"thinkingLevel":"HIGH"}',
      to: '{"includeThoughts":true,"thinkingLevel":"LOW"}',
    },
    at: "generationConfig.thinkingConfig.thinkingLevel",
    read: 0,
    lost: ALL,
  },
  {
    name: "a tool is demanded",
    b: { ...next, toolConfig: { functionCallingConfig: { mode: "ANY" } } },
    cause: {
      kind: "tool-choice",
      from: "its default",
      to: '{"functionCallingConfig":{"mode":"ANY"}}',
      unpublished: true,
    },
    at: "toolConfig",
    read: 0,
    lost: ALL,
  },
  {
    name: "an answer as JSON",
    b: {
      ...next,
      generationConfig: {
        thinkingConfig: { includeThoughts: true, thinkingLevel: "HIGH" },
        responseMimeType: "application/json",
        responseSchema: { type: "object" },
      },
    },
    cause: { kind: "parameter", name: "output_format", from: "its default", to: '{"type":"object"}' },
    at: "generationConfig.responseSchema",
    read: 0,
    lost: ALL,
  },
  {
    name: "the question edited, with what followed it",
    a: { ...first, contents: [user(text(300, 2)), model(call), user(answered)] },
    b: {
      ...first,
      contents: [
        user({ text: `Well: ${words(300, 2)}` }),
        model(call),
        user(answered),
        model(text(7, 8)),
        user(text(30, 3)),
      ],
    },
    cause: { kind: "message-edited", message: 0, role: "user", change: "edited" },
    at: "contents[0].parts[0].text",
    read: RUN + 4_500,
    lost: 604,
  },
  {
    name: "a session taken up again with a result more",
    a: { ...first, contents: [user(text(300, 2)), model(call), user(answered), model(text(7, 8)), user(text(30, 3))] },
    b: {
      ...first,
      contents: [
        user(text(300, 2)),
        model(call),
        user(answered, text(40, 13)),
        model(text(7, 8)),
        user(text(30, 3)),
        model(text(9, 14)),
        user(text(20, 15)),
      ],
    },
    cause: { kind: "message-edited", message: 2, role: "user", change: "block-added" },
    at: "contents[2].parts[1]",
    read: RUN + 5_104,
    lost: 37,
  },
];

const kept: readonly Pair[] = [
  { name: "the conversation goes on", b: next, cause: nothing },
  {
    name: "what is in no key",
    b: { ...next, generationConfig: { ...(first.generationConfig as Block), temperature: 0.2, maxOutputTokens: 9 } },
    cause: nothing,
  },
];

export const geminiScenes: readonly Scene[] = [...lost, ...kept.map((pair) => ({ ...pair, read: ALL, lost: 0 }))].map(
  ({ a = first, b, name, cause, read = 0, lost: tokens = 0, at }) => ({
    ...GEMINI,
    name,
    requests: [a, b],
    cause,
    read,
    lost: tokens,
    ...(at === undefined ? {} : { at }),
  }),
);
