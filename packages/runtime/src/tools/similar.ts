/** How alike are two texts, and which of many is most like one?
 *  Invariant: pure; linear in the length of the texts, so that it may be asked of every line of a file.
 *  Elsewhere: who asks: names of arguments and tools (registry.ts), files (read.ts), lines (apply-edits.ts). */

/** Neighbouring letters with their counts, and how many there are. */
type Pairs = { readonly counts: ReadonlyMap<string, number>; readonly total: number };

const pairsOf = (text: string): Pairs => {
  const counts = new Map<string, number>();
  const plain = ` ${text.toLowerCase()} `; // so that first and last letters count
  for (let at = 0; at + 1 < plain.length; at++) {
    const pair = plain.slice(at, at + 2);
    counts.set(pair, (counts.get(pair) ?? 0) + 1);
  }
  return { counts, total: plain.length - 1 };
};

/** From 0 to 1: the share of neighbouring letters that both have. */
const likenessOf = (a: Pairs, b: Pairs): number => {
  let shared = 0;
  for (const [pair, count] of a.counts) shared += Math.min(count, b.counts.get(pair) ?? 0);
  return (2 * shared) / (a.total + b.total);
};

export type Likest = { readonly text: string; readonly at: number };

/** The candidate most like the text, where it is at least `least` alike; of equals the first. */
export const likest = (text: string, candidates: readonly string[], least = 0.5): Likest | undefined => {
  const wanted = pairsOf(text);
  let best: (Likest & { readonly likeness: number }) | undefined;
  for (const [at, candidate] of candidates.entries()) {
    const likeness = likenessOf(wanted, pairsOf(candidate));
    if (likeness >= least && likeness > (best?.likeness ?? 0)) best = { text: candidate, at, likeness };
  }
  return best && { text: best.text, at: best.at };
};

/** All that are alike enough, the likest first. */
export const alike = (text: string, candidates: readonly string[], most: number): readonly string[] => {
  const wanted = pairsOf(text);
  return candidates
    .map((candidate) => ({ candidate, likeness: likenessOf(wanted, pairsOf(candidate)) }))
    .filter(({ likeness }) => likeness >= 0.4)
    .sort((a, b) => b.likeness - a.likeness)
    .slice(0, most)
    .map(({ candidate }) => candidate);
};
