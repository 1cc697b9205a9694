/** What is known of a request beside its body: when it was sent, what its provider counted.
 *  Invariant: parts of a usage never overlap, whoever's words they were in; what is not stated stays absent.
 *  Elsewhere: what it changes (footing.ts). */

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
  /** As a provider states it will do too. */
  readonly usage?: Usage;
  /** When it was sent, in milliseconds of one clock for all requests. */
  readonly startedAt?: number;
  /** When its answer began, and when it was complete: from one or the other on others can read what it wrote. Never, if
   *  it broke off. */
  readonly firstEventAt?: number;
  readonly endedAt?: number;
  /** Where the body does not name it: as the address said that it was sent to. */
  readonly model?: string;
  /** Compared only where both requests state them. */
  readonly betas?: readonly string[];
};

/** What a caller states, whoever's words its usage is in. */
export const statedFacts = (sent: SentFacts, name: string): SentFacts => {
  if (sent.usage === undefined) return sent;
  const usage = readUsage(sent.usage as unknown as Json);
  if (usage) return { ...sent, usage };
  throw new InputError(
    `${name}: its usage must be { plain, read, written, output } or a usage as its provider stated it`,
  );
};

/** A usage as Anthropic, OpenAI (both formats), DeepSeek, Gemini or this package states it; undefined for anything else. */
export const readUsage = (value: Json | undefined): Usage | undefined => {
  if (!isObject(value)) return undefined;
  return ownUsage(value) ?? FORMATS.find(({ figures }) => figures.some((name) => isFigure(value[name])))?.read(value);
};

/** Each format by a figure that only it has, in the order in which they are tried: OpenAI's `input_tokens` is a total,
 *  Anthropic's is what its cache figures leave over. */
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
