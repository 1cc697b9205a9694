/** `prefork config`: what your settings say and where, what can be set, and changing one of them.
 *  Invariant: a change that the file would be refused for is not written; of a folder that is not trusted nothing is read;
 *  comments and order of a file stay as they are.
 *  Elsewhere: what a setting means (docs/permissions.md and the schema), reading them for a session (@prefork/runtime). */

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
  new Option("--scope <scope>", "your own settings, this project's, or yours for this project")
    .choices(["user", "project", "local"])
    .default("user");

export const configCommand = (io: Io): Command => {
  const command = newCommand("config", io)
    .description("what your settings say, what can be set, and changing it")
    .helpCommand(false)
    .addHelpText("after", "\nWithout a command: list. prefork config keys names everything that can be set.");
  command.addCommand(
    newCommand("list", io)
      .description("every setting that counts here, with the file it is in")
      .option("--json", "one JSON object a line")
      .action((flags: ListFlags) => list(flags, io)),
    { isDefault: true },
  );
  command.addCommand(
    newCommand("keys", io)
      .description("everything that can be set, and what it does")
      .option("--json", "the JSON schema")
      .action(({ json }: ListFlags) => io.out(json ? settingsJsonSchema() : keysText())),
  );
  command.addCommand(
    newCommand("get", io)
      .description("the value of one setting in each file that has it")
      .argument("<key>", "as in forks.maxTurns")
      .option("--json", "one JSON object a line")
      .action((key: string, flags: ListFlags) => get(key, flags, io)),
  );
  command.addCommand(
    newCommand("set", io)
      .description("change one setting")
      .argument("<key>", "as in forks.maxTurns")
      .argument("<value>", "JSON, or plain text")
      .addOption(scope())
      .action((key: string, value: string, flags: ScopeFlags) => change(key, writtenValue(value), { flags, io })),
  );
  command.addCommand(
    newCommand("unset", io)
      .description("take one setting out, so that its default holds")
      .argument("<key>", "as in forks.maxTurns")
      .addOption(scope())
      .action((key: string, flags: ScopeFlags) => change(key, undefined, { flags, io })),
  );
  command.addCommand(
    newCommand("path", io)
      .description("the settings file, for your editor")
      .addOption(scope())
      .action(({ scope: which }: ScopeFlags) => io.out(`${fileOf(which, io)}\n`)),
  );
  return command;
};

const homeOf = ({ env }: Io): string => env.HOME || homedir();

const NAMES: Readonly<Record<Scope, string>> = {
  user: "settings.json",
  project: "settings.json",
  local: "settings.local.json",
};

const fileOf = (which: Scope, io: Io): string =>
  join(which === "user" ? homeOf(io) : resolve("."), ".prefork", NAMES[which]);

// --- looking -----------------------------------------------------------------------------------------------------------

type Setting = { readonly key: string; readonly value: unknown; readonly file: string };

/** The files that count here: those of a project only where it is trusted. */
const scopesHere = async (io: Io): Promise<readonly Scope[]> => {
  const [home, project] = [homeOf(io), resolve(".")];
  const trust = await trustOf(stateFolder(io.env, home), project);
  if (project === home || trust.kind !== "trusted") {
    if (trust.kind === "changed")
      io.err("prefork: this folder changed since it was trusted; its settings are left out\n");
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
    found.push(...flat(readable(await textOf(which, io), file).valueAt([]), file));
  }
  return found;
};

const readable = (text: string | undefined, file: string): EditableSettings => {
  const settings = editableSettings(text);
  if (!settings) throw new UsageError(`${file} is not valid JSON; mend it first (prefork doctor says where)`);
  return settings;
};

/** Your own file may be a link of yours; a project's is read and written without following any, and nothing but a plain
 *  file is waited for. */
const textOf = async (which: Scope, io: Io): Promise<string | undefined> => {
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
  const found = await root.read(join(root.path, ".prefork", NAMES[which]));
  if (!found.ok) throw new UsageError(`${file} cannot be read: ${found.reason}`);
  return found.bytes.toString("utf8");
};

/** Values of tool servers may be keys, so they are named and not shown. */
const flat = (value: unknown, file: string, path: readonly string[] = []): readonly Setting[] => {
  const isGroup = typeof value === "object" && value !== null && !Array.isArray(value);
  if (path[0] === "mcpServers" && path.length === 2) return [{ key: path.join("."), value: "(prefork mcp)", file }];
  if (!isGroup) return value === undefined ? [] : [{ key: path.join("."), value, file }];
  return Object.entries(value).flatMap(([name, inner]) => flat(inner, file, [...path, name]));
};

const list = async ({ json }: ListFlags, io: Io): Promise<void> => {
  const settings = await settingsHere(io);
  if (json) for (const setting of settings) io.out(jsonLine(setting));
  else if (settings.length === 0)
    io.out(`Nothing is set; every default holds. prefork config keys names what can be set.\n`);
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
  if (!isKnown) throw new UsageError(`there is no setting ${key}; prefork config keys names them all`);
  return path;
};

// --- changing ----------------------------------------------------------------------------------------------------------

/** `true`, `5` and `["a"]` are JSON; anything else is text. */
const writtenValue = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
};

type Given = { readonly flags: ScopeFlags; readonly io: Io };

const change = async (key: string, value: unknown, { flags, io }: Given): Promise<void> => {
  const path = pathOf(key);
  const file = fileOf(flags.scope, io);
  const settings = readable(await textOf(flags.scope, io), file);
  if (value === undefined && settings.valueAt(path) === undefined) throw new UsageError(`${key} is not set in ${file}`);
  const text = settings.withValue(path, value);
  const home = homeOf(io);
  const layer: Layer = flags.scope;
  const base = flags.scope === "user" ? home : resolve(".");
  const read = parseSettings(text, { name: file, layer, base, home });
  if (read.kind === "broken") throw new UsageError(`not changed: ${read.problems.map(describeProblem).join("; ")}`);
  await write(file, text, { flags, io });
  io.out(
    value === undefined ? `${key} is no longer in ${file}.\n` : `${key} = ${JSON.stringify(value)} is in ${file}.\n`,
  );
  if (flags.scope !== "user") io.out("It counts once the folder is trusted as it is now: prefork trust\n");
};

const write = async (file: string, text: string, { flags, io }: Given): Promise<void> => {
  const isOwn = flags.scope === "user";
  if (isOwn) await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const drafts = draftsIn(stateFolder(io.env, homeOf(io)));
  await using root = await openRoot(isOwn ? dirname(file) : resolve("."), { protect: false, private: isOwn, drafts });
  const name = isOwn ? NAMES.user : join(".prefork", NAMES[flags.scope]);
  const written = await root.write(join(root.path, name), text);
  if (!written.ok) throw new UsageError(`${file} cannot be written: ${written.reason}`);
};
