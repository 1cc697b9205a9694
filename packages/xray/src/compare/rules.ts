/** How a provider caches, as data.
 *  Invariant: plain data; every difference between providers has a field here.
 *  Elsewhere: the rules of each provider (vendors.ts), what they mean for a prompt (entries.ts). */

import type { ModelFacts, Ttl } from "@prefork/wire";
import type { XrayProtocol } from "./body.ts";

/** The parts of a prompt. Each is lost with any part before it. */
export type Level = "tools" | "system" | "messages";

/** Parameters outside the three levels that are in the key. */
export type Parameter =
  | "model"
  | "speed"
  | "service_tier"
  | "cache_key"
  | "session_id"
  | "cache_salt"
  | "user_id"
  | "cached_content"
  | "thinking"
  | "effort"
  | "verbosity"
  | "parallel_tool_calls"
  | "output_format"
  | "context_management"
  | "mcp_servers"
  | "betas"
  | "citations"
  | "tool_choice"
  | "images";

/** What a provider caches. markers: up to each marker, found from a marker within a number of positions; some count
 *  every block of a run. endings: up to explicit markers and the end of the last message, found from message ends.
 *  everything: the whole prompt, found in steps of tokens, or at the ends of its pieces. units: up to the end of a
 *  prompt, of its answer, and of the common part of two prompts, in whole units of tokens. */
export type Keeping =
  | { readonly kind: "markers"; readonly lookBack: number; readonly most: number; readonly singly?: true }
  | { readonly kind: "endings"; readonly lookBack: number }
  | { readonly kind: "everything"; readonly step: number | "piece" }
  | { readonly kind: "units"; readonly step: number };

/** The provider caches without being asked, and the client cannot choose where an entry ends. */
export const isAutomatic = ({ kind }: Keeping): boolean => kind === "everything" || kind === "units";

export type Rules = {
  readonly protocol: XrayProtocol;
  /** In the order in which the provider renders them. */
  readonly levels: readonly Level[];
  /** The first level that a change of this parameter invalidates. */
  readonly loses: Readonly<Partial<Record<Parameter, Level>>>;
  /** Values that mean the same as an absent parameter. */
  readonly defaults: Readonly<Partial<Record<Parameter, string>>>;
  readonly keeping: Keeping;
  readonly defaultTtl: Ttl | undefined; // undefined: not published
  /** A longer lifetime that the client could have asked for. */
  readonly longerTtl?: Ttl;
  /** When others can read an entry: from the first event of the answer on, or `settleMs` after it is complete. */
  readonly readable: "first-event" | "complete";
  readonly settleMs: number;
  /** It reports its writes: if it reports none, it has written nothing. */
  readonly statesWrites: boolean;
  readonly minimum: number;
  /** Published for this model, or by its vendor for all models; otherwise the usual value. */
  readonly isMinimumKnown: boolean;
  readonly stripsThinking: boolean;
  readonly facts: ModelFacts | undefined;
};
