/** Every reason why a request did not read what another one wrote, with explanations for people.
 *  Invariant: a closed union; each avoidable reason says in one line how to avoid it.
 *  Elsewhere: finding the reason (differences.ts, verdict.ts), the reasons for a session's own requests
 *  (@prefork/runtime). */

import type { Ttl } from "@prefork/wire";
import type { Parameter } from "./rules.ts";
import type { Volatile } from "./volatile.ts";

export type Changed = { readonly from: string; readonly to: string };

export type XrayCause =
  /** It read everything that both have in common. `unless`: no provider counted the tokens, and the model may not cache
   *  such a short prompt. */
  | { readonly kind: "none"; readonly unless?: "too-short" }
  | ({ readonly kind: "model" | "speed" | "thinking" | "effort" } & Changed)
  /** `unpublished`: the vendor does not say whether it is in the key, so the whole prompt counts as lost. */
  | ({ readonly kind: "tool-choice"; readonly unpublished?: true } & Changed)
  /** The cache key that the client itself set. `routes`: it only chooses the server. */
  | ({ readonly kind: "cache-key"; readonly name: string; readonly routes?: true } & Changed)
  /** Any other parameter that is in the key: betas, service tier, output format, context management … */
  | ({ readonly kind: "parameter"; readonly name: Parameter } & Changed)
  | { readonly kind: "tools-added" | "tools-removed"; readonly tools: readonly string[] }
  | { readonly kind: "tools-reordered"; readonly tool: string; readonly from: number; readonly to: number }
  /** `key` is the path inside the tool, such as `input_schema.properties.path`; `was` is its earlier name. */
  | {
      readonly kind: "tools-changed";
      readonly tool: string;
      readonly key: string;
      readonly was?: string;
      readonly volatile?: Volatile;
    }
  | { readonly kind: "system"; readonly change: "edited" | "added" | "removed"; readonly volatile?: Volatile }
  | { readonly kind: "images"; readonly change: "added" | "removed" | "changed"; readonly count: number }
  /** `message` is its index in the first request if it no longer exists, otherwise in the second. */
  | {
      readonly kind: "message-edited";
      readonly message: number;
      readonly role: string;
      readonly change: "edited" | "block-added" | "block-removed";
      readonly volatile?: Volatile;
    }
  | {
      readonly kind: "message-inserted" | "message-removed";
      readonly message: number;
      readonly role: string;
      readonly count: number;
    }
  /** A new user message made the model drop its earlier thinking, and everything after it. */
  | { readonly kind: "thinking-dropped" }
  /** A marker is missing: in the first request, to write the entry, or in the second, to find it. `form` is set if it
   *  is not `cache_control`: an OpenAI breakpoint, or one that this field cannot carry but a developer message can. */
  | {
      readonly kind: "marker-missing";
      readonly in: "a" | "b";
      readonly at: string;
      readonly form?: "breakpoint" | "developer-message";
    }
  /** The provider keeps units, and none of them ends within what both have in common. */
  | { readonly kind: "unit-missing"; readonly at: string }
  /** How many blocks are between the entry and the next marker, counting runs of calls and results as one or each block
   *  separately; or how many message ends. */
  | {
      readonly kind: "look-back-exceeded";
      readonly positions: { readonly runs: number; readonly singly: number };
      readonly of?: "endings";
    }
  | { readonly kind: "below-minimum"; readonly minimum: number; readonly tokens: number }
  /** `longest`: no longer lifetime is available. */
  | { readonly kind: "expired"; readonly ttl: Ttl; readonly unusedMs: number; readonly longest?: true }
  /** Sent before the entry could be read: before the answer began, unless `until` names a later moment. */
  | { readonly kind: "raced"; readonly afterMs: number; readonly until?: "complete" | "built" }
  /** According to the rules it should have read more. */
  | { readonly kind: "unexplained" };

/** A few words, for titles. */
export const xrayCauseWords = (cause: XrayCause): string => {
  switch (cause.kind) {
    case "none":
      return cause.unless === undefined ? "nothing lost" : "perhaps nothing lost";
    case "parameter":
      return `${withSpaces(cause.name)} changed`;
    case "cache-key":
      return cause.routes ? `${withSpaces(cause.name)} changed` : "cache key changed";
    case "model":
    case "speed":
    case "thinking":
    case "effort":
    case "tool-choice":
      return `${cause.kind.replace("-", " ")} changed`;
    case "system":
      return cause.change === "edited" ? "system changed" : `system block ${cause.change}`;
    case "images":
      return `images ${cause.change}`;
    default:
      return cause.kind.replaceAll("-", " ");
  }
};

