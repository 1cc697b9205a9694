/** Could a pattern match the empty string? A loop that removes what it matched would then never end.
 *  Invariant: "no" is certain; whatever is not understood counts as yes. The pattern is never run, so the check takes no longer
 *  than reading it. */

/** Escapes that may match no character: anchors, boundaries, back-references. */
const ZERO_WIDTH = /[bBAzZGyY<>`'1-9kgKQE]/;

/** Quantifiers that allow zero times. */
const ALLOWS_ZERO = /[*?]|\{0*(,|\})/;

const QUANTIFIER = /(?:[*+?]|\{\d{0,9}(?:,\d{0,9})?\})[?+]*/y;
/** A named class inside a set: `[:alpha:]`. */
const NAMED = /\[([:.=])[\w-]{1,20}\1\]/y;

/** The index after the bracketed set that opens at `from`, or -1 if its end is uncertain. */
const endOfSet = (pattern: string, from: number): number => {
  let at = from + 1;
  if (pattern[at] === "^") at += 1;
  if (pattern[at] === "]") at += 1;
  for (; at < pattern.length; at += 1) {
    if (pattern[at] === "]") return at + 1;
    if (pattern[at] === "\\") at += 1;
    else if (pattern[at] === "[" && /[:.=]/.test(pattern[at + 1] ?? "")) {
      NAMED.lastIndex = at;
      const named = NAMED.exec(pattern)?.[0];
      if (named === undefined) return -1;
      at += named.length - 1;
    }
  }
  return -1;
};

export const mayMatchEmpty = (pattern: string): boolean => {
  let at = 0;
  const quantified = (mayBeEmpty: boolean): boolean => {
    QUANTIFIER.lastIndex = at;
    const found = QUANTIFIER.exec(pattern)?.[0] ?? "";
    at += found.length;
    return mayBeEmpty || ALLOWS_ZERO.test(found);
  };
  /** Reads one element; true if it may match the empty string. */
  const part = (depth: number): boolean => {
    const letter = pattern[at] as string;
    at += 1;
    if (letter === "\\") {
      at += 1;
      return quantified(ZERO_WIDTH.test(pattern[at - 1] ?? "b"));
    }
    if (letter === "[") {
      const end = endOfSet(pattern, at - 1);
      at = end < 0 ? pattern.length : end;
      return quantified(end < 0);
    }
    if (letter !== "(") return quantified(/[\^$*+?{]/.test(letter));
    // Groups other than (?:…) look around or change the meaning of the rest.
    const plain = pattern[at] !== "?" || pattern[at + 1] === ":";
    if (pattern[at] === "?" && plain) at += 2;
    const empty = choice(depth + 1);
    at += 1;
    return quantified(empty || !plain);
  };
  const choice = (depth: number): boolean => {
    if (depth > 50) {
      at = pattern.length;
      return true;
    }
    let any = false;
    let all = true;
    while (at < pattern.length && pattern[at] !== ")") {
      if (pattern[at] === "|") {
        any ||= all;
        all = true;
        at += 1;
      } else if (!part(depth)) all = false;
    }
    return any || all;
  };
  return choice(0) || at < pattern.length;
};
