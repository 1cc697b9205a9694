/** May this call run? The one answer: allow, deny or ask.
 *  Invariant: total. Deny rules come before the filter, then ask rules, then allow rules, then mode and built-in judgement.
 *  No allow rule, mode or answer undoes a denial; an exception denies.
 *  Elsewhere: what rules mean (rules.ts), which apply (policy.ts), what a command does (bash/), whom to ask (the caller). */

import { type ClassifyOptions, opensNoFile, type Verdict } from "../bash/index.ts";
import { isPseudoPath, mayContainSecrets, partsBelow, protectedAtHome, protectedName } from "../paths/index.ts";
import { ruleName, type Target, targetOf, toolNamed } from "./arguments.ts";
import { namesProgram, runsAsPlanned } from "./bash-rules.ts";
import { type Decision, onlyReads, type ToolCall } from "./call.ts";
import { type CommandPaths, createPathMatcher, findCommandPaths, type PathMatch } from "./command-paths.ts";
import { applyFilter, type FilterContext, type ToolFilter } from "./filters.ts";
import { notesFor } from "./notes.ts";
import { type PathPattern, patternsBelow, speaksOfKeys } from "./path-rules.ts";
import type { Mode, Policy } from "./policy.ts";
import { planRules } from "./policy.ts";
import { allowsOne, matches, type PathTool, type PreparedCall, parseRule, prepareCall, type Rule } from "./rules.ts";
import { readShell, type ShellCommand, type ShellReading } from "./shell-words.ts";
import { suggestRule } from "./suggest.ts";

export type GuardContext = {
  /** The session's current mode; it may differ from the one in the settings. */
  readonly mode: Mode;
  readonly policy: Policy;
  /** The workspace folders, canonical. Relative paths are relative to the first. */
  readonly roots: readonly string[];
  readonly cwd?: string; // default: the first root
  readonly home?: string;
  readonly filter?: ToolFilter;
  /** What a filter needs in addition to the classifier. */
  readonly filterContext?: Omit<FilterContext, "classify">;
  readonly classify: (command: string, options?: ClassifyOptions) => Verdict;
  /** The simple commands of a text; undefined if it is not a plain list of them. */
  readonly partsOf: (command: string) => readonly string[] | undefined;
  /** Other names of a file, with links followed; rules apply to each of them. */
  readonly otherNames?: (path: string) => readonly string[];
  /** Tools that the embedding program provides and declares read-only. */
  readonly readingTools?: readonly string[];
  /** Who answers questions. */
  readonly asks: "person" | "parent" | "nobody";
};

const deny = (reason: string): Decision => ({ kind: "deny", reason });
const allow = (reason: string): Decision => ({ kind: "allow", reason });

export const decide = (call: ToolCall, context: GuardContext): Decision => {
  try {
    return settle(judge(call, context), call, context);
  } catch {
    return deny("the call could not be checked, so it does not run");
  }
};

/** If nobody can be asked, a question becomes a denial that names the missing rule. */
const settle = (decision: Decision, call: ToolCall, context: GuardContext): Decision => {
  if (decision.kind !== "ask" || context.asks !== "nobody") return decision;
  const rule = decision.rule ?? exactRule(call, context);
  const missing = rule === undefined ? "no rule can allow it" : `the rule ${rule} would allow it`;
  return deny(`${decision.reason}; there is nobody to ask, and ${missing}`);
};

/** The rule for this one command, or for a tool that the embedding program provides, if it would apply. It is not suggested
 *  to people, who would keep it. */
const exactRule = (call: ToolCall, context: GuardContext): string | undefined => {
  const { command } = call.args;
  const isCommand = toolNamed(call.tool) === "Bash";
  if (isCommand && (typeof command !== "string" || command.length > 200)) return undefined;
  const text = isCommand ? `Bash(${String(command)})` : call.tool;
  const { roots, home, policy } = context;
  const place = { base: roots[0] ?? "/", tools: [call.tool], ...(home === undefined ? {} : { home }) };
  const read = parseRule(text, { ...place, list: "allow", origin: "a rule for this command" });
  if (read.kind === "wrong") return undefined;
  const allowed = judge(call, { ...context, policy: { ...policy, allow: [...policy.allow, read.rule] } });
  return allowed.kind === "allow" ? text : undefined;
};

