/** How do two lists of tools differ: added, removed, reordered, or changed?
 *  Invariant: the first difference in order decides, and names the tool.
 *  Elsewhere: the other levels (differences.ts). */

import type { XrayCause } from "./cause.ts";
import { gapBefore, type Pair, withinPieces } from "./locate.ts";
import { type LocatedDifference, wholeLocation } from "./location.ts";
import type { PromptPiece } from "./piece.ts";
import { memberAt, membersAt, stringAt, unorderedText } from "./values.ts";
import { volatileIn } from "./volatile.ts";

/** A provider's own tools may have a type and no name. */
export const toolName = ({ at }: PromptPiece): string => {
  const members = at ? membersAt(at) : [];
  const called = memberAt(members, "function");
  const named = called ? memberAt(membersAt(called), "name") : memberAt(members, "name");
  return stringAt(named) ?? stringAt(memberAt(members, "server_label")) ?? stringAt(memberAt(members, "type")) ?? "";
};

export type ToolLists = { readonly ours: readonly PromptPiece[]; readonly theirs: readonly PromptPiece[] };

export const toolDifference = (
  pair: Pair,
  { ours, theirs }: ToolLists,
): (LocatedDifference & { readonly cause: XrayCause }) | undefined => {
  let index = 0;
  while (index < ours.length && index < theirs.length && ours[index]?.own === theirs[index]?.own) index += 1;
  const [one, other] = [ours[index], theirs[index]];
  const [ourNames, theirNames] = [ours.map(toolName), theirs.map(toolName)];
  const added = other?.at && !ourNames.includes(toolName(other)) ? other.at : undefined;
  const removed = one?.at && !theirNames.includes(toolName(one)) ? one.at : undefined;
  if (one && other && toolName(one) === toolName(other)) return changedTool(pair, one, other);
  if (one && other && added && removed && isRenamed(pair, one, other))
    return {
      cause: { kind: "tools-changed", tool: toolName(other), key: "name", was: toolName(one) },
      ...withinPieces(one, other, pair),
    };
  if (added) {
    const known = new Set(ourNames);
    const tools = [...new Set(theirNames.filter((name) => !known.has(name)))];
    return {
      cause: { kind: "tools-added", tools },
      path: added.path,
      a: gapBefore(pair.a, ours, index),
      b: wholeLocation(added),
    };
  }
  if (removed) {
    const kept = new Set(theirNames);
    const tools = [...new Set(ourNames.filter((name) => !kept.has(name)))];
    return {
      cause: { kind: "tools-removed", tools },
      path: removed.path,
      a: wholeLocation(removed),
      b: gapBefore(pair.b, theirs, index),
    };
  }
  if (one?.at && other?.at) {
    const tool = toolName(one);
    const cause = { kind: "tools-reordered", tool, from: index, to: theirNames.indexOf(tool, index) } as const;
    return { cause, path: other.at.path, a: wholeLocation(one.at), b: wholeLocation(other.at) };
  }
  return repeatedTool(pair, { ours, theirs }, index);
};

/** The same tool under another name: its description or its schema is the same. */
const isRenamed = ({ a, b }: Pair, one: PromptPiece, other: PromptPiece): boolean => {
  const memberText = ({ at }: PromptPiece, rule: Pair["a"]["text"], key: string): string => {
    const members = at ? membersAt(at) : [];
    const called = memberAt(members, "function");
    const inside = called ? membersAt(called) : members;
    const value = memberAt(inside, key);
    return value ? (stringAt(value) ?? unorderedText(value, rule)) : "";
  };
  return ["description", "input_schema", "parameters", "parametersJsonSchema"].some((key) => {
    const text = memberText(one, a.text, key);
    return text.length >= LONG_ENOUGH && text === memberText(other, b.text, key);
  });
};

/** Shorter texts, such as a schema without properties, are common to many tools. */
const LONG_ENOUGH = 60;

const changedTool = (
  pair: Pair,
  one: PromptPiece,
  other: PromptPiece,
): LocatedDifference & { readonly cause: XrayCause } => {
  const located = withinPieces(one, other, pair);
  const base = located.path.startsWith(other.at?.path ?? "-") ? other.at?.path : one.at?.path;
  const volatile = volatileIn(located.a, located.b);
  const key = located.path.slice((base?.length ?? 0) + 1);
  return {
    cause: { kind: "tools-changed", tool: toolName(other), key, ...(volatile ? { volatile } : {}) },
    ...located,
  };
};

/** A tool that occurs twice on one side. */
const repeatedTool = (
  pair: Pair,
  { ours, theirs }: ToolLists,
  index: number,
): (LocatedDifference & { readonly cause: XrayCause }) | undefined => {
  const [one, other] = [ours[index], theirs[index]];
  const extra = one ?? other;
  if (!extra?.at) return undefined;
  const place = wholeLocation(extra.at);
  return {
    cause: { kind: one ? "tools-removed" : "tools-added", tools: [toolName(extra)] },
    path: extra.at.path,
    a: one ? place : gapBefore(pair.a, ours, index),
    b: one ? gapBefore(pair.b, theirs, index) : place,
  };
};
