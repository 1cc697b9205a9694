/** How does the prefix grow again, from what was sent?
 *  Invariant: while every hash agrees the bytes are those that were sent. From the first that does not, messages are
 *  encoded again from their neutral form, and what would make a request illegal (a result without its call, a call
 *  without its result) is left out or answered.
 *  Elsewhere: everything in a journal that is not in the prefix (replay.ts). */

import {
  type Block,
  FrozenPrefix,
  InputError,
  type Message,
  type Protocol,
  type ToolResultBlock,
  userText,
} from "@prefork/wire";
import type { EpochEntry, JournalProblem, SentBytes, WireEntry } from "./entry.ts";

export type Grown = {
  readonly epoch: EpochEntry | undefined;
  readonly protocol: Protocol | undefined;
  readonly prefix: FrozenPrefix | undefined;
  readonly exact: boolean;
  readonly messages: readonly Message[];
};

export const nothingGrown: Grown = {
  epoch: undefined,
  protocol: undefined,
  prefix: undefined,
  exact: true,
  messages: [],
};

export type Regrowing = {
  readonly protocols: readonly Protocol[];
  /** What to say of a call whose result does not stand here any more. */
  readonly resultOf: (callId: string) => ToolResultBlock;
};

type Finding = Omit<JournalProblem, "line">;
export type Regrown = readonly [Grown, Finding?];

export const regrow = (
  grown: Grown,
  { entry, sent }: { readonly entry: WireEntry; readonly sent: SentBytes },
  regrowing: Regrowing,
): Regrown => {
  const before = entry.kind === "epoch" ? begun(entry, regrowing.protocols) : grown;
  if (entry.kind === "epoch" && !before.protocol)
    return [before, { kind: "unknown", detail: `nothing is known here of the protocol "${entry.protocol}"` }];
  if (entry.kind !== "epoch" && !before.prefix)
    return before.epoch ? [before] : [before, { kind: "lost", detail: "no head stands before this message" }];
  if (!before.exact) return [mended(before, entry, regrowing)];
  const asSent = attempt(() => withEntry(before, entry, sent.pieces));
  if (asSent?.prefix?.hash === sent.hash) return [asSent];
  const asSpelled = attempt(() => withEntry(before, entry));
  if (asSpelled?.prefix?.hash === sent.hash)
    return [asSpelled, { kind: "mended", detail: "the bytes that were sent are damaged; they were made again" }];
  return [
    mended({ ...before, exact: false }, entry, regrowing),
    { kind: "changed", detail: "from here on the bytes differ from those that were sent; no cache knows them" },
  ];
};

const begun = (epoch: EpochEntry, protocols: readonly Protocol[]): Grown => ({
  ...nothingGrown,
  epoch,
  protocol: protocols.find(({ name }) => name === epoch.protocol),
});

/** Damaged bytes need not fit their message at all. */
const attempt = (grow: () => Grown): Grown | undefined => {
  try {
    return grow();
  } catch (error) {
    if (error instanceof InputError) return undefined;
    throw error;
  }
};

/** `sent` undefined: as it would be spelled today. */
const withEntry = (grown: Grown, entry: WireEntry, sent?: readonly Buffer[]): Grown => {
  const { prefix, protocol, messages } = grown;
  if (entry.kind === "epoch") {
    const encoder = protocol?.encoder;
    const [json] = sent ?? [];
    if (!encoder) return grown;
    const opened = json ? FrozenPrefix.reopen(encoder, entry.head, json) : FrozenPrefix.open(encoder, entry.head);
    return { ...grown, prefix: opened };
  }
  if (!prefix) return grown;
  if (entry.kind === "message")
    return { ...grown, prefix: prefix.appendOpen(entry.message, sent), messages: [...messages, entry.message] };
  return { ...grown, prefix: prefix.extend(entry.blocks, sent), messages: extended(messages, entry.blocks) };
};

const extended = (messages: readonly Message[], blocks: readonly Block[]): readonly Message[] => {
  const last = messages.at(-1);
  if (!last) return messages;
  return [...messages.slice(0, -1), { ...last, content: [...last.content, ...blocks] }];
};

/** Stands where the user must have spoken first. */
const LOST = "(What was said here can no longer be read.)";

/** With the entry as it may stand after what could be read; without it where it may not. */
const mended = (grown: Grown, entry: WireEntry, regrowing: Regrowing): Grown => {
  const { prefix } = grown;
  if (entry.kind === "epoch") return attempt(() => withEntry(grown, entry)) ?? grown;
  if (!prefix) return grown;
  const isOpen = grown.messages.at(-1)?.role === "user";
  const added: Message = entry.kind === "message" ? entry.message : { role: "user", content: entry.blocks };
  const content = answering(added.content, prefix.pending);
  if (prefix.messages === 0 && added.role !== "user")
    return mended(withEntry(grown, { kind: "message", message: userText(LOST) }), entry, regrowing);
  const grow = (): Grown => {
    if (entry.kind === "blocks" && isOpen) return withEntry(grown, { ...entry, blocks: content });
    const missing = unanswered(prefix.pending, content).map(regrowing.resultOf);
    const isUsers = added.role === "user";
    const told = isUsers ? resultsFirst([...content, ...missing]) : content;
    const answered = isUsers || missing.length === 0 ? grown : withResults(grown, missing, isOpen);
    return withEntry(answered, { kind: "message", message: { ...added, content: told } });
  };
  return attempt(grow) ?? grown;
};

const withResults = (grown: Grown, results: readonly Block[], isOpen: boolean): Grown =>
  withEntry(
    grown,
    isOpen ? { kind: "blocks", blocks: results } : { kind: "message", message: { role: "user", content: results } },
  );

const unanswered = (pending: readonly string[], content: readonly Block[]): readonly string[] => {
  const answered = new Set(content.flatMap((block) => (block.type === "tool_result" ? [block.toolUseId] : [])));
  return pending.filter((id) => !answered.has(id));
};

/** A provider refuses words before the results of the calls that they follow. */
const resultsFirst = (content: readonly Block[]): readonly Block[] => [
  ...content.filter(({ type }) => type === "tool_result"),
  ...content.filter(({ type }) => type !== "tool_result"),
];

/** Results that answer no open call would make every later request illegal. */
const answering = (content: readonly Block[], pending: readonly string[]): readonly Block[] => {
  const open = new Set(pending);
  return content.filter((block) => block.type !== "tool_result" || open.delete(block.toolUseId));
};
