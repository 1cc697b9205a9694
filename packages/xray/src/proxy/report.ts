/** What the proxy tells: how much was read, what was written twice, what was lost, why, and by whom.
 *  Invariant: no letter of any body and nothing that proves who sent it; lists are bounded, sums are not cut.
 *  Elsewhere: counting (tally.ts), laying it out (the command line). */

import type { Usage } from "@prefork/wire";
import type { XrayCause, XrayProtocol, XrayRelation } from "../compare/index.ts";

/** complete: to its end. aborted: the client left. cut: the provider broke off. unanswered: no connection, or it broke
 *  before an answer. */
export type Outcome = "complete" | "aborted" | "cut" | "unanswered";

/** What some requests used, together. */
export type ProxySpend = {
  readonly requests: number;
  readonly usage: Usage;
  /** Read tokens of all prompt tokens; null without any. */
  readonly readShare: number | null;
  /** Tokens written over those that had to be; null where nothing was written. */
  readonly rewriteFactor: number | null;
  /** The prompts in tokens of plain input. */
  readonly units: number;
  /** Absent where no model has a price; `unpriced` requests are not in it. */
  readonly usd?: number;
  readonly unpriced: number;
  readonly lost: Loss;
};

/** Tokens paid for again. */
export type Loss = { readonly tokens: number; readonly units: number; readonly usd?: number };

/** A chain of requests that grow from each other: one agent, one fork, one side question. */
export type LineageReport = ProxySpend & {
  readonly id: number;
  /** The request that it parted from. */
  readonly forkedFrom?: number;
  readonly wire: XrayProtocol;
  readonly model: string;
  readonly client: string;
  readonly account: number;
  readonly first: number;
  readonly last: number;
  /** Tokens of its latest prompt. */
  readonly prompt: number;
  readonly misses: number;
};

/** Requests of several lineages that grew from one and the same; or that all name one entry which the provider holds:
 *  then the first of them is a member itself. */
export type FamilyReport = ProxySpend & {
  readonly from: number;
  /** Tokens of that request's prompt, which all of them begin with. */
  readonly prefix: number;
  readonly members: readonly number[];
  readonly lineages: readonly number[];
};

export type MissReport = {
  readonly request: number;
  readonly lineage: number;
  readonly against: number;
  readonly model: string;
  readonly cause: XrayCause;
  readonly words: string;
  readonly why: string;
  readonly fix?: string;
  /** Where the two part: a place in the later body. */
  readonly path?: string;
  readonly offset?: number;
  readonly read: number;
  readonly lost: Loss;
};

export type CauseReport = Loss & {
  readonly kind: XrayCause["kind"];
  readonly words: string;
  readonly times: number;
};

export type Counted = { readonly name: string; readonly times: number };

/** What went through, whatever it was. */
export type Passed = {
  readonly requests: number;
  /** On paths that nobody looks at. */
  readonly others: number;
  /** Of these, creations of entries that a provider holds by name: what they cost is in no sum. */
  readonly created: number;
  readonly upgraded: number;
  readonly unreachable: number;
  /** By the proxy itself. */
  readonly refused: number;
  /** Clients that left while they were still sending. */
  readonly unfinished: number;
};

export type ProxyReport = {
  readonly startedAt: number;
  readonly at: number;
  readonly passed: Passed;
  /** Requests to models: answered, still open, refused by the provider by status, broken off. */
  readonly answered: number;
  readonly open: number;
  readonly failed: readonly Counted[];
  readonly aborted: number;
  readonly cut: number;
  readonly unanswered: number;
  /** Answers that stated no usage: in no sum. */
  readonly unstated: number;
  /** Answers that came to their end. */
  readonly all: ProxySpend;
  /** What was counted of those that were aborted or cut: in no other sum. */
  readonly brokenOff: ProxySpend;
  readonly lineages: readonly LineageReport[];
  /** Lineages that are no longer listed, together. */
  readonly older: ProxySpend & { readonly lineages: number };
  readonly families: readonly FamilyReport[];
  readonly causes: readonly CauseReport[];
  /** The latest ones, without those of a few tokens that nobody would mend; `causes` counts all. */
  readonly misses: readonly MissReport[];
  readonly notLookedAt: readonly Counted[];
  readonly errors: readonly Counted[];
  /** Whether the analysis still runs, and if not, why. */
  readonly analysis: string;
  /** Bytes that live in the heaps of the two threads. */
  readonly heap: { readonly server: number; readonly analysis: number };
  readonly record?: { readonly file: string; readonly requests: number };
};

export type ProxyEvent =
  | ({ readonly type: "request_missed" } & MissReport)
  | {
      readonly type: "request_ended";
      readonly request: number;
      readonly lineage?: number;
      readonly relation?: XrayRelation;
      readonly status: number;
      readonly outcome: Outcome;
      readonly usage?: Usage;
      /** Sums of all requests so far. */
      readonly all: ProxySpend;
      readonly lineages: number;
    }
  | {
      readonly type: "family_grew";
      readonly from: number;
      readonly members: readonly number[];
      readonly prefix: number;
    };
