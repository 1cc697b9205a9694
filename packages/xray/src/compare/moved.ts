/** Two lists of pieces part somewhere: was something put in, taken out, or changed there?
 *  Invariant: a chance repetition of a short piece is no sign; what follows it must agree too.
 *  Elsewhere: what that means for a message or a block (differences.ts). */

import type { PromptPiece } from "./piece.ts";

export type Moved =
  | { readonly kind: "edited" }
  | { readonly kind: "inserted" | "removed" /** How many pieces. */; readonly count: number };

export type Lists = {
  readonly ours: readonly PromptPiece[];
  readonly theirs: readonly PromptPiece[];
  /** Where they first differ. */
  readonly index: number;
};

/** How many pieces of `list` stand before the one that `other` has at `index`; 0 if it does not come. */
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

/** One side's message goes on where the other's has ended: so many more pieces. */
const restOfMessage = (list: readonly PromptPiece[], index: number): number => {
  const end = list.findIndex(({ message }, at) => at > index && message !== list[index]?.message);
  return (end < 0 ? list.length : end) - index;
};

export const movedBetween = ({ ours, theirs, index }: Lists): Moved => {
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
