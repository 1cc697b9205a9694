/** Which tools exist, which of their arguments decide what they touch, and what does a call touch: a command, a file, a tool of
 *  another server, a site, or nothing outside?
 *  Invariant: filter, guard and tools read a path or a command through these functions. Wrapped, duplicated, mistyped and unknown
 *  arguments are refused by name, never guessed at. A string is only ever text: one that starts with a dash is not an option, so
 *  code that starts a program with it puts it after `--` or attaches it to its option.
 *  Elsewhere: what a path means (../paths), who may call what (filters.ts), the answer (decide.ts). */

import { visit } from "jsonc-parser";
import type { Json, JsonObject } from "../json.ts";
import type { Refused } from "../paths/index.ts";
import { judgePath } from "../paths/index.ts";
import type { ToolCall } from "./call.ts";

type ArgumentKind = "text" | "count" | "flag" | "list" | "edits";

type Keys = Readonly<Record<string, ArgumentKind>>;

type ToolShape = {
  /** The argument that names what is touched. */
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

/** Names that other runtimes use for the same tools. */
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

/** Keys that a client leaves around the arguments if it forgot to unwrap a call. */
const ENVELOPES =
  /^(?:arguments|args|inputs?|params|parameters|payload|tool_?input|function|kwargs|data|body|request)$/i;

/** Keys that would name a second path or command next to the one that is checked. */
const SECOND_PATH =
  /^(?:(?:abs(?:olute)?|file|full|note_?book|target|dest(?:ination)?|output|out)?_?(?:path|file|file_?name|dir(?:ectory)?|folder)|target|dest(?:ination)?|ur[il])$/i;
const SECOND_COMMAND = /^(?:cmd|commands?|script|shell|argv|code)$/i;

/** Why a value does not have that kind; undefined if it does. */
const wrongValue = (shown: string, value: Json, kind: ArgumentKind): string | undefined => {
  switch (kind) {
    case "text":
      if (typeof value !== "string") return `${shown} must be text`;
      return value.isWellFormed() ? undefined : `${shown} contains half a character, which no file name can`;
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

/** Each entry contains the strings of one edit and nothing that could name another file. */
const wrongEdits = (shown: string, value: Json): string | undefined => {
  if (!Array.isArray(value)) return `${shown} must be a list`;
  for (const entry of value as readonly Json[]) {
    if (typeof entry !== "object" || entry === null || Array.isArray(entry))
      return `${shown} must contain objects with ${listed(EDIT)}`;
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
  if (ENVELOPES.test(key)) return `arguments must be at the top level, not wrapped in ${shown}`;
  if (typeof value === "object" && value !== null) return `${shown} contains nested values; arguments must be flat`;
  const second = subject?.key === "command" ? SECOND_COMMAND : SECOND_PATH;
  if (subject !== undefined && second.test(key))
    return `${shown} is given in addition to "${subject.key}"; give only that`;
  return `${shown} is no argument of it; it takes ${listed(keys)}`;
};

const MAX_PATH_LENGTH = 4_096;

export type ReadArguments = {
  readonly ok: true;
  readonly tool: ToolName;
  readonly args: JsonObject;
  /** The path or the command; undefined if the tool has none, or if it is optional and missing. */
  readonly subject: string | undefined;
};

/** The arguments of a known tool, and the one that decides what it touches. */
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
    return refuse('"edits" is given in addition to "old_string"; give one of them');
  return { ok: true, tool, args, subject: typeof value === "string" ? value : undefined };
};

// --- one line of JSON from scripts and tests ---------------------------------------------------------------------------
// An object that every reader understands the same way, or why not. Takes linear time. A duplicate key is reported, because
// readers differ in which of the two values they use.

export type JsonLine =
  | { readonly kind: "object"; readonly fields: ReadonlyMap<string, unknown> }
  /** Valid JSON, but two readers could understand it differently. */
  | { readonly kind: "doubtful"; readonly reason: string }
  | { readonly kind: "malformed"; readonly reason: string };

const MOST_SHOWN = 60;

/** A name from outside, safe to print in one line for people and models: short, quoted, without invisible characters. */
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
    // If it serializes to the same text, no key was lost to a duplicate, and the slower scan is not needed.
    const doubled = JSON.stringify(value) === line ? undefined : doubledKey(line);
    if (doubled !== undefined) return { kind: "doubtful", reason: `the key ${shownName(doubled)} is given twice` };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { kind: "doubtful", reason: "it is nested too deeply" };
  }
  return { kind: "object", fields: new Map(Object.entries(value)) };
};

// --- what a call touches -------------------------------------------------------------------------------------------------

export type Target =
  | { readonly kind: "command"; readonly command: string }
  | {
      readonly kind: "file";
      readonly access: "read" | "write";
      readonly path: string;
      readonly names: readonly string[];
    }
  | { readonly kind: "mcp"; readonly name: string }
  | { readonly kind: "site"; readonly host: string }
  /** A tool that only affects the agent itself. */
  | { readonly kind: "own" }
  | { readonly kind: "unknown" }
  | { readonly kind: "wrong"; readonly reason: string };

const FILE_TOOLS: Readonly<Partial<Record<ToolName, "read" | "write">>> = {
  Read: "read",
  Grep: "read",
  Glob: "read",
  Edit: "write",
  MultiEdit: "write",
  NotebookEdit: "write",
  Write: "write",
};

const OWN_TOOLS: readonly string[] = ["Agent", "Task", "TaskOutput", "TaskStop", "SendMessage", "TodoWrite", "Skill"];

/** Names that a rule may use without parentheses, in addition to tools of servers. */
export const knownTools: readonly string[] = ["Bash", ...Object.keys(FILE_TOOLS), ...OWN_TOOLS, "REPL", "WebFetch"];

const wrong = (reason: string): Target => ({ kind: "wrong", reason });

/** `cwd`: where search tools start, and what relative paths of reading tools are relative to. */
export const targetOf = (call: ToolCall, cwd: string): Target => {
  const { tool, args } = call;
  if (typeof tool !== "string" || typeof args !== "object" || args === null || Array.isArray(args))
    return wrong("a call is a tool's name and an object of arguments");
  const name = ruleName(call);
  if (name === undefined) return wrong("McpCall needs `server` and `tool` as plain names");
  if (/^mcp__/.test(name)) return { kind: "mcp", name };
  if (OWN_TOOLS.includes(name)) return { kind: "own" };
  if (name === "WebFetch") return siteOf(args.url);
  const known = toolNamed(name);
  if (known === "Bash" || (known !== undefined && FILE_TOOLS[known])) return subjectOf(call, cwd);
  return { kind: "unknown" };
};

/** The name of the tool in rules: other spellings count as ours, and a call through `McpCall` as the tool inside. */
export const ruleName = ({ tool, args }: ToolCall): string | undefined => {
  const known = toolNamed(tool) ?? tool;
  if (known !== "McpCall") return known;
  const { server, tool: inner } = args;
  const isName = (text: unknown): text is string => typeof text === "string" && /^[\w.-]+$/.test(text);
  return isName(server) && isName(inner) ? `mcp__${server}__${inner}` : undefined;
};

const subjectOf = (call: ToolCall, cwd: string): Target => {
  const read = readArguments(call);
  if (!read.ok) return wrong(`${call.tool}: ${read.reason}`);
  if (read.tool === "Bash") return { kind: "command", command: read.subject ?? "" };
  const access = FILE_TOOLS[read.tool] ?? "write";
  const text = globFolder(call, cwd) ?? read.subject ?? cwd;
  const isRelative = access === "read" && /^[^/~]/.test(text) && !/^[a-z][a-z0-9+.-]*:/i.test(text);
  const judged = judgePath(isRelative ? `${cwd}/${text}` : text);
  if (!judged.ok) return wrong(`${call.tool}: ${judged.reason}`);
  return { kind: "file", access, path: judged.path, names: judged.parts };
};

/** The literal folders at the start of a Glob pattern, which may lead out of the searched folder. */
const globFolder = ({ tool, args }: ToolCall, cwd: string): string | undefined => {
  const { pattern, path } = args;
  if (toolNamed(tool) !== "Glob" || typeof pattern !== "string") return undefined;
  const parts = pattern.split("/");
  const literal = parts.slice(
    0,
    parts.findIndex((part) => /[*?[{]/.test(part)),
  );
  // `a/*/../..` climbs after the first pattern character, so its matches can only be bounded by the root.
  if (parts.slice(literal.length).includes("..")) return "/";
  if (pattern.startsWith("/")) return literal.join("/") || "/";
  const from = typeof path === "string" ? path : cwd;
  return literal.length === 0 ? undefined : `${from}/${literal.join("/")}`;
};

const siteOf = (url: unknown): Target => {
  const parsed = typeof url === "string" ? URL.parse(url) : null;
  if (!parsed || !/^https?:$/.test(parsed.protocol) || parsed.username !== "" || parsed.password !== "")
    return wrong("WebFetch needs `url`, an http or https address without a user name");
  return { kind: "site", host: parsed.hostname.toLowerCase().replace(/\.$/, "") };
};