type Question = {
  readonly call: ToolCall;
  readonly tool: string;
  readonly target: Target;
  /** The same call under each name of its file. */
  readonly preparedCalls: readonly PreparedCall[];
  readonly reading: ShellReading | undefined;
  readonly commandPaths: CommandPaths | undefined;
  readonly matchPath: ((pattern: PathPattern) => PathMatch | undefined) | undefined;
  readonly verdict: Verdict | undefined;
  readonly context: GuardContext;
  /** The tool that declares this, if it is not the call itself. */
  readonly by?: string;
};

const judge = (call: ToolCall, context: GuardContext): Decision => {
  const question = prepare(call, context);
  const declared = question.target.kind === "unknown" ? declaredIn(question) : [];
  return tightened([question, ...declared]) ?? loosened(question, declared);
};

/** The strictest of the denials and questions. */
const tightened = (questions: readonly Question[]): Decision | undefined => {
  const answers = questions.flatMap((question) => byRestriction(question) ?? []);
  return answers.find(({ kind }) => kind === "deny") ?? answers[0];
};

const byRestriction = (question: Question): Decision | undefined => {
  const { target } = question;
  if (target.kind === "wrong") return deny(target.reason);
  return (
    byTightening(question, "deny") ??
    byFilter(question) ??
    byPlanMode(question) ??
    byTightening(question, "ask") ??
    byProtection(question) ??
    byDeniedPaths(question) ??
    byRuleBelow(question)
  );
};

const loosened = (question: Question, declared: readonly Question[]): Decision =>
  byReading(question) ??
  (question.context.mode === "bypass" ? allow("bypass mode") : undefined) ??
  byAllowing(question) ??
  byDeclared(question, declared) ??
  byKind(question);

const prepare = (call: ToolCall, context: GuardContext): Question => {
  const cwd = context.cwd ?? context.roots[0] ?? "/";
  const target = targetOf(call, cwd);
  const tool = target.kind === "wrong" ? "" : (ruleName(call) ?? call.tool);
  const prepared = prepareCall(tool, target);
  const others = target.kind === "file" ? (context.otherNames?.(target.path) ?? []) : [];
  const renamed = others.map((path): PreparedCall => {
    const names = path.split("/").filter((name) => name !== "");
    return { tool, target: { ...(target as Extract<Target, { kind: "file" }>), path, names } };
  });
  const { reading } = prepared;
  const commandPaths = reading && withOtherNames(commandPathsOf(reading, cwd, context), context);
  const verdict =
    target.kind === "command"
      ? context.classify(target.command, { readOnlyPrograms: context.policy.readOnlyPrograms })
      : undefined;
  return {
    call,
    tool,
    target,
    preparedCalls: [prepared, ...renamed],
    reading,
    commandPaths,
    matchPath:
      commandPaths && hasPathRules(context)
        ? createPathMatcher(commandPaths, verdict?.verdict === "read-only")
        : undefined,
    verdict,
    context,
  };
};

/** What a tool declares to touch, each as the built-in call that touches the same, so that the same rules apply to both.
 *  Filter and plan mode judge the call as a whole. */
const declaredIn = ({ call: { tool, touches = {} }, context }: Question): readonly Question[] => {
  const { filter: _filter, mode, ...unfiltered } = context;
  const inner = { ...unfiltered, mode: mode === "plan" ? ("default" as const) : mode };
  const cwd = context.cwd ?? context.roots[0] ?? "/";
  const at = (path: string): string => (/^[^/~]/.test(path) ? `${cwd}/${path}` : path);
  return [
    ...(touches.reads ?? []).map((path): ToolCall => ({ tool: "Read", args: { file_path: at(path) } })),
    ...(touches.writes ?? []).map((path): ToolCall => ({ tool: "Write", args: { file_path: at(path) } })),
    ...(touches.runs ?? []).map((command): ToolCall => ({ tool: "Bash", args: { command } })),
    ...(touches.reaches ?? []).flatMap((host): readonly ToolCall[] =>
      host.startsWith("mcp__") ? [{ tool: host, args: {} }] : [{ tool: "WebFetch", args: { url: `https://${host}/` } }],
    ),
  ].map((call) => ({ ...prepare(call, inner), by: tool }));
};

