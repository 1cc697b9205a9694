/** Handwritten journals, as a loop would write them, without a disk: for cases that no running session produces. */

import {
  anthropic,
  type Block,
  type FrozenPrefix,
  type Head,
  type MarkerPlace,
  type Message,
  markerPlaces,
  nextMarkers,
  text,
  type Usage,
} from "@prefork/wire";
import {
  type Growth,
  growBlocks,
  growEpoch,
  growMessage,
  type JournalEntry,
  type ParentPointer,
  type SentBytes,
  type StoredEntry,
} from "../../src/journal/index.ts";

export const head = (description = "Reads a file."): Head => ({
  model: "claude-sonnet-5",
  tools: [{ type: "function", name: "Read", description, inputSchema: { type: "object" } }],
  system: [text("You are a test.")],
  settings: {},
});

export type SketchOptions = {
  readonly address?: string;
  readonly at?: number;
  readonly parent?: ParentPointer;
  readonly from?: FrozenPrefix;
};

export class Sketch {
  readonly session: string;
  readonly #entries: StoredEntry[] = [];
  #at: number;
  #prefix: FrozenPrefix | undefined;
  #epoch = 0;
  #turn = 0;

  constructor(session: string, { at = 1_000, parent, from, address }: SketchOptions = {}) {
    this.session = session;
    this.#at = at;
    this.#prefix = from;
    const opened = { kind: "opened", id: session, cwd: "/work", model: "claude-sonnet-5" } as const;
    const more = { ...(parent ? { parent } : {}), ...(address === undefined ? {} : { address }) };
    this.#write({ ...opened, protocol: "anthropic", product: "test", ...more });
  }

  /** Continues at another address. */
  moved(address: string): this {
    return this.#write({ kind: "state", slot: "address", value: address });
  }

  get entries(): readonly StoredEntry[] {
    return this.#entries;
  }

  get prefix(): FrozenPrefix {
    if (!this.#prefix) throw new TypeError("no epoch has begun");
    return this.#prefix;
  }

  /** What a child that branches off now points at. */
  get pointer(): ParentPointer {
    return { session: this.session, seq: this.#entries.length, hash: this.prefix.hash };
  }

  later(ms: number): this {
    this.#at += ms;
    return this;
  }

  begin(given: Head = head(), reason: "start" | "compaction" = "start"): this {
    this.#epoch += 1;
    return this.#grow(growEpoch(anthropic, { epoch: this.#epoch, reason, head: given }));
  }

  say(role: Message["role"], ...content: readonly (string | Block)[]): this {
    return this.#grow(growMessage(this.prefix, { role, content: content.map(asBlock) }));
  }

  add(...blocks: readonly (string | Block)[]): this {
    return this.#grow(growBlocks(this.prefix, blocks.map(asBlock)));
  }

  /** `markers`: as the loop would place them. */
  ask(markers: readonly MarkerPlace[] = markerPlaces(nextMarkers(this.prefix))): this {
    this.#turn += 1;
    const { hash: prefixHash } = this.prefix;
    return this.#write({ kind: "request", turn: this.#turn, markers, prefixHash, maxTokens: 100 });
  }

  answer(usage: Usage, { usd, aside = false }: { readonly usd?: number; readonly aside?: boolean } = {}): this {
    const turn = aside ? 0 : this.#turn;
    const id = `${this.session}-${this.#entries.length}`;
    const facts = { id, model: "claude-sonnet-5", stop: "end", usage, ms: 0 } as const;
    return this.#write({ kind: "response", turn, ...facts, ...(usd === undefined ? {} : { usd }) });
  }

  #grow({ prefix, drafts }: Growth): this {
    for (const { entry, sent } of drafts) this.#write(entry, sent);
    this.#prefix = prefix;
    return this;
  }

  #write(entry: JournalEntry, sent?: SentBytes): this {
    const seq = this.#entries.length + 1;
    this.#entries.push({ seq, at: this.#at, line: seq, offset: 0, entry, ...(sent ? { sent } : {}) });
    return this;
  }
}

const asBlock = (given: string | Block): Block => (typeof given === "string" ? text(given) : given);

/** What a request read and wrote. An answer has 10 tokens unless stated otherwise. */
export const used = (
  read: number,
  written: number,
  { plain = 0, output = 10 }: Partial<Pick<Usage, "plain" | "output">> = {},
): Usage => ({ plain, read, output, written: written > 0 ? { "5m": written } : {} });
