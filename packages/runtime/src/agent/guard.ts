/** The guard of one agent: its mode, its rules, and what the rules are asked about.
 *  Rules that are added while it runs only allow what a person agreed to. A command counts as read-only only if the
 *  repository it would run in starts nothing by itself.
 *  Elsewhere: the decision about a call (@prefork/guard), asking a person (dispatch.ts). */

import { realpathSync } from "node:fs";
import {
  type ClassifyOptions,
  classify,
  decide,
  type GuardContext,
  type Mode,
  type Policy,
  parseRule,
  planHazard,
  type Rule,
  type RuleList,
  splitCommands,
  type ToolCall,
  type ToolFilter,
  type Verdict,
} from "@prefork/guard";
import {
  inBoth,
  judgeInside,
  type Move,
  mayContainSecrets,
  planRules,
  readRules,
  resolvedPatterns,
  tighteningPattern,
  writtenPattern,
} from "@prefork/guard/internal";
import type { ToolUseBlock } from "@prefork/wire";
import { type Registry, touchesOf } from "../tools/index.ts";
import { worktreePlaces } from "./worktree-places.ts";

export type AgentGuardOptions = {
  readonly policy: Policy;
  readonly mode: Mode;
  readonly roots: readonly string[];
  readonly cwd: string;
  readonly home: string;
  /** Where the session keeps outputs: they may be read. */
  readonly outputs: string;
  readonly readingTools: readonly string[];
  readonly tools: readonly string[];
  readonly asks: GuardContext["asks"];
  /** For work in a worktree: rules written for the checkout apply there too. */
  readonly move?: Move | undefined;
  /** Narrows what may be called at all. */
  readonly filter?: ToolFilter | undefined;
  /** Why there is no comparison before and after the run. */
  readonly unwatched?: string | undefined;
};

/** Where rules come from that are in no file. */
const ANSWERED = "your answer";
const ADDED = "this session";
const ADDED_LATER: readonly string[] = [ANSWERED, ADDED];

export class AgentGuard {
  #options: AgentGuardOptions;
  #mode: Mode;
  #policy: Policy;
  #filter: ToolFilter | undefined;

  constructor(options: AgentGuardOptions) {
    this.#options = options;
    this.#mode = options.mode;
    this.#policy = options.policy;
    this.#filter = options.filter;
    this.#allow(`Read(/${options.outputs}/**)`, "the session's own outputs");
  }

  get mode(): Mode {
    return this.#mode;
  }

  /** The present rules, including those that people added by an answer. */
  get policy(): Policy {
    return this.#policy;
  }

  /** From now on it guards work in other folders, by these rules. */
  moveTo(place: Pick<AgentGuardOptions, "cwd" | "roots"> & { readonly move: Move }, policy: Policy): void {
    this.#options = { ...this.#options, ...place };
    this.#policy = policy;
  }

  setMode(mode: Mode): void {
    this.#mode = mode;
  }

  /** From now on, what this rule matches runs without a question. An invalid rule is a bug in the code that suggested it. */
  allow(rule: string): void {
    this.#allow(rule, ANSWERED);
  }

  /** A person adds a rule while it runs. Returns what is wrong with the rule, if anything. */
  addRule(list: RuleList, text: string): string | undefined {
    const { cwd: base, home, tools } = this.#options;
    const read = parseRule(text, { base, home, tools, list, origin: ADDED });
    if (read.kind === "wrong") return read.reason;
    this.#policy = { ...this.#policy, [list]: [...this.#policy[list], read.rule] };
    return undefined;
  }

  /** Removes a rule that a person added while it runs, directly or by an answer. Returns whether there was one. */
  removeRule(list: RuleList, text: string): boolean {
    const left = this.#policy[list].filter((rule) => rule.text !== text || !ADDED_LATER.includes(rule.origin));
    const isFound = left.length < this.#policy[list].length;
    this.#policy = { ...this.#policy, [list]: left };
    return isFound;
  }

