/** Which known name did a user probably mean by a mistyped one? Elsewhere: its callers (settings.ts, rules.ts). */

const FARTHEST = 3;

/** The known name with the fewest changed letters, or undefined if none is close. */
export const nearest = (name: string, known: readonly string[]): string | undefined => {
  const wanted = name.toLowerCase();
  const [best] = known
    .map((candidate) => ({ candidate, distance: distance(wanted, candidate.toLowerCase()) }))
    .filter(({ candidate, distance }) => distance <= Math.min(FARTHEST, Math.ceil(candidate.length / 3)))
    .sort((a, b) => a.distance - b.distance);
  return best?.candidate;
};

/** Letters to add, drop, change or swap with their neighbour. */
const distance = (from: string, to: string): number => {
  if (Math.abs(from.length - to.length) > FARTHEST) return FARTHEST + 1;
  let before: readonly number[] = [];
  let row: readonly number[] = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1] ? 0 : 1;
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      next.push(
        Math.min(
          (row[j] ?? 0) + 1,
          (next[j - 1] ?? 0) + 1,
          (row[j - 1] ?? 0) + same,
          swapped ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    before = row;
    row = next;
  }
  return row[to.length] ?? 0;
};