/** A tool that touches a whole folder may reach a file in it that a rule is about; only a person can decide that. */
const byRuleBelow = ({ call, preparedCalls, context, by }: Question): Decision | undefined => {
  const { file_path: path } = call.args;
  if (by === undefined || typeof path !== "string" || !path.endsWith("/")) return undefined;
  const about: readonly PathTool[] = call.tool === "Read" ? ["Read"] : ["Read", "Edit", "Write"];
  const rule = [...context.policy.deny, ...context.policy.ask].find(
    ({ form }) =>
      form.kind === "path" &&
      about.includes(form.tool) &&
      preparedCalls.flatMap(namesOf).some((names) => patternsBelow(form.pattern, names).length > 0),
  );
  if (!rule) return undefined;
  return {
    kind: "ask",
    reason: `${by}: ${path} contains files that ${rule.text} is about (${rule.origin})`,
    notes: [],
  };
};

const commandPathsOf = (reading: ShellReading, cwd: string, { home }: GuardContext): CommandPaths =>
  findCommandPaths(reading, { cwd, ...(home === undefined ? {} : { home }) });

const hasPathRules = ({ policy }: GuardContext): boolean =>
  [...policy.deny, ...policy.ask].some(({ form }) => form.kind === "path");

/** With more words than this, resolving each of them would take too long. */
const MOST_RESOLVED = 200;

/** Rules apply to the target of a link as well. If no rule is about paths, nothing is looked up. */
const withOtherNames = (commandPaths: CommandPaths, context: GuardContext): CommandPaths => {
  const { otherNames } = context;
  if (!otherNames || !hasPathRules(context)) return commandPaths;
  if (commandPaths.literal.length > MOST_RESOLVED) return { ...commandPaths, couldBeAny: true };
  const others = commandPaths.literal
    .flatMap((names) => otherNames(`/${names.join("/")}`))
    .map((path) => path.split("/").filter((name) => name !== ""));
  return { ...commandPaths, literal: [...commandPaths.literal, ...others] };
};

const ask = ({ tool, target, context, by }: Question, why: string, offers = true): Decision => {
  const reason = by === undefined ? why : `${by}: ${why}`;
  const { roots, home } = context;
  const rule = offers ? suggestRule(tool, target, { roots, ...(home === undefined ? {} : { home }) }) : undefined;
  const notes = target.kind === "command" ? notesFor(target.command, { roots }) : [];
  return { kind: "ask", reason, ...(rule === undefined ? {} : { rule }), notes };
};

// --- rules that tighten ------------------------------------------------------------------------------------------------

const byTightening = (question: Question, list: "deny" | "ask"): Decision | undefined => {
  const { preparedCalls, context } = question;
  for (const rule of context.policy[list]) {
    const named = `${rule.text} (${rule.origin})`;
    if (preparedCalls.some((prepared) => matches(rule, prepared)) && !isOnlyPossible(question, rule)) {
      const why = unreadable(question, rule);
      return list === "deny" ? deny(`denied by ${named}${why}`) : ask(question, `${named} says to ask${why}`, false);
    }
    const match = matchPathRule(rule, question);
    if (match === "names" && list === "deny") return deny(`the command names a file that ${named} denies`);
    if (match !== undefined && list === "ask") return ask(question, `the command ${match} a file of ${named}`, false);
  }
  return undefined;
};

/** A plan runs no program that it does not name. */
const isOnlyPossible = ({ verdict, reading, preparedCalls: [prepared] }: Question, { form }: Rule): boolean =>
  form.kind === "bash" &&
  verdict?.verdict === "read-only" &&
  reading !== undefined &&
  prepared?.starts !== undefined &&
  !runsAsPlanned(form.pattern, prepared.starts, reading);

