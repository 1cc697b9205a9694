/** Which changes does a clause of a prompt ask for: replace, rename, append, create, remember, fork?
 *  Invariant: text that is written to a file comes from the prompt, where it is marked (backticks, quotes, a fence); nothing
 *  is made up, and a clause without marked text returns undefined.
 *  Elsewhere: clauses that only read (reading-moves.ts), how a change is made (work.ts). */

import type { Change, Move } from "./moves.ts";
import { isMarkedPath, isWholePlace, looksLikePath, type Masked, SPAN, textOfWord, WORD } from "./spans.ts";

const pattern = (source: string): RegExp => new RegExp(source.replaceAll("WORD", WORD).replaceAll("SPAN", SPAN), "i");

const FILES = "((?:the\\s+file\\s+|file\\s+|both\\s+)?WORD(?:(?:\\s*,\\s*|\\s+and\\s+|\\s*,\\s*and\\s+)WORD)*)";
const EVERY = /\b(?:everywhere|every (?:occurrence|time)|all (?:occurrences|of them)|each (?:occurrence|time))\b/i;

/** The files that a clause names; empty unless each of them clearly is a file. */
const filesIn = (text: string, masked: Masked): readonly string[] => {
  const words = text.split(/\s*,\s*(?:and\s+)?|\s+and\s+|\s+/).filter((word) => !/^(?:the|file|both|)$/i.test(word));
  const paths = words.map((word) => textOfWord(word, masked));
  const fits = (path: string, index: number): boolean =>
    looksLikePath(path) || (new RegExp(SPAN).test(words[index] ?? "") && !isWholePlace(path) && isMarkedPath(path));
  return paths.length > 0 && paths.every(fits) ? paths : [];
};

const changes = (paths: readonly string[], change: Change): readonly Move[] | undefined =>
  paths.length === 0 ? undefined : paths.map((path) => ({ kind: "change", path, change }));

/** `in a.ts, replace …` → `replace … in a.ts`. */
const placeLast = (text: string): string => {
  const found = pattern(
    `^in\\s+${FILES}\\s*[,:]\\s*((?:replace|change|rename|remove|delete|substitute|swap)\\b.*)$`,
  ).exec(text);
  return found === null ? text : `${found[2]} in ${found[1]}`;
};

const replaceMoves = (clause: Masked): readonly Move[] | undefined => {
  const all = EVERY.test(clause.text);
  const text = placeLast(clause.text.replace(EVERY, "").trim()).replace(/\s+/g, " ");
  const words = "(?:the\\s+)?(?:text\\s+|line\\s+|word\\s+|string\\s+|all\\s+)?";
  const replace = pattern(
    `^(?:replace|change|substitute|swap)\\s+${words}(SPAN)\\s+(?:with|by|to|into|for)\\s+${words}(SPAN)\\s+(?:in|inside|of)\\s+${FILES}[.!]?$`,
  ).exec(text);
  if (replace !== null) {
    const change = {
      kind: "replace",
      old: textOfWord(replace[1] ?? "", clause),
      new: textOfWord(replace[2] ?? "", clause),
      all,
    } as const;
    return changes(filesIn(replace[3] ?? "", clause), change);
  }
  const rename = pattern(
    `^rename\\s+(?:the\\s+)?(?:\\w+\\s+)??(WORD)\\s+(?:to|into|as)\\s+(WORD)\\s+(?:in|inside)\\s+${FILES}[.!]?$`,
  ).exec(text);
  if (rename !== null) {
    const change = {
      kind: "replace",
      old: textOfWord(rename[1] ?? "", clause),
      new: textOfWord(rename[2] ?? "", clause),
      all: true,
    } as const;
    return changes(filesIn(rename[3] ?? "", clause), change);
  }
  const remove = pattern(`^(?:remove|delete)\\s+${words}(SPAN)\\s+(?:from|in)\\s+${FILES}[.!]?$`).exec(text);
  if (remove === null) return undefined;
  return changes(filesIn(remove[2] ?? "", clause), {
    kind: "replace",
    old: textOfWord(remove[1] ?? "", clause),
    new: "",
    all,
  });
};

/** A file ends with a line feed, so text without one gets it. */
const asLines = (text: string): string => (text === "" || text.endsWith("\n") ? text : `${text}\n`);

