/** Files that may contain secrets, as attributes that keep git from showing what is in them: a change to one of them is told as
 *  a change to a binary file, in every command that compares, logs or searches.
 *  Invariant: each name that may contain secrets is hit, whatever its case.
 *  Elsewhere: where git finds them, over those of the repository (view.ts), options that would show such files all
 *  the same (../bash). */

import { caseInsensitive, secretPatterns } from "../paths/index.ts";

const quoted = (pattern: string): string => `"${pattern}"`;

/** Stands for `-diff`. A later line that takes it back leaves the file as the repository's own attributes have it, which
 *  `!diff` would not. */
const KEY = "prefork-key";

/** Leaves such files out of a search altogether: that one of them contains a text would tell what it contains. */
export const WITHOUT_HIDDEN = `:(exclude,top,attr:${KEY})`;

/** Later lines count over earlier ones. */
const ATTRIBUTES = [
  `[attr]${KEY} -diff`,
  ...secretPatterns.filesUnlessSource.map((name) => `${quoted(caseInsensitive(name))} ${KEY}`),
  ...secretPatterns.placesUnlessSource.map((name) => `${quoted(caseInsensitive(`**/${name}`))} ${KEY}`),
  ...secretPatterns.sources.map((name) => `${quoted(caseInsensitive(name))} !${KEY}`),
  ...secretPatterns.filesAlways.map((name) => `${quoted(caseInsensitive(name))} ${KEY}`),
  ...secretPatterns.templates.map((name) => `${quoted(caseInsensitive(name))} !${KEY}`),
  ...secretPatterns.noTemplates.map((name) => `${quoted(caseInsensitive(name))} ${KEY}`),
  ...secretPatterns.folders.flatMap((name) =>
    // A file of a single name is hit above; patterns of paths take git long.
    [...(name.includes("/") ? [`**/${name}`] : []), `**/${name}/**`].map(
      (path) => `${quoted(caseInsensitive(path))} ${KEY}`,
    ),
  ),
  ...secretPatterns.places.map((name) => `${quoted(`**/${caseInsensitive(name)}`)} ${KEY}`),
  `${quoted(caseInsensitive("*.pub"))} !${KEY}`,
  "",
].join("\n");

/** Git passes over longer lines. */
const LONGEST_LINE = 2_000;

/** git compares bytes, so a letter beyond ASCII, which has another case and other spellings, becomes a star. */
const inAnySpelling = (name: string): string => {
  if (name === "**") return name;
  const plain = name
    .normalize("NFC")
    .replace(/\[[^\]]*\]|[^\0-\x7f]+/g, (part) => (/[^\0-\x7f]/.test(part) ? "*" : part));
  return caseInsensitive(plain.replace(/\*+/g, "*").toLowerCase());
};

/** Hides at least what the pattern names: all that is in a folder above, where the line would be too long. */
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
