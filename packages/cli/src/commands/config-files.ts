/** The settings files of `prefork config`: where they are, how they are read and written, and which keys they can have.
 *  Invariant: a project's file is read and written without following links, and must be a regular file. Your own may be
 *  a link.
 *  Elsewhere: where each value comes from (config-sources.ts), the commands (config.ts). */

import { lstat, mkdir, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import {
  describeProblem,
  draftsIn,
  type EditableSettings,
  editableSettings,
  openRoot,
  parseSettings,
  type SettingsReading,
  settingsJsonSchema,
  stateFolder,
} from "@prefork/guard";
import { type Io, UsageError } from "../io.ts";

export type Scope = "user" | "project" | "local";

export const homeOf = ({ env }: Io): string => env.HOME || homedir();

const FILE_NAMES: Readonly<Record<Scope, string>> = {
  user: "settings.json",
  project: "settings.json",
  local: "settings.local.json",
};

export const fileOf = (scope: Scope, io: Io): string =>
  join(scope === "user" ? homeOf(io) : resolve("."), ".prefork", FILE_NAMES[scope]);

/** Undefined if there is no file. `name` is another file of the same folder. */
export const readSettingsText = async (scope: Scope, io: Io, name = FILE_NAMES[scope]): Promise<string | undefined> => {
  const file = join(dirname(fileOf(scope, io)), name);
  if (scope !== "user") return await readInside(join(".prefork", name));
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new UsageError(`${file} cannot be read: ${code}`, { cause: error });
  }
};

/** A file of this folder, by its relative path. */
export const readInside = async (path: string): Promise<string | undefined> => {
  const file = resolve(path);
  try {
    await lstat(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new UsageError(`${file} cannot be read: ${code}`, { cause: error });
  }
  await using root = await openRoot(resolve("."), { protect: false });
  const found = await root.read(join(root.path, path));
  if (!found.ok) throw new UsageError(`${file} cannot be read: ${found.reason}`);
  return found.bytes.toString("utf8");
};

/** Replaces the file as a whole. */
export const writeSettingsText = async (
  scope: Scope,
  text: string,
  { io, name = FILE_NAMES[scope] }: { readonly io: Io; readonly name?: string },
): Promise<void> => {
  const isOwn = scope === "user";
  const folder = dirname(fileOf(scope, io));
  if (isOwn) await mkdir(folder, { recursive: true, mode: 0o700 });
  const drafts = draftsIn(stateFolder(io.env, homeOf(io)));
  await using root = await openRoot(isOwn ? folder : resolve("."), { protect: false, private: isOwn, drafts });
  const written = await root.write(join(root.path, isOwn ? name : join(".prefork", name)), text);
  if (!written.ok) throw new UsageError(`${join(folder, name)} cannot be written: ${written.reason}`);
};

/** What this text would mean as the settings of `scope`. `name` is for messages. */
export const readAs = (
  scope: Scope,
  text: string,
  { io, name }: { readonly io: Io; readonly name: string },
): SettingsReading => {
  const home = homeOf(io);
  return parseSettings(text, { name, layer: scope, base: scope === "user" ? home : resolve("."), home });
};

export const problemsOf = (read: SettingsReading): string =>
  read.kind === "broken" ? read.problems.map(describeProblem).join("; ") : "";

export const editCommandFor = (scope: Scope): string =>
  `prefork config edit${scope === "user" ? "" : ` --scope ${scope}`}`;

/** Throws with the location of the mistake if the file is not valid JSON. */
export const parseEditable = (scope: Scope, text: string | undefined, io: Io): EditableSettings => {
  const settings = editableSettings(text);
  if (settings) return settings;
  const problems = problemsOf(readAs(scope, text ?? "", { io, name: fileOf(scope, io) }));
  throw new UsageError(`${problems}; fix it first: ${editCommandFor(scope)}`);
};

// --- what can be set ---------------------------------------------------------------------------------------------------

export type KnownKey = {
  readonly key: string;
  readonly description: string;
  readonly default?: unknown;
  /** The values that it can have, if they are few. */
  readonly choices?: readonly unknown[];
};

type Schema = {
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
};

const keysIn = (schema: Schema, path: readonly string[] = []): readonly KnownKey[] =>
  Object.entries(schema.properties ?? {}).flatMap(([name, inner]): readonly KnownKey[] => {
    if (name === "$schema") return [];
    const below = [...path, name];
    if (inner.properties) return keysIn(inner, below);
    const choices = inner.type === "boolean" ? [true, false] : inner.enum;
    return [
      {
        key: below.join("."),
        description: inner.description ?? "",
        ...(inner.default === undefined ? {} : { default: inner.default }),
        ...(choices ? { choices } : {}),
      },
    ];
  });

/** In the order of the schema. */
export const knownKeys = (): readonly KnownKey[] => keysIn(JSON.parse(settingsJsonSchema()) as Schema);

/** The parts of a key that exists: a setting, a group of settings, or something inside a setting. */
export const pathOf = (key: string): readonly string[] => {
  const isKnown = knownKeys().some(
    ({ key: known }) => known === key || known.startsWith(`${key}.`) || key.startsWith(`${known}.`),
  );
  if (!isKnown) throw new UsageError(`there is no setting ${key} (prefork config keys lists them)`);
  return key.split(".");
};
