/** Does every loop of an awk program end?
 *  Invariant: a loop counts towards something that exists (fields, lines, a length, a small number), or removes what it has
 *  matched; its counter is changed nowhere else.
 *  Elsewhere: what may be called at all (awk.ts), and what grows (awk-growth.ts). */

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

type Tokens = readonly AwkToken[];

const MAX_ROUNDS = 1_000_000;

/** The loop's body: up to its own closing brace, or to the brace that encloses the loop. */
const bodyOf = (tokens: Tokens, header: number): Span => {
  let from = header + 1;
  while (tokens[from]?.kind === "newline") from += 1;
  if (textAt(tokens, from) === "{") return { from, to: closingBracket(tokens, from) };
  let depth = 0;
  for (let at = from; at < tokens.length; at += 1) {
    if (textAt(tokens, at) === "{") depth += 1;
    if (textAt(tokens, at) === "}") depth -= 1;
    if (depth < 0) return { from, to: at };
  }
  return { from, to: tokens.length };
};

/** Where a plain variable gets another value, including functions that store into an argument. */
const changesOf = (tokens: Tokens, name: string): readonly number[] =>
  tokens.flatMap((token, at) => {
    // `$i = …` changes a field, not the counter.
    if (token.kind !== "word" || token.text !== name || textAt(tokens, at - 1) === "$") return [];
    const changed = ASSIGNMENT.test(textAt(tokens, at + 1)) || /^(\+\+|--)$/.test(textAt(tokens, at - 1));
    return changed || isStoredInto(tokens, at) ? [at] : [];
  });

/** The target of sub and gsub, or the array of split, match and asort. */
const isStoredInto = (tokens: Tokens, at: number): boolean => {
  if (!/^[,)]$/.test(textAt(tokens, at + 1)) || !/^[,(]$/.test(textAt(tokens, at - 1))) return false;
  let depth = 0;
  for (let before = at - 1; before >= 0; before -= 1) {
    if (textAt(tokens, before) === ")") depth += 1;
    if (textAt(tokens, before) !== "(") continue;
    if (depth === 0) {
      const place = tokens.slice(before, at).filter(({ text: sign }) => sign === ",").length;
      const called = textAt(tokens, before - 1);
      return /^g?sub$/.test(called) ? place >= 2 : /^(split|match|asort)$/.test(called) && place >= 1;
    }
    depth -= 1;
  }
  return false;
};

/** Values that are bounded when the loop starts: fields, lines, lengths, small numbers, counters. */
export const isBounded = (tokens: Tokens, part: Tokens, seen: Set<string> = new Set()): boolean => {
  for (let at = 0; at < part.length; at += 1) {
    const { kind, text: word } = part[at] as AwkToken;
    if (kind === "number" && Number(word) <= MAX_ROUNDS) continue;
    if (kind === "sign" && /^[-+/]$/.test(word)) continue;
    if (kind !== "word") return false;
    if (/^(length|split|index|int)$/.test(word)) {
      if (textAt(part, at + 1) === "(") {
        const end = closingBracket(part, at + 1);
        if (word === "int" && !isBounded(tokens, part.slice(at + 2, end), seen)) return false;
        at = end;
      }
    } else if (!/^(NF|NR|FNR|RSTART|RLENGTH)$/.test(word) && !isCounter(tokens, word, seen)) return false;
  }
  return part.length > 0;
};

/** A variable that only counts in small steps, or is assigned bounded values. Each name is checked once: if it fails, every
 *  expression that uses it fails. */
const isCounter = (tokens: Tokens, name: string, seen: Set<string>): boolean => {
  if (seen.has(name)) return true;
  if (seen.size > 20) return false;
  seen.add(name);
  return changesOf(tokens, name).every((at) => {
    const sign = textAt(tokens, at + 1);
    if (/^(\+\+|--)$/.test(sign) || /^(\+\+|--)$/.test(textAt(tokens, at - 1))) return true;
    if (!/^[-+]?=$/.test(sign)) return false;
    let end = at + 2;
    while (end < tokens.length && tokens[end]?.kind !== "newline" && !/^[;{}]$/.test(textAt(tokens, end))) {
      if (textAt(tokens, end) === "(") end = closingBracket(tokens, end);
      if (textAt(tokens, end) === ")") break;
      end += 1;
    }
    // The last statement may have no terminator.
    return isBounded(tokens, tokens.slice(at + 2, Math.min(end, tokens.length)), seen);
  });
};

