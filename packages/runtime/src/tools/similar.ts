/** How similar are two texts, and which of many is most similar to one?
 *  Invariant: pure; linear in the length of the candidates. Of very many candidates only the first are compared, so that
 *  the lines of any file can be passed.
 *  Elsewhere: who asks: names of arguments and tools (registry.ts), files (read.ts), lines (edit.ts). */

/** Pairs of neighbouring letters with their counts, and the total number of pairs. */
type LetterPairs = { readonly counts: ReadonlyMap<string, number>; readonly total: number };

/** Padded, so that the first and last letters count too. */
const padded = (text: string): string => ` ${text.toLowerCase()} `;

const letterPairsOf = (text: string): LetterPairs => {
  const counts = new Map<string, number>();
  const plain = padded(text);
  for (let at = 0; at + 1 < plain.length; at++) {
    const pair = plain.slice(at, at + 2);
    counts.set(pair, (counts.get(pair) ?? 0) + 1);
  }
  return { counts, total: plain.length - 1 };
};

/** From 0 to 1: the share of letter pairs that both have. */
const similarityOf = (wanted: LetterPairs, candidate: string): number => {
  const plain = padded(candidate);
  const used = new Map<string, number>();
  let shared = 0;
  for (let at = 0; at + 1 < plain.length; at++) {
    const pair = plain.slice(at, at + 2);
    const count = (used.get(pair) ?? 0) + 1;
    if (count > (wanted.counts.get(pair) ?? 0)) continue;
    used.set(pair, count);
    shared += 1;
  }
  return (2 * shared) / (wanted.total + plain.length - 1);
};

/** The total length of the candidates that are compared. */
const MAX_LETTERS = 500_000;

export type SimilarText = { readonly text: string; readonly at: number };

type ScoredText = SimilarText & { readonly similarity: number };

const scoreCandidates = (text: string, candidates: readonly string[], least: number): readonly ScoredText[] => {
  const wanted = letterPairsOf(text.slice(0, MAX_LETTERS));
  const scored: ScoredText[] = [];
  let left = MAX_LETTERS;
  for (const [at, candidate] of candidates.entries()) {
    const total = candidate.length + 1;
    // A candidate that is much shorter or longer cannot be similar enough.
    if (2 * Math.min(total, wanted.total) < least * (total + wanted.total)) continue;
    left -= total;
    if (left < 0) break;
    const similarity = similarityOf(wanted, candidate);
    if (similarity >= least) scored.push({ text: candidate, at, similarity });
  }
  return scored;
};

/** The candidate most similar to the text, if its similarity is at least `least`. The first one wins a tie. */
export const findMostSimilar = (text: string, candidates: readonly string[], least = 0.5): SimilarText | undefined => {
  let best: ScoredText | undefined;
  for (const scored of scoreCandidates(text, candidates, least))
    if (scored.similarity > (best?.similarity ?? 0)) best = scored;
  return best && { text: best.text, at: best.at };
};

/** All candidates that are similar enough, the most similar first. */
export const findSimilar = (text: string, candidates: readonly string[]): readonly string[] =>
  scoreCandidates(text, candidates, 0.4)
    .toSorted((a, b) => b.similarity - a.similarity)
    .map((scored) => scored.text);
