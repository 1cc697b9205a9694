/** Where do two values or pieces first differ, down to the character?
 *  Invariant: the first difference in reading order: keys in their own order if that matters, otherwise by name; only a
 *  fixed number of levels is searched by name. Fields of a piece are compared in the order of the first body's piece.
 *  Elsewhere: locations and characters (location.ts), values whose key order matters (lockstep.ts), which values are
 *  compared (differences.ts). */

import {
  gapAt,
  gapInside,
  type LocatedDifference,
  locateLetters,
  wholeLocation,
  type XrayLocation,
} from "./location.ts";
import { locateInOrder } from "./lockstep.ts";
import { fieldText, type Prompt, type PromptPiece } from "./piece.ts";
import {
  type BodyValue,
  DEEPEST,
  isArrayHere,
  isObjectHere,
  itemsAt,
  type KeyOrderRule,
  orderedText,
  sortedMembers,
  stringAt,
  unorderedText,
} from "./values.ts";

export type Compared = { readonly form: "ordered" | "unordered"; readonly rule: KeyOrderRule };

/** The first difference of two values that differ. */
export const locate = (a: BodyValue, b: BodyValue, { form, rule }: Compared): LocatedDifference => {
  let [one, other] = [a, b];
  if (form === "ordered") return locateInOrder(one, other);
  for (let depth = 0; depth < DEEPEST; depth += 1) {
    const letters = [stringAt(one), stringAt(other)] as const;
    if (letters[0] !== undefined && letters[1] !== undefined)
      return locateLetters(one, other, [letters[0], letters[1]]);
    const step =
      isArrayHere(one) && isArrayHere(other) ? stepIntoArrays(one, other, rule) : stepByKey(one, other, rule);
    if (step === undefined) return { path: other.path, a: wholeLocation(one), b: wholeLocation(other) };
    if ("path" in step) return step;
    [one, other] = [step.a, step.b];
    if (step.ordered) break;
  }
  return locateInOrder(one, other);
};

/** One level down into a pair of values, or the end of the search. */
type Step = { readonly a: BodyValue; readonly b: BodyValue; readonly ordered: boolean } | LocatedDifference | undefined;

const sameBytes = (a: BodyValue, b: BodyValue): boolean =>
  a.bytes.subarray(a.start, a.end).equals(b.bytes.subarray(b.start, b.end));

const sameUnordered = (a: BodyValue, b: BodyValue, rule: KeyOrderRule): boolean =>
  sameBytes(a, b) || unorderedText(a, rule) === unorderedText(b, rule);

const stepIntoArrays = (a: BodyValue, b: BodyValue, rule: KeyOrderRule): Step => {
  const [ours, theirs] = [itemsAt(a), itemsAt(b)];
  for (let index = 0; index < Math.max(ours.length, theirs.length); index += 1) {
    const [one, other] = [ours[index], theirs[index]];
    if (!one || !other) return onlyIn(one, other, { a, b });
    if (!sameUnordered(one, other, rule)) return { a: one, b: other, ordered: false };
  }
  return undefined;
};

const stepByKey = (a: BodyValue, b: BodyValue, rule: KeyOrderRule): Step => {
  if (!isObjectHere(a) || !isObjectHere(b)) return undefined;
  const ours = new Map(sortedMembers(a, rule).map(({ key, at }) => [key, at]));
  const theirs = new Map(sortedMembers(b, rule).map(({ key, at }) => [key, at]));
  for (const key of [...new Set([...ours.keys(), ...theirs.keys()])].sort()) {
    const [one, other] = [ours.get(key), theirs.get(key)];
    if (!one || !other) return onlyIn(one, other, { a, b });
    const ordered = rule.ordered.has(key);
    const same = ordered
      ? sameBytes(one, other) || orderedText(one) === orderedText(other)
      : sameUnordered(one, other, rule);
    if (!same) return { a: one, b: other, ordered };
  }
  return undefined;
};

type Inside = { readonly a: BodyValue; readonly b: BodyValue };

/** A value that only one side has. */
export const onlyIn = (
  one: BodyValue | undefined,
  other: BodyValue | undefined,
  inside: Inside,
): LocatedDifference | undefined => {
  if (one) return { path: one.path, a: wholeLocation(one), b: gapInside(inside.b) };
  return other && { path: other.path, a: gapInside(inside.a), b: wholeLocation(other) };
};

// --- inside pieces ---------------------------------------------------------------------------------------------------

export type Pair = { readonly a: Prompt; readonly b: Prompt };

/** Just before the piece at this position, or after the last one. */
export const gapBefore = ({ body }: Prompt, list: readonly PromptPiece[], index: number): XrayLocation => {
  const here = list[index]?.at;
  if (here) return gapAt(here, here.start);
  const last = list.at(-1)?.at;
  return last ? gapAt(last, last.end) : gapInside(body.root);
};

/** Settings have no piece of the body to point at. */
const wholeOf = ({ at }: PromptPiece, { body }: Prompt): BodyValue => at ?? body.root;

export const withinPieces = (one: PromptPiece, other: PromptPiece, { a, b }: Pair): LocatedDifference => {
  const [whole, theirWhole] = [wholeOf(one, a), wholeOf(other, b)];
  if (one.kind !== other.kind || one.role !== other.role)
    return { path: theirWhole.path, a: wholeLocation(whole), b: wholeLocation(theirWhole) };
  const theirs = new Map(other.fields.map((field) => [field.name, field]));
  for (const field of one.fields) {
    const same = theirs.get(field.name);
    if (!same) return { path: field.at.path, a: wholeLocation(field.at), b: gapInside(theirWhole) };
    if (fieldText(field, b.text) !== fieldText(same, b.text))
      return locate(field.at, same.at, { form: field.form, rule: b.text });
  }
  const ours = new Set(one.fields.map(({ name }) => name));
  const added = other.fields.find(({ name }) => !ours.has(name));
  const place = added ? wholeLocation(added.at) : wholeLocation(theirWhole);
  return { path: place.path, a: gapInside(whole), b: place };
};
