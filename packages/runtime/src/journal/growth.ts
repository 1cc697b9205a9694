/** The entries that make a prefix grow, with the bytes that it grows by. Pure.
 *  Invariant: what an entry says and what was sent for it are made together, so that the one can always be made from the
 *  other; a prefix given back here counts once its drafts are written.
 *  Elsewhere: writing them (writer.ts), growing again from them (regrow.ts). */

import {
  type Block,
  FrozenPrefix,
  InputError,
  type Message,
  type Protocol,
  type ToolResultBlock,
  userText,
} from "@prefork/wire";
import type { EpochEntry, JournalProblem, PlainEntry, SentBytes, WireEntry } from "./entry.ts";

/** An entry that is not written yet. */
export type Draft =
  | { readonly entry: PlainEntry; readonly sent?: never }
  | { readonly entry: WireEntry; readonly sent: SentBytes };

export type Growth = { readonly prefix: FrozenPrefix; readonly drafts: readonly Draft[] };

export type NewEpoch = Omit<EpochEntry, "kind" | "protocol">;

export const growEpoch = (protocol: Protocol, epoch: NewEpoch): Growth => {
  const prefix = FrozenPrefix.open(protocol.encoder, epoch.head);
  const entry = { kind: "epoch", ...epoch, protocol: protocol.name } as const;
  return { prefix, drafts: [{ entry, sent: { hash: prefix.hash, pieces: [prefix.sentHead()] } }] };
};

export type GrowOptions = {
  /** Where the content came from; "prompt" is what the user typed. */
  readonly source?: string;
  /** Calls that the message leaves open stay open, for `growBlocks` to answer. Default: they are answered. */
  readonly open?: boolean;
};

export const growMessage = (before: FrozenPrefix, message: Message, options: GrowOptions = {}): Growth => {
  const { source, open = false } = options;
  const drafts: Draft[] = [];
  let prefix = before;
  for (const entering of open ? [message] : before.entering(message)) {
    const grown = prefix.appendOpen(entering);
    const entry = { kind: "message", message: entering, ...(source === undefined ? {} : { source }) } as const;
    drafts.push({ entry, sent: { hash: grown.hash, pieces: grown.sentSince(prefix) } });
    prefix = grown;
  }
  return { prefix, drafts };
};

/** More blocks for the prefix's last message, which is the user's and still open. */
export const growBlocks = (before: FrozenPrefix, blocks: readonly Block[], source?: string): Growth => {
  const prefix = before.extend(blocks);
  const entry = { kind: "blocks", blocks, ...(source === undefined ? {} : { source }) } as const;
  return { prefix, drafts: [{ entry, sent: { hash: prefix.hash, pieces: prefix.sentSince(before) } }] };
};

/** Pictures that no provider has counted yet. Pure.
 *  Invariant: their bytes say nothing of their tokens, so both are kept apart from all other bytes.
 *  Elsewhere: what they are taken to cost (../agent), what a journal adds up to (replay.ts). */

export type Pictures = { readonly count: number; readonly bytes: number };

export const noPictures: Pictures = { count: 0, bytes: 0 };

export const withPictures = (before: Pictures, blocks: readonly Block[]): Pictures =>
  blocks.reduce<Pictures>((sum, block) => {
    if (block.type === "tool_result") return withPictures(sum, block.content);
    if (block.type !== "image") return sum;
    const { source } = block;
    return { count: sum.count + 1, bytes: sum.bytes + (source.kind === "base64" ? source.data.length : 0) };
  }, before);

/** How does the prefix grow again, from what was sent?
 *  Invariant: while every hash agrees the bytes are those that were sent. From the first that does not, messages are
 *  encoded again from their neutral form, and what would make a request illegal (a result without its call, a call
 *  without its result) is left out or answered.
 *  Elsewhere: everything in a journal that is not in the prefix (replay.ts). */

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

const attempt = <T>(grow: () => T): T | undefined => {
  try {
    return grow();
  } catch (error) {
    if (error instanceof InputError) return undefined;
    throw error;
  }
};

export type PrefixChange = {
  readonly entry: WireEntry;
  /** Undefined where nothing is known of the epoch's protocol. */
  readonly protocol: Protocol | undefined;
  /** The bytes that were sent; undefined: encode the entry as it would be encoded today. */
  readonly sent?: readonly Buffer[] | undefined;
};

/** Throws InputError where the bytes do not fit the entry. Undefined where there is no prefix to extend. */
const extendPrefix = (
  prefix: FrozenPrefix | undefined,
  { entry, protocol, sent }: PrefixChange,
): FrozenPrefix | undefined => {
  if (entry.kind === "message") return prefix?.appendOpen(entry.message, sent);
  if (entry.kind === "blocks") return prefix?.extend(entry.blocks, sent);
  const [json] = sent ?? [];
  if (!protocol) return undefined;
  return json
    ? FrozenPrefix.reopen(protocol.encoder, entry.head, json)
    : FrozenPrefix.open(protocol.encoder, entry.head);
};

/** Undefined where the entry cannot extend this prefix: damaged bytes need not fit their message at all. */
export const tryExtendPrefix = (prefix: FrozenPrefix | undefined, change: PrefixChange): FrozenPrefix | undefined =>
  attempt(() => extendPrefix(prefix, change));

const withEntry = (grown: Grown, entry: WireEntry, sent?: readonly Buffer[]): Grown => {
  const { protocol, messages } = grown;
  const prefix = extendPrefix(grown.prefix, { entry, protocol, sent });
  if (!prefix) return grown;
  if (entry.kind === "epoch") return { ...grown, prefix };
  if (entry.kind === "message") return { ...grown, prefix, messages: [...messages, entry.message] };
  return { ...grown, prefix, messages: extended(messages, entry.blocks) };
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
