/** Which tools there are, which of their arguments decide what they touch, and are those plain values?
 *  Invariant: filter and tool read a path or a command through this one function; wrapped, doubled, mistyped and unknown
 *  arguments are refused by name, never guessed at. A text is only ever text: one that begins with a dash is no option,
 *  so whoever starts a program with it puts it behind `--` or glues it to its option.
 *  Elsewhere: what a path means (../paths), who may call what (filters.ts). */

import type { Json, JsonObject } from "../json.ts";
import type { Refused } from "../paths/index.ts";
import type { ToolCall } from "./call.ts";
import { shownName } from "./json-line.ts";

type ArgumentKind = "text" | "count" | "flag" | "list" | "edits";

type Keys = Readonly<Record<string, ArgumentKind>>;

type ToolShape = {
  /** The argument that says what is touched. */
  readonly subject?: { readonly key: "file_path" | "notebook_path" | "path" | "command"; readonly required: boolean };
  readonly keys: Keys;
};

const FILE = { key: "file_path", required: true } as const;
const FOLDER = { key: "path", required: false } as const;

const EDIT = { old_string: "text", new_string: "text", replace_all: "flag" } as const satisfies Keys;

const SHAPES = {
  Bash: {
    subject: { key: "command", required: true },
    keys: { command: "text", description: "text", timeout: "count", run_in_background: "flag" },
  },
  Read: { subject: FILE, keys: { file_path: "text", offset: "count", limit: "count" } },
  Write: { subject: FILE, keys: { file_path: "text", content: "text" } },
  Edit: { subject: FILE, keys: { file_path: "text", ...EDIT, edits: "edits" } },
  MultiEdit: { subject: FILE, keys: { file_path: "text", edits: "edits" } },
  NotebookEdit: {
    subject: { key: "notebook_path", required: true },
    keys: { notebook_path: "text", cell_id: "text", cell_type: "text", edit_mode: "text", new_source: "text" },
  },
  Glob: { subject: FOLDER, keys: { pattern: "text", path: "text" } },
  Grep: {
    subject: FOLDER,
    keys: {
      ...{ pattern: "text", path: "text", glob: "text", type: "text", output_mode: "text" },
      ...{ "-A": "count", "-B": "count", "-C": "count", head_limit: "count" },
      ...{ "-n": "flag", "-i": "flag", multiline: "flag" },
    },
  },
  TodoWrite: { keys: { todos: "list" } },
  Agent: { keys: {} },
  TaskOutput: { keys: {} },
  TaskStop: { keys: {} },
  SendMessage: { keys: {} },
  McpCall: { keys: {} },
  Skill: { keys: {} },
  REPL: { keys: {} },
} as const satisfies Readonly<Record<string, ToolShape>>;

export type ToolName = keyof typeof SHAPES;

/** Other names for the same tools, as other runtimes spell them. */
const ALIASES: Readonly<Record<string, ToolName>> = {
  FileRead: "Read",
  FileWrite: "Write",
  FileEdit: "Edit",
  Repl: "REPL",
};

export const toolNamed = (name: string): ToolName | undefined => {
  if (Object.hasOwn(SHAPES, name)) return name as ToolName;
  return Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined;
};

/** What a client that forgot to unwrap a call would leave around its arguments. */
const ENVELOPES =
  /^(?:arguments|args|inputs?|params|parameters|payload|tool_?input|function|kwargs|data|body|request)$/i;

/** What would name a second subject beside the one that is judged. */
const SECOND_PATH =
  /^(?:(?:abs(?:olute)?|file|full|note_?book|target|dest(?:ination)?|output|out)?_?(?:path|file|file_?name|dir(?:ectory)?|folder)|target|dest(?:ination)?|ur[il])$/i;
const SECOND_COMMAND = /^(?:cmd|commands?|script|shell|argv|code)$/i;

