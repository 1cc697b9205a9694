/** How many of a provider's tokens are there up to a position in a prompt?
 *  Invariant: the first request's reported usage measures everything it contained, however dense the rest of the second
 *  is; only new content is measured by the second request's usage. Without any report, one estimated token counts as
 *  one.
 *  Elsewhere: estimates (count.ts), what is measured (lookup.ts, verdict.ts). */

import { promptTokens, writtenTokens } from "@prefork/wire";
import { breakpointsOf } from "./entries.ts";
import type { Prompt } from "./piece.ts";
import { isAutomatic } from "./rules.ts";
import type { SentFacts } from "./sent.ts";

export type Measure = {
  /** The provider's tokens up to this many estimated ones, in the first and in the second prompt. */
  readonly a: (tokens: number) => number;
  readonly b: (tokens: number) => number;
  /** The provider's tokens per estimated one, for content that the second prompt repeats elsewhere. */
  readonly repeated: number;
};

export type MeasureTerms = {
  readonly a: Prompt;
  readonly b: Prompt;
  readonly sent: { readonly a: SentFacts; readonly b: SentFacts };
  /** Estimated tokens that both begin with. */
  readonly common: number;
};

/** Estimated tokens, and the provider's tokens up to there. */
type Point = readonly [estimated: number, stated: number];

export const measureOf = ({ a, b, sent, common }: MeasureTerms): Measure => {
  const own = { a: ratioOf(a, sent.a), b: ratioOf(b, sent.b) };
  const [first, second] = [own.a ?? own.b ?? 1, own.b ?? own.a ?? 1];
  const ours = measured(a, sent.a) ?? ((tokens: number): number => tokens * first);
  // Another model has its own token count.
  if (own.a === undefined || !isOneModel(a, b)) return { a: ours, b: (tokens) => tokens * second, repeated: second };
  const shared = Math.min(common, a.tokens, b.tokens);
  const whole = own.b === undefined ? Number.POSITIVE_INFINITY : b.tokens * own.b;
  const head = Math.min(ours(shared), whole);
  const left = b.tokens - shared;
  const rest = own.b === undefined || left <= 0 ? second : (whole - head) / left;
  const theirs = (tokens: number): number =>
    tokens <= shared ? Math.min(ours(tokens), whole) : head + (tokens - shared) * rest;
  return { a: ours, b: theirs, repeated: a.tokens > 0 ? own.a - ours(0) / a.tokens : own.a };
};

const isOneModel = (a: Prompt, b: Prompt): boolean =>
  a.body.model === b.body.model || (a.rules.facts !== undefined && a.rules.facts.id === b.rules.facts?.id);

const ratioOf = ({ tokens }: Prompt, { usage }: SentFacts): number | undefined =>
  usage && tokens > 0 && promptTokens(usage) > 0 ? promptTokens(usage) / tokens : undefined;

/** A prompt as its own provider counted it: up to its last marker it was read and written, the rest is uncached. */
export const measured = (prompt: Prompt, sent: SentFacts): ((tokens: number) => number) | undefined => {
  const { usage } = sent;
  if (!usage || ratioOf(prompt, sent) === undefined) return undefined;
  const { keeping, statesWrites } = prompt.rules;
  const last = breakpointsOf(prompt).at(-1);
  const marked = last && prompt.pieces[last.index]?.end;
  const isStated = statesWrites && !isAutomatic(keeping) && writtenTokens(usage) > 0;
  const points: readonly Point[] = [
    // A stored entry comes before everything in the body.
    [0, prompt.held ? usage.read : 0],
    ...(isStated && marked ? [[marked, usage.read + writtenTokens(usage)] as const] : []),
    [prompt.tokens, promptTokens(usage)],
  ];
  return (tokens) => interpolate(points, tokens);
};

const interpolate = (points: readonly Point[], tokens: number): number => {
  const next = points.findIndex(([estimated], index) => index > 0 && tokens <= estimated);
  const [from, to] = [points[next - 1], points[next]];
  if (!from || !to) return points.at(-1)?.[1] ?? 0;
  const [x, y] = from;
  return to[0] === x ? y : y + ((tokens - x) / (to[0] - x)) * (to[1] - y);
};
