/** Files that may contain secrets, as attributes that keep git from showing their contents: git reports a change to one of them as
 *  a change to a binary file, in every command that compares, logs or searches.
 *  Invariant: every name that may contain secrets matches, in upper or lower case.
 *  Elsewhere: placing them over the repository's own (view.ts), options that would show such files anyway (../bash). */

import { caseInsensitive, secretPatterns } from "../paths/index.ts";

const quoted = (pattern: string): string => `"${pattern}"`;

/** Stands for `-diff`. A later line that takes it back leaves the file as the repository's own attributes have it, which
 *  `!diff` would not. */
const KEY = "prefork-key";

/** Leaves such files out of a search altogether: that one of them contains a text would tell what it contains. */
export const WITHOUT_HIDDEN = `:(exclude,top,attr:${KEY})`;

/** Later lines override earlier ones. */
const ATTRIBUTES = [
  `[attr]${KEY} -diff`,
  ...secretPatterns.filesUnlessSource.map((name) => `${quoted(caseInsensitive(name))} ${KEY}`),
  ...secretPatterns.placesUnlessSource.map((name) => `${quoted(caseInsensitive(`**/${name}`))} ${KEY}`),
  ...secretPatterns.sources.map((name) => `${quoted(caseInsensitive(name))} !${KEY}`),
  ...secretPatterns.filesAlways.map((name) => `${quoted(caseInsensitive(name))} ${KEY}`),
  ...secretPatterns.templates.map((name) => `${quoted(caseInsensitive(name))} !${KEY}`),
  ...secretPatterns.noTemplates.map((name) => `${quoted(caseInsensitive(name))} ${KEY}`),
  ...secretPatterns.folders.flatMap((name) =>
    // A file with a single name matches above; git is slow with patterns of paths.
    [...(name.includes("/") ? [`**/${name}`] : []), `**/${name}/**`].map(
      (path) => `${quoted(caseInsensitive(path))} ${KEY}`,
    ),
  ),
  ...secretPatterns.places.map((name) => `${quoted(`**/${caseInsensitive(name)}`)} ${KEY}`),
  `${quoted(caseInsensitive("*.pub"))} !${KEY}`,
  "",
].join("\n");

/** git ignores longer lines. */
const LONGEST_LINE = 2_000;

/** git compares bytes, so a letter outside ASCII, which has other cases and encodings, becomes a star. */
const inAnySpelling = (name: string): string => {
  if (name === "**") return name;
  const plain = name
    .normalize("NFC")
    .replace(/\[[^\]]*\]|[^\0-\x7f]+/g, (part) => (/[^\0-\x7f]/.test(part) ? "*" : part));
  return caseInsensitive(plain.replace(/\*+/g, "*").toLowerCase());
};

/** Hides at least what the pattern names: if the line would be too long, everything in a parent folder. */
const withheldLine = (pattern: string): string => {
  const names = pattern.split("/").map(inAnySpelling);
  for (let end = names.length; end > 0; end -= 1) {
    const path = [...names.slice(0, end), ...(end < names.length ? ["**"] : [])].join("/");
    const line = `${quoted(path)} ${KEY}\n`;
    if (Buffer.byteLength(line) <= LONGEST_LINE) return line;
  }
  return `* ${KEY}\n`;
};

/** The lines of a file of attributes. `withheld`: more patterns, from the top of a repository. */
export const attributesFor = (withheld: readonly string[] = []): string =>
  [ATTRIBUTES, ...withheld.map(withheldLine)].join("");
