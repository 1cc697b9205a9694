/** What may a run call at all? Filters narrow a fork or a sidecar while its tool list stays byte for byte the parent's.
 *  Invariant: a filter can only deny more. A denial tells the model what it may do instead; a filter that throws denies. Paths
 *  are judged by their text here.
 *  Elsewhere: reading arguments (arguments.ts), the real check of a path at its use (../files), asking people (decide.ts). */

import { broadFolderProblem, normalizePath } from "../bash/index.ts";
import { isPseudoPath, judgeInside, mayContainSecrets, protectedName } from "../paths/index.ts";
import { type ReadArguments, readArguments, toolNamed } from "./arguments.ts";
import { onlyReads, type ToolCall } from "./call.ts";

export type FilterVerdict = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

export type FilterContext = {
  /** What a bash command does; only "read-only" passes a restricting filter. */
  readonly classify: (command: string) => {
    readonly verdict: "read-only" | "write" | "unknown";
    readonly reason: string;
  };
  /** Tools that are not ours and that their definition declares read-only. */
  readonly readingTools?: readonly string[];
  /** All names of the home folder, where some settings are secret. Default: only the usual locations count as home. */
  readonly homes?: readonly string[];
  /** The calls that a code-running tool would make; without them, such a tool is denied. */
  readonly inner?: readonly ToolCall[];
  /** Why the tree cannot be compared before and after the run. If set, nothing that could write may run. */
  readonly unwatched?: string;
};

/** The one folder that a run may write in. */
export type MemoryFolder = {
  /** Canonical. */
  readonly path: string;
  /** All paths of the folder: canonical, and as it was given. */
  readonly names: readonly string[];
  /** Why it is no longer the folder that the filter was created for. */
  readonly problem: () => string | undefined;
};

export type ToolFilter = {
  (call: ToolCall, context: FilterContext): FilterVerdict;
  /** Nothing outside this folder may change: a run under the filter is compared before and after. */
  readonly memory?: MemoryFolder;
};

const ALLOWED: FilterVerdict = { allowed: true };

/** `why`, then what the model can do instead, as one line. */
const deny = (why: string, advice: string): FilterVerdict => ({
  allowed: false,
  reason: `${why.replace(/(?<![.\s])[.\s]+$/, "")}. ${advice}`,
});

/** Applies a filter; one that throws denies. */
export const applyFilter = (filter: ToolFilter, call: ToolCall, context: FilterContext): FilterVerdict => {
  try {
    return filter(call, context);
  } catch {
    return deny(`${call.tool} could not be judged`, "Go on without it");
  }
};

export const allowAll: ToolFilter = () => ALLOWED;

/** Allows what both allow; reports the first denial. */
export const both = (first: ToolFilter, second: ToolFilter): ToolFilter => {
  const memory = first.memory ?? second.memory;
  const filter: ToolFilter = (call, context) => {
    const verdict = applyFilter(first, call, context);
    return verdict.allowed ? applyFilter(second, call, context) : verdict;
  };
  return memory ? Object.assign(filter, { memory }) : filter;
};

const withoutLastSlashes = (path: string): string => {
  let end = path.length;
  while (end > 1 && path[end - 1] === "/") end -= 1;
  return path.slice(0, end);
};

const judgeReading = ({ subject, tool }: ReadArguments, context: FilterContext, advice: string): FilterVerdict => {
  if (subject === undefined) return ALLOWED;
  const broad = tool === "Grep" ? broadFolderProblem(normalizePath(withoutLastSlashes(subject))) : undefined;
  return broad === undefined ? judgeSubject(subject, context, advice) : deny(broad, advice);
};

const judgeSubject = (subject: string, { homes = [] }: FilterContext, advice: string): FilterVerdict => {
  if (/\p{Cc}/u.test(subject)) return deny("the path contains control characters", advice);
  if (isPseudoPath(subject)) return deny(`${subject} is not a regular file`, advice);
  if (mayContainSecrets(normalizePath(subject), homes)) return deny(`${subject} may contain secrets`, advice);
  return ALLOWED;
};

const judgeCommand = ({ subject = "" }: ReadArguments, context: FilterContext, advice: string): FilterVerdict => {
  const { verdict, reason } = context.classify(subject);
  return verdict === "read-only" ? ALLOWED : deny(`this command is not provably read-only: ${reason}`, advice);
};

/** A tool that runs code is as harmless as the calls it makes; without a list of them it is denied. */
const judgeInner = (filter: ToolFilter, context: FilterContext, advice: string): FilterVerdict => {
  const { inner, ...outer } = context;
  if (inner === undefined)
    return deny("code runs only where each of its calls is judged, and these are unknown", advice);
  for (const call of inner) {
    const verdict = applyFilter(filter, call, outer);
    if (!verdict.allowed) return deny(`the code calls ${call.tool}: ${verdict.reason}`, advice);
  }
  return ALLOWED;
};

