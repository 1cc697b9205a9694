/** Which tool servers are configured? Those of the settings, and of a trusted folder's `.mcp.json`.
 *  Invariant: not a byte of an untrusted folder is read. An unusable entry is skipped with a notice; skipping a server
 *  never loosens anything. If a name occurs twice, the user's own entry wins, so a project cannot replace it.
 *  Elsewhere: what an entry means (entry.ts), reading and editing settings (@prefork/guard). */

import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { type Edited, editableSettings, openRoot, type ReadResult, type ServersInFile } from "@prefork/guard";
import { isEntryOf, type WrittenServers } from "@prefork/guard/internal";
import { type ParseError, parse, printParseErrorCode } from "jsonc-parser";
import * as z from "zod";
import { type Environment, readEntry, type ServerEntry } from "./entry.ts";

export type ServerSources = {
  readonly project: string;
  /** Its `.mcp.json` is only read if this is true. */
  readonly trusted: boolean;
  /** Hashes of the trusted files, by name: a file that has changed is not used. */
  readonly entries?: Readonly<Record<string, string>>;
  /** The entries of the settings, the user's first. */
  readonly settings: readonly ServersInFile[];
  /** The source of variables, without keys. */
  readonly environment: Environment;
};

export type ConfiguredServers = {
  readonly servers: readonly ServerEntry[];
  /** For people: one for each skipped server, and one if the project's file is skipped. */
  readonly notices: readonly string[];
  readonly skipped: readonly SkippedServer[];
};

export type SkippedServer = {
  readonly name: string;
  /** Its text among the notices. */
  readonly notice: string;
  /** The variables that have no value, if that is why it is skipped. */
  readonly unset?: readonly string[];
};

export const MCP_FILE = ".mcp.json";
const MAX_BYTES = 1_000_000;

export const readServers = async (places: ServerSources): Promise<ConfiguredServers> => {
  const { settings, environment } = places;
  const notices: string[] = [];
  const skipped: SkippedServer[] = [];
  const skipServer = (server: SkippedServer): void => {
    notices.push(server.notice);
    skipped.push(server);
  };
  const project = places.trusted ? await readProjectFile(places, { notices, skipServer }) : [];
  const found = new Map<string, ServerEntry>();
  for (const { path, servers } of [...settings, ...project])
    for (const [name, written] of Object.entries(servers)) {
      const before = found.get(name);
      const read = readEntry(name, written, { from: path, environment });
      if (before)
        skipServer({ name, notice: `${path}: server ${name} is skipped: ${before.from} has one with the same name` });
      else if (read.ok) found.set(name, read.entry);
      else {
        const notice = skipNotice(path, name, read.reason);
        skipServer({ name, notice, ...(read.unset === undefined ? {} : { unset: read.unset }) });
      }
    }
  return { servers: [...found.values()], notices, skipped };
};

const skipNotice = (path: string, name: string, reason: string): string =>
  `${path}: server ${JSON.stringify(name)} is skipped: ${reason}`;

type SkipReport = { readonly notices: string[]; readonly skipServer: (server: SkippedServer) => void };

/** Other programs write more into it than we use. */
const texts = z.record(z.string(), z.string());
const entryShape = z.object({
  type: z.string().optional(),
  command: z.string().min(1).optional(),
  args: z.array(z.string()).optional(),
  env: texts.optional(),
  url: z.string().min(1).optional(),
  headers: texts.optional(),
  disabled: z.boolean().optional(),
});
const fileShape = z.object({ mcpServers: z.record(z.string(), z.unknown()).optional() });

const readProjectFile = async (
  { project, entries }: ServerSources,
  { notices, skipServer }: SkipReport,
): Promise<readonly ServersInFile[]> => {
  const path = join(project, MCP_FILE);
  const skipFile = (reason: string): readonly [] => {
    notices.push(`${path} is skipped: ${reason}`);
    return [];
  };
  const found = await readProjectBytes(project, path);
  if (found === undefined) return [];
  if (!found.ok) return skipFile(found.reason);
  if (entries && !isEntryOf(entries[MCP_FILE], found.bytes)) return skipFile("it was changed while prefork started");
  const parsed = parseJson(found.bytes.toString("utf8"));
  if ("problem" in parsed) return skipFile(parsed.problem);
  const read = fileShape.safeParse(parsed.value);
  if (!read.success) return skipFile("it has no mcpServers object");
  const servers: Record<string, WrittenServers[string]> = {};
  for (const [name, value] of Object.entries(read.data.mcpServers ?? {})) {
    const entry = entryShape.safeParse(value);
    const skip = (reason: string): void => skipServer({ name, notice: skipNotice(path, name, reason) });
    if (!entry.success) skip(entry.error.issues[0]?.message ?? "its entry is not valid");
    else if (entry.data.type === "sse") skip("it uses the old HTTP+SSE transport; only streamable HTTP is supported");
    else if (entry.data.disabled !== true) servers[name] = toWrittenServer(entry.data);
  }
  return [{ path, servers }];
};

const parseJson = (text: string): { readonly value: unknown } | { readonly problem: string } => {
  const errors: ParseError[] = [];
  try {
    const value: unknown = parse(text, errors, { allowTrailingComma: true });
    const [error] = errors;
    if (error) return { problem: `not JSON: ${printParseErrorCode(error.error)} at character ${error.offset}` };
    return { value };
  } catch {
    return { problem: "it is nested too deeply" }; // the parser calls itself for every level
  }
};

const toWrittenServer = ({
  type,
  command,
  args,
  env,
  url,
  headers,
}: z.infer<typeof entryShape>): WrittenServers[string] => ({
  ...(type === undefined ? {} : { type: type === "stdio" ? "stdio" : "http" }),
  ...(command === undefined ? {} : { command }),
  ...(args === undefined ? {} : { args }),
  ...(env === undefined ? {} : { env }),
  ...(url === undefined ? {} : { url }),
  ...(headers === undefined ? {} : { headers }),
});

/** Undefined if there is none. */
const readProjectBytes = async (project: string, path: string): Promise<ReadResult | undefined> => {
  if ((await lstat(path).catch(() => undefined)) === undefined) return undefined;
  await using root = await openRoot(project);
  return await root.read(join(root.path, MCP_FILE), { maxBytes: MAX_BYTES });
};

/** Adds a tool server to the text of a settings file, or removes it. Pure. */

const SECTION = "mcpServers";

/** `entry` undefined: remove it. `text` undefined: there is no file yet. */
export const editServers = (
  text: string | undefined,
  name: string,
  entry: WrittenServers[string] | undefined,
): Edited => {
  const file = editableSettings(text);
  if (!file) return { ok: false, reason: "the file is not valid JSON" };
  const isThere = file.valueAt([SECTION, name]) !== undefined;
  if (entry !== undefined && isThere)
    return { ok: false, reason: `there is a server ${name} already; remove it first` };
  if (entry === undefined && !isThere) return { ok: false, reason: `there is no server ${name}` };
  return { ok: true, text: file.withValue([SECTION, name], entry) };
};
