/** Which rules apply? Merges the settings of all layers into one policy.
 *  Invariant: every layer may tighten; only the user's own settings and the command line may allow, choose a mode, add folders or
 *  read-only programs. A project's rule allows only if the user accepted exactly this rule. The order of layers never decides
 *  between deny, ask and allow.
 *  Elsewhere: reading one layer (settings.ts), the answer for a call (decide.ts). */

import type { PlanRule } from "../bash/index.ts";
import { writtenPattern } from "./path-rules.ts";
import type { Rule } from "./rules.ts";
import type { ForkRules, TerminalFields, WorktreeRules, WrittenServers } from "./settings-file.ts";

export type Layer = "user" | "project" | "local" | "command-line";
export type SandboxMode = "off" | "auto" | "required";

/** default: ask before changes. accept-edits: files inside the workspace may change without asking. plan: only reading.
 *  bubble: a fork's mode; its questions go to the parent. bypass: asks only where rules and protected names demand it. */
export type Mode = "default" | "accept-edits" | "plan" | "bubble" | "bypass";

export type ReadOnlyProgram = {
  readonly name: string;
  /** The required first arguments; if missing, any arguments. */
  readonly args?: readonly string[];
};

export type LayerSettings = {
  readonly layer: Layer;
  readonly rules: readonly Rule[];
  /** Of a project: rules that would allow, and those that the user accepted when trusting the folder. */
  readonly offered?: readonly Rule[];
  readonly accepted?: readonly Rule[];
  readonly mode?: Mode;
  readonly directories: readonly string[];
  readonly readOnlyPrograms: readonly ReadOnlyProgram[];
  readonly sandbox?: SandboxMode;
  readonly forks?: ForkRules;
  readonly worktrees?: WorktreeRules;
  /** Tool servers that it names; not part of the policy. */
  readonly servers?: WrittenServers;
  /** Modules that it names, as paths relative to the file; not part of the policy. */
  readonly extensions?: readonly string[];
  /** How the user's terminal looks and behaves; not part of the policy. */
  readonly terminal?: TerminalFields;
  /** Settings that the file's layer may not decide, and that are skipped. */
  readonly notices: readonly string[];
};

export type Policy = {
  readonly allow: readonly Rule[];
  readonly ask: readonly Rule[];
  readonly deny: readonly Rule[];
  readonly mode: Mode;
  /** Additional folders that count as part of the workspace. */
  readonly directories: readonly string[];
  readonly readOnlyPrograms: readonly ReadOnlyProgram[];
  readonly sandbox: SandboxMode;
  /** How agents may be started; the session decides what is not set. */
  readonly forks: ForkRules;
  /** How agents get worktrees, and how their work is merged. */
  readonly worktrees: WorktreeRules;
  readonly notices: readonly string[];
};

export const mayLoosen = (layer: Layer): boolean => layer === "user" || layer === "command-line";

/** The accepted allow rules of a project, and a notice about the others. */
export const acceptedRules = (
  offered: readonly Rule[],
  { name, accepts = () => false }: { readonly name: string; readonly accepts?: (rule: string) => boolean },
): { readonly accepted: readonly Rule[]; readonly notices: readonly string[] } => {
  const untrusted = offered.filter(({ text }) => !accepts(text)).map(({ text }) => text);
  return {
    accepted: offered.filter(({ text }) => accepts(text)),
    notices:
      untrusted.length === 0
        ? []
        : [
            `${name}: permissions.allow: not accepted when this folder was trusted, so not applied: ${untrusted.join(", ")}`,
          ],
  };
};

const STRICTNESS: readonly SandboxMode[] = ["off", "auto", "required"];

/** The stricter of two modes, so that a project can require a sandbox and never disable one. */
const stricter = (one: SandboxMode, other: SandboxMode): SandboxMode =>
  STRICTNESS.indexOf(one) >= STRICTNESS.indexOf(other) ? one : other;

export const mergeLayers = (layers: readonly LayerSettings[]): Policy => {
  const own = layers.filter(({ layer }) => mayLoosen(layer));
  const rules = layers.flatMap((layer) => [
    ...layer.rules.filter(({ list }) => list !== "allow" || mayLoosen(layer.layer)),
    ...(layer.accepted ?? []),
  ]);
  // The command line comes last, so it overrides the user's file.
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

/** The user's settings and the command line come first, so that a project's restrictions apply to both. */
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
