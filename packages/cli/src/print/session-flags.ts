/** What the command line and the settings say about a session, as plain data.
 *  Invariant: settings of an untrusted folder are not read; an invalid file is an error that names the line.
 *  Elsewhere: what they mean (@prefork/guard), which engine (engine-choice.ts). */

import { lstat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import {
  describeProblem,
  loadSettings,
  type Mode,
  type Policy,
  type SettingsProblem,
  stateFolder,
  trustOf,
} from "@prefork/guard";
import { type Extension, readSkills, type ServerEntry, type SessionLimits, type Skill } from "@prefork/runtime";
import { readExtensions, readServers, toolEnvironment } from "@prefork/runtime/internal";
import { type Io, UsageError } from "../io.ts";
import { resolveFolder } from "../resolve-folder.ts";

export type SessionFlags = {
  readonly cwd?: string;
  readonly addDir?: readonly string[];
  readonly permissionMode?: string;
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly maxTurns?: string;
  readonly maxBudgetUsd?: string;
  readonly timeout?: string;
  readonly appendSystemPrompt?: string;
  readonly attach?: boolean;
};

export type SessionPlan = {
  readonly cwd: string;
  readonly home: string;
  readonly state: string;
  readonly directories: readonly string[];
  readonly policy: Policy;
  readonly servers: readonly ServerEntry[];
  readonly skills: readonly Skill[];
  readonly extensions: readonly Extension[];
  /** The command line states a permission policy; only then may forks run with nobody to ask. */
  readonly stated: boolean;
  readonly limits: SessionLimits;
  readonly appendSystemPrompt?: string;
  /** Other processes of the user may attach. */
  readonly attach: boolean;
  /** What the user should know before the session starts. */
  readonly notices: readonly string[];
};

const MODES: readonly Mode[] = ["default", "accept-edits", "plan", "bypass"];

export const planSession = async (flags: SessionFlags, { env }: Io): Promise<SessionPlan> => {
  const home = env.HOME || homedir();
  const state = stateFolder(env, home);
  const cwd = await resolveFolder(flags.cwd ?? ".", "--cwd");
  const { permissionMode: mode, appendSystemPrompt } = flags;
  if (mode !== undefined && !isMode(mode))
    throw new UsageError(`--permission-mode ${mode} is unknown; use ${MODES.join(", ")}`);
  const trust = await trustOf(state, cwd);
  const directories = await Promise.all((flags.addDir ?? []).map((folder) => resolveFolder(folder, "--add-dir")));
  const loaded = await loadSettings({
    home,
    project: cwd,
    trusted: trust.kind === "trusted",
    ...(trust.kind === "trusted" ? { entries: trust.entries } : {}),
    ...(trust.kind === "trusted" && trust.accepted ? { accepted: trust.accepted } : {}),
    ...("kept" in trust && trust.kept ? { kept: trust.kept } : {}),
    flags: {
      ...(flags.allow ? { allow: flags.allow } : {}),
      ...(flags.deny ? { deny: flags.deny } : {}),
      ...(mode === undefined ? {} : { mode }),
    },
  });
  if (loaded.kind === "broken") throw new UsageError(loaded.problems.map(problemText).join("; "));
  const { servers, notices } = await readServers({
    ...{ project: cwd, trusted: trust.kind === "trusted", settings: loaded.servers },
    ...(trust.kind === "trusted" ? { entries: trust.entries } : {}),
    environment: toolEnvironment(env),
  });
  const found = await readSkills({
    ...{ home, project: cwd, trusted: trust.kind === "trusted" },
    ...(trust.kind === "trusted" ? { entries: trust.entries } : {}),
  });
  const extensions = await readExtensions({
    ...{ project: cwd, trusted: trust.kind === "trusted", settings: loaded.extensions },
    ...(trust.kind === "trusted" ? { entries: trust.entries } : {}),
  });
  return {
    ...{ cwd, home, state, directories },
    policy: loaded.policy,
    servers,
    skills: found.skills,
    extensions,
    stated: [mode, flags.allow, flags.deny].some((given) => given !== undefined),
    limits: limitsOf(flags),
    attach: flags.attach ?? true,
    notices: [...(await trustNotice(trust)), ...notices, ...found.notices],
    ...(appendSystemPrompt === undefined ? {} : { appendSystemPrompt }),
  };
};

/** The command line has no line numbers to name. */
const problemText = (problem: SettingsProblem): string =>
  problem.name === "the command line" ? `${problem.name}: ${problem.message}` : describeProblem(problem);

const isMode = (text: string): text is Mode => MODES.some((mode) => mode === text);

const limitsOf = ({ maxTurns, maxBudgetUsd, timeout }: SessionFlags): SessionLimits => {
  const turns = numberOf("--max-turns", maxTurns, { whole: true });
  const usd = numberOf("--max-budget-usd", maxBudgetUsd);
  const seconds = numberOf("--timeout", timeout);
  return {
    ...(turns === undefined ? {} : { maxTurns: turns }),
    ...(usd === undefined ? {} : { usd }),
    ...(seconds === undefined ? {} : { ms: Math.ceil(seconds * 1_000) }),
  };
};

const numberOf = (flag: string, value: string | undefined, { whole = false } = {}): number | undefined => {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (value.trim() === "" || !Number.isFinite(number) || number <= 0 || (whole && !Number.isInteger(number)))
    throw new UsageError(`${flag} takes a ${whole ? "whole " : ""}number above 0, not ${JSON.stringify(value)}`);
  return number;
};

type Trust = Awaited<ReturnType<typeof trustOf>>;

/** A notice if the folder has settings that are not used. */
const trustNotice = async (trust: Trust): Promise<readonly string[]> => {
  switch (trust.kind) {
    case "trusted":
      return [];
    case "changed":
      return [
        `settings of this folder are not used: ${trust.changed.join(", ")} changed since you trusted this folder (prefork trust)${keptRulesText(trust)}`,
      ];
    case "unknown": {
      const unused = await existingNames(trust.folder, [
        ".prefork/settings.json",
        ".prefork/settings.local.json",
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".prefork/extensions",
        ".mcp.json",
      ]);
      return unused.length === 0
        ? []
        : [`settings of this folder are not used: ${unused.join(", ")} is not trusted (prefork trust)`];
    }
    case "refused":
      return [`settings of this folder are not used: ${trust.reason}${keptRulesText(trust)}`];
  }
};

const keptRulesText = ({ kept }: { readonly kept?: readonly unknown[] }): string =>
  kept ? "; the deny and ask rules that you trusted still apply" : "";

/** Which of these names exist? Their content is not read. */
const existingNames = async (folder: string, names: readonly string[]): Promise<readonly string[]> => {
  const found = await Promise.all(
    names.map((name) =>
      lstat(join(folder, name)).then(
        () => [name],
        () => [],
      ),
    ),
  );
  return found.flat();
};
