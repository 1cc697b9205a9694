/** A tool call as one line of JSON, from scripts and tests: the call, or why the line does not name one.
 *  Invariant: a line that is not a JSON object with a tool's name is malformed; one that could mean two things is a refusal.
 *  Elsewhere: parsing the line and the shape of arguments (arguments.ts). */

import { readJsonLine, shownName } from "./arguments.ts";
import type { ToolCall } from "./call.ts";

export type CallLine =
  | { readonly kind: "call"; readonly call: ToolCall }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "malformed"; readonly reason: string };

export const readCallLine = (line: string): CallLine => {
  const read = readJsonLine(line);
  if (read.kind === "malformed") return read;
  if (read.kind === "doubtful") return { kind: "refused", reason: read.reason };
  const tool = read.fields.get("tool");
  if (typeof tool !== "string" || tool === "")
    return { kind: "malformed", reason: '"tool" must be the name of a tool' };
  // A number or a string next to the call is ignored as a note; an object could be meant as the arguments.
  for (const [key, value] of read.fields)
    if (key !== "args" && typeof value === "object" && value !== null)
      return { kind: "refused", reason: `${shownName(key)} is given in addition to "args"; give only that` };
  return { kind: "call", call: { tool, args: read.fields.get("args") as ToolCall["args"] } };
};