/** If a denied file is only possible and not named, a person decides. */
const byDeniedPaths = (question: Question): Decision | undefined => {
  const rule = question.context.policy.deny.find((denied) => matchPathRule(denied, question) !== undefined);
  return rule && ask(question, `the command might reach a file that ${rule.text} (${rule.origin}) denies`, false);
};

/** A rule about reading applies to every command, a rule about writing to those that may write. */
const matchPathRule = ({ form }: Rule, { matchPath, verdict }: Question): PathMatch | undefined => {
  if (!matchPath || form.kind !== "path" || (form.tool !== "Read" && verdict?.verdict === "read-only"))
    return undefined;
  return matchPath(form.pattern);
};

const unreadable = ({ reading, preparedCalls: [prepared] }: Question, { form }: Rule): string => {
  if (form.kind !== "bash" || !prepared?.starts) return "";
  if (reading?.kind === "unread") return `: the command cannot be checked against it, ${reading.reason}`;
  if (prepared.starts.kind === "unread") return `: the command cannot be checked against it, ${prepared.starts.reason}`;
  return namesProgram(form.pattern, prepared.starts) ? "" : ": a program in it is computed; write its name out";
};

const byFilter = ({ call, context }: Question): Decision | undefined => {
  const { filter, filterContext, classify } = context;
  if (!filter) return undefined;
  const known = { readingTools: context.readingTools ?? [], homes: homesOf(context) };
  const verdict = applyFilter(filter, call, { ...known, ...filterContext, classify });
  return verdict.allowed ? undefined : deny(verdict.reason);
};

/** Named by what it touches, or by its tool if it does not declare that. */
const declaredToRead = ({ tool, touches }: ToolCall, { readingTools = [] }: GuardContext): boolean =>
  touches ? onlyReads(touches) : readingTools.includes(tool);

const byPlanMode = ({ call, tool, target, verdict, context }: Question): Decision | undefined => {
  if (context.mode !== "plan" || target.kind === "own") return undefined;
  if (verdict?.verdict === "read-only" || (target.kind === "file" && target.access === "read")) return undefined;
  if (target.kind === "unknown" && declaredToRead(call, context)) return undefined;
  const why = verdict
    ? `the command is not provably read-only: ${verdict.reason}`
    : `${tool} is not known to only read`;
  return deny(`plan mode only reads, and ${why}`);
};

const namesBelow = (names: readonly string[], roots: readonly string[]): readonly string[] | undefined =>
  roots.map((root) => partsBelow(root.split("/").filter(Boolean), names)).find((below) => below !== undefined);

const isInside = ({ preparedCalls, context }: Question): boolean => {
  const roots = [...context.roots, ...context.policy.directories];
  return preparedCalls.every(({ target }) => target.kind === "file" && namesBelow(target.names, roots) !== undefined);
};

const byProtection = (question: Question): Decision | undefined => {
  const { preparedCalls, commandPaths: touched, verdict, target, context } = question;
  const isReading = target.kind === "file" ? target.access === "read" : verdict?.verdict === "read-only";
  if (isReading) return undefined;
  const roots = [...context.roots, ...context.policy.directories];
  for (const names of [...preparedCalls.flatMap(namesOf), ...(touched?.literal ?? [])]) {
    const reason = protectedName(namesBelow(names, roots) ?? names);
    if (reason !== undefined) return ask(question, reason, false);
  }
  const atHome = preparedCalls
    .flatMap(namesOf)
    .map((names) => hiddenAtHome(names, context))
    .find((reason) => reason !== undefined);
  return atHome === undefined ? undefined : ask(question, atHome, false);
};

/** For a workspace that is or contains a home folder. A project inside it has its own hidden names. */
const hiddenAtHome = (names: readonly string[], context: GuardContext): string | undefined => {
  const roots = [...context.roots, ...context.policy.directories];
  const root = roots.find((one) => namesBelow(names, [one]) !== undefined);
  const home = root === undefined ? undefined : homesOf(context).find((one) => `${one}/`.startsWith(`${root}/`));
  const below = home === undefined ? undefined : namesBelow(names, [home]);
  return below === undefined ? undefined : protectedAtHome(below);
};

