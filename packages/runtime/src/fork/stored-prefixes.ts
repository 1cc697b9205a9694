/** What a family shares, stored by name with the provider while its members run, if the provider offers that and it
 *  pays.
 *  A request means the same whether it names an entry or not, and is sent in full if the entry is gone. What an entry
 *  costs is in the journal and in the account. The journal also names an entry that outlives its session, so that the
 *  next run of the session removes it; without one it expires within minutes.
 *  Elsewhere: the content of an entry, the calls and the arithmetic (@prefork/wire), starting a family (../children:
 *  family-starts.ts). */

import {
  type CachedContentPlan,
  type CachedContents,
  type Client,
  decideStored,
  type FrozenPrefix,
  InputError,
  type Json,
  ModelError,
  type ModelFacts,
  modelFacts,
  noUsage,
  type Prepared,
  planCachedContent,
  type StoredContent,
  storedBills,
  withCachedContent,
} from "@prefork/wire";
import type { EventBody } from "../events.ts";
import { type Journal, JournalError } from "../journal/index.ts";
import type { Budget, Clock, Reservation } from "../ports.ts";
import { pause } from "./keep-alive.ts";

export type StoredPrefixesOptions = {
  /** Absent where the provider stores nothing by name, or nobody wants it to. */
  readonly contents: CachedContents | undefined;
  readonly journal: Pick<Journal, "append">;
  readonly clock: Clock;
  readonly emit: (event: EventBody) => void;
};

/** A family that is about to start. */
export type StoreRequest = {
  readonly family: string;
  /** Complete prompts of its members: two are enough to find the shared prefix. Called only if storing pays off. */
  readonly lines: () => readonly FrozenPrefix[];
  readonly tokens: number;
  /** Requests that will name it. */
  readonly reads: number;
  /** The share that is read without an entry. */
  readonly hitRate: number;
  readonly facts: ModelFacts | undefined;
  /** What creating and holding it is taken from. */
  readonly account: Budget;
};

export type StoredFamily = {
  readonly reason: string;
  /** Whether there is one now. */
  readonly ready: Promise<boolean>;
  /** Call this when the family has ended. `isFinal`: no request will read its entry again. Otherwise the
   *  parent reads it once more. */
  readonly release: (isFinal: boolean) => Promise<void>;
};

/** An entry lives no longer than this without its session. */
const TTL_SECONDS = 600;
const TTL_MS = TTL_SECONDS * 1_000;
/** When its lifetime is renewed. */
const RENEW_MS = TTL_MS * 0.8;
/** Removing an entry delays nobody for longer than this. */
const PATIENCE_MS = 5_000;

/** The journal's slots for stored entries. */
export const STORED_SLOT = "stored:";

type Kept = {
  readonly plan: CachedContentPlan;
  readonly account: Budget;
  readonly facts: ModelFacts | undefined;
  readonly end: AbortController;
  ready: Promise<boolean>;
  families: number;
  entry?: StoredContent;
  from: number;
  until: number;
  /** What its storage may still cost. */
  reserved: Reservation;
  /** When the last request was sent that found it. */
  seenAt: number;
  /** When the provider no longer knew it. */
  lostAt?: number;
};

export class StoredPrefixes {
  readonly #options: StoredPrefixesOptions;
  readonly #kept = new Map<string, Kept>();
  readonly #leaving = new Set<Promise<void>>();
  /** The endpoint has refused to store anything. */
  #isRefused = false;

  constructor(options: StoredPrefixesOptions) {
    this.#options = options;
  }

