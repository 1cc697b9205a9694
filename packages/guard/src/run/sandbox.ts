/** The second layer under approved commands: does this system have it, and how does a command run in it?
 *  Invariant: a required sandbox that is unavailable refuses; an available one is tested before it is relied on. What
 *  it leaves in the workspace is removed when its last command has ended.
 *  Elsewhere: the arguments for bubblewrap (sandbox-argv.ts), which names are protected (../paths). */

import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRoot, type Root, RootError } from "../files/index.ts";
import { protectedTopNames, protectedWhenMissing, protectedWhenMissingAtHome, type Refused } from "../paths/index.ts";
import { findProgram, whyMissing } from "../process/index.ts";
import type { SandboxMode } from "../rules/index.ts";
import { type SandboxMounts, sandboxArgv } from "./sandbox-argv.ts";

export type SandboxProbe = { readonly ok: true; readonly program: string } | Refused;

export type SandboxOptions = Omit<SandboxMounts, "program" | "readOnly" | "missing" | "cwd"> & {
  readonly mode: SandboxMode;
  /** The user's home folder. If it is the workspace, more names are protected. */
  readonly home?: string;
  /** Default: searches for bubblewrap and tests it. */
  readonly probe?: SandboxProbe;
};

export type OpenedSandbox =
  | { readonly kind: "on"; readonly sandbox: Sandbox }
  | { readonly kind: "off"; readonly reason: string }
  /** Required but unavailable: commands must not run. */
  | { readonly kind: "refused"; readonly reason: string };

/** A command in the sandbox; disposed of when it has ended. */
export type Entered = AsyncDisposable & { readonly ok: true; readonly argv: readonly string[] };

/** The mount point that bubblewrap creates on the disk for a missing name: an empty file that nobody may write. */
const isPlaceholder = (facts: { readonly kind: string; readonly size: number; readonly mode: number }): boolean =>
  facts.kind === "file" && facts.size === 0 && (facts.mode & 0o777) === 0o444;

/** The mount points that bubblewrap leaves on the disk for names that stay missing. Removing one removes its mount
 *  from every running command of every process, so it is removed with the last command of this process that needs
 *  it. */
class Placeholders {
  readonly #uses = new Map<string, { count: number; removing: Promise<void> | undefined }>();

  async take(path: string): Promise<void> {
    await this.#uses.get(path)?.removing;
    const use = this.#uses.get(path) ?? { count: 0, removing: undefined };
    use.count += 1;
    this.#uses.set(path, use);
  }

  isTaken(path: string): boolean {
    return this.#uses.has(path);
  }

  async leave(path: string, root: Root): Promise<void> {
    const use = this.#uses.get(path);
    if (use === undefined) return;
    use.count -= 1;
    if (use.count > 0) return;
    use.removing = removePlaceholder(path, root).finally(() => this.#uses.delete(path));
    await use.removing;
  }
}

const removePlaceholder = async (path: string, root: Root): Promise<void> => {
  const looked = await root.look(path);
  if (looked.ok && looked.facts !== undefined && isPlaceholder(looked.facts)) await root.remove(path);
};

/** Shared by all sandboxes of the process, because they share the disk. */
const PLACEHOLDERS = new Placeholders();

/** A folder that commands may write in, except for protected names. */
export type WritableRoot = { readonly root: Root; readonly whenMissing: readonly string[] };

type Closed = { readonly ok: true; readonly readOnly: readonly string[]; readonly missing: readonly string[] };

/** Names are checked for each command, because an earlier command may have created some. */
const closedIn = async ({ root, whenMissing }: WritableRoot): Promise<Closed | Refused> => {
  const readOnly: string[] = [];
  const missing: string[] = [];
  const doubtful: string[] = [];
  for (const name of protectedTopNames) {
    const path = join(root.path, name);
    const looked = await root.look(path);
    if (!looked.ok) return looked;
    const { facts } = looked;
    if (facts?.kind === "link")
      return { ok: false, reason: `${path} is a link, which cannot be kept from being replaced` };
    if (facts === undefined) {
      if (whenMissing.includes(name)) missing.push(path);
    } else if (!isPlaceholder(facts)) readOnly.push(path);
    else if (PLACEHOLDERS.isTaken(path)) missing.push(path);
    else doubtful.push(path);
  }
  // bubblewrap creates all of them, so after a crash none is missing. If some are missing, an existing one is the
  // user's file.
  const isLeft = missing.every((path) => PLACEHOLDERS.isTaken(path)) && doubtful.length > 1;
  return isLeft
    ? { ok: true, readOnly, missing: [...missing, ...doubtful] }
    : { ok: true, readOnly: [...readOnly, ...doubtful], missing };
};

export class Sandbox implements AsyncDisposable {
  readonly #roots: readonly WritableRoot[];
  readonly #mounts: SandboxMounts;

