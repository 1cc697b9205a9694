/** `prefork config`: shows your settings and where they come from, lists what can be set, and changes a setting.
 *  Invariant: a change that would make the file invalid is not written; nothing in an untrusted folder is read; comments
 *  and order of a file are kept.
 *  Elsewhere: what a setting means (docs/permissions.md and the schema), reading them for a session (@prefork/guard). */

import { lstat, mkdir, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import {
  describeProblem,
  draftsIn,
  type EditableSettings,
  editableSettings,
  type Layer,
  loadSettings,
  openRoot,
  parseSettings,
  settingsJsonSchema,
  stateFolder,
  trustOf,
} from "@prefork/guard";
import { type Command, Option } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { jsonLine } from "../lines.ts";
import { visible } from "../visible.ts";

type Scope = "user" | "project" | "local";
type ScopeFlags = { readonly scope: Scope };
type ListFlags = { readonly json?: true };

const scope = (): Option =>
  new Option("--scope <scope>", "your own settings, the project's, or your own for this project")
    .choices(["user", "project", "local"])
    .default("user");

export const configCommand = (io: Io): Command => {
  const command = newCommand("config", io)
    .description("show, list and change settings")
    .helpCommand(false)
    .addHelpText("after", "\nWithout a command: list. To see everything that can be set: prefork config keys");
  command.addCommand(
    newCommand("list", io)
      .description("show every setting that applies here, with its file")
      .option("--json", "print one JSON object per line")
      .action((flags: ListFlags) => list(flags, io)),
    { isDefault: true },
  );
  command.addCommand(
    newCommand("keys", io)
      .description("list everything that can be set, and what it does")
      .option("--json", "print the JSON schema")
      .action(({ json }: ListFlags) => io.out(json ? settingsJsonSchema() : keysText())),
  );
  command.addCommand(
    newCommand("get", io)
      .description("show the value of one setting, in each file that has it")
      .argument("<key>", "for example forks.maxTurns")
      .option("--json", "print one JSON object per line")
      .action((key: string, flags: ListFlags) => get(key, flags, io)),
  );
  command.addCommand(
    newCommand("set", io)
      .description("change one setting")
      .argument("<key>", "for example forks.maxTurns")
      .argument("<value>", "JSON, or plain text")
      .addOption(scope())
      .action((key: string, value: string, flags: ScopeFlags) => change(key, parseValue(value), { flags, io })),
  );
  command.addCommand(
    newCommand("unset", io)
      .description("remove one setting, so that its default applies")
      .argument("<key>", "for example forks.maxTurns")
      .addOption(scope())
      .action((key: string, flags: ScopeFlags) => change(key, undefined, { flags, io })),
  );
  command.addCommand(
    newCommand("path", io)
      .description("print the path of the settings file")
      .addOption(scope())
      .action(({ scope: which }: ScopeFlags) => io.out(`${fileOf(which, io)}\n`)),
  );
  return command;
};

const homeOf = ({ env }: Io): string => env.HOME || homedir();

const FILE_NAMES: Readonly<Record<Scope, string>> = {
  user: "settings.json",
  project: "settings.json",
  local: "settings.local.json",
};

const fileOf = (which: Scope, io: Io): string =>
  join(which === "user" ? homeOf(io) : resolve("."), ".prefork", FILE_NAMES[which]);

// --- reading -----------------------------------------------------------------------------------------------------------

type Setting = { readonly key: string; readonly value: unknown; readonly file: string };

/** The files that apply here; a project's files only if it is trusted. */
const scopesHere = async (io: Io): Promise<readonly Scope[]> => {
  const [home, project] = [homeOf(io), resolve(".")];
  const trust = await trustOf(stateFolder(io.env, home), project);
  if (project === home || trust.kind !== "trusted") {
    if (trust.kind === "changed")
      io.err("prefork: this folder changed since you trusted it, so its settings are skipped (prefork trust)\n");
    return ["user"];
  }
  const loaded = await loadSettings({
    ...{ home, project, trusted: true, entries: trust.entries },
    ...(trust.accepted ? { accepted: trust.accepted } : {}),
  });
  if (loaded.kind === "broken") throw new UsageError(loaded.problems.map(describeProblem).join("; "));
  return ["user", "project", "local"];
};

const settingsHere = async (io: Io): Promise<readonly Setting[]> => {
  const found: Setting[] = [];
  for (const which of await scopesHere(io)) {
    const file = fileOf(which, io);
    found.push(...flattenSettings(parseEditable(await readText(which, io), file).valueAt([]), file));
  }
  return found;
};

const parseEditable = (text: string | undefined, file: string): EditableSettings => {
  const settings = editableSettings(text);
  if (!settings) throw new UsageError(`${file} is not valid JSON; fix it first (prefork doctor shows where)`);
  return settings;
};

/** Your own file may be a symbolic link. A project's file is read and written without following links, and must be a
 *  regular file. */
const readText = async (which: Scope, io: Io): Promise<string | undefined> => {
  const file = fileOf(which, io);
  try {
    if (which === "user") return await readFile(file, "utf8");
    await lstat(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new UsageError(`${file} cannot be read: ${code}`, { cause: error });
  }
  await using root = await openRoot(resolve("."), { protect: false });
  const found = await root.read(join(root.path, ".prefork", FILE_NAMES[which]));
  if (!found.ok) throw new UsageError(`${file} cannot be read: ${found.reason}`);
  return found.bytes.toString("utf8");
};

/** Values of tool servers may be secrets, so only their names are shown. */
const flattenSettings = (value: unknown, file: string, path: readonly string[] = []): readonly Setting[] => {
  const isGroup = typeof value === "object" && value !== null && !Array.isArray(value);
  if (path[0] === "mcpServers" && path.length === 2) return [{ key: path.join("."), value: "(prefork mcp)", file }];
  if (!isGroup) return value === undefined ? [] : [{ key: path.join("."), value, file }];
  return Object.entries(value).flatMap(([name, inner]) => flattenSettings(inner, file, [...path, name]));
};

const list = async ({ json }: ListFlags, io: Io): Promise<void> => {
  const settings = await settingsHere(io);
  if (json) for (const setting of settings) io.out(jsonLine(setting));
  else if (settings.length === 0)
    io.out(`Nothing is set, so the defaults apply. To see what can be set: prefork config keys\n`);
  else io.out(settingLines(settings));
};

const settingLines = (settings: readonly Setting[]): string => {
  const lines = settings.map(({ key, value, file }, index) => {
    const heading = file === settings[index - 1]?.file ? "" : `${index === 0 ? "" : "\n"}${visible(file)}\n`;
    return `${heading}  ${visible(key)} = ${visible(JSON.stringify(value))}\n`;
  });
  return lines.join("");
};

const get = async (key: string, { json }: ListFlags, io: Io): Promise<void> => {
  const path = pathOf(key);
  const found = (await settingsHere(io)).filter((one) => one.key === key || one.key.startsWith(`${path.join(".")}.`));
  if (found.length === 0) {
    io.err(`prefork: ${key} is not set\n`);
    return io.exitWith(1);
  }
  if (json) for (const setting of found) io.out(jsonLine(setting));
  else io.out(settingLines(found));
};

// --- what can be set ---------------------------------------------------------------------------------------------------

type Schema = { readonly description?: string; readonly properties?: Readonly<Record<string, Schema>> };

const keysOf = (schema: Schema, path: readonly string[] = []): readonly (readonly [string, string])[] =>
  Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
    if (name === "$schema") return [];
    const key = [...path, name];
    return inner.properties ? keysOf(inner, key) : [[key.join("."), inner.description ?? ""] as const];
  });

