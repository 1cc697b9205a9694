/** What the terminal says in a folder where nobody has used prefork yet: which keys there are, what to try, and which model
 *  servers of this machine could answer.
 *  Invariant: writes nothing; keys are listed by name, and their values are never read; every suggested prompt works in this
 *  folder without a model; nothing here delays a frame or the session.
 *  Elsewhere: the prompts that the rehearsal engine understands (../rehearsal), model servers (local-engines.ts). */

import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { listSessions, type SessionStore } from "@prefork/runtime/observe";
import { profiles } from "@prefork/wire";
import { type EngineAddress, engineAddresses, findLocalEngines, type LocalEngine } from "./local-engines.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export type OpenedHere = {
  readonly cwd: string;
  readonly store: SessionStore;
  /** The session that was just opened. */
  readonly session: string;
  readonly engine: string;
  readonly model: string;
};

export type FirstRun = {
  readonly text: string;
  /** At most three. */
  readonly suggestions: readonly string[];
};

/** Undefined if there was a session in this folder before. */
export const readFirstRun = async (here: OpenedHere, env: Environment): Promise<FirstRun | undefined> => {
  const sessions = await listSessions(here.store, { cwd: here.cwd });
  if (sessions.some(({ id }) => id !== here.session)) return undefined;
  const keys = keysIn(env);
  const found = keys.length === 0 ? "" : `API keys that are set: ${keys.join(", ")}. `;
  if (here.engine !== "rehearsal")
    return { text: `${found}Answers come from ${here.engine} (${here.model}).`, suggestions: [] };
  const usable = providersWith(env).map((name) => `prefork --provider ${name} --model …`);
  const other = usable.length === 0 ? "" : ` To use one: ${usable.join(", or ")}`;
  return {
    text: `${found}You can try everything without a model; prefork tour shows forks at work. To get one, leave, set a key, and start again.${other}`,
    suggestions: suggestPrompts(await readFolder(here.cwd)),
  };
};

/** Providers with a key that are used only if they are named. */
const providersWith = (env: Environment): readonly string[] =>
  [...profiles.values()]
    .filter(({ keys, model }) => model === undefined && keys.some((name) => (env[name] ?? "").trim() !== ""))
    .map(({ name }) => name);

/** Names of the variables with a key. */
export const keysIn = (env: Environment): readonly string[] => {
  const names = [...profiles.values()].flatMap(({ keys }) => keys);
  return [...new Set([...names, "ANTHROPIC_AUTH_TOKEN"])].filter((name) => (env[name] ?? "").trim() !== "");
};

// --- model servers of this machine ---------------------------------------------------------------------------------------

/** One line for each server that answers, with the command that uses it. Not looked for if there is a key. */
export const localEngineLines = async (
  env: Environment,
  addresses: readonly EngineAddress[] = engineAddresses(env),
): Promise<readonly string[]> =>
  keysIn(env).length > 0 ? [] : (await findLocalEngines(addresses)).map((engine) => engineLine(engine));

/** The command has its own line, so that it can be copied. */
const engineLine = ({ provider, title, baseUrl, models }: LocalEngine): string => {
  const [model = "", ...others] = models;
  const address = baseUrl === undefined ? "" : ` --base-url ${baseUrl}`;
  const more = others.length === 0 ? "" : ` Its other models: ${others.join(", ")}.`;
  return `${title} answers on this machine.${more} To use it, leave and run:\nprefork --provider ${provider}${address} --model ${model}`;
};

// --- suggestions ---------------------------------------------------------------------------------------------------------

export type FolderFacts = {
  readonly isRepository: boolean;
  /** Names that can be written in a prompt as they are. */
  readonly folders: readonly string[];
  readonly files: readonly string[];
};

const NAME = /^[A-Za-z0-9][\w.-]{0,60}$/;
/** What other programs wrote, and words that mean the whole folder in a prompt. */
const UNUSUAL = /^(?:node_modules|dist|build|out|target|vendor|coverage|all|the|this|here|repo|repository|project)$/i;
/** Known names first: they say most about a project. */
const KNOWN = ["src", "packages", "lib", "app", "test", "tests", "docs", "examples", "scripts"];

const readFolder = async (cwd: string): Promise<FolderFacts> => {
  const entries = await readdir(cwd, { withFileTypes: true }).catch(() => []);
  const usable = entries.filter(({ name }) => NAME.test(name) && !UNUSUAL.test(name));
  const namesOf = (isWanted: (entry: (typeof usable)[number]) => boolean): readonly string[] =>
    usable
      .filter(isWanted)
      .map(({ name }) => name)
      .sort((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1));
  return {
    isRepository: isInRepository(cwd),
    folders: namesOf((entry) => entry.isDirectory()),
    files: namesOf((entry) => entry.isFile()),
  };
};

const rankOf = (name: string): number => (KNOWN.includes(name) ? KNOWN.indexOf(name) : KNOWN.length);

const isInRepository = (folder: string): boolean =>
  existsSync(join(folder, ".git")) || (dirname(folder) !== folder && isInRepository(dirname(folder)));

export const suggestPrompts = ({ isRepository, folders, files }: FolderFacts): readonly string[] => {
  const [file] = files;
  const first = isRepository ? "git status" : file === undefined ? "run `ls -la`" : `count lines in \`${file}\``;
  const second = folders.length > 0 ? "count files per folder" : "how many files are here";
  return [first, second, `in parallel: ${parallelTasks(folders, files).join("; ")}`];
};

const parallelTasks = (folders: readonly string[], files: readonly string[]): readonly string[] => {
  if (folders.length > 1) return folders.slice(0, 3).map((name) => `how many files are in \`${name}\``);
  if (files.length > 1) return files.slice(0, 3).map((name) => `count lines in \`${name}\``);
  return ["run `pwd`", "run `ls -la`"];
};
