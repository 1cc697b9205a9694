/** Conversations for tests, by hand and by chance. */

import fc from "fast-check";
import { anthropic, FrozenPrefix, type Head, type Message, text, toolResult, userText } from "../src/index.ts";
import { anyCharacter } from "./any-character.ts";

export const head: Head = {
  model: "claude-sonnet-5",
  tools: [
    { type: "function", name: "Read", description: "Reads a file.", inputSchema: { type: "object", properties: {} } },
    { type: "function", name: "Agent", description: "Starts a fork.", inputSchema: { type: "object", properties: {} } },
  ],
  system: [text("You are a test.")],
  settings: {},
};

export const open = (changed: Partial<Head> = {}): FrozenPrefix =>
  FrozenPrefix.open(anthropic.encoder, { ...head, ...changed });

export const grown = (messages: readonly Message[], from: FrozenPrefix = open()): FrozenPrefix =>
  messages.reduce((prefix, message) => prefix.append(message), from);

/** An assistant turn that calls `Read` n times, and the results. */
export const readTurn = (count: number, from = 0): readonly Message[] => {
  const ids = Array.from({ length: count }, (_, index) => `toolu_${from + index}`);
  return [
    { role: "assistant", content: ids.map((id) => ({ type: "tool_use", id, name: "Read", input: "{}" })) },
    { role: "user", content: ids.map((id) => toolResult(id, `content for ${id}`)) },
  ];
};

const anyText = fc.string({ minLength: 1, maxLength: 40, unit: anyCharacter }).map(text);

/** User and assistant turns of text, as they alternate in a conversation. */
export const anyConversation: fc.Arbitrary<readonly Message[]> = fc
  .array(fc.array(anyText, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 12 })
  .map((turns) => turns.map((content, index): Message => ({ role: index % 2 === 0 ? "user" : "assistant", content })));

export { text, toolResult, userText };