  /** Begins to store what a family shares; undefined where that does not pay, or cannot be. */
  begin(storing: StoreRequest): StoredFamily | undefined {
    const { contents } = this.#options;
    const { tokens, reads, facts, hitRate } = storing;
    if (!contents || this.#isRefused) return undefined;
    const decision = decideStored({ tokens, reads, facts, hitRate, heldMs: TTL_MS });
    if (!decision.store) return undefined;
    const lines = storing.lines();
    const plan = planned(lines);
    const [line] = lines;
    if (!plan || !line) return undefined;
    const known = this.#kept.get(plan.hash);
    const kept = known ?? this.#start(plan, { contents, storing, line, reason: decision.reason });
    kept.families += 1;
    return { reason: decision.reason, ready: kept.ready, release: (isFinal) => this.#endUse(kept, isFinal) };
  }

  /** The same request with an entry's name in place of the bytes that the entry contains; undefined if no entry
   *  matches its beginning. */
  nameStored(prepared: Prepared): NamedRequest | undefined {
    for (const kept of this.#kept.values()) {
      const { entry, plan, lostAt } = kept;
      if (!entry || lostAt !== undefined || !isStartOf(prepared.prefix, plan)) continue;
      const sentAt = this.#options.clock.now();
      const found = (): void => {
        kept.seenAt = Math.max(kept.seenAt, sentAt);
      };
      return { prepared: withCachedContent(prepared, entry), found, lost: () => this.#lose(kept) };
    }
    return undefined;
  }

  /** Entries that an earlier run of the session left behind. */
  async takeOver(state: ReadonlyMap<string, Json>, account: Budget): Promise<void> {
    for (const [slot, value] of state) {
      const entry = slot.startsWith(STORED_SLOT) ? parseStored(value) : undefined;
      if (!entry) continue;
      const { name, model, tokens, from, until } = entry;
      const now = this.#options.clock.now();
      const how = await this.#remove(name);
      this.#release(
        { name, tokens, from, until: how === "left" ? until : Math.min(until, now), endedAt: now },
        { how, account, reserved: NOTHING_RESERVED, facts: modelFacts(model) },
      );
    }
  }

  /** Lets everything go, and waits until that is done. */
  async close(): Promise<void> {
    for (const kept of [...this.#kept.values()]) {
      kept.families = 1;
      void this.#endUse(kept, true);
    }
    await Promise.all(this.#leaving);
    this.disconnect();
  }

  disconnect(): void {
    this.#options.contents?.close();
  }

  #start(plan: CachedContentPlan, starting: Starting): Kept {
    const { account, facts } = starting.storing;
    const now = this.#options.clock.now();
    const kept: Kept = {
      ...{ plan, account, facts, end: new AbortController(), families: 0, from: now, until: now + TTL_MS },
      ...{ ready: Promise.resolve(false), reserved: NOTHING_RESERVED, seenAt: now },
    };
    kept.ready = this.#create(kept, starting);
    this.#kept.set(plan.hash, kept);
    return kept;
  }

  async #create(kept: Kept, { contents, storing, line, reason }: Starting): Promise<boolean> {
    const { emit, journal } = this.#options;
    const { family, tokens, account, facts } = storing;
    const failed = (why: string): false => {
      this.#kept.delete(kept.plan.hash);
      emit({ type: "prefix_not_stored", family, reason: why });
      return false;
    };
    const worst = costs(tokens, { facts, heldMs: TTL_MS });
    const creating: Reservation = { usd: worst.creation, tokens };
    if (account.reserve(creating)) return failed("the budget has no room for it");
    let spent = { usage: noUsage, usd: 0 };
    try {
      const reserved = { usd: worst.storage, tokens: 0 };
      if (account.reserve(reserved)) return failed("the budget has no room for holding it");
      kept.reserved = reserved;
      const entry = await contents.create(kept.plan, line, kept.end.signal);
      const { creation } = costs(entry.tokens, { facts, heldMs: 0 });
      spent = { usage: { ...noUsage, plain: entry.tokens }, usd: creation };
      kept.entry = entry;
      kept.seenAt = this.#options.clock.now();
      this.#note(kept);
      journal.append({ kind: "billed", turn: 0, for: "stored", ...spent });
      emit({ type: "prefix_stored", family, name: entry.name, tokens: entry.tokens, usd: creation, reason });
      void this.#hold(kept, contents);
      return true;
    } catch (error) {
      if (!(error instanceof ModelError || error instanceof JournalError)) throw error;
      account.settle(kept.reserved, { usage: noUsage, usd: 0 });
      kept.reserved = NOTHING_RESERVED;
      if (kept.entry) await this.#remove(kept.entry.name); // nobody would find it again
      // What this endpoint does not know, or does not let us do, it will not the next time either.
      if (error instanceof ModelError && !error.retryable && !kept.end.signal.aborted) this.#isRefused = true;
      return failed(error.message);
    } finally {
      account.settle(creating, spent);
    }
  }

  /** For as long as anybody needs it. */
  async #hold(kept: Kept, contents: CachedContents): Promise<void> {
    const { clock } = this.#options;
    const { signal } = kept.end;
    while (!signal.aborted) {
      await (clock.sleep ?? pause)(RENEW_MS, signal);
      const { entry, facts, account } = kept;
      if (signal.aborted || !entry || kept.lostAt !== undefined) return;
      const more = { usd: costs(entry.tokens, { facts, heldMs: RENEW_MS }).storage, tokens: 0 };
      if (account.reserve(more)) return; // it ends by itself
      kept.reserved = { ...kept.reserved, usd: kept.reserved.usd + more.usd };
      try {
        const now = clock.now();
        kept.entry = await contents.extend(entry, TTL_SECONDS, signal);
        kept.until = now + TTL_MS;
        this.#note(kept);
      } catch (error) {
        if (error instanceof ModelError || error instanceof JournalError) return;
        throw error;
      }
    }
  }

  /** The parent has read the reports of its tasks, so the entries of families that have ended are removed. Resolves when
   *  their cost is on the bill. */
  async releaseEnded(): Promise<void> {
    for (const kept of [...this.#kept.values()]) {
      if (kept.families > 0) continue;
      kept.families = 1;
      void this.#endUse(kept, true);
    }
    await Promise.all(this.#leaving);
  }

  /** Called by the first request that did not find the entry. Requests in flight that name it will fail the same way. */
  #lose(kept: Kept): void {
    if (kept.lostAt !== undefined) return;
    kept.lostAt = this.#options.clock.now();
    this.#journalled(() => this.#note(kept));
  }

  async #endUse(kept: Kept, isFinal: boolean): Promise<void> {
    kept.families -= 1;
    if (kept.families > 0 || this.#kept.get(kept.plan.hash) !== kept) return;
    if (!isFinal) return kept.end.abort(); // it is not kept longer than it is paid for
    this.#kept.delete(kept.plan.hash);
    const leaving = this.#letGo(kept).finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
    await leaving;
  }

  async #letGo(kept: Kept): Promise<void> {
    kept.end.abort();
    await kept.ready;
    const { entry, account, reserved, facts, from } = kept;
    if (!entry) return;
    const now = this.#options.clock.now();
    const how = await this.#remove(entry.name);
    const until = how === "gone" ? lastedUntil(kept, now) : how === "removed" ? now : kept.until;
    const { name, tokens } = entry;
    this.#release({ name, tokens, from, until, endedAt: now }, { how, account, reserved, facts });
  }

  async #remove(name: string): Promise<Removed> {
    const { contents } = this.#options;
    if (!contents) return "left";
    try {
      return await contents.remove({ name }, AbortSignal.timeout(PATIENCE_MS));
    } catch (error) {
      if (!(error instanceof ModelError || error instanceof InputError)) throw error;
      return "left";
    }
  }

