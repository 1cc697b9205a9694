/** How agents are started in a session, and within which limits: by the program, the settings and the environment.
 *  Limits from all sources apply, and the lowest wins. Defaults are filled here. An environment variable with an
 *  unknown value changes nothing and is named in a notice; an empty one counts as unset.
 *  Elsewhere: what the settings say (@prefork/guard), what is done with the result (../fork). */

import type { ForkRules } from "@prefork/guard/internal";
import type { ForkSettings } from "../fork/index.ts";
import type { ForkLimits, SpendLimits, TailChoice } from "../ports.ts";

export type ForkingOptions = TailChoice & {
  /** An Agent call must say "fork" to get one. Default: false. */
  readonly isExplicit?: boolean;
  readonly mostPerFamily?: number; // started in one turn; default: 200
  readonly mostPerSession?: number; // default: 1,000
  /** Limits of one fork. */
  readonly fork?: ForkLimits;
  /** Limits of all that are started in one turn. */
  readonly family?: SpendLimits;
  /** How long other calls of a turn may delay its forks. Default: 10,000 ms. */
  readonly otherToolsMs?: number;
  readonly wake?: "family" | "each"; // when an idle parent hears of its tasks; default: family
  /** Keep the parent's cache entry alive while its children work and it waits. Default: true. */
  readonly keepAlive?: boolean;
  /** Store what a family shares by name with the provider (Gemini), if that pays. Default: true. */
  readonly store?: boolean;
  /** If calls wait for their agents: after this time they stop waiting; 0: never. Default: PREFORK_AUTO_BACKGROUND_MS, then
   *  `forks.autoBackgroundMs` of the settings, else never. */
  readonly autoBackgroundMs?: number;
  /** What to do with tasks that an earlier run of the session left running. Default: report them as interrupted. */
  readonly interrupted?: "report" | "resume";
};

type Numbers = Readonly<Record<string, number | undefined>>;

const least = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);

const withoutUndefined = (values: Readonly<Record<string, unknown>>): object =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

/** Combines the settings with what the program says. */
export const mergeForkRules = (rules: ForkRules, given: ForkingOptions): ForkingOptions => {
  const { inFlight, placeholders, keepAlive, wake, interrupted, autoBackgroundMs } = rules;
  const counts: Numbers = {
    mostPerFamily: least(rules.perFamily, given.mostPerFamily),
    mostPerSession: least(rules.perSession, given.mostPerSession),
  };
  const each: Numbers = {
    turns: least(rules.maxTurns, given.fork?.turns),
    usd: least(rules.maxBudgetUsd, given.fork?.usd),
  };
  const all: Numbers = { usd: least(rules.maxFamilyBudgetUsd, given.family?.usd) };
  return {
    ...withoutUndefined({ inFlight, placeholders, keepAlive, wake, interrupted, autoBackgroundMs }),
    ...given,
    ...withoutUndefined(counts),
    isExplicit: rules.explicit === true || given.isExplicit === true,
    fork: { ...given.fork, ...withoutUndefined(each) },
    family: { ...given.family, ...withoutUndefined(all) },
  };
};

export const toForkSettings = ({
  forks,
  forking = {},
}: {
  readonly forks?: "on" | "off";
  readonly forking?: ForkingOptions;
}): ForkSettings => ({
  isExplicit: forking.isExplicit ?? false,
  forksOff: forks === "off",
  autoBackgroundMs: forking.autoBackgroundMs ?? 0,
  tail: { inFlight: forking.inFlight ?? "keep", placeholders: forking.placeholders ?? "forks" },
  mostPerFamily: forking.mostPerFamily ?? 200,
  mostPerSession: forking.mostPerSession ?? 1_000,
  fork: forking.fork ?? {},
  family: forking.family ?? {},
  otherToolsMs: forking.otherToolsMs ?? 10_000,
  wake: forking.wake ?? "family",
});

// --- what the environment switches on and off ----------------------------------------------------------------------------

type Environment = Readonly<Record<string, string | undefined>>;

export type Switches = {
  /** Undefined: not set. */
  readonly forks: boolean | undefined;
  /** 0: switched off. */
  readonly autoBackgroundMs: number | undefined;
  readonly notices: readonly string[];
};

const FORKS = "PREFORK_FORK_SUBAGENT";
const AUTO_BACKGROUND = "PREFORK_AUTO_BACKGROUND_MS";

const ON: readonly string[] = ["1", "true", "on", "yes"];
const OFF: readonly string[] = ["0", "false", "off", "no"];

/** A timer cannot wait longer. */
const LONGEST_MS = 2_147_483_647;
/** If it is switched on without a time. */
const AUTO_BACKGROUND_MS = 120_000;

export const readSwitches = (environment: Environment): Switches => {
  const [forks, time] = [FORKS, AUTO_BACKGROUND].map((name) => environment[name]?.trim().toLowerCase() ?? "");
  const autoBackgroundMs = timeIn(time ?? "");
  const isOn = switchIn(forks ?? "");
  return {
    forks: isOn === "unknown" ? undefined : isOn,
    autoBackgroundMs: autoBackgroundMs === "unknown" ? undefined : autoBackgroundMs,
    notices: [
      ...(isOn === "unknown" ? [unknown(FORKS, environment, "1, true, on, yes, 0, false, off or no")] : []),
      ...(autoBackgroundMs === "unknown"
        ? [unknown(AUTO_BACKGROUND, environment, "milliseconds, or 0 for never")]
        : []),
    ],
  };
};

const switchIn = (value: string): boolean | undefined | "unknown" => {
  if (value === "") return undefined;
  return ON.includes(value) ? true : OFF.includes(value) ? false : "unknown";
};

const timeIn = (value: string): number | undefined | "unknown" => {
  if (value === "") return undefined;
  const isOn = switchIn(value);
  if (isOn !== "unknown") return isOn ? AUTO_BACKGROUND_MS : 0;
  const ms = Number(value);
  return Number.isFinite(ms) && ms >= 0 ? Math.min(Math.ceil(ms), LONGEST_MS) : "unknown";
};

const unknown = (name: string, environment: Environment, takes: string): string =>
  `${name}=${(environment[name] ?? "").slice(0, 40)} is not understood and changes nothing; it takes ${takes}`;