/** What is wrong with a value of that kind; undefined where nothing is. */
const wrongValue = (shown: string, value: Json, kind: ArgumentKind): string | undefined => {
  switch (kind) {
    case "text":
      if (typeof value !== "string") return `${shown} must be text`;
      return value.isWellFormed() ? undefined : `${shown} holds half a character, which no file can`;
    case "flag":
      return typeof value === "boolean" ? undefined : `${shown} must be true or false`;
    case "count":
      return Number.isSafeInteger(value) && Number(value) >= 0 ? undefined : `${shown} must be a number from 0 on`;
    case "list":
      return Array.isArray(value) ? undefined : `${shown} must be a list`;
    case "edits":
      return wrongEdits(shown, value);
  }
};

/** Each entry holds the texts of one edit and nothing that could name another file. */
const wrongEdits = (shown: string, value: Json): string | undefined => {
  if (!Array.isArray(value)) return `${shown} must be a list`;
  for (const entry of value as readonly Json[]) {
    if (typeof entry !== "object" || entry === null || Array.isArray(entry))
      return `${shown} must hold objects with ${listed(EDIT)}`;
    for (const [key, inner] of Object.entries(entry as JsonObject)) {
      const kind = kindOf(EDIT, key);
      if (kind === undefined) return `${shownName(key)} does not belong in ${shown}, which take ${listed(EDIT)}`;
      const wrong = wrongValue(shownName(key), inner, kind);
      if (wrong !== undefined) return `in ${shown}, ${wrong}`;
    }
  }
  return undefined;
};

const kindOf = (keys: Keys, key: string): ArgumentKind | undefined =>
  Object.hasOwn(keys, key) ? keys[key] : undefined;

const listed = (keys: Keys): string => {
  const names = Object.keys(keys);
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
};

const refuse = (reason: string): Refused => ({ ok: false, reason });

const wrongKey = (key: string, value: Json, { keys, subject }: ToolShape): string | undefined => {
  const shown = shownName(key);
  const kind = kindOf(keys, key);
  if (kind !== undefined) return wrongValue(shown, value, kind);
  if (ENVELOPES.test(key)) return `arguments must stand at the top, not wrapped in ${shown}`;
  if (typeof value === "object" && value !== null) return `${shown} holds nested values; arguments must be flat`;
  const second = subject?.key === "command" ? SECOND_COMMAND : SECOND_PATH;
  if (subject !== undefined && second.test(key)) return `${shown} stands beside "${subject.key}"; give only that`;
  return `${shown} is no argument of it; it takes ${listed(keys)}`;
};

const MAX_PATH_LENGTH = 4_096;

export type ReadArguments = {
  readonly ok: true;
  readonly tool: ToolName;
  readonly args: JsonObject;
  /** The path or the command; undefined where the tool has none or it may be left out. */
  readonly subject: string | undefined;
};

/** The arguments of a known tool, with the one that decides what it touches. */
export const readArguments = ({ tool: name, args }: ToolCall): ReadArguments | Refused => {
  const tool = toolNamed(name);
  if (tool === undefined) return refuse(`there is no tool ${shownName(name)}`);
  if (typeof args !== "object" || args === null || Array.isArray(args))
    return refuse("arguments must be one flat object");
  const shape: ToolShape = SHAPES[tool];
  if (shape.subject === undefined) return { ok: true, tool, args, subject: undefined };
  for (const key of Object.keys(args)) {
    const wrong = wrongKey(key, args[key] ?? null, shape);
    if (wrong !== undefined) return refuse(wrong);
  }
  const { key, required } = shape.subject;
  const value = Object.hasOwn(args, key) ? args[key] : undefined;
  if (required && (typeof value !== "string" || value === "")) return refuse(`"${key}" is missing`);
  if (key !== "command" && typeof value === "string" && value.length > MAX_PATH_LENGTH)
    return refuse(`"${key}" is longer than any path`);
  if (args.edits !== undefined && Object.keys(EDIT).some((one) => Object.hasOwn(args, one)))
    return refuse('"edits" stands beside "old_string"; give one of them');
  return { ok: true, tool, args, subject: typeof value === "string" ? value : undefined };
};
