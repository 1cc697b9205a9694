/** Every reason why a request read less than was once written for it, with words for people.
 *  Invariant: a closed union; each reason that can be avoided says how.
 *  Elsewhere: finding it (ledger.ts), laying it out (the command line). */

import type { Ttl } from "@prefork/wire";
import type { EpochReason } from "../events.ts";

export type ShortfallCause =
  /** It read all that was there. */
  | { readonly kind: "none" }
  | { readonly kind: "first-request" }
  | { readonly kind: "new-epoch"; readonly reason: EpochReason }
  | { readonly kind: "expired"; readonly ttl: Ttl; readonly unusedMs: number }
  | { readonly kind: "below-minimum"; readonly minimum: number; readonly tokens: number }
  /** Sent before the leader's entry could be read. */
  | { readonly kind: "raced"; readonly leader: string }
  | { readonly kind: "look-back-exceeded"; readonly positions: number }
  | { readonly kind: "changed-bytes"; readonly segment: number; readonly path: string }
  /** New words of the user made the model leave out its earlier thinking, and with it all that stood after it. */
  | { readonly kind: "thinking-dropped" }
  /** What was stored by name was no longer there, and the request was sent whole. */
  | { readonly kind: "entry-gone"; readonly name: string }
  /** The request before it wrote nothing, though its prompt was long enough to be cached. */
  | { readonly kind: "not-written"; readonly tokens: number }
  /** What was written stood in the cache of another endpoint. */
  | { readonly kind: "other-address"; readonly from: string; readonly to: string }
  /** The rehearsal engine keeps its cache in the process that it runs in. */
  | { readonly kind: "rehearsal-ended" }
  | { readonly kind: "unexplained" };

/** In two words, for tables. */
export const causeWords = (cause: ShortfallCause): string => {
  switch (cause.kind) {
    case "none":
      return "";
    case "changed-bytes":
      return "bytes changed";
    case "look-back-exceeded":
      return "look-back";
    case "first-request":
    case "new-epoch":
    case "below-minimum":
    case "thinking-dropped":
    case "entry-gone":
    case "not-written":
    case "other-address":
    case "rehearsal-ended":
      return cause.kind.replaceAll("-", " ");
    case "expired":
    case "raced":
    case "unexplained":
      return cause.kind;
  }
};

/** In a sentence without its full stop. */
export const causeSentence = (cause: ShortfallCause): string => {
  switch (cause.kind) {
    case "none":
      return "all that was there was read";
    case "first-request":
      return "nothing had been sent before";
    case "new-epoch":
      return `the context began anew (${cause.reason})`;
    case "expired":
      return `the entry had expired: ${minutes(cause.unusedMs)} without use, and it is kept for ${cause.ttl}`;
    case "below-minimum":
      return `${cause.tokens} tokens are not kept: this model caches from ${cause.minimum}`;
    case "raced":
      return `sent before the entry of ${cause.leader} could be read`;
    case "look-back-exceeded":
      return `the last entry lies ${cause.positions} blocks before the next marker, and 20 are looked at`;
    case "changed-bytes":
      return `the bytes changed at ${cause.path || `segment ${cause.segment}`} (segment ${cause.segment})`;
    case "thinking-dropped":
      return "new words of the user made the model leave out its earlier thinking";
    case "entry-gone":
      return `${cause.name} was no longer there, and the request was sent whole`;
    case "not-written":
      return `the request before it wrote none of its ${cause.tokens} tokens to the cache`;
    case "other-address":
      return `the conversation moved from ${cause.from} to ${cause.to}, whose cache did not know it`;
    case "rehearsal-ended":
      return "the rehearsal engine's cache ended with its process";
    case "unexplained":
      return "same bytes, and the entry should have lived";
  }
};

/** A clock that was set back between two entries is no negative pause. */
const minutes = (ms: number): string => `${(Math.max(0, ms) / 60_000).toFixed(1)} min`;

/** What would avoid it; undefined where nothing is wrong. */
export const adviceFor = (cause: ShortfallCause): string | undefined => {
  switch (cause.kind) {
    case "none":
    case "first-request":
      return undefined;
    case "new-epoch":
      return cause.reason === "model"
        ? "go on with the same model: another one reads nothing of its cache"
        : "sum up less often: it pays once the context is much shorter afterwards";
    case "expired":
      return cause.ttl === "5m"
        ? "where pauses are longer than five minutes, markers of 1h cost less"
        : "send something before the entry expires, or accept the price of the pause";
    case "below-minimum":
      return "none needed: so short a prompt costs little";
    case "raced":
      return "let the leader answer first: a longer wait costs less than a second write";
    case "look-back-exceeded":
      return "fewer blocks in one turn, or a marker between them";
    case "changed-bytes":
      return "leave what was sent as it is, and say what is new at the end";
    case "thinking-dropped":
      return "this model does so by rule; one that keeps its thinking does not lose it";
    case "entry-gone":
      return "leave entries to the session that stored them: it removes them itself";
    case "not-written":
      return "check that the endpoint caches prompts and passes cache_control on";
    case "other-address":
      return "go on at the same address: another one reads nothing of its cache";
    case "rehearsal-ended":
      return "none needed: no provider is asked, and nothing is paid";
    case "unexplained":
      return "a provider may drop entries early or route elsewhere; if it is frequent, ask for its diagnostics";
  }
};
