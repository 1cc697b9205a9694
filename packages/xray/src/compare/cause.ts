/** Every reason why a request did not read what another wrote, with words for people.
 *  Invariant: a closed union; each reason that can be avoided says how, in one line.
 *  Elsewhere: finding it (differences.ts, diff.ts), the reasons of a session's own requests (@prefork/runtime). */

import type { Ttl } from "@prefork/wire";
import type { Parameter } from "./rules.ts";
import type { Volatile } from "./volatile.ts";

type Changed = { readonly from: string; readonly to: string };

export type XrayCause =
  /** It read all that both have in common. `unless`: nobody counted, and the model may not keep so short a prompt. */
  | { readonly kind: "none"; readonly unless?: "too-short" }
  | ({ readonly kind: "model" | "speed" | "thinking" | "effort" } & Changed)
  /** `unpublished`: nobody has said whether it is in the key, and the whole prompt is counted. */
  | ({ readonly kind: "tool-choice"; readonly unpublished?: true } & Changed)
  /** The key that the client itself gave to its cache. `routes`: it only chooses which server is asked. */
  | ({ readonly kind: "cache-key"; readonly name: string; readonly routes?: true } & Changed)
  /** Any other parameter that is in the key: betas, service tier, output format, context management … */
  | ({ readonly kind: "parameter"; readonly name: Parameter } & Changed)
  | { readonly kind: "tools-added" | "tools-removed"; readonly tools: readonly string[] }
  | { readonly kind: "tools-reordered"; readonly tool: string; readonly from: number; readonly to: number }
  /** `key` is the path below the tool, such as `input_schema.properties.path`; `was` is its earlier name. */
  | {
      readonly kind: "tools-changed";
      readonly tool: string;
      readonly key: string;
      readonly was?: string;
      readonly volatile?: Volatile;
    }
  | { readonly kind: "system"; readonly change: "edited" | "added" | "removed"; readonly volatile?: Volatile }
  | { readonly kind: "images"; readonly change: "added" | "removed" | "changed"; readonly count: number }
  /** `message` is its index: of the first request if it is there no more, else of the second. */
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
  /** New words of the user made the model leave out its earlier thinking, and with it all that stood after it. */
  | { readonly kind: "thinking-dropped" }
  /** No marker where one was needed: in the first request to write, or in the second to find it. `form` is said where it
   *  is not `cache_control`: a breakpoint of OpenAI's, or one that no field there takes and a developer message does. */
  | {
      readonly kind: "marker-missing";
      readonly in: "a" | "b";
      readonly at: string;
      readonly form?: "breakpoint" | "developer-message";
    }
  /** Where units are kept, and none ends in or at what both have in common. */
  | { readonly kind: "unit-missing"; readonly at: string }
  /** So many blocks lie between the entry and the next marker, with runs of calls and results counted as one or singly; or
   *  so many ends of messages. */
  | {
      readonly kind: "look-back-exceeded";
      readonly positions: { readonly runs: number; readonly singly: number };
      readonly of?: "endings";
    }
  | { readonly kind: "below-minimum"; readonly minimum: number; readonly tokens: number }
  /** `longest`: no longer lifetime can be asked for. */
  | { readonly kind: "expired"; readonly ttl: Ttl; readonly unusedMs: number; readonly longest?: true }
  /** Sent before the entry could be read: before the answer began, unless `until` says what else had to happen. */
  | { readonly kind: "raced"; readonly afterMs: number; readonly until?: "complete" | "built" }
  /** By the rules it should have read more. */
  | { readonly kind: "unexplained" };