/** The home folder under all its names. */
const homesOf = ({ home, otherNames }: GuardContext): readonly string[] =>
  home === undefined ? [] : [home, ...(otherNames?.(home) ?? [])];

const pathOf = ({ target }: PreparedCall): readonly string[] => (target.kind === "file" ? [target.path] : []);

const namesOf = ({ target }: PreparedCall): readonly (readonly string[])[] =>
  target.kind === "file" ? [target.names] : [];

// --- rules and judgement that allow --------------------------------------------------------------------------------------

const byReading = ({ target, verdict, commandPaths: touched, context }: Question): Decision | undefined => {
  if (target.kind === "own") return allow("affects only the agent itself");
  if (verdict?.verdict !== "read-only") return undefined;
  const hiddenFiles = touched ? withheldIn(touched, context) : [];
  const rules = planRules(context.policy);
  const plan = {
    ...verdict.plan,
    ...(hiddenFiles.length > 0 ? { hiddenFiles } : {}),
    ...(rules.length > 0 ? { rules } : {}),
  };
  return { kind: "allow", reason: verdict.reason, plan };
};

/** If git shows files, those that rules name are hidden from it. The top of the repository is the folder that git runs in, or
 *  one between it and the workspace. */
const withheldIn = ({ shown }: CommandPaths, { policy, roots }: GuardContext): readonly string[] => {
  const tops = shown.flatMap((names) => {
    const below = namesBelow(names, roots)?.length ?? 0;
    return Array.from({ length: below + 1 }, (_, above) => names.slice(0, names.length - above));
  });
  const rules = [...policy.deny, ...policy.ask].flatMap(({ form }) =>
    form.kind === "path" && form.tool === "Read" ? [form.pattern] : [],
  );
  return [...new Set(tops.flatMap((top) => rules.flatMap((rule) => patternsBelow(rule, top))))];
};

const byAllowing = (question: Question): Decision | undefined => {
  const { preparedCalls, context } = question;
  const homes = homesOf(context);
  const isKey = preparedCalls.flatMap(pathOf).some((path) => mayContainSecrets(path, homes));
  // The author of the rule did not think of what a star happens to cover.
  const covers = ({ form }: Rule): boolean => !isKey || form.kind !== "path" || speaksOfKeys(form.pattern, homes);
  const rule = context.policy.allow.find(
    (candidate) => covers(candidate) && preparedCalls.every((prepared) => matches(candidate, prepared)),
  );
  if (rule && (rule.form.kind !== "bash" || readAlike(question)))
    return allow(`allowed by ${rule.text} (${rule.origin})`);
  const together = allowedTogether(question);
  return together === undefined ? undefined : allow(`allowed by ${together}`);
};

/** A command with its own part of the text. */
type ReadPart = { readonly command: ShellCommand; readonly part: string };

/** The commands, if the rules' parser and the classifier find the same ones; otherwise undefined. */
const readAlike = ({ target, reading, context }: Question): readonly ReadPart[] | undefined => {
  if (target.kind !== "command" || reading?.kind !== "read") return undefined;
  if (reading.definesFunction || reading.evaluatesUnseen) return undefined;
  const parts = context.partsOf(target.command);
  if (parts?.length !== reading.commands.length) return undefined;
  const read = reading.commands.map((command, at) => ({ command, part: parts[at] ?? "" }));
  return read.every(isAlike) ? read : undefined;
};

const isAlike = ({ command: { words }, part }: ReadPart): boolean => {
  const nested = readShell(part);
  const [first, ...more] = nested.kind === "read" ? nested.commands : [];
  return (
    first?.words.length === words.length &&
    more.length === 0 &&
    words.every(({ text }, index) => text === first.words[index]?.text)
  );
};

