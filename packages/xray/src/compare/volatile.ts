/** Is the difference something that changes every time: a date, a time, an id, a hash, a path, a number?
 *  Invariant: both sides must be of that kind; the word around the difference decides, not the characters that differ.
 *  Elsewhere: finding the characters (locate.ts), what to do about it (cause.ts). */

export type Volatile = "date" | "time" | "id" | "hash" | "path" | "number";

const DAYS = "mon(?:day)?|tues?(?:day)?|wed(?:nesday)?|thu(?:rs)?(?:day)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?";
const MONTHS =
  "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?";

const PATTERNS: readonly (readonly [Volatile, RegExp])[] = [
  ["date", /(?:^|[^\d])(?:19|20)\d\d[-/.]\d{1,2}[-/.]\d{1,2}|^\d{1,2}[-/.]\d{1,2}[-/.](?:19|20)?\d\d$/],
  ["date", new RegExp(`^(?:${DAYS}|${MONTHS})$`, "i")],
  ["time", /^T?\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?$|^1\d{9}$|^1\d{12}$/],
  ["id", /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i],
  ["path", /^(?:~|\.{0,2})?\/[^\s/]|^[A-Za-z]:\\|[^\s/]+\/[^\s/]+\/[^\s/]+/],
  ["hash", /^(?=[^a-f]*[a-f])(?=\D*\d)[0-9a-f]{7,64}$/],
  ["id", /^[a-z][a-z-]{0,20}[_-](?=[\w-]*\d)[\w-]{6,}$/i],
  ["id", /^(?=\D*\d)(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])[\w-]{12,}$/],
  ["number", /^[#v]?\d+(?:[.,]\d+)*%?$/],
];

export type Differing = {
  readonly before: string;
  readonly text: string;
  readonly after: string;
};

/** Characters of one word: everything between spaces, quotes and brackets. */
const WORD = /[\w:/.\\+~#%-]/;
const LONGEST = 160;

/** Words may continue past the quoted text; both sides are cut at the same point. */
const wordAround = ({ before, text, after }: Differing): string => {
  let from = before.length;
  while (from > 0 && WORD.test(before[from - 1] as string)) from -= 1;
  let to = 0;
  while (to < after.length && WORD.test(after[to] as string)) to += 1;
  return `${before.slice(from)}${text}${after.slice(0, to)}`.replace(/^[:.#-]+|[:.,-]+$/g, "");
};

const sortsOf = (word: string): readonly Volatile[] =>
  word === "" || word.length > LONGEST
    ? []
    : PATTERNS.filter(([, pattern]) => pattern.test(word)).map(([sort]) => sort);

/** In `Monday, 5 January 2026` the number belongs to a date. */
const isDateNumber = ({ before, after }: Differing): boolean =>
  new RegExp(`(?:${MONTHS})\\.? \\d*$`, "i").test(before) ||
  new RegExp(`^\\d*(?:st|nd|rd|th)?,? (?:${MONTHS})\\b`, "i").test(after);

export const volatileIn = (a: Differing, b: Differing): Volatile | undefined => {
  const [one, other] = [wordAround(a), wordAround(b)];
  const theirs = sortsOf(other);
  const sort = sortsOf(one).find((found) => theirs.includes(found));
  if (sort === "number" && (isDateNumber(a) || isDateNumber(b))) return "date";
  return sort ?? dateInside(a.text, b.text);
};

/** Several words differ at once: `Monday, 5 January` and `Tuesday, 6 January`. */
const dateInside = (a: string, b: string): Volatile | undefined => {
  const pattern = new RegExp(`\\b(?:${DAYS}|${MONTHS})\\b|\\b(?:19|20)\\d\\d-\\d\\d-\\d\\d\\b`, "i");
  const short = a.length <= LONGEST && b.length <= LONGEST;
  return short && pattern.test(a) && pattern.test(b) ? "date" : undefined;
};
