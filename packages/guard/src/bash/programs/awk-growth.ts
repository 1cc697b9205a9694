/** Does the text that an awk program builds stay small?
 *  Invariant: no text is built from two copies of itself, no field far beyond the last is created, and no format pads without
 *  bound.
 *  Elsewhere: whether its loops end (awk-loops.ts). */

import { isBounded } from "./awk-loops.ts";
import {
  ASSIGNMENT,
  type AwkToken,
  closingBracket,
  isIn,
  refuseAwk,
  type Span,
  textAt,
  topLevel,
} from "./awk-tokens.ts";
import { mayMatchEmpty } from "./empty-match.ts";
import { checkRepetition, isWide } from "./program.ts";

type Tokens = readonly AwkToken[];

/** Operators next to a value that is only compared or used as a number. */
const NUMERIC_CONTEXT = /^(\?|==|!=|<|>|<=|>=|~|!~|in|[-+*/%^]|&&|\|\|)$/;

/** The names whose text becomes part of the expression that starts at `from`. */
const namesJoinedFrom = (tokens: Tokens, from: number): readonly string[] => {
  const found: string[] = [];
  for (let at = from; at < tokens.length; at += 1) {
    const { kind, text: word } = tokens[at] as AwkToken;
    if (kind === "newline" || (kind === "sign" && /^[;{}]$/.test(word))) break;
    if (kind === "word" && textAt(tokens, at + 1) === "(") {
      const end = closingBracket(tokens, at + 1);
      // These return numbers, or a substring whose length is given literally.
      const short = word === "substr" && textAt(tokens, end - 2) === "," && Number(textAt(tokens, end - 1)) < 10_000;
      const commas = topLevel(tokens.slice(at + 2, end)).filter((sign) => sign === ",").length;
      if (/^(length|index|int|match|split)$/.test(word) || (short && commas === 2)) {
        at = end;
        continue;
      }
    }
    const index = kind === "word" && textAt(tokens, at + 1) === "[" ? closingBracket(tokens, at + 1) : at;
    const numeric = NUMERIC_CONTEXT.test(textAt(tokens, index + 1)) || /^[-+*/%^]$/.test(textAt(tokens, at - 1));
    if (kind === "word" && !numeric) found.push(word);
    at = index;
    if (word === "$" && !NUMERIC_CONTEXT.test(textAt(tokens, at + 2))) found.push("$");
  }
  return found;
};

type Assignment = { readonly name: string; readonly sources: readonly string[]; readonly at: number };

/** Each assignment with its target and sources. All fields count as one, because each is part of the line. */
const assignmentsOf = (tokens: Tokens): readonly Assignment[] =>
  tokens.flatMap(({ kind, text: word }, at): readonly Assignment[] => {
    if (kind === "word" && word === "split" && textAt(tokens, at + 1) === "(") {
      const comma = tokens.findIndex(({ text: sign }, index) => index > at && sign === ",");
      const of = namesJoinedFrom([...tokens.slice(at + 2, Math.max(comma, at + 2))], 0);
      return [{ name: textAt(tokens, comma + 1), sources: of, at }];
    }
    if (kind !== "sign" || word !== "=") return [];
    let owner = at - 1;
    for (let depth = 0; owner > 0 && /^[\])]$/.test(textAt(tokens, at - 1)); owner -= 1) {
      if (/^[\])]$/.test(textAt(tokens, owner))) depth += 1;
      if (/^[[(]$/.test(textAt(tokens, owner))) depth -= 1;
      if (depth === 0) {
        owner -= 1;
        break;
      }
    }
    const field =
      textAt(tokens, owner) === "$" || (textAt(tokens, owner - 1) === "$" && textAt(tokens, at - 1) !== "]");
    return [{ name: field ? "$" : textAt(tokens, owner), sources: namesJoinedFrom(tokens, at + 1), at }];
  });

/** Text that is built from two copies of itself doubles in each round. Fields are new on every line, so they only grow in
 *  a loop. */