/** Judges a tool that is not ours by its declaration; undefined if it is ours, whatever is declared. */
const judgeOthers = (call: ToolCall, context: FilterContext, advice: string): FilterVerdict | undefined => {
  const { tool, touches } = call;
  const { readingTools } = context;
  if (toolNamed(tool) !== undefined || readingTools === undefined) return undefined;
  if (touches ? !onlyReads(touches) : !readingTools.includes(tool))
    return deny(`${tool} is not declared to be read-only`, advice);
  const refused = touches?.reads
    ?.map((subject) => judgeSubject(subject, context, advice))
    .find(({ allowed }) => !allowed);
  return refused ?? ALLOWED;
};

const MAY_READ = "Here you may only read: Read, Glob, Grep, and Bash for commands that change nothing";

/** Allows reading tools, read-only commands, and the run's own notes about its work. */
export const readOnly: ToolFilter = (call, context) => {
  const others = judgeOthers(call, context, MAY_READ);
  if (others) return others;
  const read = readArguments(call);
  if (!read.ok) return deny(`${call.tool}: ${read.reason}`, MAY_READ);
  switch (read.tool) {
    case "Read":
    case "Glob":
    case "Grep":
      return judgeReading(read, context, MAY_READ);
    case "TodoWrite":
    case "TaskOutput":
      return ALLOWED;
    case "Bash":
      return judgeCommand(read, context, MAY_READ);
    case "REPL":
      return judgeInner(readOnly, context, MAY_READ);
    default:
      return deny(`${call.tool} is not allowed in a read-only run`, MAY_READ);
  }
};

const judgeWriting = (folders: readonly string[], { subject }: ReadArguments): string | undefined => {
  const inside = judgeInside(folders, subject);
  if (!inside.ok) return inside.reason;
  if (inside.below.length === 0 || subject?.endsWith("/")) return "this names a folder, not a file";
  return protectedName(inside.below);
};

/** Allows reading tools, read-only commands, and Write and Edit inside one folder. `folders`: all absolute paths of that
 *  folder; the first is used in messages. `problem`: why nothing may be written there any more. */
export const writesInside = (folders: readonly string[], problem?: () => string | undefined): ToolFilter => {
  const advice = `Here you may read with Read, Glob, Grep and read-only Bash, and write only files inside ${folders[0]}`;
  const filter: ToolFilter = (call, context) => {
    const others = judgeOthers(call, context, advice);
    if (others) return others;
    const read = readArguments(call);
    if (!read.ok) return deny(`${call.tool}: ${read.reason}`, advice);
    const isReading = read.tool === "Read" || read.tool === "Glob" || read.tool === "Grep";
    if (isReading) return judgeReading(read, context, advice);
    if (context.unwatched !== undefined)
      return deny(`nothing that could write runs, because changes cannot be watched: ${context.unwatched}`, MAY_READ);
    switch (read.tool) {
      case "Bash":
        return judgeCommand(read, context, advice);
      case "Write":
      case "Edit":
      case "MultiEdit": {
        const wrong = problem?.() ?? judgeWriting(folders, read);
        return wrong === undefined ? ALLOWED : deny(wrong, advice);
      }
      case "REPL":
        return judgeInner(filter, context, advice);
      default:
        return deny(`${call.tool} is not allowed in this run`, advice);
    }
  };
  return filter;
};

/** The name that rules and lists know a call by: a tool server's tool by its own name. */
const listedName = ({ tool, args }: ToolCall): string => {
  const known = toolNamed(tool) ?? tool;
  if (known !== "McpCall") return known;
  const { server, tool: inner } = args;
  // With two underscores inside a server's name, one joined name could mean two tools.
  if (typeof server !== "string" || typeof inner !== "string" || server.includes("__")) return known;
  return `mcp__${server}__${inner}`;
};

/** Allows these tools, by name; a tool server's tools as `mcp__server__tool`. */
export const only = (tools: readonly string[]): ToolFilter => {
  const names = new Set(tools.map((name) => toolNamed(name) ?? name));
  const advice =
    tools.length === 0
      ? "Here you may use no tool; answer from what you know"
      : `Here you may use: ${tools.join(", ")}`;
  const filter: ToolFilter = (call, context) => {
    if (!names.has(listedName(call))) return deny(`${call.tool} is not allowed in this run`, advice);
    const tool = toolNamed(call.tool);
    if (tool === undefined) return ALLOWED; // not one of ours: it checks its own arguments
    const read = readArguments(call);
    if (!read.ok) return deny(`${call.tool}: ${read.reason}`, advice);
    return tool === "REPL" ? judgeInner(filter, context, advice) : ALLOWED;
  };
  return filter;
};
