/** What a call changes in a file, as coloured lines.
 *  Invariant: signs (+ and -) say the same as colours; the texts come from a model and are made safe here; a diff that takes
 *  too long, or comes before the tools are loaded, compares starts and ends only.
 *  Elsewhere: the one-line form (../state: call-line.ts), tokens and differences (code-tools.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import type { CallBlock } from "../state/index.ts";
import { safeText } from "../state/index.ts";
import { languageOf, paintTokens, tokenLines } from "./code-lines.ts";
import type { CodeToken, DiffRun } from "./code-tools.ts";
import type { Theme } from "./theme.ts";

/** Unchanged lines shown before and after a change. */
const CONTEXT = 3;
/** A line that shares less than this with the old one is shown as a new line. */
const MIN_SHARED = 0.4;

const textOf = (value: Json | undefined): string =>
  typeof value === "string" ? safeText(value).replace(/\n$/, "") : "";

/** Undefined if the call changes no file. */
export const diffOfCall = (
  { tool, args }: Pick<CallBlock, "tool" | "args">,
  theme: Theme,
): readonly string[] | undefined => {
  const language = typeof args.file_path === "string" ? languageOf(args.file_path) : undefined;
  if (tool === "Write") return diffOfTexts("", textOf(args.content), { language, theme });
  if (tool !== "Edit") return undefined;
  const edits = Array.isArray(args.edits) ? args.edits : [args];
  return edits.flatMap((edit, index) => {
    const { old_string, new_string } = (typeof edit === "object" && edit !== null ? edit : {}) as JsonObject;
    return [
      ...(index === 0 ? [] : [theme.faint("⋯")]),
      ...diffOfTexts(textOf(old_string), textOf(new_string), { language, theme }),
    ];
  });
};

type Look = { readonly language: string | undefined; readonly theme: Theme };
type Side = "added" | "removed";

/** Lines that were replaced one by one are compared word by word. */
const diffOfTexts = (before: string, after: string, look: Look): readonly string[] => {
  const [old, now] = [sideOf(before, look), sideOf(after, look)];
  const runs = runsOf(old.lines, now.lines, look.theme);
  const out: string[] = [];
  let [atOld, atNow] = [0, 0];
  for (const [index, { kind, items }] of runs.entries()) {
    if (kind === "same") {
      out.push(...contextLines(items, { isFirst: index === 0, isLast: index === runs.length - 1 }, look.theme));
      [atOld, atNow] = [atOld + items.length, atNow + items.length];
      continue;
    }
    const [previous, next] = [runs[index - 1], runs[index + 1]];
    const other = kind === "removed" ? next : previous;
    const isPair = items.length === 1 && other?.items.length === 1 && other.kind !== kind && other.kind !== "same";
    const words = isPair ? wordsOf(kind, [items[0] ?? "", other.items[0] ?? ""], look.theme) : undefined;
    const [tokens, from] = kind === "removed" ? [old.tokens, atOld] : [now.tokens, atNow];
    for (const [offset, line] of items.entries())
      out.push(changedLine(kind, words ?? tokens[from + offset] ?? [{ text: line }], look.theme));
    if (kind === "removed") atOld += items.length;
    else atNow += items.length;
  }
  return out;
};

const sideOf = (
  text: string,
  { language, theme }: Look,
): { readonly lines: readonly string[]; readonly tokens: readonly (readonly CodeToken[])[] } =>
  text === ""
    ? { lines: [], tokens: [] }
    : { lines: text.split("\n"), tokens: tokenLines(text, theme.hasDiffBackground ? language : undefined, theme) };

const runsOf = (before: readonly string[], after: readonly string[], theme: Theme): readonly DiffRun<string>[] => {
  const runs = theme.code?.diffLines(before, after) ?? compareEnds(before, after);
  // What was removed comes before what replaced it.
  return runs.flatMap((run, index) => {
    const [previous, next] = [runs[index - 1], runs[index + 1]];
    if (run.kind === "added" && next?.kind === "removed") return [next, run];
    return run.kind === "removed" && previous?.kind === "added" ? [] : [run];
  });
};

/** Equal lines at the start and the end are the same; the rest is removed and added. */
const compareEnds = (before: readonly string[], after: readonly string[]): readonly DiffRun<string>[] => {
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const runs: readonly DiffRun<string>[] = [
    { kind: "same", items: before.slice(0, head) },
    { kind: "removed", items: before.slice(head, before.length - tail) },
    { kind: "added", items: after.slice(head, after.length - tail) },
    { kind: "same", items: before.slice(before.length - tail) },
  ];
  return runs.filter(({ items }) => items.length > 0);
};

const contextLines = (
  items: readonly string[],
  { isFirst, isLast }: { readonly isFirst: boolean; readonly isLast: boolean },
  theme: Theme,
): readonly string[] => {
  const shown = (lines: readonly string[]): readonly string[] => lines.map((line) => theme.faint(`  ${line}`));
  const after = isFirst ? [] : items.slice(0, CONTEXT);
  const before = isLast ? [] : items.slice(Math.max(after.length, items.length - CONTEXT));
  const hidden = items.length - after.length - before.length;
  return [...shown(after), ...(hidden > 0 && !isFirst && !isLast ? [theme.faint("  ⋯")] : []), ...shown(before)];
};

type Word = CodeToken & { readonly isChanged?: boolean };

/** Undefined if the lines have little in common. */
const wordsOf = (kind: Side, [line, other]: readonly [string, string], theme: Theme): readonly Word[] | undefined => {
  const [before, after] = kind === "removed" ? [line, other] : [other, line];
  const runs = theme.code?.diffWords(before, after);
  if (!runs) return undefined;
  const own = runs.filter((run) => run.kind === "same" || run.kind === kind);
  const shared = own
    .filter((run) => run.kind === "same")
    .reduce((sum, { items }) => sum + items.join("").trim().length, 0);
  if (shared < line.trim().length * MIN_SHARED) return undefined;
  return own.map((run) => ({ text: run.items.join(""), isChanged: run.kind === kind }));
};

const changedLine = (kind: Side, words: readonly Word[], theme: Theme): string => {
  const [paintLine, paintWord] = kind === "added" ? [theme.added, theme.addedWord] : [theme.removed, theme.removedWord];
  const sign = kind === "added" ? "+ " : "- ";
  return (
    paintLine(sign) +
    words
      .map((word) => {
        const text = paintTokens([word], theme);
        return word.isChanged ? paintWord(text) : paintLine(text);
      })
      .join("")
  );
};
