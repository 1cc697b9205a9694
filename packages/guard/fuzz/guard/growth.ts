/** Texts that grow: a part of a command repeated, nested or listed ten times as often.
 *  Invariant: the same seed gives the same texts; a pair differs only in how often the part stands there. */

import type { SeededRandom } from "@prefork/testing/chance";

/** A text with the part so often that it has about this length. */
export type Growing = (length: number) => string;

const times = (part: string, room: number): string =>
  part === "" ? "" : part.repeat(Math.max(1, Math.floor(room / part.length)));

const repeated = (text: string, from: number, to: number): Growing => {
  const part = text.slice(from, to);
  return (length) => text.slice(0, from) + times(part, length - text.length) + text.slice(from);
};

const PAIRS: readonly (readonly [string, string])[] = [
  ...([
    ["(", ")"],
    ["[", "]"],
    ["{", "}"],
    ["'", "'"],
    ['"', '"'],
    ["$(", ")"],
    ["`", "`"],
    ["[[ ", " ]]"],
    ["\\(", "\\)"],
    ["[:", ":]"],
  ] as const),
];

const SIGNS: readonly string[] = [
  ..." \t\n.,:;=+-*?/\\|&!<>()[]{}'\"`$%@#~^0aeg_",
  ...[
    "[]",
    "[:",
    ":]",
    "\\]",
    "{}",
    "[:\\]",
    "*a",
    "?*",
    "../",
    "\\\n",
    "--",
    "-e",
    " -n",
    "a=",
    "((",
    "))",
    " | ls",
    "; ",
    "b+",
  ],
];

/** A way to let a command grow. */
export const growing = (text: string, chance: SeededRandom): Growing => {
  const at = chance.below(text.length + 1);
  switch (chance.below(6)) {
    case 0: {
      // A word.
      const words = [...text.matchAll(/\S+\s*/g)];
      const word = words.length > 0 ? chance.one(words) : undefined;
      return word
        ? repeated(text, word.index, word.index + word[0].length)
        : repeated(`${text} a`, text.length, text.length + 2);
    }
    case 1:
      return repeated(text, at, Math.min(text.length, at + 1 + chance.below(8)) || 1);
    case 2: {
      const sign = chance.one(SIGNS);
      return (length) => text.slice(0, at) + times(sign, length - text.length) + text.slice(at);
    }
    case 3: {
      const [open, close] = chance.one(PAIRS);
      const to = at + chance.below(text.length + 1 - at);
      return (length) => {
        const room = (length - text.length) / 2;
        return text.slice(0, at) + times(open, room) + text.slice(at, to) + times(close, room) + text.slice(to);
      };
    }
    case 4: {
      const [first, second] = [chance.one(SIGNS), chance.one(SIGNS)];
      return (length) => text.slice(0, at) + times(first + second, length - text.length) + text.slice(at);
    }
    default: {
      // Two parts that grow together: what one of them leaves open the other may try again.
      const later = at + chance.below(text.length + 1 - at);
      const [first, second] = [chance.one(SIGNS), chance.one(SIGNS)];
      return (length) => {
        const room = (length - text.length) / 2;
        return text.slice(0, at) + times(first, room) + text.slice(at, later) + times(second, room) + text.slice(later);
      };
    }
  }
};
