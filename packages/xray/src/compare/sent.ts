/** What is known about a request besides its body: when it was sent, what its provider counted.
 *  Invariant: the parts of a usage never overlap, in whatever format they were reported; what is not reported stays
 *  absent.
 *  Elsewhere: what it changes (lookup.ts). */

import {
  anthropic,
  gemini,
  InputError,
  type Json,
  type JsonObject,
  openaiResponses,
  type Protocol,
  type Ttl,
  type Usage,
} from "@prefork/wire";
import { isObject, plainChat, SHORTEST_FIRST } from "@prefork/wire/internal";

export type SentFacts = {
  /** A usage in a provider's own format is accepted too. */
  readonly usage?: Usage;
  /** When it was sent, in milliseconds on one clock for all requests. */
  readonly startedAt?: number;
  /** When its answer began, and when it was complete: others can read what it wrote from one of these moments on.
   *  Infinity if it was cut off. */
  readonly firstEventAt?: number;
  readonly endedAt?: number;
  /** The model in the request's address, if the body does not name it. */
  readonly model?: string;
  /** Compared only if both requests have them. */
  readonly betas?: readonly string[];
};

/** The caller's facts, with a usage in any known format. */
export const readStatedFacts = (sent: SentFacts, name: string): SentFacts => {
  if (sent.usage === undefined) return sent;
  const usage = readUsage(sent.usage as unknown as Json);
  if (usage) return { ...sent, usage };
  throw new InputError(
    `${name}: its usage must be { plain, read, written, output } or a usage as its provider stated it`,
  );
};

/** A usage as Anthropic, OpenAI (both formats), DeepSeek, Gemini or this package reports it; undefined for anything
 *  else. */
export const readUsage = (value: Json | undefined): Usage | undefined => {
  if (!isObject(value)) return undefined;
  return ownUsage(value) ?? FORMATS.find(({ figures }) => figures.some((name) => isFigure(value[name])))?.read(value);
};

/** Each format by a figure that only it has, in the order of trying. OpenAI's `input_tokens` is a total; Anthropic's
 *  excludes its cache figures. */
const FORMATS: readonly { readonly figures: readonly string[]; readonly read: Protocol["usage"] }[] = [
  { figures: ["cache_read_input_tokens", "cache_creation_input_tokens"], read: anthropic.usage },
  { figures: ["input_tokens"], read: openaiResponses.usage },
  { figures: ["prompt_tokens"], read: plainChat.usage },
  { figures: ["promptTokenCount"], read: gemini.usage },
];

const isFigure = (value: Json | undefined): value is number =>
  typeof value === "number" && Number.isFinite(value) && value >= 0;

const ownUsage = ({ plain, read, written, output }: JsonObject): Usage | undefined => {
  if (!isFigure(plain) || !isFigure(read)) return undefined;
  const stated = isObject(written) ? Object.entries(written) : [];
  const kept = stated.filter(([ttl, tokens]) => SHORTEST_FIRST.includes(ttl as Ttl) && isFigure(tokens));
  return { plain, read, written: Object.fromEntries(kept), output: isFigure(output) ? output : 0 };
};