/** Whether the body leaves the loop's bound unchanged. */
const leavesBoundAlone = (tokens: Tokens, part: Tokens, body: Span): boolean => {
  const names = part.filter(({ kind }) => kind === "word").map(({ text: word }) => word);
  if (names.some((name) => changesOf(tokens, name).some((at) => isIn(at, body)))) return false;
  return !names.includes("NF") || addsNoField(tokens, body);
};

/** Fields may be changed, but none added: neither by replacing the line nor by assigning one beyond the last. */
const addsNoField = (tokens: Tokens, body: Span): boolean => {
  for (let at = body.from; at <= body.to; at += 1) {
    const word = textAt(tokens, at);
    if (word === "$") {
      const end = textAt(tokens, at + 1) === "(" ? closingBracket(tokens, at + 1) : at + 1;
      const changed = ASSIGNMENT.test(textAt(tokens, end + 1));
      if (changed && (textAt(tokens, at + 1) === "0" || end > at + 1)) return false;
    }
    if (/^g?sub$/.test(word) && tokens[at]?.kind === "word") {
      const inside = topLevel(tokens.slice(at + 2, closingBracket(tokens, at + 1)));
      if (inside.filter((sign) => sign === ",").length < 2 || /\$ 0$/.test(inside.join(" "))) return false;
    }
  }
  return true;
};

/** Accepts `for (i = 1; i <= NF; i++)`, the same counting down, and `for (i = 1; i in list; i++)`. */
const checkForLoop = (tokens: Tokens, open: number): void => {
  const end = closingBracket(tokens, open);
  const parts: AwkToken[][] = [[]];
  for (const token of tokens.slice(open + 1, end)) {
    if (token.text === ";" && token.kind === "sign") parts.push([]);
    else parts.at(-1)?.push(token);
  }
  const [start = [], whole = [], step = []] = parts;
  const body = bodyOf(tokens, end);
  const also = whole.findIndex(({ text: sign }) => sign === "&&");
  const condition = also < 0 ? whole : whole.slice(0, also);
  const name = textAt(step, 0) === "++" || textAt(step, 0) === "--" ? textAt(step, 1) : textAt(step, 0);
  const stepped = step.map(({ text: sign }) => sign).join(" ");
  const by = (sign: string): boolean =>
    stepped.startsWith(`${name} ${sign} `) && /^[1-9]\d{0,5}$/.test(stepped.slice(name.length + sign.length + 2));
  const up = stepped === `${name} ++` || stepped === `++ ${name}` || by("+=");
  const down = stepped === `${name} --` || stepped === `-- ${name}` || by("-=");
  const relation = textAt(condition, 1);
  const bound = condition.slice(2);
  const set =
    start.length === 0 || (textAt(start, 0) === name && textAt(start, 1) === "=" && isBounded(tokens, start.slice(2)));
  const changedInside = changesOf(tokens, name).some((at) => isIn(at, body));
  const ends =
    /^[A-Za-z_]\w*$/.test(name) &&
    parts.length === 3 &&
    textAt(condition, 0) === name &&
    set &&
    !changedInside &&
    !whole.some(({ text: sign }) => sign === "||" || sign === "?" || ASSIGNMENT.test(sign)) &&
    ((up && /^<=?$/.test(relation) && isBounded(tokens, bound) && leavesBoundAlone(tokens, bound, body)) ||
      (down && /^>=?$/.test(relation) && bound.every(({ kind }) => kind === "number") && start.length > 0) ||
      (up && relation === "in" && bound.length === 1 && isOnlyRead(tokens, body, `${textAt(bound, 0)} [ ${name} ]`)));
  if (!ends) refuseAwk("the loop may never end; count to a number, NF, NR or a length: for (i = 1; i <= NF; i++)");
};

/** Reading any other index of the array would create it. */
const isOnlyRead = (tokens: Tokens, body: Span, use: string): boolean => {
  const list = use.split(" ")[0] ?? "";
  for (let at = body.from; at <= body.to; at += 1) {
    if (textAt(tokens, at) !== list) continue;
    const four = tokens.slice(at, at + 4).map(({ text: sign }) => sign);
    if (four.join(" ") !== use) return false;
  }
  return true;
};

/** Accepts `while (match(s, /x/)) { …; s = substr(s, RSTART + RLENGTH) }`, or a counter that is incremented at either end
 *  of the body. */