const withSpaces = (name: string): string => name.replaceAll("_", " ");

/** One sentence without its full stop. */
export const xrayCauseSentence = (cause: XrayCause): string => {
  switch (cause.kind) {
    case "none":
      return cause.unless === undefined
        ? "everything that both have in common was read"
        : "everything that both have in common is read if this model caches such a short prompt; its minimum is unknown";
    case "model":
    case "speed":
    case "thinking":
    case "effort":
      return `${cause.kind} went from ${cause.from} to ${cause.to}, and it is in the cache key of the whole prompt`;
    case "tool-choice":
      return (
        `the tool_choice went from ${cause.from} to ${cause.to}, ` +
        (cause.unpublished
          ? "which may lose the whole prompt: this provider does not say whether it is in the cache key"
          : "which loses the cached messages; tools and system stay cached")
      );
    case "cache-key":
      return (
        `the ${cause.name} went from ${cause.from} to ${cause.to}: ` +
        (cause.routes
          ? "the request may have gone to another server, which has not cached the prompt"
          : "each key has its own cache")
      );
    case "parameter":
      return `the parameter ${cause.name} went from ${cause.from} to ${cause.to}, which is in the cache key`;
    case "tools-added":
      return `the ${toolsNamed(cause.tools)} ${cause.tools.length === 1 ? "was" : "were"} added`;
    case "tools-removed":
      return `the ${toolsNamed(cause.tools)} ${cause.tools.length === 1 ? "was" : "were"} removed`;
    case "tools-reordered":
      return `the same tools in a different order: ${cause.tool} moved from position ${cause.from} to ${cause.to}`;
    case "tools-changed":
      if (cause.was !== undefined) return `the tool ${cause.was} was renamed to ${cause.tool}`;
      return `the tool ${cause.tool} changed${cause.key === "" ? "" : ` at ${cause.key}`}${volatileHint(cause)}`;
    case "system":
      return cause.change === "edited"
        ? `the system text changed${volatileHint(cause)}`
        : `a block of the system text was ${cause.change}`;
    case "images":
      return imagesSentence(cause);
    case "message-edited":
      return `${messageName(cause)} ${EDITS[cause.change]}${volatileHint(cause)}`;
    case "message-inserted":
    case "message-removed":
      return (
        `${cause.count === 1 ? `${messageName(cause)} was` : `${cause.count} messages from ${messageName(cause)} on were`} ` +
        `${cause.kind === "message-inserted" ? "inserted" : "removed"}`
      );
    case "thinking-dropped":
      return "a new user message made the model drop its earlier thinking";
    case "marker-missing":
      return cause.in === "a"
        ? `nothing was cached up to ${cause.at}: the first request has no ${MARKER_WORDS[cause.form ?? "marker"]} there`
        : `the second request has no ${MARKER_WORDS[cause.form ?? "marker"]} ` +
            `${cause.form === undefined ? "at or after" : "at"} ${cause.at}, where the entry ends`;
    case "unit-missing":
      return (
        `this provider caches a prompt up to its end, up to the end of its answer, and up to where two prompts diverged: ` +
        `no entry ended at ${cause.at} yet`
      );
    case "look-back-exceeded":
      return (
        (cause.of === "endings"
          ? `the entry is ${cause.positions.runs} message ends before the last one of the second request`
          : `the entry is ${positions(cause.positions)} blocks before the next marker of the second request`) +
        ", and only 20 are searched"
      );
    case "below-minimum":
      return `${cause.tokens} tokens are too few: this model caches from ${cause.minimum}`;
    case "expired":
      return `the cache entry had expired: unused for ${minutes(cause.unusedMs)}, with a lifetime of ${cause.ttl}`;
    case "raced":
      return cause.afterMs < 0
        ? "sent before the request that wrote it"
        : `sent ${cause.afterMs} ms after the writer, before its entry could be read`;
    case "unexplained":
      return "same bytes, and the cache entry should still have been alive";
  }
};

const MARKER_WORDS = { marker: "marker", breakpoint: "breakpoint", "developer-message": "breakpoint" } as const;

const EDITS = { edited: "changed", "block-added": "has an additional block", "block-removed": "lost a block" } as const;

const listNames = (names: readonly string[]): string =>
  names.length > 4 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");

const toolsNamed = (names: readonly string[]): string => `tool${names.length === 1 ? "" : "s"} ${listNames(names)}`;

const messageName = ({ message, role }: { readonly message: number; readonly role: string }): string =>
  `message ${message}${role === "" ? "" : ` (${role})`}`;

const volatileHint = ({ volatile }: { readonly volatile?: Volatile }): string =>
  volatile === undefined ? "" : `: it contains ${VOLATILE_WORDS[volatile]}`;