const NAMING = "(?:(?:a|the|this|following|new|text|line|lines|content|contents)\\s+)*";

const writeMoves = (clause: Masked): readonly Move[] | undefined => {
  const text = clause.text.replace(/\s+/g, " ").trim();
  const append = pattern(
    `^(?:append|add)\\s+${NAMING}(SPAN)\\s+(?:to|at|onto)\\s+(?:the\\s+)?(?:end\\s+of\\s+|bottom\\s+of\\s+)?${FILES}[.!]?$`,
  ).exec(text);
  const appendTo = pattern(
    `^(?:append|add)\\s+(?:${NAMING})?to\\s+(?:the\\s+)?(?:end\\s+of\\s+)?${FILES}\\s*:?\\s*(SPAN)[.!]?$`,
  ).exec(text);
  if (append !== null || appendTo !== null) {
    const given = textOfWord(append?.[1] ?? appendTo?.[2] ?? "", clause);
    return changes(filesIn(append?.[2] ?? appendTo?.[1] ?? "", clause), { kind: "append", text: asLines(given) });
  }
  const create = pattern(
    `^(create|write|make|overwrite|save)\\s+(?:(?:a|the|new|file|called|named)\\s+)*(WORD)\\s*(?:,|:)?\\s*(?:with|containing|that says|holding|as)?\\s*${NAMING}:?\\s*(SPAN)[.!]?$`,
  ).exec(text);
  const writeTo = pattern(
    `^(write|save|put)\\s+${NAMING}(SPAN)\\s+(?:to|into|in|as)\\s+(?:(?:a|the|new|file)\\s+)*(WORD)[.!]?$`,
  ).exec(text);
  const [verb, path, given] =
    create !== null ? [create[1], create[2], create[3]] : [writeTo?.[1], writeTo?.[3], writeTo?.[2]];
  if (verb === undefined || path === undefined || given === undefined) return undefined;
  const over = /^overwrite$/i.test(verb);
  return changes(filesIn(path, clause), { kind: "write", text: asLines(textOfWord(given, clause)), over });
};

export const changeMoves = (clause: Masked): readonly Move[] | undefined => replaceMoves(clause) ?? writeMoves(clause);

/** `this; that` → two items. */
const itemsOf = (text: string): readonly string[] =>
  text
    .split(/\s*;\s*|\s*\n\s*/)
    .map((item) =>
      item
        .replace(/^and\s+/i, "")
        .replace(/[.;]$/, "")
        .trim(),
    )
    .filter((item) => item !== "");

/** The list below a clause, whose items replace those in the clause itself. */
export type Below = readonly string[];

export const rememberMove = (text: string, below: Below): Move | undefined => {
  const found =
    /^(?:remember(?:\s+to|\s+that)?|make a plan|plan(?:\s+to|\s+for)?|todo|to-do|note(?:\s+down)?)\b\s*:?\s*([\s\S]*)$/i.exec(
      text,
    );
  if (found === null) return undefined;
  const items = below.length > 0 ? below : itemsOf(found[1] ?? "");
  return items.length === 0 ? undefined : { kind: "remember", items };
};

const FORKING =
  /^(?:(?:please\s+)?(?:do|run|work on|handle)\s+(?:this|these|the following|them)?\s*)?(?:in parallel|fork(?:s| into| off)?|(?:use|with|start|spawn|launch)\s+(?:(?:\d+|two|three|four|five|several|parallel)\s+)*(?:forks?|agents?|sub-?agents?)|delegate)\b([^:]*):?\s*([\s\S]*)$/i;

/** Stands between the words that ask for forks and their tasks. */
const IN_WORKTREES = /^([^:]*?),?\s+in\s+(?:their own\s+|separate\s+|git\s+)*worktrees?\b/i;

export const forkMove = (whole: string, below: Below): Move | undefined => {
  const isolated = IN_WORKTREES.test(whole);
  const found = FORKING.exec(whole.replace(IN_WORKTREES, "$1"));
  if (found === null) return undefined;
  const inline = itemsOf(
    found[2] === "" ? (found[1] ?? "").replace(/^\s*(?:to|and|that|,)\s+/i, "") : (found[2] ?? ""),
  );
  const items = below.length > 0 ? below : inline;
  return items.length === 0 ? undefined : { kind: "fork", items, ...(isolated ? { isolated } : {}) };
};
