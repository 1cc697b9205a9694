/** What every protocol is given to spell, and any text or input that a model may have written.
 *  Invariant: nothing here knows a provider; how each spells it stands beside its protocol, letter for letter.
 *  Elsewhere: the spellings (one file a protocol), what is done with them (protocol-suite.ts). */

import fc from "fast-check";
import { type ImageBlock, type KeySettings, type Message, type ToolSpec, text } from "../../src/index.ts";
import { anyCharacter } from "../any-character.ts";

/** A request for nothing special. */
export const ask = { maxTokens: 64, stream: false } as const;

/** With marks to escape, and keys in an order that must be kept. */
export const readsFiles: ToolSpec = {
  type: "function",
  name: "Read",
  description: 'Reads "files".',
  inputSchema: { type: "object", properties: { b: { type: "string" }, a: {} } },
};

export const twoParagraphs = [text("One."), text("Two.")];

/** Whatever there is to set. Providers differ in the values that some of them take. */
export const everySetting = {
  thinking: { type: "enabled", budgetTokens: 2_048 },
  effort: "high",
  verbosity: "low",
  outputFormat: { type: "json_schema", schema: {} },
  toolChoice: { type: "tool", name: "Read" },
  parallelTools: false,
  temperature: 1,
  topP: 0.9,
  topK: 40,
  stopSequences: ["###"],
  speed: "fast",
  serviceTier: "flex",
  contextManagement: { edits: [] },
  betas: ["one-2026-01-01"],
  cacheKey: "session-1",
} as const satisfies KeySettings;

export const picture: ImageBlock = { type: "image", source: { kind: "base64", mediaType: "image/png", data: "iVBO" } };
export const linkedPicture: ImageBlock = { type: "image", source: { kind: "url", url: "https://example.com/a.png" } };

/** The second one's input is spelled as no encoder of ours would. */
export const callsTwo: Message = {
  role: "assistant",
  content: [
    { type: "tool_use", id: "call_1", name: "Read", input: "{}" },
    { type: "tool_use", id: "call_2", name: "Read", input: `{"a": 1}` },
  ],
};

/** Valid JSON in forms that no encoder of ours would write. */
export const anyInput = fc
  .tuple(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }), fc.constantFrom(0, 1, 3))
  .map(([value, indent]) => JSON.stringify(value, null, indent));

export const anyText = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 30 });

export const cutInto = (value: string, size: number): readonly string[] =>
  Array.from({ length: Math.ceil(value.length / size) }, (_, at) => value.slice(at * size, (at + 1) * size));
