/** The second layer under read-only plans: a cell in which nothing can be written, sent or learned of other programs.
 *  Invariant: tried before it is promised; where it is required and not to be had, nothing runs. What a plan may do was
 *  decided before; the cell is for what nobody thought of.
 *  Elsewhere: the first layer (../guard/bash), the cell of approved commands (sandbox.ts). */

import { lstatSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { SandboxMode } from "../guard/index.ts";
import { probeSandbox, type SandboxProbe } from "./sandbox.ts";

/** Puts a program into the cell. */
export type PlanCell = {
  readonly enter: (argv: readonly string[], cwd: string) => readonly string[];
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

/** Below the home folder; a plan that names one of them is asked about, so in the cell they need not be there. */
const KEYS_AT_HOME: readonly string[] = [
  ...[".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".mozilla", ".huggingface"],
  ...[".config/gh", ".config/hub", ".config/gcloud", ".config/op", ".netrc", ".pgpass", ".git-credentials"],
  ...[".npmrc", ".pypirc", ".vault-token", ".claude.json", ".codex/auth.json", ".bash_history", ".zsh_history"],
];
const KEYS_OF_SYSTEM: readonly string[] = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssl/private"];

const kindOf = (path: string): "folder" | "file" | undefined => {
  try {
    const facts = lstatSync(path);
    return facts.isDirectory() ? "folder" : facts.isFile() ? "file" : undefined;
  } catch {
    return undefined;
  }
};

/** Nothing is mounted over what is not there, and links are left: what they lead to is covered by its own name. */
const covering = (path: string): readonly string[] => {
  const kind = kindOf(path);
  if (kind === undefined) return [];
  return kind === "folder" ? ["--tmpfs", path] : ["--ro-bind", "/dev/null", path];
};

const SCRATCH = "/dev/shm"; // part of the cell's own /dev, so in memory and private

export const openCell = async ({ mode, home = homedir(), probe }: CellOptions): Promise<OpenedCell> => {
  if (mode === "off") return { kind: "off", reason: "switched off by the settings" };
  const probed = probe ?? (await probeSandbox());
  if (!probed.ok) return { kind: mode === "required" ? "refused" : "off", reason: probed.reason };
  const keys = [...KEYS_AT_HOME.map((name) => join(home, name)), ...KEYS_OF_SYSTEM];
  const enter = (argv: readonly string[], cwd: string): readonly string[] => [
    probed.program,
    ...["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--cap-drop", "ALL"],
    ...["--die-with-parent", "--new-session"],
    ...keys.flatMap(covering),
    ...["--chdir", cwd, "--", ...argv],
  ];
  return { kind: "on", cell: { enter, scratch: SCRATCH } };
};