  #release(
    { name, tokens, from, until, endedAt }: Held & { readonly endedAt: number },
    { how, account, reserved, facts }: Releasing,
  ): void {
    const { journal, emit } = this.#options;
    const ms = Math.max(0, until - from);
    const usd = costs(tokens, { facts, heldMs: ms }).storage;
    this.#journalled(() => {
      journal.append({ kind: "billed", turn: 0, for: "storage", usage: noUsage, usd });
      journal.append({ kind: "state", slot: STORED_SLOT + name, value: { endedAt } });
    });
    account.settle(reserved, { usage: noUsage, usd });
    emit({ type: "prefix_released", name, tokens, ms, usd, how });
  }

  /** What the next run of the session needs to be rid of it. */
  #note({ entry, plan, from, until, lostAt }: Kept): void {
    if (!entry) return;
    const { name, tokens } = entry;
    const { model, segments, hash } = plan;
    const holds = { segments, hash }; // to explain later what a request should have read
    this.#options.journal.append({
      kind: "state",
      slot: STORED_SLOT + name,
      value: { name, tokens, model, from, until, ...holds, ...(lostAt === undefined ? {} : { lostAt }) },
    });
  }

  #journalled(write: () => void): void {
    try {
      write();
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      this.#options.emit({ type: "journal_troubled", problem: error.message });
    }
  }
}

