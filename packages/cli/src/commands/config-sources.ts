/** Where does each setting come from, and which value applies?
 *  Invariant: the value that applies is the one that a session would get: it is taken from the same loader, not merged
 *  here a second time. Nothing in an untrusted folder is read.
 *  Elsewhere: the files (config-files.ts), how layers are merged (@prefork/guard), the output (config.ts). */

import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import {
  describeProblem,
  type EditableSettings,
  editableSettings,
  type LoadedSettings,
  loadSettings,
  type Mode,
  stateFolder,
  trustOf,
} from "@prefork/guard";
import { readSwitches } from "@prefork/runtime/internal";
import { type Io, UsageError } from "../io.ts";
import {
  editCommandFor,
  fileOf,
  homeOf,
  type KnownKey,
  knownKeys,
  readInside,
  readSettingsText,
  type Scope,
} from "./config-files.ts";
import { editorOf } from "./editor.ts";

export type SourceLayer = "default" | Scope | "environment" | "flag";

/** One value of a setting in one layer. */
export type SettingSource = {
  readonly key: string;
  readonly value: unknown;
  readonly layer: SourceLayer;
  /** The file; for the environment the variable, for the command line the flag. */
  readonly file?: string;
  readonly line?: number;
  /** Does it count? Of a list several layers may. */
  readonly applies: boolean;
  /** Why it does not. */
  readonly note?: string;
};

/** The flags of `prefork -p` that change settings. */
export type SettingFlags = {
  readonly permissionMode?: string;
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
};

type Policy = Extract<LoadedSettings, { kind: "policy" }>;

/** Every value that is set here, with the defaults, in the order: default, user, project, local, environment, flag. */
export const settingSources = async (flags: SettingFlags, io: Io): Promise<readonly SettingSource[]> => {
  const { loaded, files } = await loadHere(flags, io);
  const values = [...defaultValues(), ...files, ...environmentValues(io), ...flagValues(flags)];
  const sources = values.map((value) => ({ ...value, ...skippedNote(value, loaded) }));
  return sources.map((source) => ({ ...source, applies: doesApply(source, { sources, loaded, io }) }));
};

// --- files ---------------------------------------------------------------------------------------------------------------

type LayerValue = Omit<SettingSource, "applies">;

const loadHere = async (
  { permissionMode, allow, deny }: SettingFlags,
  io: Io,
): Promise<{ readonly loaded: Policy; readonly files: readonly LayerValue[] }> => {
  const [home, project] = [homeOf(io), resolve(".")];
  const trust = await trustOf(stateFolder(io.env, home), project);
  const trusted = trust.kind === "trusted" && project !== home;
  if (trust.kind === "changed")
    io.err("prefork: this folder changed since you trusted it, so its settings are skipped (prefork trust)\n");
  const loaded = await loadSettings({
    ...{ home, project, trusted },
    ...(trust.kind === "trusted" ? { entries: trust.entries } : {}),
    ...(trust.kind === "trusted" && trust.accepted ? { accepted: trust.accepted } : {}),
    flags: {
      ...(allow ? { allow } : {}),
      ...(deny ? { deny } : {}),
      ...(permissionMode === undefined ? {} : { mode: permissionMode as Mode }),
    },
  });
  if (loaded.kind === "broken") throw new UsageError(brokenText(loaded.problems, io));
  const scopes: readonly Scope[] = trusted ? ["user", "project", "local"] : ["user"];
  const own = await Promise.all(
    scopes.map(async (scope) => flatten(await readSettingsText(scope, io), { layer: scope, file: fileOf(scope, io) })),
  );
  const claude = trusted ? await Promise.all(CLAUDE_FILES.map(claudeValues)) : [];
  return { loaded, files: [...own.flat(), ...claude.flat()] };
};

type Problems = Extract<LoadedSettings, { kind: "broken" }>["problems"];

const brokenText = (problems: Problems, io: Io): string => {
  const scopes: readonly Scope[] = ["user", "project", "local"];
  const broken = scopes.find((scope) => problems.some(({ name }) => name === fileOf(scope, io)));
  const fix = broken === undefined ? "" : `; fix it: ${editCommandFor(broken)}`;
  const texts = problems.map((one) =>
    one.name === "the command line" ? `${one.name}: ${one.message}` : describeProblem(one),
  );
  return `${texts.join("; ")}${fix}`;
};

type Origin = { readonly layer: SourceLayer; readonly file: string };

const flatten = (text: string | undefined, origin: Origin): readonly LayerValue[] => {
  const settings = text === undefined ? undefined : editableSettings(text);
  return settings ? leavesOf(settings, origin) : [];
};

/** Values of tool servers may be secrets, so only their names are shown. */
const leavesOf = (settings: EditableSettings, origin: Origin, path: readonly string[] = []): readonly LayerValue[] => {
  const value = settings.valueAt(path);
  const line = settings.lineOf(path);
  const leaf = { key: path.join("."), ...origin, ...(line === undefined ? {} : { line }) };
  if (path[0] === "$schema" || value === undefined) return [];
  if (path[0] === "mcpServers" && path.length === 2) return [{ ...leaf, value: "(prefork mcp)" }];
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [{ ...leaf, value }];
  return Object.keys(value).flatMap((name) => leavesOf(settings, origin, [...path, name]));
};