const checkGrowth = (tokens: Tokens, loops: readonly Span[]): void => {
  const signs = tokens.filter(({ kind, text }) => kind === "sign" && text === "=").length;
  if (signs > 40) refuseAwk("it has too many assignments");
  const made = assignmentsOf(tokens);
  const reached = new Map(made.map(({ name }) => [name, allSourcesOf(made, name)]));
  let longest = 1;
  for (const { name, sources: of, at } of made) {
    longest *= Math.max(1, of.filter((part) => reached.has(part)).length);
    if (name === "$" && !loops.some((loop) => isIn(at, loop))) continue;
    if (of.filter((part) => part === name || reached.get(part)?.has(name)).length > 1)
      refuseAwk("text built from two copies of itself grows too fast");
  }
  if (longest > 10_000) refuseAwk("text that is concatenated so often grows too fast");
  tokens.forEach(({ kind, text: word }, at) => {
    if (kind !== "word" || !/^(sub|gsub|gensub)$/.test(word) || !loops.some((loop) => isIn(at, loop))) return;
    const inside = tokens.slice(at + 2, closingBracket(tokens, at + 1));
    const pattern = inside[0];
    const replacement = inside[2];
    const shrinks =
      textAt(inside, 1) === "," &&
      replacement?.kind === "text" &&
      /^[,]?$/.test(textAt(inside, 3)) &&
      (replacement.text === '""' ||
        (/^"[^\\&]"$/.test(replacement.text) &&
          pattern?.kind === "regex" &&
          !mayMatchEmpty(pattern.text.slice(1, -1))));
    if (!shrinks) refuseAwk("in a loop, gsub may only delete text or replace it by one letter");
  });
};

/** All names that a variable is built from, directly or through others. */
const allSourcesOf = (made: readonly Assignment[], name: string): ReadonlySet<string> => {
  const found = new Set<string>();
  const open = [name];
  for (const one of open) {
    for (const { name: owner, sources: of } of made) {
      if (owner !== one) continue;
      for (const part of of) {
        if (!found.has(part)) open.push(part);
        found.add(part);
      }
    }
  }
  return found;
};

/** Assigning a field far beyond the last creates all fields in between. */
const checkFields = (tokens: Tokens): void => {
  tokens.forEach(({ kind, text: word }, at) => {
    if (
      kind === "word" &&
      word === "NF" &&
      textAt(tokens, at - 1) !== "$" &&
      /^[-+*/%^]?=$/.test(textAt(tokens, at + 1))
    ) {
      const small = Number(textAt(tokens, at + 2)) < 10_000 && /^([;}\n]|)$/.test(textAt(tokens, at + 3));
      if (!(small && /^-?=$/.test(textAt(tokens, at + 1))))
        refuseAwk("NF may only be decreased or set to a small number");
    }
    if (kind !== "sign" || word !== "$") return;
    const open = textAt(tokens, at + 1) === "(";
    const end = open ? closingBracket(tokens, at + 1) : at + 1;
    if (!ASSIGNMENT.test(textAt(tokens, end + 1))) return;
    const index = tokens
      .slice(at + 1, end + 1)
      .map(({ text: sign }) => sign)
      .join(" ");
    if (/^\d{1,4}$|^NF$|^\( NF [-+] \d{1,3} \)$/.test(index)) return;
    if (!/^[A-Za-z_]\w*$/.test(index) || !isBounded(tokens, [{ kind: "word", text: index }]))
      refuseAwk('the changed field must be a plain number, NF or a counter: $2 = "x"');
  });
};

/** Formats must be literal, and pad to a width that fits a line. */
const checkFormats = (tokens: Tokens): void => {
  tokens.forEach(({ kind, text: word }, at) => {
    if (kind === "text" || kind === "regex") checkRepetition("awk", word);
    if (kind === "text" && isWide(word)) refuseAwk("a format may have widths of at most four digits: %20s");
    if (kind !== "word" || !/^s?printf$/.test(word)) return;
    const format = textAt(tokens, at + 1) === "(" ? at + 2 : at + 1;
    const plain =
      tokens[format]?.kind === "text" &&
      (/^[,);}]$/.test(textAt(tokens, format + 1)) || /^(newline|undefined)$/.test(String(tokens[format + 1]?.kind)));
    if (!plain) refuseAwk(`${word} takes a quoted format`);
  });
};

export const checkAwkGrowth = (tokens: Tokens, loops: readonly Span[]): void => {
  checkGrowth(tokens, loops);
  checkFields(tokens);
  checkFormats(tokens);
};
