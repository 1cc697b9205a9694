/** How long is a piece, in tokens?
 *  Invariant: an estimate from the letters that a model reads, the same for the same content however it is spelled; a
 *  prompt is the sum of its pieces. What a provider counted is laid over it elsewhere (measure.ts).
 *  Elsewhere: what a piece is (piece.ts). */

import { type At, memberAt, membersAt, orderedText, stringAt } from "./places.ts";

const BYTES_PER_TOKEN = 4;
/** What providers charge for a picture of usual size, and for a document of a few pages. */
const TOKENS_PER_IMAGE = 1_600;
const TOKENS_PER_DOCUMENT = 3_000;

export type Counted = { readonly bytes: number; readonly images?: number; readonly documents?: number };

export const tokensOf = ({ bytes, images = 0, documents = 0 }: Counted): number =>
  Math.ceil(bytes / BYTES_PER_TOKEN) + images * TOKENS_PER_IMAGE + documents * TOKENS_PER_DOCUMENT;

export const sumOf = (parts: readonly Counted[]): Counted => ({
  bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
  images: parts.reduce((sum, { images = 0 }) => sum + images, 0),
  documents: parts.reduce((sum, { documents = 0 }) => sum + documents, 0),
});

/** The letters of a string, or the JSON of any other value. */
export const lettersOf = (at: At | undefined): Counted => ({
  bytes: at === undefined ? 0 : Buffer.byteLength(stringAt(at) ?? orderedText(at)),
});

/** An object as JSON, less the members that are no part of the prompt. */
export const objectBytes = (at: At, unseen: ReadonlySet<string>): Counted => {
  const members = membersAt(at).filter(({ key }) => !unseen.has(key));
  if (members.length === 0) return { bytes: Buffer.byteLength(orderedText(at)) };
  const inside = members.map(
    ({ key, at: value }) => Buffer.byteLength(JSON.stringify(key)) + 1 + Buffer.byteLength(orderedText(value)),
  );
  return { bytes: inside.reduce((sum, bytes) => sum + bytes + 1, 1) };
};

/** A document: its text where it is given as text, else a few pages. */
export const documentOf = (block: At): Counted => {
  const members = membersAt(block);
  const source = memberAt(members, "source");
  const inside = source ? membersAt(source) : [];
  const title = lettersOf(memberAt(members, "title"));
  return stringAt(memberAt(inside, "type")) === "text"
    ? sumOf([title, lettersOf(memberAt(inside, "data"))])
    : { ...title, documents: 1 };
};