const imagesSentence = ({ change, count }: Extract<XrayCause, { kind: "images" }>): string =>
  change === "changed"
    ? "a different image is in its place"
    : `${count === 1 ? "an image was" : `${count} images were`} ${change}, which loses all cached messages wherever it is`;

const positions = ({ runs, singly }: { readonly runs: number; readonly singly: number }): string =>
  runs === singly ? `${runs}` : `${runs} (${singly} where every call and result counts)`;

const minutes = (ms: number): string => `${(ms / 60_000).toFixed(1)} min`;

const VOLATILE_WORDS: Readonly<Record<Volatile, string>> = {
  date: "a date",
  time: "a time",
  id: "an id",
  hash: "a hash",
  path: "a path",
  number: "a number",
};

/** How to avoid it; undefined if nothing is wrong. */
export const xrayAdvice = (cause: XrayCause): string | undefined => {
  switch (cause.kind) {
    case "none":
      return undefined;
    case "model":
      return "stay with the same model: another one cannot read its cache";
    case "speed":
    case "thinking":
    case "effort":
      return `keep ${cause.kind} unchanged for the whole conversation`;
    case "tool-choice":
      return "keep tool_choice unchanged, and name the tool you want in the text";
    case "cache-key":
      return `send the same ${cause.name} with all requests that share a beginning, such as a conversation and its forks`;
    case "parameter":
      return `send the same ${cause.name} for the whole conversation`;
    case "tools-added":
      return "declare all tools from the first request on, or reach late ones through one constant tool";
    case "tools-removed":
      return "leave the tool in the list, and refuse its calls instead";
    case "tools-reordered":
      return "sort the tools by name before they are sent";
    case "tools-changed":
      if (cause.was !== undefined) return "keep a tool's name for the whole conversation";
      return cause.volatile
        ? `remove ${VOLATILE_WORDS[cause.volatile]} from the tool; put it in the last message`
        : "render tools once and keep the result, including its key order";
    case "system":
      return cause.volatile
        ? `remove ${VOLATILE_WORDS[cause.volatile]} from the system text; put it in the last message`
        : "render the system text once and keep it; add new information at the end of the messages";
    case "images":
      return cause.change === "changed"
        ? "leave what was sent unchanged, and send the new image at the end"
        : "send images in a separate conversation, or expect the messages to be written again";
    case "message-edited":
      return cause.volatile
        ? `leave what was sent unchanged: write ${VOLATILE_WORDS[cause.volatile]} once, or only in the last message`
        : "leave what was sent unchanged, and add what is new at the end";
    case "message-inserted":
      return "add it at the end: everything before must stay as it was sent";
    case "message-removed":
      return "leave it in, or cut rarely and a lot at once: after each cut everything behind it is written again";
    case "thinking-dropped":
      return "this model always does so; inside a tool loop, put the text into the last tool result";
    case "marker-missing":
      return markerAdvice(cause);
    case "unit-missing":
      return "it is read from the third request with this beginning on; sooner if one request ends exactly there";
    case "look-back-exceeded":
      return cause.of === "endings"
        ? "put a breakpoint on a message that stays, and keep it where it is"
        : "keep the last request's marker where it was when a turn adds more than 20 blocks";
    case "below-minimum":
      return "none needed: such a short prompt costs little";
    case "expired":
      return cause.ttl === "5m" && !cause.longest
        ? "if pauses are longer than five minutes, 1h markers cost less"
        : "send a keep-alive before the entry expires, or accept the cost of the pause";
    case "raced":
      return RACED_ADVICE[cause.until ?? "begun"];
    case "unexplained":
      return "a provider may drop entries early or route elsewhere; if it is frequent, ask for its diagnostics";
  }
};

const RACED_ADVICE = {
  begun: "send one request first, and the others when its answer has begun",
  complete: "send one request first, and the others when its answer is complete",
  built: "wait a few seconds after an answer, or ignore it: later requests read the entry",
} as const;

const markerAdvice = ({ in: request, at, form }: Extract<XrayCause, { kind: "marker-missing" }>): string => {
  if (form === "developer-message")
    return `${at} cannot carry a breakpoint: send it as a developer message with a breakpoint at its end`;
  if (form === "breakpoint")
    return request === "a"
      ? `put a breakpoint (prompt_cache_breakpoint) at ${at}: the last part that the next request repeats`
      : `put a breakpoint (prompt_cache_breakpoint) at ${at}, exactly there`;
  return request === "a"
    ? `put a marker (cache_control) at ${at}: the last block that the next request repeats`
    : `put a marker (cache_control) at ${at} or at most 20 blocks after it`;
};