type Starting = {
  readonly contents: CachedContents;
  readonly storing: StoreRequest;
  /** One that begins with the plan. */
  readonly line: FrozenPrefix;
  readonly reason: string;
};
type Held = { readonly name: string; readonly tokens: number; readonly from: number; readonly until: number };
type Removed = "removed" | "gone" | "left";
type Releasing = Pick<Kept, "account" | "reserved" | "facts"> & { readonly how: Removed };

export type NamedRequest = { readonly prepared: Prepared; readonly found: () => void; readonly lost: () => void };

const NOTHING_RESERVED: Reservation = { usd: 0, tokens: 0 };

/** One that is gone before its time was removed by somebody, and no bill says when: it lived as long as it was found. */
const lastedUntil = ({ until, seenAt, lostAt }: Kept, now: number): number =>
  (lostAt ?? now) >= until ? until : Math.min(until, seenAt);

const planned = (lines: readonly FrozenPrefix[]): CachedContentPlan | undefined => {
  try {
    return planCachedContent(lines, { ttlSeconds: TTL_SECONDS });
  } catch (error) {
    if (error instanceof InputError) return undefined; // nothing that ends with a whole content is shared
    throw error;
  }
};

/** Does an entry contain the beginning of these bytes, up to the end of a complete content? */
export const isStartOf = (
  prefix: FrozenPrefix,
  { model, segments, hash }: Pick<CachedContentPlan, "model" | "segments" | "hash">,
): boolean => {
  const next = prefix.segmentAt(segments);
  return prefix.model === model && prefix.segmentAt(segments - 1)?.hash === hash && next?.part === 0;
};

/** In dollars. Where no price is known nothing is stored at all. */
const costs = (
  tokens: number,
  { facts, heldMs }: { readonly facts: ModelFacts | undefined; readonly heldMs: number },
): { readonly creation: number; readonly storage: number } => {
  const bills = storedBills({ tokens, heldMs, reads: 0, facts });
  return { creation: bills?.creation.money ?? 0, storage: bills?.storage.money ?? 0 };
};

const parseStored = (value: Json): (Held & { readonly model: string }) | undefined => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { name, tokens, model, from, until } = value as Readonly<Record<string, Json>>;
  if (typeof name !== "string" || typeof model !== "string") return undefined;
  if (typeof tokens !== "number" || typeof from !== "number" || typeof until !== "number") return undefined;
  return { name, tokens, model, from, until };
};

/** A client whose requests name what is stored of them. One that the provider no longer knows is sent whole. */
export const withStoredPrefixes = (client: Client, stored: StoredPrefixes): Client => ({
  stream: (prepared, signal) => client.stream(stored.nameStored(prepared)?.prepared ?? prepared, signal),
  send: async (prepared, signal, options) => {
    const naming = stored.nameStored(prepared);
    if (!naming) return client.send(prepared, signal, options);
    try {
      const answer = await client.send(naming.prepared, signal, options);
      naming.found();
      return answer;
    } catch (error) {
      if (!(error instanceof ModelError) || error.reason.kind !== "not-found" || error.afterContent) throw error;
      naming.lost();
      return client.send(prepared, signal, options);
    }
  },
  close: () => {
    client.close();
    stored.disconnect();
  },
});
