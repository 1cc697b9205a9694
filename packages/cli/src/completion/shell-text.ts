/** Texts and kinds as the scripts of the shells write them.
 *  Invariant: whatever a description contains, it stays one quoted word of the script and nothing of it is run.
 *  Elsewhere: the scripts (bash.ts, zsh.ts, fish.ts). */

import type { CompletionRow, ValueKind } from "./table.ts";

/** For bash and zsh: nothing is special between single quotes except the quote itself. */
export const quoted = (text: string): string => `'${oneLine(text).replaceAll("'", `'\\''`)}'`;

/** For fish, where a backslash escapes a quote and itself between single quotes. */
export const quotedForFish = (text: string): string => `'${oneLine(text).replace(/[\\']/g, "\\$&")}'`;

const oneLine = (text: string): string => text.replace(/[\s\p{Cc}]+/gu, " ").trim();

/** A word that no shell splits, expands or globs. */
const PLAIN = /^[\w.,@%+/-]+$/;

/** `session`, `file`, or `=a|b` for fixed choices. */
export const kindText = (kind: ValueKind): string =>
  typeof kind === "string" ? kind : `=${kind.filter((word) => PLAIN.test(word)).join("|")}`;

/** The kinds of the arguments in order; a star after the last one means that it may be repeated. */
export const argumentsText = ({ arguments: kinds }: CompletionRow): string =>
  kinds.map(({ kind, isRepeated }) => `${kindText(kind)}${isRepeated ? "*" : ""}`).join(" ");

/** `--output:file --provider:=a|b`: the options that take a value. */
export const valuesText = ({ options }: CompletionRow): string =>
  options.flatMap(({ flag, value }) => (value === undefined ? [] : [`${flag}:${kindText(value)}`])).join(" ");
