/** What is left of a prompt when its body is let go: hashes, sizes, markers, and the names of its tools.
 *  Invariant: how far another prompt agrees with it, and what of it was kept, are told as before; where both differ, only
 *  the letters on its side are gone.
 *  Elsewhere: when a body is let go (trail.ts). */

import type { Prompt, PromptPiece } from "./piece.ts";
import type { At } from "./places.ts";
import { toolName } from "./tool-differences.ts";

const NOTHING = Buffer.alloc(0);

const emptied = ({ path }: At): At => ({ bytes: NOTHING, start: 0, end: 0, path });

const named = (piece: PromptPiece, { path }: At): At => {
  const bytes = Buffer.from(JSON.stringify({ name: toolName(piece) }));
  return { bytes, start: 0, end: bytes.length, path };
};

const thinPiece = (piece: PromptPiece): PromptPiece => {
  const { at, stripped, settings } = piece;
  return {
    ...piece,
    fields: [],
    settings: settings.map(({ name, text }) => ({ name, text })),
    ...(at ? { at: piece.kind === "tool" ? named(piece, at) : emptied(at) } : {}),
    ...(stripped ? { stripped: emptied(stripped) } : {}),
  };
};

export const thinned = (prompt: Prompt): Prompt => {
  const { body, pieces, images } = prompt;
  return {
    ...prompt,
    body: { ...body, root: emptied(body.root), members: [] },
    pieces: pieces.map(thinPiece),
    images: images.map(emptied),
  };
};
