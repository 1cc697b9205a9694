/** Which tools there are, which of their arguments decide what they touch, and are those plain values?
 *  Invariant: filter and tool read a path or a command through this one function; wrapped, doubled and mistyped
 *  arguments are refused by name, never guessed at.
 *  Elsewhere: what a path means (../paths), who may call what (filters.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import type { Refused } from "../paths/index.ts";
import type { ToolCall } from "./call.ts";

type ArgumentKind = "text" | "number" | "flag" | "list";

type ToolShape = {
  /** The argument that says what is touched. */
  readonly subject?: { readonly key: "file_path" | "path" | "command"; readonly required: boolean };
  readonly keys: Readonly<Record<string, ArgumentKind>>;
};

const FILE = { key: "file_path", required: true } as const;
const FOLDER = { key: "path", required: false } as const;

const SHAPES = {
  Bash: {
    subject: { key: "command", required: true },
    keys: { command: "text", description: "text", timeout: "number", run_in_background: "flag" },
  },
  Read: { subject: FILE, keys: { file_path: "text", offset: "number", limit: "number" } },
  Write: { subject: FILE, keys: { file_path: "text", content: "text" } },
  Edit: { subject: FILE, keys: { file_path: "text", old_string: "text", new_string: "text", replace_all: "flag" } },
  MultiEdit: { subject: FILE, keys: { file_path: "text", edits: "list" } },
  Glob: { subject: FOLDER, keys: { pattern: "text", path: "text" } },
  Grep: { subject: FOLDER, keys: { pattern: "text", path: "text", glob: "text", type: "text", output_mode: "text" } },
  TodoWrite: { keys: { todos: "list" } },
  Agent: { keys: {} },
  TaskOutput: { keys: {} },
  TaskStop: { keys: {} },
  SendMessage: { keys: {} },
  McpCall: { keys: {} },
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

const isKind = (value: Json, kind: ArgumentKind): boolean => {
  if (kind === "list") return Array.isArray(value);
  return typeof value === (kind === "text" ? "string" : kind === "flag" ? "boolean" : "number");
};

const EXPECTED: Readonly<Record<ArgumentKind, string>> = {
  text: "text",
  number: "a number",
  flag: "true or false",
  list: "a list",
};

const refuse = (reason: string): Refused => ({ ok: false, reason });

const wrongKey = (key: string, value: Json, { keys, subject }: ToolShape): string | undefined => {
  if (key === subject?.key || Object.hasOwn(keys, key)) {
    const kind = keys[key] ?? "text";
    return isKind(value, kind) ? undefined : `"${key}" must be ${EXPECTED[kind]}`;
  }
  if (ENVELOPES.test(key)) return `arguments must stand at the top, not wrapped in "${key}"`;
  if (typeof value === "object" && value !== null) return `"${key}" holds nested values; arguments must be flat`;
  const second = subject?.key === "command" ? SECOND_COMMAND : SECOND_PATH;
  return subject !== undefined && second.test(key)
    ? `"${key}" stands beside "${subject.key}"; give only that`
    : undefined;
};

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
  if (tool === undefined) return refuse(`there is no tool ${JSON.stringify(name)}`);
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
  return { ok: true, tool, args, subject: typeof value === "string" ? value : undefined };
};
