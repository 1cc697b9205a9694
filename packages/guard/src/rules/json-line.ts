/** One line of JSON from scripts and tests: an object that every reader understands alike, or why it is none.
 *  Invariant: linear; a key that stands twice is told, since readers differ in which of the two they believe.
 *  Elsewhere: what the object has to say (call-line.ts, and the command line's own). */

import { visit } from "jsonc-parser";

export type JsonLine =
  | { readonly kind: "object"; readonly fields: ReadonlyMap<string, unknown> }
  /** JSON, but two readers could take it for two things. */
  | { readonly kind: "doubtful"; readonly reason: string }
  | { readonly kind: "malformed"; readonly reason: string };

const MOST_SHOWN = 60;

/** A name from outside as it may stand in one line for people and models: short, in quotes, nothing invisible in it. */
export const shownName = (name: string): string => {
  const short = name.length > MOST_SHOWN ? `${name.slice(0, MOST_SHOWN).toWellFormed()}…` : name;
  const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(short).replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (hidden) =>
    hidden.split("").map(escaped).join(""),
  );
};

const doubledKey = (text: string): string | undefined => {
  const open: Set<string>[] = [];
  let doubled: string | undefined;
  visit(text, {
    onObjectBegin: () => {
      open.push(new Set());
    },
    onObjectEnd: () => {
      open.pop();
    },
    onObjectProperty: (key) => {
      if (open.at(-1)?.has(key)) doubled ??= key;
      open.at(-1)?.add(key);
    },
  });
  return doubled;
};

export const readJsonLine = (line: string): JsonLine => {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return { kind: "malformed", reason: "not valid JSON" };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return { kind: "malformed", reason: "not a JSON object" };
  try {
    // Written again as it stood: no key was lost to another of its name, and nobody has to look at every letter.
    const doubled = JSON.stringify(value) === line ? undefined : doubledKey(line);
    if (doubled !== undefined) return { kind: "doubtful", reason: `the key ${shownName(doubled)} stands twice` };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { kind: "doubtful", reason: "it is nested too deeply" };
  }
  return { kind: "object", fields: new Map(Object.entries(value)) };
};
