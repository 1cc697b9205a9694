/** The conversation that all pairs start from, in exact sizes, and the words in which its changes are told.
 *  `a` is a request of it, `b` the next one: the same, then an answer and a prompt more. Every size is in tokens of the
 *  simulator's rule, four bytes each. */

import { textOfTokens } from "@prefork/simulator";

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
export type Block = { readonly [key: string]: Json };
export type Message = { readonly role: string; readonly content: string | readonly Block[] };
export type Request = {
  readonly model: string;
  readonly max_tokens: number;
  readonly tools: readonly Block[];
  readonly system: string | readonly Block[];
  readonly messages: readonly Message[];
  readonly [key: string]: Json;
};

export const marked: Block = { cache_control: { type: "ephemeral" } };
export const marked1h: Block = { cache_control: { type: "ephemeral", ttl: "1h" } };

export const words = (tokens: number, seed: number): string => textOfTokens(tokens, seed);
export const text = (value: string, marker: Block = {}): Block => ({ type: "text", text: value, ...marker });
export const prose = (tokens: number, seed: number, marker: Block = {}): Block => text(words(tokens, seed), marker);

/** A tool of exactly 500 tokens. */
export const tool = (name: string, marker: Block = {}): Block => {
  const bare = { name, description: "", input_schema: { type: "object", properties: { path: { type: "string" } } } };
  const room = 2_000 - JSON.stringify(bare).length;
  return {
    ...bare,
    description: `${name} works on one file. `.padEnd(room, "Say its path. ").slice(0, room),
    ...marker,
  };
};

export const call = (id: string, input: Block = { path: "src/server.ts", limit: 40 }): Block => ({
  type: "tool_use",
  id,
  name: "Read",
  input,
});

export const result = (id: string, tokens: number, marker: Block = {}): Block => ({
  type: "tool_result",
  tool_use_id: id,
  content: words(tokens, 70 + Number(id.replace(/\D/g, ""))),
  ...marker,
});

export const image = (letters: string, marker: Block = {}): Block => ({
  type: "image",
  source: { type: "base64", media_type: "image/png", data: letters },
  ...marker,
});

export const user = (...content: readonly Block[]): Message => ({ role: "user", content });
export const assistant = (...content: readonly Block[]): Message => ({ role: "assistant", content });

export const MODEL = "claude-sonnet-5";

/** 1,500 tokens of tools, 1,500 of system, 1,357 of messages; markers at the end of system and on the last block. */
export const a: Request = {
  model: MODEL,
  max_tokens: 64,
  tools: [tool("Read"), tool("Edit"), tool("Bash")],
  system: [prose(1_000, 1), prose(500, 2, marked)],
  messages: [
    user(prose(400, 3)),
    assistant(prose(50, 4), call("toolu_1")),
    user(result("toolu_1", 600)),
    assistant(prose(100, 5)),
    user(prose(200, 6, marked)),
  ],
};

export const TOOLS = 1_500;
export const HEAD = 3_000;
/** All of `a`: the call is 9 tokens, `{"path":"src/server.ts","limit":40}`. */
export const KEPT = 4_359;

/** A request without the markers of its messages. */
export const unmarked = (messages: readonly Message[]): readonly Message[] =>
  messages.map(({ role, content }) => ({
    role,
    content: typeof content === "string" ? content : content.map(({ cache_control: _marker, ...block }) => block),
  }));

/** The next request: 80 tokens of answer and 60 of prompt more. */
export const next = (request: Request, ...more: readonly Block[]): Request => ({
  ...request,
  messages: [
    ...unmarked(request.messages),
    assistant(prose(80, 7)),
    user(...(more.length > 0 ? more : [prose(60, 8, marked)])),
  ],
});

export const b: Request = next(a);

// --- changes ---------------------------------------------------------------------------------------------------------

/** The request with one message replaced, left out or joined by others. */
export const withMessage = (request: Request, index: number, ...instead: readonly Message[]): Request => ({
  ...request,
  messages: request.messages.toSpliced(index, 1, ...instead),
});

/** The request with one block of a message replaced, left out or joined by others. */
export const withBlock = (
  request: Request,
  [message, block]: readonly [number, number],
  ...instead: readonly Block[]
): Request => {
  const there = request.messages[message];
  if (there === undefined || typeof there.content === "string") throw new Error(`message ${message} has no blocks`);
  return withMessage(request, message, { ...there, content: there.content.toSpliced(block, 1, ...instead) });
};

/** The block that stands there. */
export const blockOf = (request: Request, message: number, block: number): Block => {
  const found = request.messages[message]?.content[block];
  if (found === undefined || typeof found === "string") throw new Error(`no block ${message}/${block}`);
  return found;
};

/** The same body with its members in another order, spelled with white space and escapes. */
export const respelled = (request: Request): string =>
  JSON.stringify(Object.fromEntries(Object.entries(request).toReversed()), null, 3).replaceAll("oak", "\\u006fak");
