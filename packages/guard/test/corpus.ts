/** The corpora of commands: one JSON line each, with why it is harmless or not. */

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type CorpusLine = { readonly cmd: string; readonly why: string };

const folder = join(import.meta.dirname, "rules/corpus");

/** All lines of the files whose names match, in the order of names. */
export const corpusLines = (names: string): readonly CorpusLine[] =>
  globSync(names, { cwd: folder })
    .sort()
    .flatMap((name) => readFileSync(join(folder, name), "utf8").trimEnd().split("\n"))
    .map((line) => JSON.parse(line) as CorpusLine);
