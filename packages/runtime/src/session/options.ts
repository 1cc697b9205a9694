/** What a caller says about a session, and the defaults for everything else. Every default is filled once, here, so
 *  nobody else asks whether something was given. Limits that are not valid numbers are refused by name.
 *  Elsewhere: opening the session (open.ts), limits of forks (forking.ts). */

import { randomBytes, randomUUID } from "node:crypto";
import { homedir } from "node:os";
import { type Mode, mergeLayers, type Policy, parseRule, type Rule, type RuleList, stateFolder } from "@prefork/guard";
import { childTtl, InputError, type KeySettings, modelFacts, type Ttl } from "@prefork/wire";
import { checkAmounts, checkCounts, checkDurations, type Engine, type TurnLimits } from "../agent/index.ts";
import type { Extension, HookTimes, ServerEntry, ServersOptions, Skill } from "../extensions/index.ts";
import type { Ask, ChildHost, Clock, Ids, SpendLimits } from "../ports.ts";
import { builtInTools, type Tool, withBlockingAgent } from "../tools/index.ts";
import { type ForkingOptions, mergeForkRules, readSwitches } from "./forking.ts";

export type Permissions = {
  /** Rules of all layers as one. Default: made of `allow` and `deny`. */
  readonly policy?: Policy;
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly mode?: Mode; // default: the policy's
  /** Answers questions. `attached`: they wait until somebody answers through a control of the session. Default: nobody
   *  does, and what would be asked is denied with the missing rule named. */
  readonly ask?: Ask | "attached";
  /** A permission policy was stated, so forks may run with nobody to ask. Default: whether `allow`, `deny` or `mode` is
   *  given. */
  readonly stated?: boolean;
  /** Keeps a rule of the answer "always" beyond this session. Default: it applies to this session only. */
  readonly remember?: (rule: string) => Promise<void>;
};

export type SessionLimits = SpendLimits & Omit<TurnLimits, "deadline"> & { readonly ms?: number };

export type SessionOptions = {
  readonly engine: Engine;
  /** Engines that tasks of an earlier run may have been started with, where the session has moved since. Default: none. */
  readonly engines?: readonly Engine[];
  readonly model?: string; // default: the engine's
  readonly cwd?: string; // default: the process's
  /** Additional folders that count as part of the workspace. */
  readonly directories?: readonly string[];
  readonly tools?: readonly Tool[]; // default: the built-in ones
  readonly permissions?: Permissions;
  /** For the whole session (money, tokens) and for each exchange (turns, time). */
  readonly limits?: SessionLimits;
  readonly maxTokens?: number; // of one answer; default: 16,000
  readonly settings?: KeySettings; // thinking, effort and all that is in the cache key
  readonly ttl?: Ttl; // default: 5m
  readonly appendSystemPrompt?: string;
  /** Tokens that fit into the model's window. Default: the engine's, else what its vendor publishes, else 200,000. */
  readonly window?: number;
  /** The share of the window at which the conversation is compacted. Default: 0.8; 1 or more: never. */
  readonly compactAt?: number;
  /** Where journals are kept. Default: the user's state folder. */
  readonly state?: string;
  readonly home?: string;
  /** The environment of approved commands; provider keys are removed. Default: the process's. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly clock?: Clock;
  readonly ids?: Ids;
  readonly signal?: AbortSignal; // ends the session's work, not the session
  /** May the agent fork? Default: on; with nobody to ask only where a permission policy is stated. */
  readonly forks?: "on" | "off";
  readonly forking?: ForkingOptions;
  /** Keep the files as they are before each prompt, so that `rewind` can restore them. Default: on for `main`, unless
   *  the settings switch it off; off for `sdk`. */
  readonly snapshots?: "on" | "off";
  /** Who the main line is: `main` of a terminal or the command line, `sdk` of a program. Default: sdk. */
  readonly querySource?: "main" | "sdk";
  /** Where children run. Receives this process's host, so that you can delegate to it. Default: that host. */
  readonly childHost?: (local: ChildHost) => ChildHost;
  readonly mostTasks?: number; // at once; further ones wait for a free slot; default: 50
  /** Tool servers (MCP). Default: none; `readServers` finds those of the settings. */
  readonly servers?: readonly ServerEntry[];
  readonly serverTimes?: ServersOptions["times"];
  /** Instructions that its model may ask for. Default: none; `readSkills` finds those of the user and the project. */
  readonly skills?: readonly Skill[];
  /** What else is added: tools, sections of the first message, hooks. Default: none; `readExtensions` finds a user's own. */
  readonly extensions?: readonly Extension[];
  readonly extensionTimes?: HookTimes;
};

type Filled =
  | "cwd"
  | "directories"
  | "tools"
  | "limits"
  | "maxTokens"
  | "settings"
  | "ttl"
  | "compactAt"
  | "state"
  | "home"
  | "environment"
  | "clock"
  | "ids"
  | "model"
  | "querySource"
  | "snapshots";

export type ResolvedOptions = Omit<SessionOptions, Filled | "permissions"> &
  Required<Pick<SessionOptions, Filled>> & {
    readonly permissions: ResolvedPermissions;
    /** Notices about environment variables with unknown values. */
    readonly notices: readonly string[];
  };

export type ResolvedPermissions = Omit<Permissions, "ask"> & {
  readonly ask?: Ask;
  readonly policy: Policy;
  readonly mode: Mode;
  readonly stated: boolean;
};

