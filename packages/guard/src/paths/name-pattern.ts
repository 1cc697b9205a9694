/** Does a name fit a part of a file name pattern?
 *  Invariant: takes no longer than name times pattern, whatever the pattern.
 *  Elsewhere: finding names on the disk (../run). */

/** What one place in a pattern takes: any run of letters, or one letter. */
export type PatternToken = "run" | ((letter: string) => boolean);

/** A part of a pattern between slashes: its signs, or its plain text where it has no pattern character. */
export const parsePattern = (part: string): readonly PatternToken[] | string => {
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
      const meant = letters[at] as string;
      plain += meant;
      signs.push((given) => given === meant);
    }
  }
  return matches ? signs : plain;
};

/** `abc`, `a-z`, and `!` or `^` before them for everything else. */
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
  // A set may be long, and is asked of every letter of every name.
  const known = new Map<string, boolean>();
  return (given) => {
    const before = known.get(given);
    if (before !== undefined) return before;
    const answer = ranges.some(([from, to]) => from <= given && given <= to) !== negated;
    known.set(given, answer);
    return answer;
  };
};

/** Counts comparisons, for whoever has many names to compare. */
export type Comparing = { steps: number };

/** When a later sign fails, only the last run can take one letter more: earlier ones would gain nothing by it. */
export const matchesTokens = (
  name: string,
  signs: readonly PatternToken[],
  comparing: Comparing = { steps: 0 },
): boolean => {
  const letters = [...name];
  // A pattern may be as long as a command; one that asks for more letters than there are is not tried.
  if (signs.filter((one) => one !== "run").length > letters.length) return false;
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

/** Does a name fit this part of a pattern? Plain text fits only itself. */
export const fitsPattern = (name: string, part: string): boolean => {
  const signs = parsePattern(part);
  return typeof signs === "string" ? signs === name : matchesTokens(name, signs);
};

/** Letters of either case, for programs that know no other way. */
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
