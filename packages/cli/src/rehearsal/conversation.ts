/** What does the conversation in this request contain, and what does it ask for now?
 *  Invariant: it reads only the request, and never fails on a wrong shape. Tool output is never taken for a prompt: only
 *  user text counts, and only outside the blocks that we add.
 *  Elsewhere: what the prompt means (tasks.ts), summaries (summary.ts). */

import { FORK_BOILERPLATE_TAG, FORK_DIRECTIVE_PREFIX, type Json, type JsonObject } from "@prefork/wire";
import type { Call } from "./moves.ts";

export type Result = { readonly text: string; readonly isError: boolean };
export type MadeCall = Call & { readonly result: Result | undefined };

export const objectOf = (value: Json | undefined): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
export const listOf = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : []);
export const textOf = (value: Json | undefined): string => (typeof value === "string" ? value : "");

type Turn = {
  readonly role: string;
  readonly texts: readonly string[];
  readonly calls: readonly (Call & { readonly id: string })[];
  readonly results: ReadonlyMap<string, Result>;
};

const blocksOf = (content: Json | undefined): readonly JsonObject[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : listOf(content).map(objectOf);

const partsOf = (block: JsonObject): readonly string[] =>
  blocksOf(block.content).flatMap((part) => (part.type === "text" ? [textOf(part.text)] : []));

const DIRECTIVE_START = `<${FORK_BOILERPLATE_TAG}>`;

/** A directive may be inside the last tool result, as a separate part after the tool's output. */
const directiveInResult = (parts: readonly string[]): readonly string[] =>
  parts.length > 1 ? parts.slice(-1).filter((part) => part.startsWith(DIRECTIVE_START)) : [];

const readTurn = (message: JsonObject): Turn => {
  const blocks = blocksOf(message.content);
  const results = blocks.filter(({ type }) => type === "tool_result");
  const last = results.at(-1);
  const held = last === undefined ? [] : directiveInResult(partsOf(last));
  return {
    role: textOf(message.role),
    texts: [...blocks.flatMap((block) => (block.type === "text" ? [textOf(block.text)] : [])), ...held],
    calls: blocks.flatMap((block) =>
      block.type === "tool_use"
        ? [{ id: textOf(block.id), name: textOf(block.name), input: objectOf(block.input) }]
        : [],
    ),
    results: new Map(
      results.map((block) => {
        const parts = partsOf(block);
        const own = block === last && held.length > 0 ? parts.slice(0, -1) : parts;
        return [textOf(block.tool_use_id), { text: own.join("\n"), isError: block.is_error === true }];
      }),
    ),
  };
};

const TAGS =
  /^\s*<(conventions|environment|section|note|earlier-conversation|last-message|todo-list|open-tasks|read-file|task-notification|system-reminder)(?:\s[^>]*)?>/;

/** The text has only blocks that we add next to the user's text, perhaps after one line of introduction. */
const hasOnlyOurBlocks = (text: string): boolean => {
  let rest = text.replace(/^[^\n<]*\n/, "");
  for (let opened = TAGS.exec(rest); opened !== null; opened = TAGS.exec(rest)) {
    const closing = `</${opened[1]}>`;
    const end = rest.indexOf(closing);
    if (end === -1) return false;
    rest = rest.slice(end + closing.length);
    if (rest.trim() === "") return true;
  }
  return false;
};

/** Text between a pair of tags, whatever their name. */
const isTagged = (text: string): boolean => {
  const name = /^<([a-z][\w-]*)[\s>]/.exec(text)?.[1];
  return name !== undefined && text.trimEnd().endsWith(`</${name}>`);
};

/** Tells a parent about the forks that it just started; it asks for nothing. */
const LAUNCHED = /^async_launched\b/;

/** A message that reached a fork while it worked, without the sentences around it. */
const MESSAGE =
  /^Message of the (?:user|main agent) to you[^\n]*:\n([\s\S]*?)\nTake it into account, finish your part and report in the same form as before\.$/gm;

const messagesIn = (text: string): readonly string[] => [...text.matchAll(MESSAGE)].map(([, inside]) => inside ?? "");

/** Text that a person wrote, not a block that we added. */
const isPrompt = (text: string): boolean =>
  text.trim() !== "" &&
  !hasOnlyOurBlocks(text) &&
  !isTagged(text) &&
  !LAUNCHED.test(text) &&
  messagesIn(text).length === 0 &&
  !text.startsWith(DIRECTIVE_START);

/** Piped input follows the prompt, as material. */
const GIVEN_INPUT = /\s*<standard-input>[\s\S]*<\/standard-input>\s*$/;

/** Asks for nothing new: the earlier tasks, or those of a summary, continue. */
const CONTINUES = /^(?:go on|continue|proceed)\b(?!.*(?:`|\n))/i;

const directiveIn = (text: string): string | undefined => {
  if (!text.startsWith(DIRECTIVE_START)) return undefined;
  const at = text.lastIndexOf(`\n${FORK_DIRECTIVE_PREFIX}`);
  if (at === -1) return undefined;
  return text
    .slice(at + 1 + FORK_DIRECTIVE_PREFIX.length)
    .replace(WORKTREE_NOTICE, "")
    .trim();
};

/** The notice about a fork's worktree, which follows its directive. */
const WORKTREE_NOTICE = /\n\nYou work in a git worktree of your own: (\/[^\n]*)\nIt is a copy of [\s\S]*$/;

/** The contents of all blocks with this tag. */
export const taggedIn = (text: string, tag: string): readonly string[] =>
  [...text.matchAll(new RegExp(`<${tag}(?:\\s[^>]*)?>\\s*([\\s\\S]*?)\\s*</${tag}>`, "g"))].map(
    ([, inside]) => inside ?? "",
  );

export type Start =
  | { readonly kind: "prompt"; readonly prompt: string }
  /** Continues from a summary of the earlier conversation. */
  | { readonly kind: "summary"; readonly summary: string }
  /** Only notifications about tasks. */
  | { readonly kind: "news" };

export type Exchange = {
  readonly start: Start;
  /** Messages that came later and add to its tasks. */
  readonly messages: readonly string[];
  /** Calls of this exchange, in order; a call without a result is still open. */
  readonly calls: readonly MadeCall[];
  /** Notifications about tasks in this exchange. */
  readonly notifications: readonly string[];
};

export type Conversation = {
  readonly exchanges: readonly Exchange[];
  /** This is the request of a fork. */
  readonly isFork: boolean;
  /** The last text of the last message, which may be a directive about the whole conversation. */
  readonly lastText: string;
  /** The working folder, if the request names it. */
  readonly folder: string | undefined;
  /** Every user text in order, including the blocks that we added. */
  readonly userTexts: readonly string[];
};

type OpenExchange = {
  readonly start: Start;
  readonly messages: string[];
  readonly calls: MadeCall[];
  readonly notifications: string[];
};

export const readConversation = (body: JsonObject): Conversation => {
  const turns = listOf(body.messages).map((message) => readTurn(objectOf(message)));
  const users = turns.filter(({ role }) => role === "user");
  const exchanges: OpenExchange[] = [];
  turns.forEach((turn, index) => {
    if (turn.role === "assistant") {
      const after = turns[index + 1]?.results;
      const made = turn.calls.map(({ id, name, input }) => ({ name, input, result: after?.get(id) }));
      exchanges.at(-1)?.calls.push(...made);
    }
    if (turn.role !== "user") return;
    const start = startOf(turn, exchanges.length > 0);
    if (start !== undefined) exchanges.push({ start, messages: [], calls: [], notifications: [] });
    exchanges.at(-1)?.messages.push(...turn.texts.flatMap(messagesIn));
    exchanges.at(-1)?.notifications.push(...notificationsIn(turn));
  });
  return {
    exchanges,
    isFork: users.some(({ texts }) => texts.some((text) => directiveIn(text) !== undefined)),
    lastText: users.at(-1)?.texts.at(-1) ?? "",
    folder: users.flatMap(({ texts }) => texts.flatMap(folderIn)).at(-1),
    userTexts: users.flatMap(({ texts }) => texts),
  };
};

const folderIn = (text: string): readonly string[] => {
  const [, own] = directiveIn(text) === undefined ? [] : (WORKTREE_NOTICE.exec(text) ?? []);
  if (own !== undefined) return [own];
  const [environment = ""] = isPrompt(text) ? [] : taggedIn(text, "environment");
  return /^Working folder: (\/.*)$/m.exec(environment)?.slice(1) ?? [];
};

const notificationsIn = ({ texts }: Turn): readonly string[] =>
  texts.filter((text) => !isPrompt(text)).flatMap((text) => taggedIn(text, "task-notification"));

/** How an exchange starts, if one starts here. */
const startOf = (turn: Turn, hasEarlier: boolean): Start | undefined => {
  const directive = turn.texts.map(directiveIn).findLast((text) => text !== undefined);
  const prompt = directive ?? turn.texts.findLast(isPrompt)?.replace(GIVEN_INPUT, "");
  const [summary] = turn.texts.flatMap((text) => taggedIn(text, "earlier-conversation"));
  const continues = prompt === undefined || CONTINUES.test(prompt);
  if (continues && summary !== undefined) return { kind: "summary", summary };
  if (prompt !== undefined && !(continues && hasEarlier)) return { kind: "prompt", prompt };
  return notificationsIn(turn).length > 0 && turn.results.size === 0 ? { kind: "news" } : undefined;
};
