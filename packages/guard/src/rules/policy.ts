/** Which rules count: the settings of all layers as one policy.
 *  Invariant: every layer may tighten; only the user's own settings and the command line may allow, choose a mode, add
 *  folders or read-only programs. A project's rule allows only where a person accepted this very rule. The order of layers never decides between deny, ask and allow.
 *  Elsewhere: reading one layer (settings.ts), the answer for a call (decide.ts). */

import type { PlanRule } from "../bash/index.ts";
import { writtenPattern } from "./path-rules.ts";
import type { Rule } from "./rules.ts";
import type { ForkRules, WorktreeRules, WrittenServers } from "./settings-file.ts";

export type Layer = "user" | "project" | "local" | "command-line";
export type SandboxMode = "off" | "auto" | "required";

/** default: ask before changes. accept-edits: files inside the workspace may change unasked. plan: only reading.
 *  bubble: a fork's mode, its questions go to the parent. bypass: nothing is asked but what rules and protected names
 *  demand. */
export type Mode = "default" | "accept-edits" | "plan" | "bubble" | "bypass";

export type ReadOnlyProgram = {
  readonly name: string;
  /** The first arguments; without them any. */
  readonly args?: readonly string[];
};

export type LayerSettings = {
  readonly layer: Layer;
  readonly rules: readonly Rule[];
  /** Of a project: rules that would allow, and those of them that the person accepted when the folder was trusted. */
  readonly offered?: readonly Rule[];
  readonly accepted?: readonly Rule[];
  readonly mode?: Mode;
  readonly directories: readonly string[];
  readonly readOnlyPrograms: readonly ReadOnlyProgram[];
  readonly sandbox?: SandboxMode;
  readonly forks?: ForkRules;
  readonly worktrees?: WorktreeRules;
  /** Tool servers that it names; no part of the policy. */
  readonly servers?: WrittenServers;
  /** Modules that it names, as paths from the file; no part of the policy. */
  readonly extensions?: readonly string[];
  /** What the file says that its layer may not decide, and that is left out. */
  readonly notices: readonly string[];
};

export type Policy = {
  readonly allow: readonly Rule[];
  readonly ask: readonly Rule[];
  readonly deny: readonly Rule[];
  readonly mode: Mode;
  /** Folders beside the workspace that count as part of it. */
  readonly directories: readonly string[];
  readonly readOnlyPrograms: readonly ReadOnlyProgram[];
  readonly sandbox: SandboxMode;
  /** How agents may be started; what is not said is left to the session. */
  readonly forks: ForkRules;
  /** How agents get copies of the checkout, and how their work comes back. */
  readonly worktrees: WorktreeRules;
  readonly notices: readonly string[];
};

export const mayLoosen = (layer: Layer): boolean => layer === "user" || layer === "command-line";

/** What a project's rules that allow come to: those that were accepted, and a notice of the others. */
export const acceptedRules = (
  offered: readonly Rule[],
  { name, accepts = () => false }: { readonly name: string; readonly accepts?: (rule: string) => boolean },
): { readonly accepted: readonly Rule[]; readonly notices: readonly string[] } => {
  const left = offered.filter(({ text }) => !accepts(text)).map(({ text }) => text);
  return {
    accepted: offered.filter(({ text }) => accepts(text)),
    notices:
      left.length === 0
        ? []
        : [`${name}: permissions.allow: not accepted when this folder was trusted, so not applied: ${left.join(", ")}`],
  };
};

const STRICTNESS: readonly SandboxMode[] = ["off", "auto", "required"];

/** The stricter of two, so that a project can demand a sandbox and never lift one. */
const stricter = (one: SandboxMode, other: SandboxMode): SandboxMode =>
  STRICTNESS.indexOf(one) >= STRICTNESS.indexOf(other) ? one : other;

export const mergeLayers = (layers: readonly LayerSettings[]): Policy => {
  const own = layers.filter(({ layer }) => mayLoosen(layer));
  const rules = layers.flatMap((layer) => [
    ...layer.rules.filter(({ list }) => list !== "allow" || mayLoosen(layer.layer)),
    ...(layer.accepted ?? []),
  ]);
  // The command line is said last, so it wins over the user's file.
  const chosen = <T>(pick: (layer: LayerSettings) => T | undefined): T | undefined =>
    own
      .toSorted((a, b) => Number(a.layer === "command-line") - Number(b.layer === "command-line"))
      .map(pick)
      .findLast(isGiven);
  const demanded = layers.filter(({ layer }) => !mayLoosen(layer)).flatMap(({ sandbox }) => sandbox ?? []);
  return {
    allow: rules.filter(({ list }) => list === "allow"),
    ask: rules.filter(({ list }) => list === "ask"),
    deny: rules.filter(({ list }) => list === "deny"),
    mode: chosen(({ mode }) => mode) ?? "default",
    directories: own.flatMap(({ directories }) => directories),
    readOnlyPrograms: own.flatMap(({ readOnlyPrograms }) => readOnlyPrograms),
    sandbox: demanded.reduce(stricter, chosen(({ sandbox }) => sandbox) ?? "auto"),
    forks: forkRules(layers),
    worktrees: Object.assign({}, ...own.map(({ worktrees = {} }) => worktrees)),
    notices: layers.flatMap(({ notices }) => notices),
  };
};

/** What the user and the command line say comes first, so that a project's tightening holds for both. */
const RANK: readonly Layer[] = ["user", "command-line", "project", "local"];

const forkRules = (layers: readonly LayerSettings[]): ForkRules => {
  let rules: ForkRules = {};
  for (const { layer, forks = {} } of layers.toSorted((a, b) => RANK.indexOf(a.layer) - RANK.indexOf(b.layer)))
    rules = mayLoosen(layer) ? { ...rules, ...forks } : tightened(rules, forks);
  return rules;
};

const LOWERED = ["atOnce", "perFamily", "perSession", "maxTurns", "maxBudgetUsd", "maxFamilyBudgetUsd"] as const;

/** Fields of `forks` by which a project can tighten. */
export const TIGHTENING: readonly string[] = ["enabled", "explicit", ...LOWERED];

const tightened = (before: ForkRules, given: ForkRules): ForkRules => ({
  ...before,
  ...(given.enabled === false ? { enabled: false } : {}),
  ...(given.explicit === true ? { explicit: true } : {}),
  ...Object.fromEntries(
    LOWERED.flatMap((field) => {
      const value = given[field];
      return value === undefined ? [] : [[field, Math.min(value, before[field] ?? value)]];
    }),
  ),
});

const isGiven = <T>(value: T | undefined): value is T => value !== undefined;

/** The rules that deny reading or ask about it. A plan that runs without approval may read neither. */
export const planRules = ({ deny, ask }: Pick<Policy, "deny" | "ask">): readonly PlanRule[] =>
  [...deny, ...ask].flatMap(({ form, text, origin }) =>
    form.kind === "path" && form.tool === "Read"
      ? [{ rule: `${text} (${origin})`, paths: writtenPattern(form.pattern) }]
      : [],
  );