const knownKeys = (): readonly (readonly [string, string])[] => keysOf(JSON.parse(settingsJsonSchema()) as Schema);

const keysText = (): string =>
  knownKeys()
    .map(([key, description]) => `${key}\n  ${description}\n`)
    .join("");

const pathOf = (key: string): readonly string[] => {
  const path = key.split(".");
  const known = knownKeys();
  const isKnown = known.some(([name]) => name === key || name.startsWith(`${key}.`) || key.startsWith(`${name}.`));
  if (!isKnown) throw new UsageError(`there is no setting ${key} (prefork config keys lists them)`);
  return path;
};

// --- changing ----------------------------------------------------------------------------------------------------------

/** `true`, `5` and `["a"]` are JSON; everything else is text. */
const parseValue = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
};

type ChangeContext = { readonly flags: ScopeFlags; readonly io: Io };

const change = async (key: string, value: unknown, { flags, io }: ChangeContext): Promise<void> => {
  const path = pathOf(key);
  const file = fileOf(flags.scope, io);
  const settings = parseEditable(await readText(flags.scope, io), file);
  if (value === undefined && settings.valueAt(path) === undefined) throw new UsageError(`${key} is not set in ${file}`);
  const text = settings.withValue(path, value);
  const home = homeOf(io);
  const layer: Layer = flags.scope;
  const base = flags.scope === "user" ? home : resolve(".");
  const read = parseSettings(text, { name: file, layer, base, home });
  if (read.kind === "broken") throw new UsageError(`not changed: ${read.problems.map(describeProblem).join("; ")}`);
  await write(file, text, { flags, io });
  io.out(
    value === undefined ? `Removed ${key} from ${file}.\n` : `Set ${key} = ${JSON.stringify(value)} in ${file}.\n`,
  );
  if (flags.scope !== "user") io.out("It applies once you trust the folder in its present form: prefork trust\n");
};

const write = async (file: string, text: string, { flags, io }: ChangeContext): Promise<void> => {
  const isOwn = flags.scope === "user";
  if (isOwn) await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const drafts = draftsIn(stateFolder(io.env, homeOf(io)));
  await using root = await openRoot(isOwn ? dirname(file) : resolve("."), { protect: false, private: isOwn, drafts });
  const name = isOwn ? FILE_NAMES.user : join(".prefork", FILE_NAMES[flags.scope]);
  const written = await root.write(join(root.path, name), text);
  if (!written.ok) throw new UsageError(`${file} cannot be written: ${written.reason}`);
};
