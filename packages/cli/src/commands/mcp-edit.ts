/** `prefork mcp add` and `remove`: writes a tool server into a file, and removes it again.
 *  Invariant: an entry that would not be used is refused before anything is written; the user's file stays private.
 *  Elsewhere: the text of the file (@prefork/runtime), the other commands (mcp.ts). */

import { mkdir, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { draftsIn, openRoot, stateFolder } from "@prefork/guard";
import { editServers, MCP_FILE, readEntry, toolEnvironment, type WrittenServer } from "@prefork/runtime/internal";
import { type Io, UsageError } from "../io.ts";

export type ScopeFlags = { readonly scope: "user" | "project" };

export type AddFlags = ScopeFlags & {
  readonly url?: string;
  readonly env?: readonly string[];
  readonly header?: readonly string[];
};

type EditContext<Flags> = { readonly flags: Flags; readonly io: Io };

export const addServer = async (
  name: string,
  words: readonly string[],
  { flags, io }: EditContext<AddFlags>,
): Promise<void> => {
  const entry = entryOf(words, flags);
  const [withheld] = withheldIn(entry);
  if (withheld !== undefined)
    throw new UsageError(
      `server ${name}: ${withheld} is never passed to a server, because it is a key of a model provider or a variable that makes shells run code; use a variable with another name`,
    );
  const read = readEntry(name, entry, { environment: toolEnvironment(io.env) });
  // A variable may be set later; every other mistake stays.
  const isUnset = !read.ok && read.reason.includes("is not set");
  if (!read.ok && !isUnset) throw new UsageError(`server ${name}: ${read.reason}`);
  const file = await edit(name, entry, { flags, io });
  if (isUnset) io.err(`prefork: ${name} cannot start yet: ${read.reason}\n`);
  io.out(`Added server ${name} to ${file}.\n`);
  if (flags.scope === "project") io.out("It is used once you trust the folder in its present form: prefork trust\n");
};

export const removeServer = async (name: string, { flags, io }: EditContext<ScopeFlags>): Promise<void> => {
  const file = await edit(name, undefined, { flags, io });
  io.out(`Removed server ${name} from ${file}.\n`);
};

const entryOf = ([command, ...args]: readonly string[], { url, env = [], header = [] }: AddFlags): WrittenServer => {
  if (command === undefined && url === undefined)
    throw new UsageError("name a program after --, or give a URL with --url");
  if (command !== undefined && /^https?:/.test(command))
    throw new UsageError(`${command} is a URL, not a program; use --url`);
  return {
    ...(url === undefined ? {} : { url }),
    ...(command === undefined ? {} : { command, ...(args.length === 0 ? {} : { args }) }),
    ...(env.length === 0 ? {} : { env: Object.fromEntries(env.map(variableOf)) }),
    ...(header.length === 0 ? {} : { headers: Object.fromEntries(header.map(headerOf)) }),
  };
};

/** NAME alone keeps secrets out of the command line and the file. */
const variableOf = (text: string): readonly [string, string] => {
  const [, name = "", value] = /^([A-Za-z_]\w*)(?:=(.*))?$/s.exec(text) ?? [];
  if (name === "") throw new UsageError("--env takes NAME or NAME=value");
  return [name, value ?? `\${${name}}`];
};

/** Variables that no server ever gets, whether they are set or not. */
const withheldIn = ({ env = {}, headers = {} }: WrittenServer): readonly string[] =>
  [...Object.values(env), ...Object.values(headers)]
    .flatMap((text) => [...text.matchAll(/\$\{([A-Za-z_]\w*)\}/g)].map(([, name = ""]) => name))
    .filter((name) => toolEnvironment({ [name]: "set" })[name] === undefined);

const headerOf = (text: string): readonly [string, string] => {
  const [, name = "", value = ""] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*(.*)$/.exec(text) ?? [];
  if (name === "") throw new UsageError("--header takes 'Name: value'");
  return [name, value];
};

const edit = async (
  name: string,
  entry: WrittenServer | undefined,
  { flags, io }: EditContext<ScopeFlags>,
): Promise<string> => {
  const isOwn = flags.scope === "user";
  const file = isOwn ? join(io.env.HOME || homedir(), ".prefork", "settings.json") : resolve(MCP_FILE);
  const before = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new UsageError(`${file} cannot be read: ${error.code}`);
  });
  const edited = editServers(before, name, entry);
  if (!edited.ok) throw new UsageError(`${file}: ${edited.reason}`);
  if (isOwn) await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const drafts = draftsIn(stateFolder(io.env, io.env.HOME || homedir()));
  await using root = await openRoot(dirname(file), { protect: false, private: isOwn, drafts });
  const written = await root.write(join(root.path, isOwn ? "settings.json" : MCP_FILE), edited.text);
  if (!written.ok) throw new UsageError(`${file} cannot be written: ${written.reason}`);
  return file;
};
