/** How many tokens is a piece?
 *  Invariant: an estimate from the text that a model reads, equal for equal content however it is formatted; a prompt
 *  is the sum of its pieces. A provider's own count is applied elsewhere (measure.ts).
 *  Elsewhere: what a piece is (piece.ts). */

import { type BodyValue, memberAt, membersAt, orderedText, stringAt } from "./values.ts";

const BYTES_PER_TOKEN = 4;
/** What providers charge for an average picture, and for a document of a few pages. */
const TOKENS_PER_IMAGE = 1_600;
const TOKENS_PER_DOCUMENT = 3_000;

export type Counted = { readonly bytes: number; readonly images?: number; readonly documents?: number };

export const tokensOf = ({ bytes, images = 0, documents = 0 }: Counted): number =>
  Math.ceil(bytes / BYTES_PER_TOKEN) + images * TOKENS_PER_IMAGE + documents * TOKENS_PER_DOCUMENT;

export const sumCounts = (parts: readonly Counted[]): Counted => ({
  bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
  images: parts.reduce((sum, { images = 0 }) => sum + images, 0),
  documents: parts.reduce((sum, { documents = 0 }) => sum + documents, 0),
});

/** The text of a string, or the JSON of any other value. */
export const countText = (at: BodyValue | undefined): Counted => ({
  bytes: at === undefined ? 0 : Buffer.byteLength(stringAt(at) ?? orderedText(at)),
});

/** An object as JSON, without members that are not part of the prompt. */
export const countObject = (at: BodyValue, unseen: ReadonlySet<string>): Counted => {
  const members = membersAt(at).filter(({ key }) => !unseen.has(key));
  if (members.length === 0) return { bytes: Buffer.byteLength(orderedText(at)) };
  const inside = members.map(
    ({ key, at: value }) => Buffer.byteLength(JSON.stringify(key)) + 1 + Buffer.byteLength(orderedText(value)),
  );
  return { bytes: inside.reduce((sum, bytes) => sum + bytes + 1, 1) };
};

/** A document: its text if it is given as text, otherwise a few pages. */
export const countDocument = (block: BodyValue): Counted => {
  const members = membersAt(block);
  const source = memberAt(members, "source");
  const inside = source ? membersAt(source) : [];
  const title = countText(memberAt(members, "title"));
  return stringAt(memberAt(inside, "type")) === "text"
    ? sumCounts([title, countText(memberAt(inside, "data"))])
    : { ...title, documents: 1 };
};
