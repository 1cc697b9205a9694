/** What can be said of how a provider caches?
 *  Invariant: plain data; whatever differs between providers has a field here.
 *  Elsewhere: what each provider says (vendors.ts), what that does to a prompt (entries.ts). */

import type { ModelFacts, Ttl } from "@prefork/wire";
import type { XrayProtocol } from "./body.ts";

/** The parts of a prompt, each lost with any part before it. */
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

/** How a provider keeps what it was sent.
 *  markers: up to each marker, found from a marker within so many positions; some count every block of a run. endings: up
 *  to explicit markers and the end of the last message, found from the ends of messages. everything: the whole prompt,
 *  found in steps of so many tokens, or at the ends of its pieces. units: up to the end of a prompt, of its answer, and of
 *  what two prompts were seen to have in common, in whole units of so many tokens. */
export type Keeping =
  | { readonly kind: "markers"; readonly lookBack: number; readonly most: number; readonly singly?: true }
  | { readonly kind: "endings"; readonly lookBack: number }
  | { readonly kind: "everything"; readonly step: number | "piece" }
  | { readonly kind: "units"; readonly step: number };

/** Nobody has to ask for it, and no client can say where it ends. */
export const isUnasked = ({ kind }: Keeping): boolean => kind === "everything" || kind === "units";

export type Rules = {
  readonly protocol: XrayProtocol;
  /** In the order in which the provider renders them. */
  readonly levels: readonly Level[];
  /** The first level that a change of a parameter loses. */
  readonly loses: Readonly<Partial<Record<Parameter, Level>>>;
  /** Texts of values that say no more than their absence. */
  readonly defaults: Readonly<Partial<Record<Parameter, string>>>;
  readonly keeping: Keeping;
  readonly defaultTtl: Ttl | undefined; // undefined: not published
  /** A longer lifetime that a client could have asked for. */
  readonly longerTtl?: Ttl;
  /** When others can read an entry: from the first event of the answer on, or once that is complete and so long after. */
  readonly readable: "first-event" | "complete";
  readonly settleMs: number;
  /** It states what it wrote: a request that it says nothing of has written nothing. */
  readonly statesWrites: boolean;
  readonly minimum: number;
  /** Published for this model, or by its vendor for all; else it is what most have. */
  readonly isMinimumKnown: boolean;
  readonly stripsThinking: boolean;
  readonly facts: ModelFacts | undefined;
};
