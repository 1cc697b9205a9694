/** How many tokens of one prompt were already in another one, wherever they are?
 *  Invariant: new content of the second prompt is never counted, shared content is counted once, and an edited piece
 *  counts as repeated if at least half of it is the same.
 *  Elsewhere: why they were not read (verdict.ts). */

import { commonEnd, commonStart } from "./location.ts";
import { fieldText, type PromptPiece } from "./piece.ts";
import { toolName } from "./tool-differences.ts";
import type { KeyOrderRule } from "./values.ts";

export type Repeated = {
  readonly tokens: number;
  /** How many pieces are repeated exactly. */
  readonly exactly: number;
  /** The piece in which the prompts diverge is one of them. */
  readonly first: boolean;
};

const isSettings = ({ kind }: PromptPiece): boolean => kind === "settings";

export const repeatedTokens = (
  ours: readonly PromptPiece[],
  theirs: readonly PromptPiece[],
  rule: KeyOrderRule,
): Repeated => {
  const known = new Map<string, PromptPiece[]>();
  for (const piece of ours.toReversed()) {
    const alreadyThere = known.get(piece.own);
    if (alreadyThere) alreadyThere.push(piece);
    else known.set(piece.own, [piece]);
  }
  const used = new Set<PromptPiece>();
  const fresh: PromptPiece[] = [];
  let [tokens, exactly] = [0, 0];
  for (const piece of theirs) {
    const same = known.get(piece.own)?.pop();
    if (!same) fresh.push(piece);
    else {
      used.add(same);
      tokens += piece.tokens;
      exactly += isSettings(piece) ? 0 : 1;
    }
  }
  const left = ours.filter((piece) => !used.has(piece));
  const cut = recutSystemTokens(left, fresh, rule);
  const isWhole = (piece: PromptPiece): boolean => cut === 0 || !isSystemText(piece);
  const [ourWhole, theirWhole] = [left.filter(isWhole), fresh.filter(isWhole)];
  const edited = [...pairPieces(ourWhole, theirWhole), ...renamedTools(ourWhole, theirWhole)].filter(([one, other]) =>
    areSimilarPieces(one, other, rule),
  );
  return {
    tokens: edited.reduce((sum, [one, other]) => sum + Math.min(one.tokens, other.tokens), tokens + cut),
    exactly,
    first: edited.some(([one, other]) => one === ours[0] && other === theirs[0]),
  };
};

const isSystemText = ({ level, kind }: PromptPiece): boolean => level === "system" && kind === "text";

/** Tokens of a system text that is the same but divided into more or fewer blocks; 0 if the text differs. */
const recutSystemTokens = (
  ours: readonly PromptPiece[],
  theirs: readonly PromptPiece[],
  rule: KeyOrderRule,
): number => {
  const [one, other] = [ours.filter(isSystemText), theirs.filter(isSystemText)];
  if (one.length === other.length || one.length === 0 || other.length === 0) return 0;
  const said = (pieces: readonly PromptPiece[]): string => pieces.map((piece) => textOf(piece, rule)).join("");
  const tokens = (pieces: readonly PromptPiece[]): number => pieces.reduce((sum, piece) => sum + piece.tokens, 0);
  return areSimilar(said(one), said(other)) ? Math.min(tokens(one), tokens(other)) : 0;
};

type PiecePair = readonly [PromptPiece, PromptPiece];

/** Pieces of the same kind in order; tools by name. */
const pairPieces = (ours: readonly PromptPiece[], theirs: readonly PromptPiece[]): readonly PiecePair[] => {
  const sorts = new Map<string, PromptPiece[]>();
  for (const piece of ours) {
    const sort = kindOf(piece);
    const sorted = sorts.get(sort);
    if (sorted) sorted.push(piece);
    else sorts.set(sort, [piece]);
  }
  const taken = new Map<string, number>();
  return theirs.flatMap((piece): readonly PiecePair[] => {
    const sort = kindOf(piece);
    const at = taken.get(sort) ?? 0;
    taken.set(sort, at + 1);
    const partner = sorts.get(sort)?.[at];
    return partner ? [[partner, piece]] : [];
  });
};

