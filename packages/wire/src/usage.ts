/** What a request used, in parts that never overlap.
 *  Invariant: plain + read + all writes = the prompt's tokens, whatever the provider's own fields mean.
 *  Elsewhere: reading a provider's fields (protocols/), money (prices.ts). */

import type { Ttl } from "./request.ts";

export type Usage = {
  /** Prompt tokens neither read from nor written to a cache. */
  readonly plain: number;
  readonly read: number;
  /** Tokens written to the cache, by the lifetime that was paid for. */
  readonly written: Readonly<Partial<Record<Ttl, number>>>;
  /** Everything the model produced, thinking included. */
  readonly output: number;
  /** The share of `output` that was thinking, where the provider tells. */
  readonly thinking?: number;
  /** How many of these tokens the provider did not report, or not as numbers: counted from what was sent and received. */
  readonly estimated?: number;
};

export const noUsage: Usage = { plain: 0, read: 0, written: {}, output: 0 };

export const writtenTokens = (usage: Usage): number =>
  Object.values(usage.written).reduce((sum, tokens) => sum + tokens, 0);

export const promptTokens = (usage: Usage): number => usage.plain + usage.read + writtenTokens(usage);

/** What `a` has beyond `b`, a part of it. */
export const lessUsage = (a: Usage, b: Usage): Usage => {
  const less = (had: number, taken: number): number => Math.max(0, had - taken);
  const ttls = Object.entries(a.written) as [Ttl, number][];
  return {
    plain: less(a.plain, b.plain),
    read: less(a.read, b.read),
    written: Object.fromEntries(ttls.map(([ttl, tokens]) => [ttl, less(tokens, b.written[ttl] ?? 0)])),
    output: less(a.output, b.output),
    ...(a.thinking === undefined ? {} : { thinking: less(a.thinking, b.thinking ?? 0) }),
    ...estimatedPart(less(a.estimated ?? 0, b.estimated ?? 0)),
  };
};

export const addUsage = (a: Usage, b: Usage): Usage => {
  const written: Partial<Record<Ttl, number>> = { ...a.written };
  for (const [ttl, tokens] of Object.entries(b.written) as [Ttl, number][]) written[ttl] = (written[ttl] ?? 0) + tokens;
  const thinking = (a.thinking ?? 0) + (b.thinking ?? 0);
  return {
    plain: a.plain + b.plain,
    read: a.read + b.read,
    written,
    output: a.output + b.output,
    ...(a.thinking === undefined && b.thinking === undefined ? {} : { thinking }),
    ...estimatedPart((a.estimated ?? 0) + (b.estimated ?? 0)),
  };
};

/** Absent where everything was reported. */
export const estimatedPart = (tokens: number): Pick<Usage, "estimated"> => (tokens > 0 ? { estimated: tokens } : {});

/** On the high side: JSON takes about three and a half bytes a token, prose more. */
export const BYTES_PER_TOKEN = 3;

/** `usage` with estimates in place of what no answer can lack: a prompt has tokens, and so has content.
 *  `content`: bytes of it that arrived. */
export const completeUsage = (
  usage: Usage,
  { prompt, content }: { readonly prompt: number; readonly content: number },
): Usage => {
  const plain = promptTokens(usage) === 0 ? prompt : 0;
  const output = usage.output === 0 ? Math.ceil(content / BYTES_PER_TOKEN) : 0;
  if (plain + output === 0) return usage;
  const estimated = (usage.estimated ?? 0) + plain + output;
  return { ...usage, plain: usage.plain + plain, output: usage.output + output, estimated };
};
