/** How do two prompts differ, level by level in prompt order, and where exactly?
 *  Invariant: the first difference in the list is the first one in the rendered prompt; each level is compared with its
 *  counterpart, so that later ones show what else would have to be fixed.
 *  Elsewhere: what a difference costs (diff.ts), tools and parameters (tool-differences.ts, setting-differences.ts). */

import type { XrayCause } from "./cause.ts";
import { gapBefore, type Pair, withinPieces } from "./locate.ts";
import { gapInside, type LocatedDifference, wholeLocation } from "./location.ts";
import type { Prompt, PromptPiece } from "./piece.ts";
import type { Level } from "./rules.ts";
import { settingDifferences } from "./setting-differences.ts";
import { toolDifference } from "./tool-differences.ts";
import { volatileIn } from "./volatile.ts";

export type Difference = LocatedDifference & {
  readonly level: Level;
  readonly cause: XrayCause;
  /** A parameter, not a piece of the prompt. */
  readonly isSetting: boolean;
};

/** All differences, at most one per parameter and one per level. */
export const differencesOf = (pair: Pair): readonly Difference[] =>
  pair.b.rules.levels.flatMap((level) => [
    ...settingDifferences(pair, level).map((found) => ({ level, isSetting: true, ...found })),
    ...pieceDifference(pair, level),
  ]);

/** The pieces of one level, without the parameters that open it. */
const piecesAt = ({ pieces }: Prompt, level: Level): readonly PromptPiece[] =>
  pieces.filter((piece) => piece.level === level && piece.at !== undefined);

const isTool = ({ kind }: PromptPiece): boolean => kind === "tool";

const pieceDifference = (pair: Pair, level: Level): readonly Difference[] => {
  const [ours, theirs] = [piecesAt(pair.a, level), piecesAt(pair.b, level)];
  let index = 0;
  while (index < ours.length && index < theirs.length && ours[index]?.own === theirs[index]?.own) index += 1;
  const [one, other] = [ours[index], theirs[index]];
  const common = { level, isSetting: false } as const;
  if (one?.kind === "tool" || other?.kind === "tool") {
    const found = toolDifference(pair, { ours: ours.filter(isTool), theirs: theirs.filter(isTool) });
    return found ? [{ ...common, ...found }] : [];
  }
  // A conversation that continues, or ends earlier, is not a difference.
  if (!one && !other) return [];
  if (level === "messages" && (!one || !other)) return [];
  const lists = { ours, theirs, index };
  const moved = findListChange(lists);
  const located = placesOf(pair, lists, moved);
  if (one?.at && other?.stripped && !one.stripped) {
    const places = { path: other.stripped.path, a: wholeLocation(one.at), b: wholeLocation(other.stripped) };
    return [{ ...common, cause: { kind: "thinking-dropped" }, ...places }];
  }
  const cause = level === "messages" ? messageCause(lists, moved, located) : systemCause(moved, located);
  const isMessage = cause.kind === "message-inserted" || cause.kind === "message-removed";
  return [{ ...common, cause, ...located, ...(isMessage ? { path: messagePath(located.path) } : {}) }];
};

/** A message as a whole, not its first block. */
const messagePath = (path: string): string => /^\w+\[\d+\]/.exec(path)?.[0] ?? path;

const placesOf = (pair: Pair, { ours, theirs, index }: PieceLists, moved: ListChange): LocatedDifference => {
  const [one, other] = [ours[index], theirs[index]];
  if (moved.kind === "inserted" && other?.at)
    return { path: other.at.path, a: gapBefore(pair.a, ours, index), b: wholeLocation(other.at) };
  if (moved.kind === "removed" && one?.at)
    return { path: one.at.path, a: wholeLocation(one.at), b: gapBefore(pair.b, theirs, index) };
  if (one && other) return withinPieces(one, other, pair);
  return { path: "", a: gapInside(pair.a.body.root), b: gapInside(pair.b.body.root) };
};

const systemCause = (moved: ListChange, located: LocatedDifference): XrayCause => {
  if (moved.kind !== "edited") return { kind: "system", change: moved.kind === "inserted" ? "added" : "removed" };
  const volatile = volatileIn(located.a, located.b);
  return { kind: "system", change: "edited", ...(volatile ? { volatile } : {}) };
};

