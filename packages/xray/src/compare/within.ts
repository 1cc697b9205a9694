/** The first difference inside two pieces that stand in the same place, and places of pieces that are missing.
 *  Invariant: fields are compared in the order in which the first body's piece says them.
 *  Elsewhere: values (locate.ts), which pieces (differences.ts). */

import { locate } from "./locate.ts";
import { fieldText, type Prompt, type PromptPiece } from "./piece.ts";
import type { At } from "./places.ts";
import { gapAt, gapInside, type Located, wholePlace, type XrayPlace } from "./spot.ts";

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
