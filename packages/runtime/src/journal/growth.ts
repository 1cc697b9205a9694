/** The entries that make a prefix grow, with the bytes that it grows by. Pure.
 *  Invariant: what an entry says and what was sent for it are made together, so that the one can always be made from the
 *  other; a prefix given back here counts once its drafts are written.
 *  Elsewhere: writing them (writer.ts), growing again from them (regrow.ts). */

import { type Block, FrozenPrefix, type Message, type Protocol } from "@prefork/wire";
import type { EpochEntry, PlainEntry, SentBytes, WireEntry } from "./entry.ts";

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