/** Tools whose names only one side has, in order. */
const renamedTools = (ours: readonly PromptPiece[], theirs: readonly PromptPiece[]): readonly PiecePair[] => {
  const named = (list: readonly PromptPiece[]): ReadonlySet<string> =>
    new Set(list.flatMap((piece) => (piece.kind === "tool" ? toolName(piece) : [])));
  const [mine, others] = [named(ours), named(theirs)];
  const gone = ours.filter((piece) => piece.kind === "tool" && !others.has(toolName(piece)));
  const come = theirs.filter((piece) => piece.kind === "tool" && !mine.has(toolName(piece)));
  return come.flatMap((piece, index): readonly PiecePair[] => {
    const partner = gone[index];
    return partner ? [[partner, piece]] : [];
  });
};

const kindOf = (piece: PromptPiece): string =>
  `${piece.level}/${piece.role}/${piece.kind}/${piece.kind === "tool" ? toolName(piece) : ""}`;

/** The id of a call says nothing about its content. */
const IDS = new Set(["id", "tool_use_id", "call_id", "tool_call_id"]);

const textOf = ({ fields }: PromptPiece, rule: KeyOrderRule): string =>
  fields
    .filter(({ name }) => !IDS.has(name))
    .map((field) => fieldText(field, rule))
    .join("\n");

/** Two pictures are never similar. */
const areSimilarPieces = (one: PromptPiece, other: PromptPiece, rule: KeyOrderRule): boolean => {
  if (one.kind === "image") return false;
  return areSimilar(textOf(one, rule), textOf(other, rule));
};

const areSimilar = (a: string, b: string): boolean => {
  const start = commonStart(a, b);
  return start + commonEnd(a, b, start) >= Math.max(a.length, b.length) / 2;
};

/** Are both the same again after the characters in which they differ? Otherwise they only begin the same way. */
const endSimilarly = (one: PromptPiece, other: PromptPiece, rule: KeyOrderRule): boolean => {
  const [a, b] = [textOf(one, rule), textOf(other, rule)];
  return a === b || commonEnd(a, b, commonStart(a, b)) >= Math.max(a.length, b.length) / 2;
};

/** The same call, or the result of the same call, with different content: that is an edit and not a new direction. */
const isSameCall = (one: PromptPiece, other: PromptPiece, rule: KeyOrderRule): boolean => {
  const idOf = ({ fields }: PromptPiece): string | undefined => {
    const id = fields.find(({ name }) => IDS.has(name));
    return id && fieldText(id, rule);
  };
  const id = idOf(one);
  return one.kind === other.kind && id !== undefined && id === idOf(other);
};

/** Two conversations diverge: was one edited, or do they continue with different text? Edited, if what followed occurs
 *  again. */
export const isEdited = (ours: readonly PromptPiece[], theirs: readonly PromptPiece[], rule: KeyOrderRule): boolean => {
  const [one, other] = [ours[0], theirs[0]];
  if (!one || !other) return false;
  if (isSameCall(one, other, rule)) return true;
  const { tokens, exactly, first } = repeatedTokens(ours, theirs, rule);
  const blocks = ours.filter((piece) => !isSettings(piece)).length;
  const isTail = one.message === ours.at(-1)?.message && other.message === theirs.at(-1)?.message;
  const paid = theirs.reduce((sum, piece) => sum + piece.tokens, 0);
  if (isTail && tokens < paid / 2) return false;
  if (exactly > 0 && exactly * 4 >= blocks) return true;
  if (!first) return false;
  // Two short questions that resemble each other are two questions.
  if (isTail && one === ours.at(-1) && Math.min(one.tokens, other.tokens) < TYPED_TOKENS) return false;
  return tokens > Math.min(one.tokens, other.tokens) || endSimilarly(one, other, rule);
};

/** More tokens than people would type twice. */
const TYPED_TOKENS = 200;
