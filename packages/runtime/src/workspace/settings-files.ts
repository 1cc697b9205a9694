/** The settings of a session, read from where they stand: the user's, the project's, the local ones, the command line.
 *  Invariant: a missing file is no error, a broken one is, with its places; of a folder that is not trusted no byte is
 *  read.
 *  Elsewhere: what a file says (parseSettings of ../guard), whether a folder is trusted (../trust). */

import { lstat, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { openRoot } from "../files/index.ts";
import {
  type Layer,
  type LayerSettings,
  mergeLayers,
  type PermissionFlags,
  type Policy,
  parseSettings,
  type SettingsProblem,
  settingsOfFlags,
  type WrittenServers,
} from "../guard/index.ts";

export type SettingsPlaces = {
  readonly home: string;
  readonly project: string;
  /** Only then are the project's and the local file read. */
  readonly trusted: boolean;
  readonly flags?: PermissionFlags;
};

export type LoadedSettings =
  | { readonly kind: "policy"; readonly policy: Policy; readonly servers: readonly ServersInFile[] }
  | { readonly kind: "broken"; readonly problems: readonly SettingsProblem[] };

/** Tool servers that a file of settings names. */
export type ServersInFile = { readonly path: string; readonly servers: WrittenServers };

type SettingsFile = { readonly layer: Layer; readonly base: string; readonly path: string };

const filesOf = ({ home, project, trusted }: SettingsPlaces): readonly SettingsFile[] => {
  const user: SettingsFile = { layer: "user", base: home, path: join(home, ".prefork", "settings.json") };
  if (!trusted || project === home) return [user];
  return [
    user,
    { layer: "project", base: project, path: join(project, ".prefork", "settings.json") },
    { layer: "local", base: project, path: join(project, ".prefork", "settings.local.json") },
  ];
};

/** A missing file is undefined. The user may link their own settings; a project's are read without following links, as
 *  trust in the project covers its files and not what a link in it leads to. */
const textOf = async ({ layer, base, path }: SettingsFile): Promise<string | undefined> => {
  try {
    if (layer === "user") return await readFile(path, "utf8");
    await lstat(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
  await using root = await openRoot(base);
  const found = await root.read(join(root.path, relative(base, path)));
  if (!found.ok) throw new Error(found.reason);
  return found.bytes.toString("utf8");
};

export const loadSettings = async (places: SettingsPlaces): Promise<LoadedSettings> => {
  const { home, project, flags = {} } = places;
  const layers: LayerSettings[] = [];
  const servers: ServersInFile[] = [];
  const problems: SettingsProblem[] = [];
  const note = (name: string, message: string): void => {
    problems.push({ name, line: 1, column: 1, path: "", message });
  };
  for (const file of filesOf(places)) {
    const { layer, base, path } = file;
    let text: string | undefined;
    try {
      text = await textOf(file);
    } catch (error) {
      // A file that is there and cannot be read may hold denials, so going on without it would loosen.
      const { code, message } = error as NodeJS.ErrnoException;
      note(path, `cannot be read: ${code ?? message}`);
      continue;
    }
    if (text === undefined) continue;
    const parsed = parseSettings(text, { name: path, layer, base, home });
    if (parsed.kind === "settings") {
      layers.push(parsed.settings);
      if (parsed.settings.servers) servers.push({ path, servers: parsed.settings.servers });
    } else problems.push(...parsed.problems);
  }
  const line = settingsOfFlags(flags, { base: project, home });
  if (typeof line === "string") note("the command line", line);
  else layers.push(line);
  return problems.length > 0 ? { kind: "broken", problems } : { kind: "policy", policy: mergeLayers(layers), servers };
};