/** In a few words, for titles. */
export const xrayCauseWords = (cause: XrayCause): string => {
  switch (cause.kind) {
    case "none":
      return cause.unless === undefined ? "nothing lost" : "perhaps nothing lost";
    case "parameter":
      return `${spoken(cause.name)} changed`;
    case "cache-key":
      return cause.routes ? `${spoken(cause.name)} changed` : "cache key changed";
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

const spoken = (name: string): string => name.replaceAll("_", " ");

/** In a sentence without its full stop. */
export const xrayCauseSentence = (cause: XrayCause): string => {
  switch (cause.kind) {
    case "none":
      return cause.unless === undefined
        ? "all that both have in common was read"
        : "all that both have in common is read if this model keeps so short a prompt: its minimum is not known";
    case "model":
    case "speed":
    case "thinking":
    case "effort":
      return `${cause.kind} went from ${cause.from} to ${cause.to}, and everything before the answer is kept by it`;
    case "tool-choice":
      return (
        `the tool_choice went from ${cause.from} to ${cause.to}, ` +
        (cause.unpublished
          ? "which may lose everything: this provider does not say whether it keeps a prompt by it"
          : "which loses the messages; tools and system stay")
      );
    case "cache-key":
      return (
        `the ${cause.name} went from ${cause.from} to ${cause.to}: ` +
        (cause.routes
          ? "it may have been sent to another server, that has not kept it"
          : "each key has a cache of its own")
      );
    case "parameter":
      return `the parameter ${cause.name} went from ${cause.from} to ${cause.to}, which is in the key`;
    case "tools-added":
      return `the ${toolsNamed(cause.tools)} ${cause.tools.length === 1 ? "was" : "were"} added`;
    case "tools-removed":
      return `the ${toolsNamed(cause.tools)} ${cause.tools.length === 1 ? "is" : "are"} no longer there`;
    case "tools-reordered":
      return `the same tools in another order: ${cause.tool} went from place ${cause.from} to ${cause.to}`;
    case "tools-changed":
      if (cause.was !== undefined) return `the tool ${cause.was} was renamed to ${cause.tool}`;
      return `the tool ${cause.tool} changed${cause.key === "" ? "" : ` at ${cause.key}`}${looksLike(cause)}`;
    case "system":
      return cause.change === "edited"
        ? `the system text changed${looksLike(cause)}`
        : `a block of the system text was ${cause.change}`;
    case "images":
      return imagesSentence(cause);
    case "message-edited":
      return `${messageName(cause)} ${EDITS[cause.change]}${looksLike(cause)}`;
    case "message-inserted":
    case "message-removed":
      return (
        `${cause.count === 1 ? `${messageName(cause)} was` : `${cause.count} messages from ${messageName(cause)} on were`} ` +
        `${cause.kind === "message-inserted" ? "put in between" : "left out"}`
      );
    case "thinking-dropped":
      return "new words of the user made the model leave out its earlier thinking";
    case "marker-missing":
      return cause.in === "a"
        ? `nothing was kept up to ${cause.at}: the first request has no ${MARKER_WORDS[cause.form ?? "marker"]} there`
        : `the second request has no ${MARKER_WORDS[cause.form ?? "marker"]} ` +
            `${cause.form === undefined ? "at or behind" : "at"} ${cause.at}, where the entry ends`;
    case "unit-missing":
      return (
        `this provider keeps a prompt up to its end, to the end of its answer and to where two prompts were seen to part: ` +
        `nothing ended at ${cause.at} yet`
      );
    case "look-back-exceeded":
      return (
        (cause.of === "endings"
          ? `the entry lies ${cause.positions.runs} ends of messages before the last one of the second request`
          : `the entry lies ${positions(cause.positions)} blocks before the next marker of the second request`) +
        ", and 20 are looked at"
      );
    case "below-minimum":
      return `${cause.tokens} tokens are not kept: this model caches from ${cause.minimum}`;
    case "expired":
      return `the entry had expired: ${minutes(cause.unusedMs)} without use, and it is kept for ${cause.ttl}`;
    case "raced":
      return cause.afterMs < 0
        ? "sent before the request that wrote it"
        : `sent ${cause.afterMs} ms after the writer, before its entry could be read`;
    case "unexplained":
      return "the same prompt, and by the rules it should have been read";
  }
};

const MARKER_WORDS = { marker: "marker", breakpoint: "breakpoint", "developer-message": "breakpoint" } as const;

const EDITS = { edited: "changed", "block-added": "has a further block", "block-removed": "lost a block" } as const;

const list = (names: readonly string[]): string =>
  names.length > 4 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");

const toolsNamed = (names: readonly string[]): string => `tool${names.length === 1 ? "" : "s"} ${list(names)}`;

const messageName = ({ message, role }: { readonly message: number; readonly role: string }): string =>
  `message ${message}${role === "" ? "" : ` (${role})`}`;

const looksLike = ({ volatile }: { readonly volatile?: Volatile }): string =>
  volatile === undefined ? "" : `: ${VOLATILE_WORDS[volatile]} is written in it`;

const imagesSentence = ({ change, count }: Extract<XrayCause, { kind: "images" }>): string =>
  change === "changed"
    ? "another image stands in its place"
    : `${count === 1 ? "an image was" : `${count} images were`} ${change}, which loses all messages wherever it stands`;

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

/** What would avoid it; undefined where nothing is wrong. */
export const xrayAdvice = (cause: XrayCause): string | undefined => {
  switch (cause.kind) {
    case "none":
      return undefined;
    case "model":
      return "go on with the same model: another one reads nothing of its cache";
    case "speed":
    case "thinking":
    case "effort":
      return `keep ${cause.kind} as it was for as long as the conversation lives`;
    case "tool-choice":
      return "keep tool_choice as it was, and say in words which tool is wanted";
    case "cache-key":
      return `send the same ${cause.name} with all requests that begin alike: of one conversation, of its forks`;
    case "parameter":
      return `send the same ${cause.name} for as long as the conversation lives`;
    case "tools-added":
      return "declare all tools from the first request on, or reach late ones through one constant tool";
    case "tools-removed":
      return "leave the tool in the list, and refuse its calls instead";
    case "tools-reordered":
      return "sort the tools by name before they are sent";
    case "tools-changed":
      if (cause.was !== undefined) return "leave a tool its name for as long as the conversation lives";
      return cause.volatile
        ? `take ${VOLATILE_WORDS[cause.volatile]} out of the tool; say it in the last message`
        : "render tools once and keep the result, with its order of keys";
    case "system":
      return cause.volatile
        ? `take ${VOLATILE_WORDS[cause.volatile]} out of the system text; say it in the last message`
        : "render the system text once and keep it; say what is new at the end of the messages";
    case "images":
      return cause.change === "changed"
        ? "leave what was sent as it is, and send the new image at the end"
        : "send images in a conversation of their own, or expect its messages to be written again";
    case "message-edited":
      return cause.volatile
        ? `leave what was sent as it is: write ${VOLATILE_WORDS[cause.volatile]} once, or only in the last message`
        : "leave what was sent as it is, and say what is new at the end";
    case "message-inserted":
      return "put it at the end: what stands before must stay as it was sent";
    case "message-removed":
      return "leave it in, or cut rarely and much: each cut has everything behind it written again";
    case "thinking-dropped":
      return "this model does so by rule; inside a tool loop put the words into the last tool result";
    case "marker-missing":
      return markerAdvice(cause);
    case "unit-missing":
      return "from the third request with this beginning on it is read; sooner, if one request ends exactly there";
    case "look-back-exceeded":
      return cause.of === "endings"
        ? "put a breakpoint on a message that stays, and keep it where it is"
        : "keep the last request's marker where it was when a turn brings more than 20 blocks";
    case "below-minimum":
      return "none needed: so short a prompt costs little";
    case "expired":
      return cause.ttl === "5m" && !cause.longest
        ? "where pauses are longer than five minutes, markers of 1h cost less"
        : "send something before the entry expires, or accept the price of the pause";
    case "raced":
      return RACED_ADVICE[cause.until ?? "begun"];
    case "unexplained":
      return "a provider may drop entries early or route elsewhere; if it is frequent, ask for its diagnostics";
  }
};

const RACED_ADVICE = {
  begun: "send one request first, and the others when its answer has begun",
  complete: "send one request first, and the others when its answer is complete",
  built: "let some seconds pass after an answer, or let it be: whoever comes later reads it",
} as const;

const markerAdvice = ({ in: request, at, form }: Extract<XrayCause, { kind: "marker-missing" }>): string => {
  if (form === "developer-message")
    return `${at} takes no breakpoint: say it as a developer message, and put a breakpoint on the end of that`;
  if (form === "breakpoint")
    return request === "a"
      ? `put a breakpoint (prompt_cache_breakpoint) at ${at}: the last part that the next request repeats`
      : `put a breakpoint (prompt_cache_breakpoint) at ${at}, just there`;
  return request === "a"
    ? `put a marker (cache_control) at ${at}: the last block that the next request repeats`
    : `put a marker (cache_control) at ${at} or behind it, at most 20 blocks`;
};
