/** The second layer under read-only plans: a read-only sandbox in which nothing can be written, sent, or learned about
 *  other programs.
 *  Invariant: it is tested before it is relied on; if it is required and unavailable, nothing runs. What a plan may do
 *  was decided earlier; the sandbox catches what nobody thought of. Files that may contain secrets are empty in it.
 *  Elsewhere: the first layer (../bash), the sandbox of approved commands (sandbox.ts). */

import { lstatSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { pathJudge, realPath, unlessMissing } from "../files/index.ts";
import { mayContainSecrets } from "../paths/index.ts";
import { broadFolderProblem, type SandboxMode } from "../rules/index.ts";
import { probeSandbox, type SandboxProbe } from "./sandbox.ts";
import { findSecrets } from "./secret-walk.ts";

export type SandboxEntryOptions = {
  /** The first of the descriptors that replace covered files, one for each file. All of them are empty. Default:
   *  covered files are replaced by /dev/null. */
  readonly empty?: number;
  /** Folders to search for files with secrets. Default: the working directory. */
  readonly folders?: readonly string[];
  /** What earlier searches found; they are not repeated. */
  readonly known?: Map<string, readonly string[]>;
};

/** Runs programs in the read-only sandbox. */
export type ReadOnlySandbox = {
  readonly enter: (argv: readonly string[], cwd: string, secretsFor?: SandboxEntryOptions) => readonly string[];
  /** A folder for temporary files inside; it is gone when the program ends. */
  readonly scratch: string;
};

export type OpenedReadOnlySandbox =
  | { readonly kind: "on"; readonly sandbox: ReadOnlySandbox }
  | { readonly kind: "off"; readonly reason: string }
  /** Required but unavailable: plans must not run. */
  | { readonly kind: "refused"; readonly reason: string };

export type ReadOnlySandboxOptions = {
  readonly mode: SandboxMode;
  readonly home?: string; // default: the user's
  /** Default: searches for bubblewrap and tests it. */
  readonly probe?: SandboxProbe;
};

/** Files with secrets outside the workspace and the home folder, where no search looks. */
const KEYS_OF_SYSTEM: readonly string[] = [
  ...["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"],
  ...["/etc/ssl/private", "/etc/wireguard", "/etc/NetworkManager/system-connections", "/run/secrets"],
];

const MOST_COVERED = 400;
/** Programs store a user's data this deep below the home folder: `.local/share/name/file`. */
const HOME_BOUNDS = { maxNames: 3_000, maxDepth: 3 };

const kindOf = (path: string): "folder" | "file" | undefined => {
  const facts = unlessMissing(path, () => lstatSync(path));
  return facts?.isDirectory() ? "folder" : facts?.isFile() ? "file" : undefined;
};

const hiddenFoldersAt = (home: string, isKey: (path: string) => boolean): readonly string[] =>
  (unlessMissing(home, () => readdirSync(home, { withFileTypes: true })) ?? [])
    .filter((entry) => entry.name.startsWith(".") && entry.isDirectory())
    .map(({ name }) => join(home, name))
    .filter((path) => !isKey(path));

/** The files to cover for a program that runs here. If a name with secrets is a link, its target is covered. */
const keysAround = ({ cwd, home, folders }: { cwd: string; home: string; folders: readonly string[] }) => {
  const keptBack = { isKey: pathJudge({ cwd, home }).isSecret, inside: () => undefined };
  const found = [
    ...findSecrets(
      folders.map(realPath).filter((folder) => broadFolderProblem(folder) === undefined),
      { keptBack },
    ).found,
    ...findSecrets([home], { maxDepth: 1, keptBack }).found,
    ...findSecrets(hiddenFoldersAt(home, keptBack.isKey), { ...HOME_BOUNDS, keptBack }).found,
  ].map(({ path, target }) => target ?? path);
  // What is secret by its name comes first, in case there is too much to cover.
  const named = found.filter((path) => mayContainSecrets(path, [home]));
  const all = [...new Set([...KEYS_OF_SYSTEM, ...named, ...found])].slice(0, MOST_COVERED).sort();
  return all.filter((path) => cwd !== path && !cwd.startsWith(`${path}/`));
};

const EMPTY_FILE = "--ro-bind-data";

/** The options that are followed by the descriptor of an empty file. */
export const coveredIn = (argv: readonly string[]): readonly string[] => argv.filter((word) => word === EMPTY_FILE);

/** Skips paths that do not exist: nothing can be mounted over them. */
const covering = (paths: readonly string[], empty: number | undefined): readonly string[] => {
  let descriptor = empty ?? 0;
  return paths.flatMap((path) => {
    const kind = kindOf(path);
    if (kind === undefined) return [];
    if (kind === "folder") return ["--tmpfs", path];
    return empty === undefined ? ["--ro-bind", "/dev/null", path] : [EMPTY_FILE, String(descriptor++), path];
  });
};

const SCRATCH = "/dev/shm"; // part of the sandbox's own /dev, so it is private and in memory

export const openReadOnlySandbox = async ({
  mode,
  home = homedir(),
  probe,
}: ReadOnlySandboxOptions): Promise<OpenedReadOnlySandbox> => {
  if (mode === "off") return { kind: "off", reason: "switched off by the settings" };
  const probed = probe ?? (await probeSandbox());
  if (!probed.ok) return { kind: mode === "required" ? "refused" : "off", reason: probed.reason };
  const secretsFor = (
    cwd: string,
    folders: readonly string[],
    known: SandboxEntryOptions["known"],
  ): readonly string[] => {
    const key = [cwd, ...folders].join("\0");
    const found = known?.get(key) ?? keysAround({ cwd, home, folders });
    known?.set(key, found);
    return found;
  };
  const enter: ReadOnlySandbox["enter"] = (argv, cwd, { empty, folders = [cwd], known } = {}) => [
    probed.program,
    ...["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--cap-drop", "ALL"],
    ...["--die-with-parent", "--new-session"],
    ...covering(secretsFor(cwd, folders, known), empty),
    ...["--chdir", cwd, "--", ...argv],
  ];
  return { kind: "on", sandbox: { enter, scratch: SCRATCH } };
};
