/** The settings of a session, read from their files: the user's, the project's, the local ones, and the command line.
 *  Invariant: a missing file is not an error; a broken one is, with its locations. No byte of an untrusted folder is read, but
 *  restrictions that it set while it was trusted still apply.
 *  Elsewhere: what a file says (parseSettings of ../rules), whether a folder is trusted (../trust). */

import { lstat, readFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { openRoot, tamperingRisk } from "../files/index.ts";
import {
  describeProblem,
  type Layer,
  type LayerSettings,
  mergeLayers,
  type PermissionFlags,
  type Policy,
  parseClaudeSettings,
  parseSettings,
  type RuleList,
  type SettingsProblem,
  settingsOfFlags,
  type TerminalFields,
  type WrittenServers,
} from "../rules/index.ts";
import { type AcceptedRule, isEntryOf, type KeptSettings } from "../trust/index.ts";

export type SettingsLocations = {
  readonly home: string;
  readonly project: string;
  /** The project's and the local file are read only if this is true. */
  readonly trusted: boolean;
  /** Allow rules of the project that the user accepted when trusting it. */
  readonly accepted?: readonly AcceptedRule[];
  /** Hashes of the trusted files, by name: a file that has changed since is not used. */
  readonly entries?: Readonly<Record<string, string>>;
  /** Restrictions from the project's files as they were trusted; applied if the project is no longer trusted. */
  readonly kept?: readonly KeptSettings[];
  readonly flags?: PermissionFlags;
};

export type LoadedSettings =
  | {
      readonly kind: "policy";
      readonly policy: Policy;
      readonly servers: readonly ServersInFile[];
      /** Absolute paths of the modules that the user's settings name. */
      readonly extensions: readonly string[];
      readonly terminal: TerminalSettings;
    }
  | { readonly kind: "broken"; readonly problems: readonly SettingsProblem[] };

/** How the user's terminal looks and behaves, with defaults for what is not set. Read only from the user's own file. */
export type TerminalSettings = Required<Omit<TerminalFields, "statusCommand" | "editor">> & {
  /** A list runs without a shell; a text is run by sh. */
  readonly statusCommand?: string | readonly string[];
  readonly editor?: readonly string[];
};

const TERMINAL_DEFAULTS: TerminalSettings = {
  theme: "auto",
  keys: "default",
  notify: "off",
  mouse: false,
  screenReader: false,
};

/** Tool servers that a settings file names. */
export type ServersInFile = { readonly path: string; readonly servers: WrittenServers };

type SettingsFile = {
  readonly layer: Layer;
  readonly base: string;
  readonly path: string;
  readonly parse: typeof parseSettings;
};

const filesOf = ({ home, project, trusted }: SettingsLocations): readonly SettingsFile[] => {
  const path = join(home, ".prefork", "settings.json");
  const user: SettingsFile = { layer: "user", base: home, path, parse: parseSettings };
  return !trusted || project === home ? [user] : [user, ...projectFiles(project)];
};

/** Relative to the project, as trust names them. */
const PROJECT_FILES: readonly (readonly [string, Omit<SettingsFile, "base" | "path">])[] = [
  [".prefork/settings.json", { layer: "project", parse: parseSettings }],
  [".prefork/settings.local.json", { layer: "local", parse: parseSettings }],
  [".claude/settings.json", { layer: "project", parse: parseClaudeSettings }],
  [".claude/settings.local.json", { layer: "local", parse: parseClaudeSettings }],
];

const projectFiles = (project: string): readonly SettingsFile[] =>
  PROJECT_FILES.map(([name, how]) => ({ ...how, base: project, path: join(project, name) }));

const CHANGED = "it was changed while prefork started; look at it, then trust the folder again (prefork trust)";

/** A file that somebody else could have written. */
class RefusedFile extends Error {
  constructor(path: string, risk: string) {
    // The path is already printed before the message.
    const problem = risk.startsWith(`${path} `) ? `it ${risk.slice(path.length + 1)}` : risk;
    super(`is not used: ${problem}; make it yours alone (chown, chmod go-w), or move it away`);
  }
}

/** Returns undefined for a missing file. The user's settings may be a link. A project's files are read without following
 *  links, because trust covers its files and not what a link points to. */
const readText = async (
  { layer, base, path }: SettingsFile,
  entries?: SettingsLocations["entries"],
): Promise<string | undefined> => {
  try {
    if (layer === "user") {
      const risk = await tamperingRisk(path);
      if (risk !== undefined) throw new RefusedFile(path, risk);
      return await readFile(path, "utf8");
    }
    await lstat(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== "ENOENT" && code !== "ENOTDIR") throw error;
    if (layer !== "user" && entries?.[relative(base, path)] !== undefined) throw new Error(CHANGED, { cause: error });
    return undefined;
  }
  await using root = await openRoot(base);
  const found = await root.read(join(root.path, relative(base, path)));
  if (!found.ok) throw new Error(found.reason);
  if (entries && !isEntryOf(entries[relative(base, path)], found.bytes)) throw new Error(CHANGED);
  return found.bytes.toString("utf8");
};

export const loadSettings = async (places: SettingsLocations): Promise<LoadedSettings> => {
  const { home, project, flags = {}, accepted = [] } = places;
  const layers: LayerSettings[] = [];
  const servers: ServersInFile[] = [];
  const extensions: string[] = [];
  const ofProject = Object.keys(places.entries ?? {}).some((name) => name.startsWith(".prefork/extensions/"));
  const tools = (): { readonly tools?: "any" } => (ofProject || extensions.length > 0 ? { tools: "any" } : {});
  const problems: SettingsProblem[] = [];
  const note = (name: string, message: string): void => {
    problems.push({ name, line: 1, column: 1, path: "", message });
  };
  for (const file of filesOf(places)) {
    const { layer, base, path, parse } = file;
    let text: string | undefined;
    try {
      text = await readText(file, places.entries);
    } catch (error) {
      // An unreadable file may contain denials, so continuing without it would loosen the policy.
      const { code, message } = error as NodeJS.ErrnoException;
      note(path, error instanceof RefusedFile ? message : `cannot be read: ${code ?? message}`);
      continue;
    }
    if (text === undefined) continue;
    const accepts = (text: string): boolean =>
      layer !== "user" && accepted.some(({ file, rule }) => join(project, file) === path && rule === text);
    const parsed = parse(text, { name: path, layer, base, home, accepts, ...tools() });
    if (parsed.kind === "settings") {
      layers.push(parsed.settings);
      if (parsed.settings.servers) servers.push({ path, servers: parsed.settings.servers });
      extensions.push(...(parsed.settings.extensions ?? []).map((name) => resolveExtension(name, { home, path })));
    } else problems.push(...parsed.problems);
  }
  layers.push(...keptLayers(places));
  const line = settingsOfFlags(flags, { base: project, home, ...tools() });
  if (typeof line === "string") note("the command line", line);
  else layers.push(line);
  if (problems.length > 0) return { kind: "broken", problems };
  const terminal: TerminalSettings = Object.assign({}, TERMINAL_DEFAULTS, ...layers.map((layer) => layer.terminal));
  return { kind: "policy", policy: mergeLayers(layers), servers, extensions, terminal };
};

const resolveExtension = (name: string, { home, path }: { readonly home: string; readonly path: string }): string =>
  name.startsWith("~/") ? join(home, name.slice(2)) : resolve(dirname(path), name);

/** Files that were broken when they were trusted never had an effect. */
const keptLayers = ({ home, project, trusted, kept = [] }: SettingsLocations): readonly LayerSettings[] => {
  if (trusted || project === home) return [];
  return PROJECT_FILES.flatMap(([name, { layer, parse }]) =>
    kept
      .filter(({ file }) => file === name)
      .map(({ text }) => parse(text, { name: `${join(project, name)} as you trusted it`, layer, base: project, home }))
      .flatMap((read) => (read.kind === "settings" ? [{ ...read.settings, notices: [] }] : [])),
  );
};

/** What the settings files of a project would do, shown before the user trusts it. */
export type ProjectRules = {
  /** Relative to the project. */
  readonly file: string;
  readonly ask: readonly string[];
  readonly deny: readonly string[];
  /** Applied only if accepted. */
  readonly allow: readonly string[];
  /** What is skipped in any case, and why the file cannot be used if so. */
  readonly notices: readonly string[];
};

/** Reads a project's files to show them; applies nothing. */
export const projectRules = async (project: string, home: string): Promise<readonly ProjectRules[]> => {
  const found: ProjectRules[] = [];
  for (const file of projectFiles(project)) {
    const { layer, base, path, parse } = file;
    const name = relative(project, path);
    const nothing = { file: name, ask: [], deny: [], allow: [] };
    try {
      const text = await readText(file);
      if (text === undefined) continue;
      const read = parse(text, { name, layer, base, home, accepts: () => true });
      if (read.kind === "broken") {
        found.push({ ...nothing, notices: read.problems.map(describeProblem) });
        continue;
      }
      const { rules, offered = [], notices } = read.settings;
      const textsIn = (list: RuleList): readonly string[] =>
        rules.flatMap((rule) => (rule.list === list ? [rule.text] : []));
      const allow = [...new Set(offered.map(({ text }) => text))];
      found.push({ file: name, ask: textsIn("ask"), deny: textsIn("deny"), allow, notices });
    } catch (error) {
      found.push({
        ...nothing,
        notices: [`${name}: cannot be read: ${error instanceof Error ? error.message : error}`],
      });
    }
  }
  return found;
};
