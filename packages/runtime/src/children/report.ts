/** What does a fork report, and which files and commits does the report claim? Pure.
 *  Everything that was written is kept as text; what does not have the requested form gets a note and is never
 *  dropped. Words that are not clearly a name count as no claim. Reading takes time linear in the length of the text.
 *  Elsewhere: the form that was requested (fork-messages of @prefork/wire), checking the claims (check-report.ts). */

import type { Report } from "../ports.ts";

export type ReadReport =
  | { readonly kind: "report"; readonly report: Report; readonly text: string }
  | { readonly kind: "text"; readonly text: string; readonly note: string };

const LABELS = ["Scope", "Result", "Key files", "Files changed", "Issues"] as const;
type Label = (typeof LABELS)[number];

const HEADING = /^[ \t]*(?:[*#_-]+[ \t]*)?(Scope|Result|Key files|Files changed|Issues)[*_]*[ \t]*:[*_]*[ \t]?(.*)$/gim;

export const readReport = (text: string): ReadReport => {
  const parts = partsOf(text);
  const scope = parts.get("Scope");
  if (scope === undefined)
    return { kind: "text", text, note: "The report does not begin with Scope: and is given as it is." };
  return {
    kind: "report",
    text,
    report: {
      scope,
      result: parts.get("Result") ?? "",
      keyFiles: pathsIn(parts.get("Key files")),
      filesChanged: pathsIn(parts.get("Files changed")),
      issues: parts.get("Issues") ?? "",
    },
  };
};

/** The text under each heading. The first heading of a name counts. */
const partsOf = (text: string): ReadonlyMap<Label, string> => {
  const found = [...text.matchAll(HEADING)];
  const parts = new Map<Label, string>();
  found.forEach((heading, at) => {
    const label = LABELS.find((one) => one.toLowerCase() === heading[1]?.toLowerCase());
    if (label === undefined || parts.has(label)) return;
    const start = heading.index + heading[0].length;
    const rest = text.slice(start, found[at + 1]?.index ?? text.length);
    parts.set(label, `${heading[2] ?? ""}${rest}`.trim());
  });
  return parts;
};

const NOTHING = /^(none|nothing|n\/a|-)\.?$/i;

/** Splits at line breaks, and at commas outside parentheses. */
const listed = (text: string): readonly string[] => {
  const items: string[] = [];
  let [end, isInside] = [text.length, false];
  for (let at = text.length - 1; at >= 0; at -= 1) {
    const sign = text[at];
    if (sign === ")" || sign === "(") isInside = sign === ")";
    else if (sign === "\n" || (sign === "," && !isInside)) {
      items.push(text.slice(at + 1, end));
      end = at;
    }
  }
  return [...items, text.slice(0, end)].reverse();
};

/** One per line, or several separated by commas. Text after a path is dropped. */
const pathsIn = (text: string | undefined): readonly string[] =>
  listed(text ?? "")
    .map((line) => line.replace(/^[\s*-]+/, "").trim())
    .filter((line) => line !== "" && !NOTHING.test(line))
    .map((line) => /^`([^`]+)`/.exec(line)?.[1] ?? line.split(/\s+[—–(-]|\s{2,}|:\s/)[0]?.trim() ?? line)
    .filter((path) => path !== "");

// --- claimed files -------------------------------------------------------------------------------------------------------

export type ReportClaim = {
  /** As it was written. */
  readonly text: string;
  /** What it may mean: the whole text, or the paths in it. */
  readonly names: readonly string[];
  /** False if it is only words. */
  readonly isName: boolean;
};

/** More claims are not checked. */
export const MOST_CLAIMS = 100;
const MOST_NAME_CHARACTERS = 1_024;
const MOST_NAMES = 5;

export const readFileClaims = ({ filesChanged }: Report): readonly ReportClaim[] =>
  filesChanged.slice(0, MOST_CLAIMS).flatMap((written) => {
    if (written.length > MOST_NAME_CHARACTERS || written.includes("\0")) return [];
    const text = bare(written);
    if (text === "" || isNothing(text) || commitAlone(text)) return [];
    const words = text.split(/\s+/).map(bare);
    if (words.length === 1) return [{ text, names: [text], isName: /[/.]|^\p{Lu}/u.test(text) }];
    const paths = words.filter(isPathAmongWords);
    return [{ text, names: [text, ...paths].slice(0, MOST_NAMES), isName: paths.length > 0 }];
  });

/** The name without Markdown marks around it, and without a full stop or a line number after it. */
const bare = (text: string): string =>
  text
    .trim()
    .replace(/^\[([^\]]*)\]\(.*\)$/s, "$1")
    .replace(/^[`'"*]+|(?<![`'"*,;])[`'"*,;]+$/g, "")
    .replace(/:\d+(?:[-:,]\d+)*$/, "")
    .replace(/(\.\w+)\.$/, "$1");

const isNothing = (text: string): boolean =>
  /^n\/a\b/i.test(text) || (/^(?:no|none|nothing|nil|not|unchanged)\b/i.test(text) && !/\/|\.\w+$/.test(text));

/** A word like `and/or` has a slash too. */
const isPathAmongWords = (word: string): boolean => /\.\w{1,10}$|^\.{0,2}\/.|\/$|\/.*\//.test(word);

// --- commits -----------------------------------------------------------------------------------------------------------

const MOST_COMMITS = 8;
const MOST_TEXT = 100_000;
/** Characters after the word "commit". What follows later is about something else. */
const NEAR = 300;
const wordsOf = (text: string): readonly string[] =>
  text.split(/[\s,;:()[\]`'"#&]+/).map((word) => (word.endsWith(".") ? word.slice(0, -1) : word));
const FILLERS: readonly string[] = ["is", "as", "in", "at", "the", "and", "hash", "id", "sha"];

/** A short hash needs a digit and a letter: a plain number is rarely a commit, and neither is a word like `defaced`. */
const isHash = (word: string): boolean =>
  /^[0-9a-f]{7,64}$/.test(word) && (word.length >= 20 || (/\d/.test(word) && /[a-f]/.test(word)));

const commitAlone = (text: string): boolean => isHash(text.replace(/^commit\s+/i, ""));

/** Hashes after the word "commit", and those under "Files changed", where the form asks for them. */
export const readCommitClaims = (text: string): readonly string[] => {
  const read = text.slice(0, MOST_TEXT);
  const behindTheWord = [...read.matchAll(/\bcommit(?:s|ted)?\b/gi)].flatMap(({ 0: word, index }) => {
    const after = index + word.length;
    return hashesAhead(read.slice(after, after + NEAR));
  });
  return [...new Set([...behindTheWord, ...amongFiles(read)])].slice(0, MOST_COMMITS);
};

const hashesAhead = (text: string): readonly string[] => {
  const words = wordsOf(text).filter((word) => word !== "" && !FILLERS.includes(word.toLowerCase()));
  const end = words.findIndex((word) => !isHash(word));
  return end < 0 ? words : words.slice(0, end);
};

const amongFiles = (text: string): readonly string[] => {
  const start = /^[^\w\n\r\u2028\u2029]*Files changed\b/im.exec(text);
  if (!start) return [];
  const section = text.slice(start.index + start[0].length);
  const end =
    /^[^\w\n\r\u2028\u2029]*(?:Scope|Result|Key files|Issues)\b[*_]*[ \t]*:/im.exec(section)?.index ?? section.length;
  return wordsOf(section.slice(0, end)).filter(isHash);
};
