/** How similar are two texts, and which of many is most similar to one?
 *  Invariant: pure; linear in the length of the texts, so that every line of a file can be compared.
 *  Elsewhere: who asks: names of arguments and tools (registry.ts), files (read.ts), lines (edit.ts). */

/** Pairs of neighbouring letters with their counts, and the total number of pairs. */
type LetterPairs = { readonly counts: ReadonlyMap<string, number>; readonly total: number };

const letterPairsOf = (text: string): LetterPairs => {
  const counts = new Map<string, number>();
  const plain = ` ${text.toLowerCase()} `; // so that the first and last letters count too
  for (let at = 0; at + 1 < plain.length; at++) {
    const pair = plain.slice(at, at + 2);
    counts.set(pair, (counts.get(pair) ?? 0) + 1);
  }
  return { counts, total: plain.length - 1 };
};

/** From 0 to 1: the share of letter pairs that both have. */
const similarityOf = (a: LetterPairs, b: LetterPairs): number => {
  let shared = 0;
  for (const [pair, count] of a.counts) shared += Math.min(count, b.counts.get(pair) ?? 0);
  return (2 * shared) / (a.total + b.total);
};

export type SimilarText = { readonly text: string; readonly at: number };

/** The candidate most similar to the text, if its similarity is at least `least`. The first one wins a tie. */
export const findMostSimilar = (text: string, candidates: readonly string[], least = 0.5): SimilarText | undefined => {
  const wanted = letterPairsOf(text);
  let best: (SimilarText & { readonly similarity: number }) | undefined;
  for (const [at, candidate] of candidates.entries()) {
    const similarity = similarityOf(wanted, letterPairsOf(candidate));
    if (similarity >= least && similarity > (best?.similarity ?? 0)) best = { text: candidate, at, similarity };
  }
  return best && { text: best.text, at: best.at };
};

/** All candidates that are similar enough, the most similar first. */
export const findSimilar = (text: string, candidates: readonly string[], most: number): readonly string[] => {
  const wanted = letterPairsOf(text);
  return candidates
    .map((candidate) => ({ candidate, similarity: similarityOf(wanted, letterPairsOf(candidate)) }))
    .filter(({ similarity }) => similarity >= 0.4)
    .sort((a, b) => b.similarity - a.similarity)
    .slice(0, most)
    .map(({ candidate }) => candidate);
};
