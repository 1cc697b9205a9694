/** Where do two values differ first, down to the letter?
 *  Invariant: the first difference in the order in which the values are read: of keys in their own order where that
 *  counts, else by name; no more than a fixed number of levels is gone down by name.
 *  Elsewhere: places and letters (spot.ts), values in their own order (lockstep.ts), which two are compared
 *  (differences.ts). */

import { locateInOrder } from "./lockstep.ts";
import { fieldText, type Prompt, type PromptPiece } from "./piece.ts";
import {
  type At,
  DEEPEST,
  isArrayHere,
  isObjectHere,
  itemsAt,
  orderedText,
  sortedMembers,
  stringAt,
  type TextRule,
  unorderedText,
} from "./places.ts";
import { gapAt, gapInside, type Located, locateLetters, wholePlace, type XrayPlace } from "./spot.ts";

export type Compared = { readonly form: "ordered" | "unordered"; readonly rule: TextRule };

/** The first difference of two values that differ. */
export const locate = (a: At, b: At, { form, rule }: Compared): Located => {
  let [one, other] = [a, b];
  if (form === "ordered") return locateInOrder(one, other);
  for (let depth = 0; depth < DEEPEST; depth += 1) {
    const letters = [stringAt(one), stringAt(other)] as const;
    if (letters[0] !== undefined && letters[1] !== undefined)
      return locateLetters(one, other, [letters[0], letters[1]]);
    const step =
      isArrayHere(one) && isArrayHere(other) ? stepIntoArrays(one, other, rule) : stepByKey(one, other, rule);
    if (step === undefined) return { path: other.path, a: wholePlace(one), b: wholePlace(other) };
    if ("path" in step) return step;
    [one, other] = [step.a, step.b];
    if (step.ordered) break;
  }
  return locateInOrder(one, other);
};

/** Down into one pair of values, or the end of the search. */
type Step = { readonly a: At; readonly b: At; readonly ordered: boolean } | Located | undefined;

const sameBytes = (a: At, b: At): boolean => a.bytes.subarray(a.start, a.end).equals(b.bytes.subarray(b.start, b.end));

const sameUnordered = (a: At, b: At, rule: TextRule): boolean =>
  sameBytes(a, b) || unorderedText(a, rule) === unorderedText(b, rule);

const stepIntoArrays = (a: At, b: At, rule: TextRule): Step => {
  const [ours, theirs] = [itemsAt(a), itemsAt(b)];
  for (let index = 0; index < Math.max(ours.length, theirs.length); index += 1) {
    const [one, other] = [ours[index], theirs[index]];
    if (!one || !other) return onlyIn(one, other, { a, b });
    if (!sameUnordered(one, other, rule)) return { a: one, b: other, ordered: false };
  }
  return undefined;
};

const stepByKey = (a: At, b: At, rule: TextRule): Step => {
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

type Inside = { readonly a: At; readonly b: At };

/** Something that only one side has. */
export const onlyIn = (one: At | undefined, other: At | undefined, inside: Inside): Located | undefined => {
  if (one) return { path: one.path, a: wholePlace(one), b: gapInside(inside.b) };
  return other && { path: other.path, a: gapInside(inside.a), b: wholePlace(other) };
};

// --- inside pieces ---------------------------------------------------------------------------------------------------

export type Pair = { readonly a: Prompt; readonly b: Prompt };

/** Just before the piece that stands there now, or behind the last one. */
export const gapBefore = ({ body }: Prompt, list: readonly PromptPiece[], index: number): XrayPlace => {
  const here = list[index]?.at;
  if (here) return gapAt(here, here.start);
  const last = list.at(-1)?.at;
  return last ? gapAt(last, last.end) : gapInside(body.root);
};

/** Of settings there is no piece of the body to point at. */
const wholeOf = ({ at }: PromptPiece, { body }: Prompt): At => at ?? body.root;

export const withinPieces = (one: PromptPiece, other: PromptPiece, { a, b }: Pair): Located => {
  const [whole, theirWhole] = [wholeOf(one, a), wholeOf(other, b)];
  if (one.kind !== other.kind || one.role !== other.role)
    return { path: theirWhole.path, a: wholePlace(whole), b: wholePlace(theirWhole) };
  const theirs = new Map(other.fields.map((field) => [field.name, field]));
  for (const field of one.fields) {
    const same = theirs.get(field.name);
    if (!same) return { path: field.at.path, a: wholePlace(field.at), b: gapInside(theirWhole) };
    if (fieldText(field, b.text) !== fieldText(same, b.text))
      return locate(field.at, same.at, { form: field.form, rule: b.text });
  }
  const ours = new Set(one.fields.map(({ name }) => name));
  const added = other.fields.find(({ name }) => !ours.has(name));
  const place = added ? wholePlace(added.at) : wholePlace(theirWhole);
  return { path: place.path, a: gapInside(whole), b: place };
};