  /** Use `openSandbox`. `roots`: the workspace and everything else that is writable. */
  constructor(roots: readonly WritableRoot[], mounts: SandboxMounts) {
    this.#roots = roots;
    this.#mounts = mounts;
  }

  /** The arguments that run a command inside. */
  async enter(argv: readonly string[], options: { readonly cwd?: string } = {}): Promise<Entered | Refused> {
    const closed: (Closed & { readonly root: Root })[] = [];
    for (const writable of this.#roots) {
      const found = await closedIn(writable);
      if (!found.ok) return found;
      closed.push({ ...found, root: writable.root });
    }
    for (const path of closed.flatMap(({ missing }) => missing)) await PLACEHOLDERS.take(path);
    const all = (key: "readOnly" | "missing"): readonly string[] => [...new Set(closed.flatMap((one) => one[key]))];
    return {
      ok: true,
      argv: sandboxArgv(argv, { ...this.#mounts, ...options, readOnly: all("readOnly"), missing: all("missing") }),
      [Symbol.asyncDispose]: async () => {
        for (const { root, missing } of closed) for (const path of missing) await PLACEHOLDERS.leave(path, root);
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { root } of this.#roots) await root.close();
  }
}

/** Uses only shell built-ins: is the workspace writable and nothing else, are protected names closed, are network and
 *  capabilities gone? */
const PROBE = `
: > inside || { echo "the workspace is not writable inside"; exit 3; }
[ -w / ] && { echo "the system is writable inside"; exit 4; }
( : > .git ) 2> /dev/null && { echo "protected names can be written inside"; exit 5; }
while read -r name rest; do
  case $name in Iface|lo) ;; *) echo "the network is reachable inside"; exit 6 ;; esac
done < /proc/net/route
while read -r name bits; do
  case $name in CapEff:) [ -z "\${bits##*[!0]*}" ] && { echo "capabilities are left inside"; exit 7; } ;; esac
done < /proc/self/status
exit 0`;

const PROBE_TIMEOUT_MS = 10_000;

const tryIt = (argv: readonly string[]): Promise<string | undefined> => {
  const [program = "", ...parameters] = argv;
  return new Promise((done) => {
    execFile(program, parameters, { timeout: PROBE_TIMEOUT_MS, env: {} }, (error, stdout, stderr) => {
      if (error === null) return done(undefined);
      const output = `${stdout}${stderr}`.trim().split("\n")[0] ?? "";
      done(output !== "" ? output : error.killed ? "it did not answer in time" : error.message.split("\n")[0]);
    });
  });
};

/** Searches for bubblewrap among the system's programs, and runs a real command in it. */
export const probeSandbox = async (): Promise<SandboxProbe> => {
  if (process.platform !== "linux")
    return { ok: false, reason: `bubblewrap is for Linux; this is ${process.platform}` };
  const program = findProgram("bwrap");
  if (program === undefined) return { ok: false, reason: `bubblewrap (bwrap) is ${whyMissing("bwrap")}` };
  let workspace: string;
  try {
    workspace = await mkdtemp(join(tmpdir(), "prefork-sandbox-"));
  } catch (error) {
    return { ok: false, reason: `it cannot be tried: ${error instanceof Error ? error.message : String(error)}` };
  }
  try {
    const missing = [join(workspace, ".git")];
    const failure = await tryIt(sandboxArgv(["/bin/sh", "-c", PROBE], { program, workspace, missing }));
    return failure === undefined
      ? { ok: true, program }
      : { ok: false, reason: `bubblewrap does not work here: ${failure}` };
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
};

export const openSandbox = async (options: SandboxOptions): Promise<OpenedSandbox> => {
  const { mode, home, probe, workspace, ...mounts } = options;
  if (mode === "off") return { kind: "off", reason: "switched off by the settings" };
  const kind = mode === "required" ? "refused" : "off";
  const probed = probe ?? (await probeSandbox());
  if (!probed.ok) return { kind, reason: probed.reason };
  const roots: WritableRoot[] = [];
  try {
    const homeRoot = home === undefined ? undefined : await openRoot(home).catch(() => undefined);
    await homeRoot?.close();
    for (const path of new Set([workspace, ...(mounts.writable ?? [])])) {
      const root = await openRoot(path, { protect: false }).catch((error: unknown) => {
        if (path === workspace || !(error instanceof RootError)) throw error;
      });
      if (root === undefined) continue; // a missing folder cannot be written to
      const isHome = homeRoot?.path === root.path;
      roots.push({ root, whenMissing: isHome ? protectedWhenMissingAtHome : protectedWhenMissing });
    }
    const [first, ...others] = roots.map(({ root }) => root.path);
    const places = { workspace: first ?? workspace, ...(others.length > 0 ? { writable: others } : {}) };
    return { kind: "on", sandbox: new Sandbox(roots, { ...mounts, ...places, program: probed.program }) };
  } catch (error) {
    for (const { root } of roots) await root.close();
    if (error instanceof RootError) return { kind: "refused", reason: error.message };
    throw error;
  }
};
