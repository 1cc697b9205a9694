/** The same word written in other ways, all of which bash takes for the same. */

import type { SeededRandom } from "@prefork/testing/chance";

const single = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
const double = (text: string): string => `"${text.replace(/[\\"$`]/g, "\\$&")}"`;
const escaped = (text: string): string => text.replace(/[^\n]/gu, "\\$&").replaceAll("\n", "'\n'");
const ansi = (text: string): string =>
  `$'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\n", "\\n").replaceAll("\t", "\\t")}'`;

const STYLES: readonly ((text: string) => string)[] = [single, double, escaped, ansi];

/** A word in quotes, cut into pieces that are quoted each in its own way. */
export const requoted = (text: string, chance: SeededRandom): string => {
  if (text === "") return chance.one(["''", '""']);
  const letters = [...text];
  const cut = chance.happens(0.5) ? 1 + chance.below(letters.length) : letters.length;
  const parts = [letters.slice(0, cut).join(""), letters.slice(cut).join("")].filter((part) => part !== "");
  return parts
    .map((part) => (/^[\w./-]+$/.test(part) && chance.happens(0.3) ? part : chance.one(STYLES)(part)))
    .join("");
};

/** A command without quotes of its own, with empty quotes or a backslash put somewhere inside its words. */
export const disturbed = (text: string, chance: SeededRandom): string =>
  text.replace(/(?<=\w)(?=\w)/g, () => (chance.happens(0.15) ? chance.one(["''", '""', "\\", "\\\n"]) : ""));
