/** What a call changes in a file, as coloured lines.
 *  Invariant: signs (+ and -) say the same as colours; the texts come from a model and are made safe here.
 *  Elsewhere: the one-line form (../state: call-line.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import type { CallBlock } from "../state/index.ts";
import { safeText } from "../state/index.ts";
import type { Theme } from "./theme.ts";

const linesOf = (value: Json | undefined): readonly string[] =>
  typeof value === "string" && value !== "" ? safeText(value).replace(/\n$/, "").split("\n") : [];

/** Undefined if the call changes no file. */
export const diffOfCall = (
  { tool, args }: Pick<CallBlock, "tool" | "args">,
  theme: Theme,
): readonly string[] | undefined => {
  if (tool === "Write") return linesOf(args.content).map((line) => theme.added(`+ ${line}`));
  if (tool !== "Edit") return undefined;
  const edits = Array.isArray(args.edits) ? args.edits : [args];
  return edits.flatMap((edit, index) => [
    ...(index === 0 ? [] : [theme.faint("⋯")]),
    ...diffOfEdit((typeof edit === "object" && edit !== null ? edit : {}) as JsonObject, theme),
  ]);
};

/** Equal lines at the start and the end are context; the rest is removed and added. */
const diffOfEdit = ({ old_string, new_string }: JsonObject, theme: Theme): readonly string[] => {
  const [before, after] = [linesOf(old_string), linesOf(new_string)];
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const context = (lines: readonly string[]): readonly string[] => lines.map((line) => theme.faint(`  ${line}`));
  return [
    ...context(before.slice(Math.max(0, head - 3), head)),
    ...before.slice(head, before.length - tail).map((line) => theme.removed(`- ${line}`)),
    ...after.slice(head, after.length - tail).map((line) => theme.added(`+ ${line}`)),
    ...context(before.slice(before.length - tail, before.length - tail + 3)),
  ];
};
