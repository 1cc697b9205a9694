/** One agent's conversation, as blocks that grow.
 *  Invariant: blocks are in the order in which they began; a finished block never changes, so that it can be printed above
 *  the screen; answers are split where Markdown allows it, so that a long answer finishes piece by piece.
 *  Elsewhere: which event does what (events.ts), how blocks look (../views: blocks.ts). */

import { type Block, type CallBlock, type Conversation, emptyConversation } from "./state.ts";

/** A child's conversation is kept for its page; the journal has everything. */
const MAX_BLOCKS = 2_000;
/** The characters of a running call's output that are kept. */
const MAX_TAIL = 4_000;
const MAX_RESULT = 50_000;

export const isFinished = (block: Block): boolean => {
  if (block.kind === "call") return block.state === "ended";
  return "isDone" in block ? block.isDone : true;
};

/** Moves finished blocks from the front of the open ones to the done ones. */
const settle = (conversation: Conversation): Conversation => {
  const { dropped, done, open } = conversation;
  const unfinished = open.findIndex((block) => !isFinished(block));
  const count = unfinished === -1 ? open.length : unfinished;
  if (count === 0) return conversation;
  const all = [...done, ...open.slice(0, count)];
  // Many at a time, so that the list is not copied for each block.
  const excess = all.length > MAX_BLOCKS * 1.2 ? all.length - MAX_BLOCKS : 0;
  return {
    ...conversation,
    dropped: dropped + excess,
    done: excess > 0 ? all.slice(excess) : all,
    open: open.slice(count),
  };
};

export const addBlock = (conversation: Conversation, block: Block): Conversation =>
  settle({ ...conversation, open: [...conversation.open, block] });

export const clearConversation = ({ dropped, done, open }: Conversation): Conversation => ({
  ...emptyConversation,
  dropped: dropped + done.length + open.length,
});

type Growing = Extract<Block, { readonly kind: "answer" | "thinking" }>;

/** Adds streamed text to the block that is growing, or begins one. */
export const growText = (conversation: Conversation, kind: Growing["kind"], text: string): Conversation => {
  const last = conversation.open.at(-1);
  const isSame = last?.kind === kind && !last.isDone;
  const grown: Growing = { kind, text: (isSame ? last.text : "") + text, isDone: false };
  const open = isSame ? [...conversation.open.slice(0, -1)] : [...conversation.open].map(finishText);
  const mayFinish = kind === "answer" && text.includes("\n");
  const [finished, rest] = mayFinish ? splitFinished(grown.text) : ["", grown.text];
  const pieces: readonly Block[] = [
    ...(finished === "" ? [] : [{ kind, text: finished, isDone: true } as const]),
    { kind, text: rest, isDone: false },
  ];
  return settle({
    ...conversation,
    isStreamed: conversation.isStreamed || kind === "answer",
    open: [...open, ...pieces],
  });
};

const finishText = (block: Block): Block =>
  block.kind === "answer" || block.kind === "thinking" ? { ...block, isDone: true } : block;

/** The turn's text is complete. A client that attached later was not sent the pieces, so it gets the whole. */
export const enterText = (conversation: Conversation, text: string): Conversation =>
  finishTexts(conversation.isStreamed || text === "" ? conversation : growText(conversation, "answer", text));

export const finishTexts = (conversation: Conversation): Conversation =>
  settle({
    ...conversation,
    isStreamed: false,
    open: conversation.open
      .map(finishText)
      .filter((block) => !("text" in block) || block.text !== "" || block.kind === "prompt"),
  });

/** The answer in flight is sent again from its start: what was streamed of it does not count. */
export const dropUnfinishedText = (conversation: Conversation): Conversation => ({
  ...conversation,
  isStreamed: false,
  open: conversation.open.filter((block) => block.kind === "call" || isFinished(block)),
});

/** Splits streamed Markdown after its last complete paragraph: at a blank line that is not inside a fence, and not before
 *  an indented line, which may continue a list. */
export const splitFinished = (text: string): readonly [finished: string, rest: string] => {
  let fence: string | undefined;
  let at = 0;
  let safe = 0;
  for (;;) {
    const end = text.indexOf("\n", at);
    if (end === -1) break;
    const line = text.slice(at, end);
    const marker = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (marker && fence === undefined) fence = marker;
    else if (marker && fence !== undefined && marker.startsWith(fence) && line.trim() === marker) fence = undefined;
    at = end + 1;
    const isBlank = line.trim() === "" && fence === undefined;
    if (isBlank && at < text.length && /^[^\s\-*+\d|>]/.test(text.slice(at, at + 1))) safe = at;
  }
  return [text.slice(0, safe), text.slice(safe)];
};

/** Applies a change to the call with this id. */
export const changeCall = (
  conversation: Conversation,
  callId: string,
  change: (call: CallBlock) => CallBlock,
): Conversation =>
  settle({
    ...conversation,
    open: conversation.open.map((block) => (block.kind === "call" && block.callId === callId ? change(block) : block)),
  });

export const appendOutput = (call: CallBlock, text: string): CallBlock => ({
  ...call,
  output: (call.output + text).slice(-MAX_TAIL),
});

export const cutResult = (text: string): string =>
  text.length <= MAX_RESULT ? text : `${text.slice(0, MAX_RESULT)}\n[${text.length - MAX_RESULT} more characters]`;

/** The bill of a family is known, or it cannot be. */
export const explainFamily = (conversation: Conversation, family: string, freshUsd?: number): Conversation =>
  settle({
    ...conversation,
    open: conversation.open.map((block) =>
      block.kind === "family" && block.family === family
        ? { ...block, isDone: true, ...(freshUsd === undefined ? {} : { freshUsd }) }
        : block,
    ),
  });

/** Nothing of it runs any more: calls without an end were interrupted. */
export const endConversation = (conversation: Conversation): Conversation =>
  settle({
    ...conversation,
    open: conversation.open.map((block) =>
      block.kind === "call" && block.state !== "ended"
        ? { ...block, state: "ended", fault: "interrupted" }
        : finishText(block),
    ),
  });