const CLAUDE_FILES: readonly (readonly [string, Scope])[] = [
  [".claude/settings.json", "project"],
  [".claude/settings.local.json", "local"],
];

/** Of these files only the permission rules count. */
const claudeValues = async ([name, layer]: readonly [string, Scope]): Promise<readonly LayerValue[]> => {
  const values = flatten(await readInside(name), { layer, file: resolve(name) });
  return values.filter(({ key }) => /^permissions\.(?:allow|ask|deny)$/.test(key));
};

// --- the other layers --------------------------------------------------------------------------------------------------

const defaultValues = (): readonly LayerValue[] =>
  knownKeys().flatMap((known: KnownKey) =>
    known.default === undefined ? [] : [{ key: known.key, value: known.default, layer: "default" as const }],
  );

/** Variables that replace a setting, or stand in for one. */
const environmentValues = ({ env }: Io): readonly LayerValue[] => {
  const { forks, autoBackgroundMs } = readSwitches(env);
  const variable = (key: string, value: unknown, name: string): LayerValue => ({
    ...{ key, value, layer: "environment", file: `$${name}` },
  });
  const editor = editorOf(env, undefined);
  return [
    ...(forks === false ? [variable("forks.enabled", false, "PREFORK_FORK_SUBAGENT")] : []),
    ...(autoBackgroundMs === undefined
      ? []
      : [variable("forks.autoBackgroundMs", autoBackgroundMs, "PREFORK_AUTO_BACKGROUND_MS")]),
    ...(env.NO_COLOR ? [variable("terminal.theme", "none", "NO_COLOR")] : []),
    ...(editor === undefined ? [] : [variable("terminal.editor", editor.argv, editor.from)]),
  ];
};

const flagValues = ({ permissionMode, allow, deny }: SettingFlags): readonly LayerValue[] => {
  const flag = (key: string, value: unknown, name: string): readonly LayerValue[] =>
    value === undefined ? [] : [{ key, value, layer: "flag", file: name }];
  return [
    ...flag("permissions.mode", permissionMode, "--permission-mode"),
    ...flag("permissions.allow", allow, "--allow"),
    ...flag("permissions.deny", deny, "--deny"),
  ];
};

// --- which one applies ---------------------------------------------------------------------------------------------------

/** What the loader said about this value, such as that a project may not set it. */
const skippedNote = ({ key, file }: LayerValue, { policy }: Policy): { readonly note?: string } => {
  if (file === undefined) return {};
  const parts = key.split(".");
  const names = parts.map((_, index) => parts.slice(0, index + 1).join("."));
  const starts = names.map((name) => `${file}: ${name}: `);
  const notice = policy.notices.find((one) => starts.some((start) => one.startsWith(start)));
  const start = starts.find((one) => notice?.startsWith(one));
  return notice === undefined || start === undefined ? {} : { note: notice.slice(start.length) };
};

type Compared = { readonly sources: readonly LayerValue[]; readonly loaded: Policy; readonly io: Io };

/** If a later layer has the same value, it is the one that counts. The terminal prefers your settings to variables. */
const ORDER: readonly SourceLayer[] = ["default", "user", "project", "local", "environment", "flag"];
const TERMINAL_ORDER: readonly SourceLayer[] = ["default", "environment", "user", "flag"];

const doesApply = (source: LayerValue, { sources, loaded, io }: Compared): boolean => {
  if (source.note !== undefined) return source.note.includes("not accepted") && hasAccepted(source, loaded);
  const isList = Array.isArray(source.value) && !source.key.startsWith("terminal.");
  if (isList || source.key.startsWith("mcpServers.")) return true;
  const order = source.key.startsWith("terminal.") ? TERMINAL_ORDER : ORDER;
  const rivals = sources
    .filter((one) => one.key === source.key && one.note === undefined)
    .toSorted((a, b) => order.indexOf(a.layer) - order.indexOf(b.layer));
  const effective = effectiveValue(source.key, { loaded, io });
  const chosen = rivals.findLast(({ value }) => effective === undefined || isDeepStrictEqual(value, effective));
  return (chosen ?? rivals.at(-1)) === source;
};

/** Of a project's allow rules some may have been accepted. */
const hasAccepted = ({ file, value }: LayerValue, { policy }: Policy): boolean =>
  Array.isArray(value) && policy.allow.some(({ origin }) => origin === file);

/** The value that a session gets; undefined where the order of the layers alone decides. */
const effectiveValue = (key: string, { loaded, io }: Pick<Compared, "loaded" | "io">): unknown => {
  const { policy } = loaded;
  const [group = "", field = ""] = key.split(".");
  if (key === "permissions.mode") return policy.mode;
  if (key === "sandbox.mode") return policy.sandbox;
  if (group === "worktrees") return new Map<string, unknown>(Object.entries(policy.worktrees)).get(field);
  if (group !== "forks") return undefined;
  const { forks, autoBackgroundMs } = readSwitches(io.env);
  if (field === "enabled" && forks === false) return false;
  if (field === "autoBackgroundMs" && autoBackgroundMs !== undefined) return autoBackgroundMs;
  return new Map<string, unknown>(Object.entries(policy.forks)).get(field);
};
