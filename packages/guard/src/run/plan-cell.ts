/** The second layer under read-only plans: a read-only sandbox in which nothing can be written, sent, or learned about other programs.
 *  Invariant: it is tried before it is promised; if it is required and unavailable, nothing runs. What a plan may do was decided before;
 *  the sandbox is for what nobody thought of. Files that may contain secrets are empty in it.
 *  Elsewhere: the first layer (../bash), the sandbox of approved commands (sandbox.ts). */

import { lstatSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { pathJudge, realPath } from "../files/index.ts";
import { isSecret } from "../paths/index.ts";
import { broadFolderProblem, type SandboxMode } from "../rules/index.ts";
import { probeSandbox, type SandboxProbe } from "./sandbox.ts";
import { findSecrets } from "./secret-walk.ts";

export type AroundCell = {
  /** The first of the descriptors, one for each covered file, whose contents stand there instead: none. Default: a device
   *  without contents stands there. */
  readonly empty?: number;
  /** Folders to look through for files with keys. Default: the working directory. */
  readonly folders?: readonly string[];
  /** What was found before, which is not looked for again. */
  readonly known?: Map<string, readonly string[]>;
};

/** Puts a program into the cell. */
export type PlanCell = {
  readonly enter: (argv: readonly string[], cwd: string, around?: AroundCell) => readonly string[];
  /** Where programs in it may keep what they do not hold in memory; gone at their end. */
  readonly scratch: string;
};

export type OpenedCell =
  | { readonly kind: "on"; readonly cell: PlanCell }
  | { readonly kind: "off"; readonly reason: string }
  /** Required, and not to be had: plans must not run. */
  | { readonly kind: "refused"; readonly reason: string };

export type CellOptions = {
  readonly mode: SandboxMode;
  readonly home?: string; // default: the user's
  /** Default: bubblewrap is looked for and tried. */
  readonly probe?: SandboxProbe;
};

/** Files with keys that no walk through the workspace or the home folder comes to. */
const KEYS_OF_SYSTEM: readonly string[] = [
  ...["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"],
  ...["/etc/ssl/private", "/etc/wireguard", "/etc/NetworkManager/system-connections", "/run/secrets"],
];

const MOST_COVERED = 400;
/** What programs keep for the user stands this deep below the home folder: `.local/share/name/file`. */
const HOME_BOUNDS = { maxNames: 3_000, maxDepth: 3 };

const kindOf = (path: string): "folder" | "file" | undefined => {
  try {
    const facts = lstatSync(path);
    return facts.isDirectory() ? "folder" : facts.isFile() ? "file" : undefined;
  } catch {
    return undefined;
  }
};

const hiddenFoldersAt = (home: string): readonly string[] => {
  try {
    return readdirSync(home, { withFileTypes: true })
      .filter((entry) => entry.name.startsWith(".") && entry.isDirectory())
      .map(({ name }) => join(home, name))
      .filter((path) => !isSecret(path));
  } catch {
    return [];
  }
};

/** What there is to cover for a program that runs here: itself, or what a link of such a name leads to. */
const keysAround = ({ cwd, home, folders }: { cwd: string; home: string; folders: readonly string[] }) => {
  const keptBack = { isKey: pathJudge({ cwd, home }).isSecret, inside: () => undefined };
  const found = [
    ...findSecrets([home], { maxDepth: 1, keptBack }).found,
    ...findSecrets(hiddenFoldersAt(home), { ...HOME_BOUNDS, keptBack }).found,
    ...findSecrets(
      folders.map(realPath).filter((folder) => broadFolderProblem(folder) === undefined),
      { keptBack },
    ).found,
  ].map(({ path, target }) => target ?? path);
  const all = [...new Set([...KEYS_OF_SYSTEM, ...found])].slice(0, MOST_COVERED).sort();
  return all.filter((path) => cwd !== path && !cwd.startsWith(`${path}/`));
};

const EMPTY_FILE = "--ro-bind-data";

/** The words after which the descriptors of empty files stand. */
export const coveredIn = (argv: readonly string[]): readonly string[] => argv.filter((word) => word === EMPTY_FILE);

/** Nothing is mounted over what is not there. */
const covering = (paths: readonly string[], empty: number | undefined): readonly string[] => {
  let descriptor = empty ?? 0;
  return paths.flatMap((path) => {
    const kind = kindOf(path);
    if (kind === undefined) return [];
    if (kind === "folder") return ["--tmpfs", path];
    return empty === undefined ? ["--ro-bind", "/dev/null", path] : [EMPTY_FILE, String(descriptor++), path];
  });
};

const SCRATCH = "/dev/shm"; // part of the cell's own /dev, so in memory and private

export const openCell = async ({ mode, home = homedir(), probe }: CellOptions): Promise<OpenedCell> => {
  if (mode === "off") return { kind: "off", reason: "switched off by the settings" };
  const probed = probe ?? (await probeSandbox());
  if (!probed.ok) return { kind: mode === "required" ? "refused" : "off", reason: probed.reason };
  const around = (cwd: string, folders: readonly string[], known: AroundCell["known"]): readonly string[] => {
    const key = [cwd, ...folders].join("\0");
    const found = known?.get(key) ?? keysAround({ cwd, home, folders });
    known?.set(key, found);
    return found;
  };
  const enter: PlanCell["enter"] = (argv, cwd, { empty, folders = [cwd], known } = {}) => [
    probed.program,
    ...["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--cap-drop", "ALL"],
    ...["--die-with-parent", "--new-session"],
    ...covering(around(cwd, folders, known), empty),
    ...["--chdir", cwd, "--", ...argv],
  ];
  return { kind: "on", cell: { enter, scratch: SCRATCH } };
};