const messageCause = (lists: PieceLists, moved: ListChange, located: LocatedDifference): XrayCause => {
  const { ours, theirs, index } = lists;
  if (moved.kind === "edited") return editedCause(lists, located);
  const list = moved.kind === "inserted" ? theirs : ours;
  const { message = 0, role = "" } = list[index] ?? {};
  const touched = list.slice(index, index + moved.count);
  if (!areMessages(list, index, moved.count)) {
    const change = moved.kind === "inserted" ? "block-added" : "block-removed";
    return { kind: "message-edited", message, role, change };
  }
  const count = new Set(touched.map((piece) => piece.message)).size;
  return { kind: moved.kind === "inserted" ? "message-inserted" : "message-removed", message, role, count };
};

const editedCause = ({ ours, theirs, index }: PieceLists, located: LocatedDifference): XrayCause => {
  const [one, other] = [ours[index], theirs[index]];
  const inImage = located.path.slice(other?.at?.path.length ?? 0);
  const isImage = (one?.kind === "image" && other?.kind === "image") || /^\.content\[\d+\]\.source\b/.test(inImage);
  if (isImage) return { kind: "images", change: "changed", count: 1 };
  const volatile = volatileIn(located.a, located.b);
  const { message = 0, role = "" } = other ?? {};
  return { kind: "message-edited", message, role, change: "edited", ...(volatile ? { volatile } : {}) };
};

// --- inserted, removed or edited -------------------------------------------------------------------------------------

export type ListChange =
  | { readonly kind: "edited" }
  | { readonly kind: "inserted" | "removed" /** How many pieces. */; readonly count: number };

export type PieceLists = {
  readonly ours: readonly PromptPiece[];
  readonly theirs: readonly PromptPiece[];
  /** Where they first differ. */
  readonly index: number;
};

/** How many pieces of `list` come before the piece that `other` has at `index`; 0 if it does not occur. */
const standsAfter = (list: readonly PromptPiece[], other: readonly PromptPiece[], index: number): number => {
  const sought = other[index];
  const following = other[index + 1];
  const found = list.findIndex(
    ({ own }, at) =>
      at > index &&
      own === sought?.own &&
      (following === undefined || list[at + 1] === undefined || list[at + 1]?.own === following.own),
  );
  return found < 0 ? 0 : found - index;
};

const continuesMessage = (list: readonly PromptPiece[], index: number): boolean =>
  index > 0 && list[index - 1]?.message === list[index]?.message;

/** One side's message continues where the other's ends: by this many pieces. */
const restOfMessage = (list: readonly PromptPiece[], index: number): number => {
  const end = list.findIndex(({ message }, at) => at > index && message !== list[index]?.message);
  return (end < 0 ? list.length : end) - index;
};

export const findListChange = ({ ours, theirs, index }: PieceLists): ListChange => {
  const [one, other] = [ours[index], theirs[index]];
  if (one === undefined || other === undefined) {
    const [kind, list] = one === undefined ? (["inserted", theirs] as const) : (["removed", ours] as const);
    return { kind, count: list.length - index };
  }
  const inserted = standsAfter(theirs, ours, index);
  const removed = standsAfter(ours, theirs, index);
  if (inserted > 0 && (removed === 0 || inserted <= removed)) return { kind: "inserted", count: inserted };
  if (removed > 0) return { kind: "removed", count: removed };
  if (one.role === other.role || one.message === undefined) return { kind: "edited" };
  const [weGoOn, theyGoOn] = [continuesMessage(ours, index), continuesMessage(theirs, index)];
  if (weGoOn && !theyGoOn) return { kind: "removed", count: restOfMessage(ours, index) };
  if (theyGoOn && !weGoOn) return { kind: "inserted", count: restOfMessage(theirs, index) };
  return { kind: "edited" };
};

/** Are these pieces whole messages? */
export const areMessages = (list: readonly PromptPiece[], from: number, count: number): boolean =>
  !continuesMessage(list, from) && !continuesMessage(list, from + count);
