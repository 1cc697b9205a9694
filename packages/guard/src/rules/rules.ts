/** Permission rules: what does a rule's text mean, and does a call match it?
 *  Invariant: an unknown form is an error that names the rule, never a rule that matches nothing. Allow rules
 *  match narrowly, ask and deny rules broadly, so ambiguity never grants permission.
 *  Elsewhere: commands (bash-rules.ts), paths (path-rules.ts), which rules apply (policy.ts), the answer (decide.ts). */

import type { JsonObject } from "../json.ts";
import { globMatcher, globProblem } from "../paths/index.ts";
import { knownTools, type Target, targetOf } from "./arguments.ts";
import { allowsCommand, type BashPattern, couldRun, parseBashPattern } from "./bash-rules.ts";
import { nearest } from "./nearest.ts";
import { allowsPath, coversPath, type PathPattern, type PathPlace, parsePathPattern } from "./path-rules.ts";
import { type Starts, startsIn } from "./programs-with-programs.ts";
import { readShell, type ShellCommand, type ShellReading } from "./shell-words.ts";

export type RuleList = "allow" | "ask" | "deny";
export type PathTool = "Read" | "Edit" | "Write";

export type RuleForm =
  | { readonly kind: "tool"; readonly tool: string }
  | { readonly kind: "bash"; readonly pattern: BashPattern }
  | { readonly kind: "path"; readonly tool: PathTool; readonly pattern: PathPattern }
  | { readonly kind: "mcp"; readonly fits: (name: string) => boolean }
  | { readonly kind: "site"; readonly host: string };

export type Rule = {
  readonly text: string;
  readonly list: RuleList;
  readonly form: RuleForm;
  /** Where it was written, for messages. */
  readonly origin: string;
};

export type RuleReading =
  | { readonly kind: "rule"; readonly rule: Rule }
  | { readonly kind: "wrong"; readonly reason: string };

export type RuleOptions = PathPlace & {
  readonly list: RuleList;
  readonly origin: string;
  /** Tools in addition to the built-in ones. `any`: extensions add some whose names are not known yet. */
  readonly tools?: readonly string[] | "any";
};

/** What a rule's text means. */
export const parseRule = (text: string, options: RuleOptions): RuleReading => {
  const form = formOf(text, options);
  return typeof form === "string"
    ? { kind: "wrong", reason: `${JSON.stringify(text)} ${form}` }
    : { kind: "rule", rule: { text, list: options.list, form, origin: options.origin } };
};

const formOf = (text: string, options: RuleOptions): RuleForm | string => {
  const [, name = "", content] = /^([\w.*-]+)(?:\((.*)\))?$/s.exec(text) ?? [];
  if (name === "") return "is not a rule; write Tool or Tool(pattern)";
  if (/^mcp__/.test(name)) {
    if (content !== undefined) return "must name a server's tool without parentheses";
    const fits = mcpPattern(name, options.list);
    return typeof fits === "string" ? fits : { kind: "mcp", fits };
  }
  if (content === undefined) return wholeTool(name, options.tools ?? []);
  if (name === "Bash") {
    if (content === "*") return { kind: "tool", tool: "Bash" };
    const pattern = parseBashPattern(content);
    return typeof pattern === "string" ? pattern : { kind: "bash", pattern };
  }
  if (name === "Read" || name === "Edit" || name === "Write") {
    const pattern = parsePathPattern(content, options);
    return typeof pattern === "string" ? pattern : { kind: "path", tool: name, pattern };
  }
  if (name === "WebFetch") {
    const host = /^domain:((?:[a-z0-9-]+\.)*[a-z0-9-]+)$/.exec(content)?.[1];
    return host === undefined ? "must be WebFetch(domain:host), in lower case" : { kind: "site", host };
  }
  return "has a pattern, but only Bash, Read, Edit, Write and WebFetch take one";
};

const wholeTool = (name: string, others: readonly string[] | "any"): RuleForm | string => {
  const tools = [...knownTools, ...(others === "any" ? [] : others)];
  if (tools.includes(name)) return { kind: "tool", tool: name };
  const meant = nearest(name, tools);
  if (others === "any" && meant === undefined && /^[\w-]{1,64}$/.test(name)) return { kind: "tool", tool: name };
  return `names no known tool${meant === undefined ? "" : `; did you mean ${meant}?`}`;
};

const mcpPattern = (text: string, list: RuleList): ((name: string) => boolean) | string => {
  if (text === "mcp__*") return list === "allow" ? "would allow every server; name one" : () => true;
  const [, server = "", tool = "*"] = /^mcp__([A-Za-z0-9.-]+(?:_[A-Za-z0-9.-]+)*)(?:__(.+))?$/.exec(text) ?? [];
  if (server === "") return "must be mcp__server, mcp__server__tool or mcp__server__*";
  if (!/^[\w.*-]+$/.test(tool) || (tool.match(/\*/g)?.length ?? 0) > 2) return "has an unreadable tool pattern";
  const problem = globProblem(tool);
  if (problem !== undefined) return problem;
  const fits = globMatcher(tool);
  const start = `mcp__${server}__`;
  return (name) => {
    const inner = name.slice(start.length);
    if (name.slice(0, start.length) !== start || !fits(inner)) return false;
    // `a__b__c` may be tool c of a server a__b, which a rule for server a must not allow.
    return list !== "allow" || !inner.includes("__") || inner === tool;
  };
};

