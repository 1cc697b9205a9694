/** Does a name match one part of a file name pattern?
 *  Invariant: takes time proportional to name length times pattern length at most, whatever the pattern.
 *  Elsewhere: finding names on the disk (../run). */

/** One element of a pattern: a `*`, or a test for one character. */
export type PatternToken = "run" | ((letter: string) => boolean);

export type ParsedPattern = {
  readonly tokens: readonly PatternToken[];
  /** How many characters a name must have at least. */
  readonly least: number;
};

/** The tokens of a pattern without slashes, or its literal text if it has no pattern character. */
export const parsePattern = (part: string): ParsedPattern | string => {
  const letters = [...part];
  const signs: PatternToken[] = [];
  const lastClose = letters.lastIndexOf("]");
  let plain = "";
  let matches = false;
  for (let at = 0; at < letters.length; at += 1) {
    const letter = letters[at] as string;
    const close = letter === "[" && at + 2 <= lastClose ? letters.indexOf("]", at + 2) : -1;
    if (letter === "*" || letter === "?" || close > 0) matches = true;
    if (letter === "*") {
      if (signs.at(-1) !== "run") signs.push("run");
    } else if (letter === "?") signs.push(() => true);
    else if (close > 0) {
      signs.push(readSet(letters.slice(at + 1, close)));
      at = close;
    } else {
      if (letter === "\\" && at + 1 < letters.length) at += 1;
      const literal = letters[at] as string;
      plain += literal;
      signs.push((given) => given === literal);
    }
  }
  return matches ? { tokens: signs, least: signs.filter((one) => one !== "run").length } : plain;
};

/** The content of a set: `abc`, `a-z`, negated by a leading `!` or `^`. */
const readSet = (letters: readonly string[]): ((letter: string) => boolean) => {
  const negated = letters[0] === "!" || letters[0] === "^";
  const members = negated ? letters.slice(1) : letters;
  const ranges: (readonly [string, string])[] = [];
  for (let at = 0; at < members.length; at += 1) {
    const from = members[at] as string;
    const to = members[at + 1] === "-" ? members[at + 2] : undefined;
    ranges.push([from, to ?? from]);
    if (to !== undefined) at += 2;
  }
  // A set may be long, and it is checked for every letter of every name.
  const known = new Map<string, boolean>();
  return (given) => {
    const before = known.get(given);
    if (before !== undefined) return before;
    const answer = ranges.some(([from, to]) => from <= given && given <= to) !== negated;
    known.set(given, answer);
    return answer;
  };
};

/** Counts comparisons, for callers that compare many names. */
export type Comparing = { steps: number };

/** When a later token fails, only the last `*` is extended by one character; extending earlier ones could not help. */
export const matchesTokens = (
  name: string,
  { tokens: signs, least }: ParsedPattern,
  comparing: Comparing = { steps: 0 },
): boolean => {
  comparing.steps += 1;
  // A pattern may be as long as a command. One that needs more characters than the name has is not tried.
  if (least > name.length) return false;
  const letters = [...name];
  if (least > letters.length) return false;
  let [at, sign, run, taken] = [0, 0, -1, 0];
  while (at < letters.length) {
    const wanted = signs[sign];
    comparing.steps += 1;
    if (wanted === "run") {
      run = sign;
      taken = at;
      sign += 1;
    } else if (wanted?.(letters[at] as string)) {
      at += 1;
      sign += 1;
    } else if (run >= 0) {
      taken += 1;
      at = taken;
      sign = run + 1;
    } else return false;
  }
  return signs.slice(sign).every((left) => left === "run");
};

/** Whether a name matches this part of a pattern. Literal text matches only itself. */
export const fitsPattern = (name: string, part: string): boolean => {
  const signs = parsePattern(part);
  return typeof signs === "string" ? signs === name : matchesTokens(name, signs);
};

/** Matches letters of either case, for programs that have no option for it. */
export const caseInsensitive = (pattern: string): string => {
  // Every set ends before the last closing bracket. Looking for more after it would take quadratic time.
  const end = pattern.lastIndexOf("]") + 1;
  const eitherCase = (letter: string): string => `[${letter}${letter.toUpperCase()}]`;
  const sets = pattern
    .slice(0, end)
    .replace(/\[([^\]]*)\]|[a-z]/g, (sign: string, set: string | undefined) =>
      set === undefined
        ? eitherCase(sign)
        : `[${set.replace(/[a-z]-[a-z]|[a-z]/g, (letters) => letters + letters.toUpperCase())}]`,
    );
  return sets + pattern.slice(end).replace(/[a-z]/g, eitherCase);
};
