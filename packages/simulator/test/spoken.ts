/** One conversation in the words of every wire, written by hand. */

import { type ProviderName, textOfTokens, type WireName } from "@prefork/simulator";
import { type Body, geminiPath, paths, type Sent } from "./wire-sending.ts";

/** The same conversation on each wire: a system prompt, two tools, a call and its result, and then some words. */
export type Spoken = {
  readonly wire: WireName;
  readonly provider: ProviderName;
  readonly ask: (turn: "question" | "results" | "words", stream: boolean) => Sent;
  /** The pieces of text that a stream's events add. */
  readonly textIn: (event: Record<string, never>) => string;
};

const schema = { type: "object", properties: { path: { type: "string" } } };
const systemText = textOfTokens(5_000, 1);
const call = { name: "Read", input: { path: "a.ts" } };
const args = JSON.stringify(call.input);

const upTo = (turn: "question" | "results" | "words", turns: readonly (readonly Body[])[]): readonly Body[] =>
  turns.slice(0, { question: 1, results: 2, words: 3 }[turn]).flat();

export const messages: Spoken = {
  wire: "messages",
  provider: "anthropic",
  ask: (turn, stream) => ({
    path: paths.messages,
    body: {
      model: "claude-sonnet-5",
      max_tokens: 500,
      stream,
      system: systemText,
      tools: [
        { name: "Read", description: "reads", input_schema: schema },
        { name: "Grep", description: "greps", input_schema: schema },
      ],
      messages: upTo(turn, [
        [{ role: "user", content: "read a.ts" }],
        [
          { role: "assistant", content: [{ type: "tool_use", id: "call_1", ...call }] },
          { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "42 lines" }] },
        ],
        [{ role: "user", content: [{ type: "text", text: "and now?" }] }],
      ]),
    },
  }),
  textIn: (event: { delta?: { text?: string } }) => event.delta?.text ?? "",
};

export const responses: Spoken = {
  wire: "responses",
  provider: "openai",
  ask: (turn, stream) => ({
    path: paths.responses,
    body: {
      model: "gpt-6-sol",
      max_output_tokens: 500,
      stream,
      instructions: systemText,
      tools: [
        { type: "function", name: "Read", description: "reads", parameters: schema, strict: false },
        { type: "function", name: "Grep", description: "greps", parameters: schema, strict: false },
      ],
      input: upTo(turn, [
        [{ role: "user", content: "read a.ts" }],
        [
          { type: "function_call", call_id: "call_1", name: "Read", arguments: args },
          { type: "function_call_output", call_id: "call_1", output: "42 lines" },
        ],
        [{ role: "user", content: "and now?" }],
      ]),
    },
  }),
  textIn: (event: { type?: string; delta?: string }) =>
    event.type === "response.output_text.delta" ? (event.delta ?? "") : "",
};

const chatMessages = (turn: "question" | "results" | "words"): readonly Body[] =>
  upTo(turn, [
    [
      { role: "system", content: systemText },
      { role: "user", content: "read a.ts" },
    ],
    [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "call_1", type: "function", function: { name: "Read", arguments: args } }],
      },
      { role: "tool", tool_call_id: "call_1", content: "42 lines" },
    ],
    [{ role: "user", content: "and now?" }],
  ]);

export const chat: Spoken = {
  wire: "chat",
  provider: "openai-legacy",
  ask: (turn, stream) => ({
    path: paths.chat,
    body: {
      model: "gpt-5.4",
      max_completion_tokens: 500,
      stream,
      tools: [
        { type: "function", function: { name: "Read", description: "reads", parameters: schema } },
        { type: "function", function: { name: "Grep", description: "greps", parameters: schema } },
      ],
      messages: chatMessages(turn),
    },
  }),
  textIn: (event: { choices?: readonly { delta?: { content?: string } }[] }) =>
    event.choices?.[0]?.delta?.content ?? "",
};

export const gemini: Spoken = {
  wire: "gemini",
  provider: "gemini",
  ask: (turn, stream) => ({
    path: geminiPath("gemini-3.8-flash", stream ? "streamGenerateContent?alt=sse" : "generateContent"),
    body: {
      generationConfig: { maxOutputTokens: 500 },
      systemInstruction: { parts: [{ text: systemText }] },
      tools: [
        {
          functionDeclarations: [
            { name: "Read", description: "reads", parametersJsonSchema: schema },
            { name: "Grep", description: "greps", parametersJsonSchema: schema },
          ],
        },
      ],
      contents: upTo(turn, [
        [{ role: "user", parts: [{ text: "read a.ts" }] }],
        [
          {
            role: "model",
            parts: [{ functionCall: { id: "call_1", name: "Read", args: call.input }, thoughtSignature: "c2lnbmVk" }],
          },
          {
            role: "user",
            parts: [{ functionResponse: { id: "call_1", name: "Read", response: { output: "42 lines" } } }],
          },
        ],
        [{ role: "user", parts: [{ text: "and now?" }] }],
      ]),
    },
  }),
  textIn: (event: { candidates?: readonly { content?: { parts?: readonly { text?: string }[] } }[] }) =>
    event.candidates?.[0]?.content?.parts?.[0]?.text ?? "",
};

export const spoken: readonly Spoken[] = [messages, responses, chat, gemini];
