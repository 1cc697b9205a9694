/** How does a prefix grow, and how is it rebuilt from what was sent? Pure.
 *  Invariant: an entry and the bytes sent for it are created together, so each can always be derived from the other. A
 *  prefix returned from here counts once its drafts are written. When it is rebuilt, the bytes are those that were sent
 *  as long as every hash agrees. From the first hash that does not, messages are encoded again from their neutral form;
 *  what would make a request invalid (a result without its call, a call without its result) is left out or answered.
 *  Elsewhere: writing entries (writer.ts), everything in a journal that is not in the prefix (replay.ts). */

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

/** Adds blocks to the prefix's last message, which is the user's and still open. */
export const growBlocks = (before: FrozenPrefix, blocks: readonly Block[], source?: string): Growth => {
  const prefix = before.extend(blocks);
  const entry = { kind: "blocks", blocks, ...(source === undefined ? {} : { source }) } as const;
  return { prefix, drafts: [{ entry, sent: { hash: prefix.hash, pieces: prefix.sentSince(before) } }] };
};

/** Pictures that no provider has counted yet. Their bytes say nothing about their tokens, so they are kept apart
 *  from all other bytes. */

export type Pictures = { readonly count: number; readonly bytes: number };

export const noPictures: Pictures = { count: 0, bytes: 0 };

export const addPictures = (before: Pictures, blocks: readonly Block[]): Pictures =>
  blocks.reduce<Pictures>((sum, block) => {
    if (block.type === "tool_result") return addPictures(sum, block.content);
    if (block.type !== "image") return sum;
    const { source } = block;
    return { count: sum.count + 1, bytes: sum.bytes + (source.kind === "base64" ? source.data.length : 0) };
  }, before);

/** The rebuilt prefix, and the messages in it. */

export type PrefixState = {
  readonly epoch: EpochEntry | undefined;
  readonly protocol: Protocol | undefined;
  readonly prefix: FrozenPrefix | undefined;
  readonly exact: boolean;
  readonly messages: readonly Message[];
};

export const emptyPrefixState: PrefixState = {
  epoch: undefined,
  protocol: undefined,
  prefix: undefined,
  exact: true,
  messages: [],
};

export type RegrowOptions = {
  readonly protocols: readonly Protocol[];
  /** The result for a call whose result is no longer there. */
  readonly resultOf: (callId: string) => ToolResultBlock;
};

type FoundProblem = Omit<JournalProblem, "line">;
export type RegrowResult = readonly [PrefixState, FoundProblem?];

export const regrow = (
  grown: PrefixState,
  { entry, sent }: { readonly entry: WireEntry; readonly sent: SentBytes },
  regrowing: RegrowOptions,
): RegrowResult => {
  const before = entry.kind === "epoch" ? beginEpoch(entry, regrowing.protocols) : grown;
  if (entry.kind === "epoch" && !before.protocol)
    return [before, { kind: "unknown", detail: `unknown protocol "${entry.protocol}"` }];
  if (entry.kind !== "epoch" && !before.prefix)
    return before.epoch ? [before] : [before, { kind: "lost", detail: "no epoch begins before this message" }];
  if (!before.exact) return [repair(before, entry, regrowing)];
  const asSent = undefinedIfUnfit(() => extendWith(before, entry, sent.pieces));
  if (asSent?.prefix?.hash === sent.hash) return [asSent];
  const asSpelled = undefinedIfUnfit(() => extendWith(before, entry));
  if (asSpelled?.prefix?.hash === sent.hash)
    return [asSpelled, { kind: "mended", detail: "the bytes that were sent are damaged; they were restored" }];
  return [
    repair({ ...before, exact: false }, entry, regrowing),
    { kind: "changed", detail: "from here on the bytes differ from those that were sent; no cache knows them" },
  ];
};

const beginEpoch = (epoch: EpochEntry, protocols: readonly Protocol[]): PrefixState => ({
  ...emptyPrefixState,
  epoch,
  protocol: protocols.find(({ name }) => name === epoch.protocol),
});

const undefinedIfUnfit = <T>(grow: () => T): T | undefined => {
  try {
    return grow();
  } catch (error) {
    if (error instanceof InputError) return undefined;
    throw error;
  }
};

