/** Where does a prompt leave entries, and where does it look for them?
 *  Invariant: decided only by the provider's published rules (rules.ts); time and reported usage are applied elsewhere.
 *  Elsewhere: hashes (piece.ts), evaluating what was found (lookup.ts). */

import type { Ttl } from "@prefork/wire";
import type { Prompt, PromptPiece } from "./piece.ts";

/** runs: consecutive calls are one position, and so are consecutive results; singly: each block is one position. */
export type Reading = "runs" | "singly";

export type Breakpoint = { readonly index: number; readonly ttl: Ttl | undefined };

const isServerResult = ({ kind }: PromptPiece): boolean => kind !== "tool_result" && kind.endsWith("_tool_result");

const marked = ({ pieces }: Prompt): readonly Breakpoint[] =>
  pieces.flatMap(({ marker }, index) => (marker === undefined ? [] : [{ index, ttl: marker }]));

/** Where the entries of this prompt end, in prompt order. A prompt that is cached automatically has one, at its end. */
export const breakpointsOf = (prompt: Prompt): readonly Breakpoint[] => {
  const { pieces, automatic, explicitOnly, rules } = prompt;
  const explicit = marked(prompt);
  switch (rules.keeping.kind) {
    case "everything":
    case "units":
      return pieces.length === 0 ? [] : [{ index: pieces.length - 1, ttl: rules.defaultTtl }];
    case "endings": {
      if (explicitOnly) return explicit.slice(-4);
      const last = pieces.findLastIndex(({ ending }) => ending === true);
      const implicit =
        last < 0 || explicit.some(({ index }) => index === last) ? [] : [{ index: last, ttl: rules.defaultTtl }];
      return [...explicit.slice(-3), ...implicit].sort((one, other) => one.index - other.index);
    }
    case "markers": {
      const end = automatic === undefined ? -1 : pieces.findLastIndex(({ markable }) => markable);
      const added = end < 0 || explicit.some(({ index }) => index === end) ? [] : [{ index: end, ttl: automatic }];
      // More markers than the provider accepts would be refused, or only the last ones would count.
      const all = [...explicit, ...added].sort((one, other) => one.index - other.index).slice(-rules.keeping.most);
      return [...all, ...serverResult(prompt, all.at(-1))];
    }
  }
};

/** Did its client ask for any entry? */
export const hasMarkers = (prompt: Prompt): boolean => prompt.automatic !== undefined || marked(prompt).length > 0;

/** The provider marks results of its own tools by itself, but only after the client's markers. */
const serverResult = ({ pieces }: Prompt, last: Breakpoint | undefined): readonly Breakpoint[] => {
  const index = pieces.findLastIndex(isServerResult);
  return last === undefined || index <= last.index ? [] : [{ index, ttl: "5m" }];
};

const RUNS = new Set(["tool_use", "tool_call", "tool_result"]);

/** Parameters, and members around a message's content, are not blocks. */
const isPosition = ({ kind }: PromptPiece): boolean => kind !== "settings" && kind !== "message";

/** The pieces before `from` with their distance in positions, starting with `from` itself. */
function* positionsBefore(
  pieces: readonly PromptPiece[],
  from: number,
  reading: Reading,
): Generator<readonly [index: number, distance: number]> {
  let distance = -1;
  let previous = "";
  for (let index = from; index >= 0; index -= 1) {
    const piece = pieces[index];
    if (piece === undefined || !isPosition(piece)) continue;
    if (reading === "singly" || !RUNS.has(piece.kind) || piece.kind !== previous) distance += 1;
    previous = piece.kind;
    yield [index, distance];
  }
}

/** The pieces at whose ends this prompt looks for an entry. */
export const placesOf = (prompt: Prompt, reading: Reading): ReadonlySet<number> => {
  const { pieces, rules, explicitOnly } = prompt;
  const { keeping } = rules;
  if (keeping.kind === "everything" || keeping.kind === "units") return new Set(pieces.keys());
  const places = new Set<number>();
  if (keeping.kind === "endings") {
    const explicit = marked(prompt).map(({ index }) => index);
    for (const index of [...explicit.slice(0, 2), ...explicit.slice(-50)]) places.add(index);
    if (explicitOnly) return places;
    const endings = [...pieces.keys()].filter((index) => pieces[index]?.ending === true);
    const opening = endings.findLast((index) => pieces[index]?.level === "system");
    for (const index of endings.slice(-1 - keeping.lookBack)) places.add(index);
    if (opening !== undefined) places.add(opening);
    return places;
  }
  for (const { index: from } of breakpointsOf(prompt))
    for (const [index, distance] of positionsBefore(pieces, from, reading)) {
      if (distance >= keeping.lookBack) break;
      places.add(index);
    }
  return places;
};

/** The number of positions between an entry and the first marker at or after it; undefined without one. */
export const distanceTo = (prompt: Prompt, entry: number, reading: Reading): number | undefined => {
  const { pieces, rules } = prompt;
  if (rules.keeping.kind === "endings") {
    const behind = pieces.filter(({ ending }, index) => ending === true && index > entry).length;
    return pieces[entry]?.ending === true && !prompt.explicitOnly ? behind : undefined;
  }
  const next = breakpointsOf(prompt).find(({ index }) => index >= entry);
  if (next === undefined) return undefined;
  for (const [index, distance] of positionsBefore(pieces, next.index, reading)) if (index === entry) return distance;
  return undefined;
};