/** Every command of the text matches an allow rule or opens no file, and at least one matches a rule. The text runs in a plain
 *  shell, so it does not count that a part of it would be read-only as a plan, which is checked while it runs. */
const allowedTogether = (question: Question): string | undefined => {
  const { context } = question;
  const used = new Set<string>();
  const isCovered = ({ command, part }: ReadPart): boolean => {
    const rule = context.policy.allow.find((candidate) => allowsOne(candidate, command));
    if (rule) used.add(rule.text);
    return rule !== undefined || commandOpensNothing(command, part, context);
  };
  const read = readAlike(question);
  // Where the second folder is depends on whether the first one exists.
  const moves = read?.filter(({ command }) => command.words[0]?.text === "cd").length ?? 0;
  const covered = moves < 2 && read?.every(isCovered);
  return covered && used.size > 0 ? [...used].join(", ") : undefined;
};

/** Changing the folder is harmless only inside the workspace, because later commands then run there. */
const commandOpensNothing = (
  command: ShellCommand,
  part: string,
  { classify, roots, policy, cwd = roots[0] ?? "/", otherNames }: GuardContext,
): boolean => {
  const [head, folder] = command.words;
  if (command.redirects.some(({ operator }) => operator === "<") || command.input.length > 0) return false;
  if (head?.text === "cd") {
    if (!folder || folder.home || /(?:^|\/)\.\.(?:\/|$)/.test(folder.text)) return false;
    const names = folder.text.split("/").filter((name) => name !== "" && name !== ".");
    const isInside = (path: readonly string[]): boolean =>
      namesBelow(path, [...roots, ...policy.directories]) !== undefined;
    if (folder.text.startsWith("/") && !isInside(names)) return false;
    // A link may lead anywhere.
    const otherPaths = otherNames?.(folder.text.startsWith("/") ? folder.text : `${cwd}/${folder.text}`) ?? [];
    if (!otherPaths.every((path) => isInside(path.split("/").filter(Boolean)))) return false;
  }
  const judged = classify(part);
  return judged.verdict === "read-only" && opensNoFile(judged.plan);
};

/** A tool that declares what it touches is allowed if all of that is allowed; undefined if it declares nothing. A command that
 *  it runs is text and not a plan of ours, so being read-only does not count. */
const byDeclared = ({ call, target }: Question, declared: readonly Question[]): Decision | undefined => {
  if (!call.touches || target.kind !== "unknown") return undefined;
  const answers = declared.map((part) => {
    if (part.target.kind === "command") return ask(part, `runs ${part.target.command}`, false);
    return byAllowing(part) ?? byKind(part);
  });
  return answers.find(({ kind }) => kind !== "allow") ?? allow("everything that it declares to touch is allowed");
};

/** What the tool itself is about. */
const byKind = (question: Question): Decision => {
  const { tool, target, verdict, context } = question;
  switch (target.kind) {
    case "file": {
      const secret = question.preparedCalls.flatMap(pathOf).find((path) => mayContainSecrets(path, homesOf(context)));
      if (target.access === "write") {
        if (secret !== undefined) return ask(question, `${secret} may contain secrets`);
        if (context.mode === "accept-edits" && isInside(question))
          return allow("inside the workspace, in accept-edits mode");
        return ask(
          question,
          isInside(question) ? `${tool} changes ${target.path}` : `${target.path} is outside the workspace`,
        );
      }
      if (isPseudoPath(target.path)) return ask(question, `${target.path} is not a regular file`, false);
      if (secret !== undefined) return ask(question, `${secret} may contain secrets`);
      return isInside(question)
        ? allow("reads inside the workspace")
        : ask(question, `${target.path} is outside the workspace`);
    }
    case "command":
      return ask(question, `not provably read-only: ${verdict?.reason ?? "unknown"}`);
    case "mcp":
      return ask(question, `${target.name} belongs to a tool server`);
    case "site":
      return ask(question, `fetches from ${target.host}`);
    default:
      return context.readingTools?.includes(tool)
        ? allow("a tool of the program that only reads")
        : ask(question, `${tool} is not a known tool`);
  }
};