export type PrefixChange = {
  readonly entry: WireEntry;
  /** Undefined if the epoch's protocol is unknown. */
  readonly protocol: Protocol | undefined;
  /** The bytes that were sent; undefined: encode the entry as it would be encoded today. */
  readonly sent?: readonly Buffer[] | undefined;
};

/** Throws InputError if the bytes do not fit the entry. Undefined if there is no prefix to extend. */
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

/** Undefined if the entry cannot extend this prefix: damaged bytes may not fit their message. */
export const tryExtendPrefix = (prefix: FrozenPrefix | undefined, change: PrefixChange): FrozenPrefix | undefined =>
  undefinedIfUnfit(() => extendPrefix(prefix, change));

const extendWith = (grown: PrefixState, entry: WireEntry, sent?: readonly Buffer[]): PrefixState => {
  const { protocol, messages } = grown;
  const prefix = extendPrefix(grown.prefix, { entry, protocol, sent });
  if (!prefix) return grown;
  if (entry.kind === "epoch") return { ...grown, prefix };
  if (entry.kind === "message") return { ...grown, prefix, messages: [...messages, entry.message] };
  return { ...grown, prefix, messages: appendBlocks(messages, entry.blocks) };
};

const appendBlocks = (messages: readonly Message[], blocks: readonly Block[]): readonly Message[] => {
  const last = messages.at(-1);
  if (!last) return messages;
  return [...messages.slice(0, -1), { ...last, content: [...last.content, ...blocks] }];
};

/** Takes the place of a user message that must come first. */
const LOST_MESSAGE = "(What was said here can no longer be read.)";

/** Adds the entry in a form that is valid after what could be read, or leaves it out. */
const repair = (grown: PrefixState, entry: WireEntry, regrowing: RegrowOptions): PrefixState => {
  const { prefix } = grown;
  if (entry.kind === "epoch") return undefinedIfUnfit(() => extendWith(grown, entry)) ?? grown;
  if (!prefix) return grown;
  const isOpen = grown.messages.at(-1)?.role === "user";
  const added: Message = entry.kind === "message" ? entry.message : { role: "user", content: entry.blocks };
  const content = dropStrayResults(added.content, prefix.pending);
  if (prefix.messages === 0 && added.role !== "user")
    return repair(extendWith(grown, { kind: "message", message: userText(LOST_MESSAGE) }), entry, regrowing);
  const grow = (): PrefixState => {
    if (entry.kind === "blocks" && isOpen) return extendWith(grown, { ...entry, blocks: content });
    const missing = unansweredCalls(prefix.pending, content).map(regrowing.resultOf);
    const isUsers = added.role === "user";
    const ordered = isUsers ? resultsFirst([...content, ...missing]) : content;
    const answered = isUsers || missing.length === 0 ? grown : addResults(grown, missing, isOpen);
    return extendWith(answered, { kind: "message", message: { ...added, content: ordered } });
  };
  return undefinedIfUnfit(grow) ?? grown;
};

const addResults = (grown: PrefixState, results: readonly Block[], isOpen: boolean): PrefixState =>
  extendWith(
    grown,
    isOpen ? { kind: "blocks", blocks: results } : { kind: "message", message: { role: "user", content: results } },
  );

const unansweredCalls = (pending: readonly string[], content: readonly Block[]): readonly string[] => {
  const answered = new Set(content.flatMap((block) => (block.type === "tool_result" ? [block.toolUseId] : [])));
  return pending.filter((id) => !answered.has(id));
};

/** A provider refuses text before the results of the calls that it follows. */
const resultsFirst = (content: readonly Block[]): readonly Block[] => [
  ...content.filter(({ type }) => type === "tool_result"),
  ...content.filter(({ type }) => type !== "tool_result"),
];

/** Results that answer no open call would make every later request invalid. */
const dropStrayResults = (content: readonly Block[], pending: readonly string[]): readonly Block[] => {
  const open = new Set(pending);
  return content.filter((block) => block.type !== "tool_result" || open.delete(block.toolUseId));
};
