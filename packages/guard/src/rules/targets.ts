/** What does a call touch: a command, a file, a tool of another server, a site, or nothing outside?
 *  Invariant: guard and tools read a path through this one function; arguments of the wrong shape are refused.
 *  Elsewhere: the shape of arguments (arguments.ts), what a path text means (../paths), the answer (decide.ts). */

import { judgePath } from "../paths/index.ts";
import { readArguments, type ToolName, toolNamed } from "./arguments.ts";
import type { ToolCall } from "./call.ts";

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
  /** A tool that only concerns the agent itself. */
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

/** Names that a rule may give without parentheses; tools of servers come beside them. */
export const knownTools: readonly string[] = ["Bash", ...Object.keys(FILE_TOOLS), ...OWN_TOOLS, "REPL", "WebFetch"];

const wrong = (reason: string): Target => ({ kind: "wrong", reason });

/** `cwd`: where searching tools start, and relative paths of reading tools. */
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

/** The tool as rules name it: other spellings count as ours, a call through `McpCall` as the tool inside. */
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

/** A pattern may begin with folders of its own, and lead out of the one it is searched in. */
const globFolder = ({ tool, args }: ToolCall, cwd: string): string | undefined => {
  const { pattern, path } = args;
  if (toolNamed(tool) !== "Glob" || typeof pattern !== "string") return undefined;
  const parts = pattern.split("/");
  const literal = parts.slice(
    0,
    parts.findIndex((part) => /[*?[{]/.test(part)),
  );
  // `a/*/../..` climbs after the pattern has begun: nothing short of the top can be said to hold what it finds.
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