// --- matching ----------------------------------------------------------------------------------------------------------

/** A call prepared for many rules: the text of a command is parsed once. */
export type PreparedCall = {
  readonly tool: string;
  readonly target: Target;
  readonly reading?: ShellReading;
  readonly starts?: Starts;
};

export const prepareCall = (tool: string, target: Target): PreparedCall => {
  if (target.kind !== "command") return { tool, target };
  const reading = readShell(target.command);
  return { tool, target, reading, starts: startsIn(reading) };
};

/** Which tools a path rule applies to: exactly these to allow … */
const ALLOWED_BY: Readonly<Record<PathTool, readonly string[]>> = {
  Read: ["Read", "Grep", "Glob"],
  Edit: ["Edit", "MultiEdit", "NotebookEdit"],
  Write: ["Write"],
};
const WRITING = [...ALLOWED_BY.Edit, ...ALLOWED_BY.Write];
/** … and all that could have the same effect to ask or deny. Edit tools are listed under Read because their output reveals
 *  file contents. */
const RESTRICTED_BY: Readonly<Record<PathTool, readonly string[]>> = {
  Read: [...ALLOWED_BY.Read, ...ALLOWED_BY.Edit],
  Edit: WRITING,
  Write: WRITING,
};

/** Whether the call matches the rule. For an allow rule and a compound command: whether each of its commands does. */
export const matches = ({ form, list }: Rule, call: PreparedCall): boolean => {
  const { tool, target } = call;
  const allows = list === "allow";
  switch (form.kind) {
    case "tool":
      return form.tool === tool || (!allows && (RESTRICTED_BY[form.tool as PathTool] ?? []).includes(tool));
    case "mcp":
      return target.kind === "mcp" && form.fits(target.name);
    case "site":
      return target.kind === "site" && (target.host === form.host || (!allows && isBelow(target.host, form.host)));
    case "path": {
      const toolsCovered = allows ? ALLOWED_BY : RESTRICTED_BY;
      if (target.kind !== "file" || !toolsCovered[form.tool].includes(tool)) return false;
      return allows ? allowsPath(form.pattern, target.names) : coversPath(form.pattern, target.names);
    }
    case "bash":
      return target.kind === "command" && (allows ? allowsAll(form.pattern, call) : restricts(form.pattern, call));
  }
};

/** Whether an allow rule covers this one command of a compound command. */
export const allowsOne = ({ form, list }: Rule, command: ShellCommand): boolean =>
  list === "allow" && form.kind === "bash" && allowsCommand(form.pattern, command);

/** Whole labels: `evil-example.com` is not below `example.com`. */
const isBelow = (host: string, domain: string): boolean => {
  const [labels, suffix] = [host.split("."), domain.split(".")];
  return (
    labels.length > suffix.length && suffix.every((label, at) => labels[labels.length - suffix.length + at] === label)
  );
};

const restricts = (pattern: BashPattern, { starts }: PreparedCall): boolean =>
  starts === undefined || couldRun(pattern, starts);

const allowsAll = (pattern: BashPattern, { reading }: PreparedCall): boolean =>
  reading?.kind === "read" &&
  !reading.definesFunction &&
  !reading.evaluatesUnseen &&
  reading.commands.length > 0 &&
  reading.commands.every((command) => allowsCommand(pattern, command));

// --- examples ----------------------------------------------------------------------------------------------------------

export type RuleExamples = { readonly match?: readonly string[]; readonly notMatch?: readonly string[] };

/** The first example that fails, as a sentence. An example is the text in the parentheses: a command, a path, an address; for
 *  a server's tool, its name. */
export const failingExample = (rule: Rule, examples: RuleExamples, place: PathPlace): string | undefined => {
  const hits = (example: string): boolean => matches(rule, prepareExample(rule, example, place));
  const missed = examples.match?.find((example) => !hits(example));
  if (missed !== undefined)
    return `${JSON.stringify(rule.text)} should match its example ${JSON.stringify(missed)}, but does not`;
  const caught = examples.notMatch?.find(hits);
  if (caught === undefined) return undefined;
  return `${JSON.stringify(rule.text)} should not match its example ${JSON.stringify(caught)}, but does`;
};

const prepareExample = ({ form, text }: Rule, example: string, { base, home }: PathPlace): PreparedCall => {
  const tool = form.kind === "mcp" ? example : (/^\w+/.exec(text)?.[0] ?? text);
  const isAbsolute = example.startsWith("/") || /^~(\/|$)/.test(example);
  const path = isAbsolute ? example.replace(/^~/, home ?? "~") : `${base}/${example}`;
  const args: JsonObject =
    tool === "Bash"
      ? { command: example }
      : tool === "WebFetch"
        ? { url: /^https?:/.test(example) ? example : `https://${example}/` }
        : { [tool === "Grep" || tool === "Glob" ? "path" : "file_path"]: path };
  return prepareCall(tool, targetOf({ tool, args }, base));
};
