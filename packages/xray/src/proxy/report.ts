/** The proxy's report: how much was read, what was written twice, what was lost, why, and by whom.
 *  Invariant: it contains no text of any body and nothing that proves who sent it; lists are bounded, sums are
 *  complete.
 *  Elsewhere: counting (tally.ts), printing it (the command line). */

import type { Usage } from "@prefork/wire";
import type { XrayCause, XrayProtocol, XrayRelation } from "../compare/index.ts";

/** complete: the whole answer. aborted: the client disconnected. cut: the provider broke off. unanswered: no
 *  connection, or it broke before an answer. */
export type Outcome = "complete" | "aborted" | "cut" | "unanswered";

/** What a group of requests used in total. */
export type ProxySpend = {
  readonly requests: number;
  readonly usage: Usage;
  /** Share of prompt tokens that were cache reads; null without any. */
  readonly readShare: number | null;
  /** Cache writes divided by the writes that were necessary; null if nothing was written. */
  readonly rewriteFactor: number | null;
  /** The cost of the prompts in uncached tokens. */
  readonly units: number;
  /** Absent if no model has a price; `unpriced` requests are not included. */
  readonly usd?: number;
  readonly unpriced: number;
  readonly lost: Loss;
};

/** Tokens paid for again. */
export type Loss = { readonly tokens: number; readonly units: number; readonly usd?: number };

/** A chain of requests that grow from each other: one agent, one fork, one side question. */
export type LineageReport = ProxySpend & {
  readonly id: number;
  /** The request that it diverged from. */
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

/** Requests of several lineages that grew from the same request; or that all name one stored entry, and then the first
 *  of them is a member itself. */
export type FamilyReport = ProxySpend & {
  readonly from: number;
  /** Tokens of that request's prompt, which all members begin with. */
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
  /** Where the two diverge: a location in the later body. */
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

/** Everything that went through the proxy. */
export type Passed = {
  readonly requests: number;
  /** On paths that are not analysed. */
  readonly others: number;
  /** How many of these create a stored entry; their cost is in no sum. */
  readonly created: number;
  readonly upgraded: number;
  readonly unreachable: number;
  /** By the proxy itself. */
  readonly refused: number;
  /** Clients that disconnected while they were still sending. */
  readonly unfinished: number;
};

export type ProxyReport = {
  readonly startedAt: number;
  readonly at: number;
  readonly passed: Passed;
  /** Requests to models: answered, still open, refused by the provider (by status), interrupted. */
  readonly answered: number;
  readonly open: number;
  readonly failed: readonly Counted[];
  readonly aborted: number;
  readonly cut: number;
  readonly unanswered: number;
  /** Answers without a usage: in no sum. */
  readonly unstated: number;
  /** Complete answers. */
  readonly all: ProxySpend;
  /** The usage of aborted and cut answers: in no other sum. */
  readonly brokenOff: ProxySpend;
  readonly lineages: readonly LineageReport[];
  /** The total of lineages that are no longer listed. */
  readonly older: ProxySpend & { readonly lineages: number };
  readonly families: readonly FamilyReport[];
  readonly causes: readonly CauseReport[];
  /** The latest misses, without those of a few tokens that are not worth fixing; `causes` counts all. */
  readonly misses: readonly MissReport[];
  readonly notLookedAt: readonly Counted[];
  readonly errors: readonly Counted[];
  /** "runs", or why the analysis stopped. */
  readonly analysis: string;
  /** Heap bytes of the two threads. */
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
      /** Totals of all requests so far. */
      readonly all: ProxySpend;
      readonly lineages: number;
    }
  | {
      readonly type: "family_grew";
      readonly from: number;
      readonly members: readonly number[];
      readonly prefix: number;
    };
