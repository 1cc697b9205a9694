/** What the environment switches on and off. Pure.
 *  Invariant: a value that nobody knows changes nothing and is named; an empty one counts as not set.
 *  Elsewhere: the same in settings (@prefork/guard), what it means (forking.ts). */

type Environment = Readonly<Record<string, string | undefined>>;

export type Switches = {
  /** Undefined: nothing is said. */
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
/** Where it is switched on without a time. */
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