export const resolveOptions = (options: SessionOptions): ResolvedOptions => {
  checkLimits(options);
  const home = options.home ?? homedir();
  const environment = options.environment ?? process.env;
  const cwd = options.cwd ?? process.cwd();
  const model = options.model ?? options.engine.model;
  const rules = options.permissions?.policy?.forks ?? {};
  const switches = readSwitches(environment);
  const off = options.forks === "off" || rules.enabled === false || switches.forks === false;
  const given = options.tools ?? builtInTools;
  const tools = off ? withBlockingAgent(given) : given;
  return {
    ...options,
    forks: off ? "off" : "on",
    forking: mergeForkRules(rules, { ...backgroundOption(switches.autoBackgroundMs), ...options.forking }),
    notices: switches.notices,
    querySource: options.querySource ?? "sdk",
    snapshots: options.snapshots ?? usualSnapshots(options),
    ...(rules.atOnce === undefined ? {} : { mostTasks: Math.min(options.mostTasks ?? rules.atOnce, rules.atOnce) }),
    home,
    environment,
    cwd,
    model,
    directories: options.directories ?? [],
    tools,
    permissions: filledPermissions(options.permissions ?? {}, {
      ...{ home, cwd },
      tools: [...tools, ...(options.extensions ?? []).flatMap((extension) => extension.tools ?? [])],
    }),
    limits: options.limits ?? {},
    maxTokens: options.maxTokens ?? 16_000,
    settings: options.settings ?? {},
    ttl: options.ttl ?? childTtl(modelFacts(model)),
    compactAt: options.compactAt ?? 0.8,
    state: options.state ?? stateFolder(environment, home),
    clock: steady(options.clock),
    ids: options.ids ?? {
      next: (kind) => (kind === "run" ? randomUUID() : `${kind}-${randomBytes(5).toString("hex")}`),
    },
  };
};

/** If a caller's clock goes back, its last value is kept. */
const steady = (clock: Clock | undefined): Clock =>
  clock
    ? { ...clock, now: steadyNow({ wall: clock.now, ticks: () => 0 }) }
    : { now: steadyNow({ wall: Date.now, ticks: () => performance.now() }) };

const usualSnapshots = ({ querySource, permissions }: SessionOptions): "on" | "off" =>
  querySource === "main" && permissions?.policy?.worktrees.snapshots !== false ? "on" : "off";

const backgroundOption = (autoBackgroundMs: number | undefined): ForkingOptions =>
  autoBackgroundMs === undefined ? {} : { autoBackgroundMs };

const checkLimits = ({ limits = {}, forking = {}, mostTasks }: SessionOptions): void => {
  checkExchangeLimits(limits);
  const { fork = {}, family = {}, mostPerFamily, mostPerSession, otherToolsMs, autoBackgroundMs } = forking;
  checkAmounts({
    "fork.usd": fork.usd,
    "fork.tokens": fork.tokens,
    "family.usd": family.usd,
    "family.tokens": family.tokens,
  });
  checkCounts({ "fork.turns": fork.turns, mostPerFamily, mostPerSession, mostTasks });
  checkDurations({ "fork.ms": fork.ms, otherToolsMs, autoBackgroundMs });
};

export const checkExchangeLimits = ({ usd, tokens, maxTurns, ms }: SessionLimits): void => {
  checkAmounts({ "limits.usd": usd, "limits.tokens": tokens });
  checkCounts({ "limits.maxTurns": maxTurns });
  checkDurations({ "limits.ms": ms });
};

type Place = { readonly home: string; readonly cwd: string; readonly tools: readonly Tool[] };

const filledPermissions = (permissions: Permissions, place: Place): ResolvedPermissions => {
  const policy = permissions.policy ?? policyOf(permissions, place);
  const { allow, deny, mode, ask, ...rest } = permissions;
  const stated = permissions.stated ?? [allow, deny, mode].some((given) => given !== undefined);
  const asking = ask === undefined ? {} : { ask: ask === "attached" ? waitsForAttached : ask };
  return { ...rest, ...asking, policy, stated, mode: mode ?? policy.mode };
};

/** Waits until an attached client has answered; then the question is withdrawn here. */
const waitsForAttached: Ask = (_question, signal) =>
  new Promise((resolve) => {
    const gone = (): void => resolve({ kind: "deny" });
    if (signal.aborted) gone();
    else signal.addEventListener("abort", gone, { once: true });
  });

const policyOf = ({ allow = [], deny = [] }: Permissions, { home, cwd, tools }: Place): Policy => {
  const rules = (texts: readonly string[], list: RuleList): readonly Rule[] =>
    texts.map((text) => {
      const place = { base: cwd, home, tools: tools.map(({ name }) => name) };
      const read = parseRule(text, { ...place, list, origin: "the program" });
      if (read.kind === "wrong") throw new InputError(`permissions.${list}: ${read.reason}`);
      return read.rule;
    });
  return { ...mergeLayers([]), allow: rules(allow, "allow"), deny: rules(deny, "deny") };
};

// --- a clock that never goes back ----------------------------------------------------------------------------------------
// Of two readings the later one is never smaller, so no duration is negative. While the machine's clock runs forward, also
// over a sleep, this one runs with it. Times of different processes are compared with a floor of 0.

export type ClockSources = {
  /** Milliseconds since 1970; may be set back. */
  readonly wall: () => number;
  /** Milliseconds that only grow, to measure a time during which the wall clock was set back. */
  readonly ticks: () => number;
};

/** Milliseconds since 1970, ahead of the wall clock by as much as that was set back. */
export const steadyNow = ({ wall, ticks }: ClockSources): (() => number) => {
  const last = { wall: wall(), ticks: ticks(), now: Number.NEGATIVE_INFINITY };
  last.now = last.wall;
  return () => {
    const [seen, ticked] = [wall(), ticks()];
    const elapsed = seen >= last.wall ? seen - last.wall : Math.max(0, ticked - last.ticks);
    last.now += elapsed;
    last.wall = seen;
    last.ticks = ticked;
    return Math.round(last.now);
  };
};