  /** Would this rule, added to the present ones, allow that call? */
  covers(rule: string, call: ToolCall): boolean {
    const { cwd: base, home, tools } = this.#options;
    const read = parseRule(rule, { base, home, tools, list: "allow", origin: ANSWERED });
    if (read.kind === "wrong") return false;
    const policy = { ...this.#policy, allow: [...this.#policy.allow, read.rule] };
    return decide(call, { ...this.context(), policy }).kind === "allow";
  }

  /** From now on every call is refused with this reason. */
  refuseAll(reason: string): void {
    this.#filter = () => ({ allowed: false, reason });
  }

  context(): GuardContext {
    const { roots, cwd, home, readingTools, asks, unwatched, outputs } = this.#options;
    const everywhere = (rule: Rule): Rule => inPlaces(rule, outputs);
    return {
      mode: this.#mode,
      policy: { ...this.#policy, deny: this.#policy.deny.map(everywhere), ask: this.#policy.ask.map(everywhere) },
      ...{ roots, cwd, home, readingTools, asks, partsOf: splitCommands },
      ...(this.#filter ? { filter: this.#filter } : {}),
      ...(unwatched === undefined ? {} : { filterContext: { unwatched } }),
      classify: this.#classify,
      otherNames,
    };
  }

  /** For one search: may what it found in a file be shown? Not where a rule denies reading it or says to ask, nor
   *  where it may contain secrets: the search as a whole was allowed, not this file. `from`: the folder that is
   *  searched; rules that match the folder itself were already asked about. Rules are prepared once, because a search
   *  visits thousands of files. */
  mayShow(from?: string): (path: string) => boolean {
    const context: GuardContext = { ...this.context(), asks: "person" };
    const unasked = context.policy.ask.filter((rule) => from === undefined || !namedBy([rule])(from));
    const isAsked = namedBy(unasked);
    const { home } = this.#options;
    const homes = [home, ...otherNames(home)];
    // A person is asked about reading other places, and a search asks nobody.
    const places = from === undefined ? undefined : [from, ...this.#options.roots];
    return (path) => {
      if (mayContainSecrets(path, homes) || isAsked(path)) return false;
      if (places !== undefined && !judgeInside(places, path).ok) return false;
      return decide({ tool: "Read", args: { file_path: path } }, context).kind !== "deny";
    };
  }

  /** Which files must not be read without a call, because a rule denies reading them or says to ask? */
  keptBack(): (path: string) => boolean {
    const { deny, ask } = this.context().policy;
    return namedBy([...deny, ...ask]);
  }

  /** Does this call change nothing, so that it may run again after a crash? */
  onlyReads(registry: Registry, call: ToolUseBlock): boolean {
    const tool = registry.find(call.name);
    if (!tool) return true; // nothing runs; the answer says that there is no such tool
    const checked = registry.check(tool, registry.unwrap(tool, call.input));
    if (tool.readOnly || !checked.ok) return true;
    const touches = touchesOf(tool, checked.input);
    const judged: ToolCall = { tool: call.name, args: checked.args, ...(touches ? { touches } : {}) };
    const decision = decide(judged, this.context());
    return decision.kind === "allow" && decision.plan !== undefined;
  }

  readonly #classify = (command: string, options?: ClassifyOptions): Verdict => {
    const verdict = classify(command, options);
    if (verdict.verdict !== "read-only") return verdict;
    const { cwd, home } = this.#options;
    const hazard = planHazard(verdict.plan, { cwd, home });
    return hazard === undefined ? verdict : { verdict: "unknown", reason: hazard };
  };

  #allow(text: string, origin: string): void {
    const { cwd: base, home, tools } = this.#options;
    const read = parseRule(text, { base, home, tools, list: "allow", origin });
    if (read.kind === "wrong") throw new TypeError(read.reason);
    const { move } = this.#options;
    const added = move ? inBoth(read.rule, move) : [read.rule];
    this.#policy = { ...this.#policy, allow: [...this.#policy.allow, ...added] };
  }
}

/** Does a rule about reading name a file, by its own name or by the one behind links? */
const namedBy = (tightening: readonly Rule[]): ((path: string) => boolean) => {
  const rules = planRules({ deny: tightening, ask: [] });
  if (rules.length === 0) return () => false;
  const { problem } = readRules(rules);
  return (path) => [path, ...otherNames(path)].some((name) => problem(name) !== undefined);
};

/** A restricting rule also applies to the target of a link in its own path, and to copies in worktrees. */
const inPlaces = (rule: Rule, outputs: string): Rule => {
  const { form } = rule;
  if (form.kind !== "path") return rule;
  const written = writtenPattern(form.pattern);
  const targets = resolvedPatterns(written);
  const copies = worktreePlaces([...written, ...targets], outputs);
  const places = [...targets, ...copies, ...resolvedPatterns(copies)];
  if (places.length === 0) return rule;
  const { exact, forgiving } = form.pattern;
  const pattern = { exact, forgiving: [...forgiving, ...tighteningPattern(places).forgiving] };
  return { ...rule, form: { ...form, pattern } };
};

/** The target of a link; rules apply to both names. */
const otherNames = (path: string): readonly string[] => {
  try {
    const real = realpathSync.native(path);
    return real === path ? [] : [real];
  } catch {
    return []; // no such file
  }
};
