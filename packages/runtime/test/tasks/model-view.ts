/** What does a scripted model see in a request: who it is, what it was told, and the results of its calls?
 *  Invariant: everything follows from the request alone. Only what came after its directive is a fork's own.
 *  Elsewhere: the answers (each test's script). */

import type { SimRequest } from "@prefork/simulator";
import { FORK_DIRECTIVE_PREFIX, type Json, type JsonObject } from "@prefork/wire";
import { agentPrompt } from "../../src/context/index.ts";
import { type Notification, parseNotifications } from "../../src/tasks/index.ts";

export type SeenCall = {
  readonly id: string;
  readonly name: string;
  readonly input: JsonObject;
  /** Undefined if it has not been answered. */
  readonly result?: string;
};

export type Seen = {
  /** A fork's task; undefined for everybody else. */
  readonly directive: string | undefined;
  /** Neither a fork nor an agent that started empty. */
  readonly isMain: boolean;
  /** Calls since the directive, or since the beginning. */
  readonly calls: readonly SeenCall[];
  /** The texts of the last message, without results. */
  readonly words: readonly string[];
  /** Every text that was said to this agent, in order. */
  readonly told: readonly string[];
  /** Everything that was announced, in order, and what of it is new. */
  readonly notifications: readonly Notification[];
  readonly news: readonly Notification[];
};

const AGENT_PROMPTS: readonly string[] = agentPrompt().map(({ text }) => text);

const listOf = (value: Json | undefined): readonly JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);

const isObject = (value: Json): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const textsIn = (blocks: readonly JsonObject[]): readonly string[] =>
  blocks.flatMap(({ type, text }) => (type === "text" ? [String(text)] : []));

const resultText = ({ content }: JsonObject): string =>
  typeof content === "string" ? content : textsIn(listOf(content)).join("");

export const seenIn = ({ body }: Pick<SimRequest, "body">): Seen => {
  const messages = listOf(body.messages).map(({ role, content }) => ({
    role,
    blocks: typeof content === "string" ? [{ type: "text", text: content }] : listOf(content),
  }));
  const told = messages.flatMap(({ role, blocks }) => (role === "user" ? textsIn(blocks) : []));
  const isDirective = (text: string): boolean => text.includes(`\n${FORK_DIRECTIVE_PREFIX} `);
  const begun = messages.findIndex(({ role, blocks }) => role === "user" && textsIn(blocks).some(isDirective));
  const own = messages.slice(begun + 1).flatMap(({ blocks }) => blocks);
  const results = new Map(
    own.flatMap((block) =>
      block.type === "tool_result" ? [[String(block.tool_use_id), resultText(block)] as const] : [],
    ),
  );
  const calls = own.flatMap(({ type, id, name, input }): readonly SeenCall[] => {
    if (type !== "tool_use" || input === undefined || !isObject(input)) return [];
    const result = results.get(String(id));
    return [{ id: String(id), name: String(name), input, ...(result === undefined ? {} : { result }) }];
  });
  const words = textsIn(messages.at(-1)?.blocks ?? []);
  const directive = told.find(isDirective)?.split(`\n${FORK_DIRECTIVE_PREFIX} `).at(-1);
  return {
    directive,
    isMain: directive === undefined && !textsIn(listOf(body.system)).some((text) => AGENT_PROMPTS.includes(text)),
    calls,
    words,
    told,
    notifications: told.flatMap(parseNotifications),
    news: words.flatMap(parseNotifications),
  };
};
