/** Which tool servers are there: those of the settings, and of a trusted folder's `.mcp.json`.
 *  Invariant: of a folder that is not trusted no byte is read; an entry that cannot be used is left out and told, since
 *  leaving a server out loosens nothing; of two with one name the user's own counts, so that a project cannot put itself
 *  in its place.
 *  Elsewhere: what an entry means (entry.ts), reading settings (@prefork/guard). */

import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { type Edited, editableSettings, openRoot, type ReadResult, type ServersInFile } from "@prefork/guard";
import { isEntryOf, type WrittenServers } from "@prefork/guard/internal";
import { type ParseError, parse, printParseErrorCode } from "jsonc-parser";
import * as z from "zod";
import { type Environment, readEntry, type ServerEntry } from "./entry.ts";

export type ServerPlaces = {
  readonly project: string;
  /** Only then is its `.mcp.json` read. */
  readonly trusted: boolean;
  /** Hashes of the files that were trusted, by name: another file by now is not used. */
  readonly entries?: Readonly<Record<string, string>>;
  /** What the settings name, the user's first. */
  readonly settings: readonly ServersInFile[];
  /** What variables are filled from: without keys. */
  readonly environment: Environment;
};

export type ConfiguredServers = { readonly servers: readonly ServerEntry[]; readonly notices: readonly string[] };

export const MCP_FILE = ".mcp.json";
const MAX_BYTES = 1_000_000;

export const readServers = async (places: ServerPlaces): Promise<ConfiguredServers> => {
  const { settings, environment } = places;
  const notices: string[] = [];
  const project = places.trusted ? await projectFile(places, notices) : [];
  const found = new Map<string, ServerEntry>();
  for (const { path, servers } of [...settings, ...project])
    for (const [name, written] of Object.entries(servers)) {
      const before = found.get(name);
      const read = readEntry(name, written, { from: path, environment });
      if (before) notices.push(`${path}: server ${name} is left out: ${before.from} names one as well`);
      else if (read.ok) found.set(name, read.entry);
      else notices.push(`${path}: server ${JSON.stringify(name)} is left out: ${read.reason}`);
    }
  return { servers: [...found.values()], notices };
};

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

const projectFile = async (
  { project, entries }: ServerPlaces,
  notices: string[],
): Promise<readonly ServersInFile[]> => {
  const path = join(project, MCP_FILE);
  const leaveOut = (reason: string): readonly [] => {
    notices.push(`${path} is left out: ${reason}`);
    return [];
  };
  const found = await bytesOf(project, path);
  if (found === undefined) return [];
  if (!found.ok) return leaveOut(found.reason);
  if (entries && !isEntryOf(entries[MCP_FILE], found.bytes)) return leaveOut("it was changed while prefork started");
  const text = found.bytes.toString("utf8");
  const errors: ParseError[] = [];
  const read = fileShape.safeParse(parse(text, errors, { allowTrailingComma: true }));
  const [error] = errors;
  if (error) return leaveOut(`not JSON: ${printParseErrorCode(error.error)} at character ${error.offset}`);
  if (!read.success) return leaveOut("it has no mcpServers by their names");
  const servers: Record<string, WrittenServers[string]> = {};
  for (const [name, value] of Object.entries(read.data.mcpServers ?? {})) {
    const entry = entryShape.safeParse(value);
    const shown = JSON.stringify(name);
    if (!entry.success) notices.push(`${path}: server ${shown} is left out: ${entry.error.issues[0]?.message}`);
    else if (entry.data.type === "sse")
      notices.push(`${path}: server ${shown} is left out: it speaks the old HTTP+SSE; streamable HTTP is supported`);
    else if (entry.data.disabled !== true) servers[name] = written(entry.data);
  }
  return [{ path, servers }];
};

const written = ({ type, command, args, env, url, headers }: z.infer<typeof entryShape>): WrittenServers[string] => ({
  ...(type === undefined ? {} : { type: type === "stdio" ? "stdio" : "http" }),
  ...(command === undefined ? {} : { command }),
  ...(args === undefined ? {} : { args }),
  ...(env === undefined ? {} : { env }),
  ...(url === undefined ? {} : { url }),
  ...(headers === undefined ? {} : { headers }),
});

/** Undefined where there is none. */
const bytesOf = async (project: string, path: string): Promise<ReadResult | undefined> => {
  if ((await lstat(path).catch(() => undefined)) === undefined) return undefined;
  await using root = await openRoot(project);
  return await root.read(join(root.path, MCP_FILE), { maxBytes: MAX_BYTES });
};

/** Adding a tool server to a file of settings, and taking it out again. Pure.
 *  Elsewhere: editing the text (@prefork/guard), what an entry may say (entry.ts). */

const SECTION = "mcpServers";

/** `entry` undefined: take it out. `text` undefined: there is no file yet. */
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
