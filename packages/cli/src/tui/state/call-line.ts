/** A tool call in one line: what it does, and where.
 *  Invariant: arguments come from a model, so every part is one safe line; nothing here fails on missing or wrong types.
 *  Elsewhere: a call with its output (../views: blocks.ts). */

import { basename } from "node:path";
import type { Json, JsonObject } from "@prefork/wire";
import { safeLine, safeText } from "./safe-text.ts";

type Called = { readonly tool: string; readonly args: JsonObject };

const text = (value: Json | undefined, most = 120): string => (typeof value === "string" ? safeLine(value, most) : "");

const lines = (value: Json | undefined): number =>
  typeof value === "string" && value !== "" ? value.replace(/\n$/, "").split("\n").length : 0;

/** How many lines were added and removed, without the ones that both texts have at their start and end. */
const changedLines = (before: Json | undefined, after: Json | undefined): readonly [added: number, removed: number] => {
  const split = (value: Json | undefined): readonly string[] =>
    typeof value === "string" && value !== "" ? value.replace(/\n$/, "").split("\n") : [];
  const [old, now] = [split(before), split(after)];
  const most = Math.min(old.length, now.length);
  let same = 0;
  while (same < most && old[same] === now[same]) same++;
  let tail = 0;
  while (tail < most - same && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  return [now.length - same - tail, old.length - same - tail];
};

/** `Edit src/a.ts +3 −1`, `Bash npm test`. */
export const describeCall = ({ tool, args }: Called): string => {
  const subject = subjectOf({ tool, args });
  return subject === "" ? tool : `${tool} ${subject}`;
};

const subjectOf = ({ tool, args }: Called): string => {
  switch (tool) {
    case "Bash":
      return text(args.command, 200);
    case "Read": {
      const from = typeof args.offset === "number" ? args.offset : undefined;
      const count = typeof args.limit === "number" ? args.limit : undefined;
      const range =
        from === undefined && count === undefined
          ? ""
          : `:${from ?? 1}${count === undefined ? "" : `-${(from ?? 1) + count - 1}`}`;
      return `${text(args.file_path)}${range}`;
    }
    case "Write":
      return `${text(args.file_path)} +${lines(args.content)}`;
    case "Edit": {
      const edits = Array.isArray(args.edits) ? args.edits : [args];
      const counts = edits.map((edit) => {
        const { old_string: before, new_string: after } = (
          typeof edit === "object" && edit !== null ? edit : {}
        ) as JsonObject;
        return changedLines(before, after);
      });
      const added = counts.reduce((sum, [count]) => sum + count, 0);
      const removed = counts.reduce((sum, [, count]) => sum + count, 0);
      return `${text(args.file_path)} +${added} −${removed}`;
    }
    case "Grep":
      return [`"${text(args.pattern, 80)}"`, text(args.path) && `in ${text(args.path)}`].filter(Boolean).join(" ");
    case "Glob":
      return [text(args.pattern, 80), text(args.path) && `in ${text(args.path)}`].filter(Boolean).join(" ");
    case "Agent":
      return text(args.description) || text(args.prompt);
    case "Skill":
      return text(args.skill) || text(args.name);
    case "McpCall":
      return `${text(args.server)} ${text(args.tool)}`;
    case "TodoWrite":
      return Array.isArray(args.todos) ? `${args.todos.length} items` : "";
    default:
      return firstText(args);
  }
};

const firstText = (args: JsonObject): string => {
  for (const value of Object.values(args)) if (typeof value === "string") return safeLine(value, 120);
  return "";
};

/** A path below the working folder, or its shortest form. */
export const shortPath = (path: string, cwd: string): string =>
  path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path.length > 60 ? `…/${basename(path)}` : path;

/** The whole call, for a question: its arguments are shown as they are. */
export const callText = (tool: string, args: JsonObject): string => {
  if (tool === "Bash" && typeof args.command === "string") return safeText(args.command);
  const { file_path: path, ...rest } = args;
  return typeof path === "string"
    ? `${safeText(path)}\n${safeText(JSON.stringify(rest, undefined, 1))}`
    : safeText(JSON.stringify(args, undefined, 1));
};
