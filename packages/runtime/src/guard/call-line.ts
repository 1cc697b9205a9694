/** A tool call as one line of JSON, from scripts and tests: what was meant, or why it cannot be said.
 *  Invariant: a line that is no JSON object with a tool's name is malformed; one that could mean two things is a refusal.
 *  Elsewhere: what the arguments must look like (arguments.ts). */

import { visit } from "jsonc-parser";
import type { ToolCall } from "./call.ts";

export type CallLine =
  | { readonly kind: "call"; readonly call: ToolCall }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "malformed"; readonly reason: string };

/** The first key that stands twice in one object: readers differ in which of the two they believe. */
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

export const readCallLine = (line: string): CallLine => {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return malformed("not a JSON object");
    const { tool, args } = value as { readonly tool?: unknown; readonly args?: unknown };
    if (typeof tool !== "string" || tool === "") return malformed('"tool" must be the name of a tool');
    const doubled = doubledKey(line);
    if (doubled !== undefined) return { kind: "refused", reason: `the key "${doubled}" stands twice` };
    return { kind: "call", call: { tool, args: args as ToolCall["args"] } };
  } catch {
    return malformed("not JSON");
  }
};

const malformed = (reason: string): CallLine => ({ kind: "malformed", reason });