const checkWhileLoop = (tokens: Tokens, open: number): void => {
  const end = closingBracket(tokens, open);
  const body = bodyOf(tokens, end);
  const header = tokens.slice(open + 1, end);
  const inside = tokens.slice(body.from, body.to).filter(({ kind }) => kind !== "newline");
  if (textAt(inside, inside.length - 1) === ";") inside.pop();
  const skipsSteps = inside.some(({ text: word }) => word === "continue");
  const braces = textAt(tokens, body.from) === "{" && !skipsSteps;
  if (braces && (consumesMatches(header, inside) || incrementsCounter(tokens, header, { body, inside }))) return;
  // `while (i++ < 3)`.
  const [name, raise, relation, ...bound] = header;
  const counts = name?.kind === "word" && raise?.text === "++" && /^<=?$/.test(relation?.text ?? "");
  if (counts && isBounded(tokens, bound) && leavesBoundAlone(tokens, [name, ...bound], body)) return;
  refuseAwk(MAY_NOT_END);
};

const consumesMatches = (header: Tokens, inside: Tokens): boolean => {
  const asked = header.map(({ text: sign }) => sign).join(" ");
  const target = /^match \( (\$ 0|[A-Za-z_]\w*) , /.exec(asked)?.[1];
  const pattern = header.at(-2);
  if (target === undefined || pattern?.kind !== "regex" || header.length !== 5 + target.split(" ").length) return false;
  if (mayMatchEmpty(pattern.text.slice(1, -1))) return false;
  const tail = `${target} = substr ( ${target} , RSTART + RLENGTH )`.split(" ");
  const before = inside.slice(0, -tail.length);
  const ending = inside.slice(-tail.length).map(({ text: sign }) => sign);
  if (ending.join(" ") !== tail.join(" ") || !/^[;{}]$/.test(textAt(before, before.length - 1))) return false;
  return !before.some(({ kind, text: word }, at) => {
    if (kind === "word" && /^(match|sub|gsub|split)$/.test(word)) return true;
    if (word === "$") return ASSIGNMENT.test(textAt(before, at + 2)) || textAt(before, at + 1) === "(";
    return kind === "word" && /^(RSTART|RLENGTH|NF)$/.test(word)
      ? ASSIGNMENT.test(textAt(before, at + 1))
      : changesOf(before, target).length > 0;
  });
};

type Body = { readonly body: Span; readonly inside: Tokens };

const incrementsCounter = (tokens: Tokens, header: Tokens, { body, inside }: Body): boolean => {
  const name = textAt(header, 0);
  const bound = header.slice(2);
  const [at = 0, ...more] = changesOf(tokens, name).filter((change) => isIn(change, body));
  const first = textAt(inside, 1) === name && textAt(inside, 2) === "++" && /^[;\n]$/.test(textAt(tokens, at + 2));
  const last = textAt(inside, inside.length - 2) === name && textAt(inside, inside.length - 1) === "++";
  const apart = /^[;{}]$/.test(textAt(inside, inside.length - 3)) || isLineEnd(tokens, at);
  const counts = header[0]?.kind === "word" && /^<=?$/.test(textAt(header, 1)) && isBounded(tokens, bound);
  return counts && more.length === 0 && (first || (last && apart)) && leavesBoundAlone(tokens, bound, body);
};

/** Whether the previous line has ended, and not with a condition that this line would belong to. */
const isLineEnd = (tokens: Tokens, at: number): boolean =>
  tokens[at - 1]?.kind === "newline" && !/^(\)|else|do|\n)$/.test(textAt(tokens, at - 2));

const MAY_NOT_END = "the loop may never end; use for (i = 1; i <= NF; i++)";

/** The bodies of all loops, or a Refusal if one may not end. */
export const checkAwkLoops = (tokens: Tokens): readonly Span[] => {
  const starts = tokens.flatMap(({ kind, text }, at) => (kind === "word" && /^(for|while|do)$/.test(text) ? [at] : []));
  if (starts.length > 8) refuseAwk("it has more than eight loops");
  let rounds = 1;
  const loops = starts.map((at) => {
    if (textAt(tokens, at) === "do" || textAt(tokens, at + 1) !== "(") return refuseAwk(MAY_NOT_END);
    const end = closingBracket(tokens, at + 1);
    const header = tokens.slice(at + 2, end);
    if (textAt(tokens, at) === "while") checkWhileLoop(tokens, at + 1);
    else if (!(header.length === 3 && textAt(header, 1) === "in" && header[0]?.kind === "word")) {
      checkForLoop(tokens, at + 1);
      const numbers = header.filter(({ kind }) => kind === "number").map(({ text }) => Number(text));
      rounds *= Math.max(1, ...numbers);
    }
    return bodyOf(tokens, end);
  });
  if (rounds > 10 * MAX_ROUNDS) refuseAwk("its loops run too many rounds");
  return loops;
};
