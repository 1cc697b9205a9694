/** A temporary folder for one hostile environment: a program that leaves a trace when anything starts it, and the real
 *  command line to run commands there.
 *  Invariant: the program only leaves its trace; commands go through `check-command`, never directly to a shell. */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { compiled } from "../compiled.ts";

export type Place = Disposable & {
  readonly path: string;
  /** The absolute path of the program that leaves the trace. */
  readonly trap: string;
  readonly sprung: () => boolean;
  readonly reset: () => void;
  readonly at: (...names: readonly string[]) => string;
  readonly put: (name: string, content?: string, mode?: number) => string;
};

export const place = (): Place => {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "prefork-hostile-")));
  const at = (...names: readonly string[]): string => join(path, ...names);
  const put = (name: string, content = "", mode = 0o644): string => {
    mkdirSync(dirname(at(name)), { recursive: true });
    writeFileSync(at(name), content);
    chmodSync(at(name), mode);
    return at(name);
  };
  const trace = at("trace");
  const trap = put("trap.sh", `#!/bin/sh\necho "$0 $*" >> '${trace}'\nexit 1\n`, 0o755);
  return {
    path,
    trap,
    at,
    put,
    sprung: () => existsSync(trace),
    reset: () => rmSync(trace, { force: true }),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
};

export type Answer = {
  readonly cmd: string;
  readonly readOnly: boolean;
  readonly reason: string;
  readonly stdout?: string;
  readonly exitCode?: number;
};

export type Surrounding = { readonly cwd: string; readonly env?: Readonly<Record<string, string>> };

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** `prefork check-command --run` on these commands, in its own process. */
export const checkAndRun = (commands: readonly string[], surrounding: Surrounding): Promise<readonly Answer[]> =>
  checkAndRunEach(
    commands.map((cmd) => ({ cmd, cwd: surrounding.cwd })),
    surrounding,
  );

/** The same, each command in its own folder. */
export const checkAndRunEach = async (
  lines: readonly { readonly cmd: string; readonly cwd: string }[],
  { cwd, env = {} }: Surrounding,
): Promise<readonly Answer[]> => {
  const child = spawn(
    process.execPath,
    [...process.execArgv, "--disable-warning=ExperimentalWarning", MAIN, "check-command", "--run"],
    { cwd, env: { PATH: "/usr/bin:/bin", HOME: cwd, ...compiled, ...env }, stdio: ["pipe", "pipe", "pipe"] },
  );
  const printed: Buffer[] = [];
  const complained: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => printed.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => complained.push(chunk));
  child.stdin.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const code = await new Promise<number | null>((done) => child.once("close", done));
  assert.equal(code, 0, Buffer.concat(complained).toString());
  const answers = Buffer.concat(printed).toString().split("\n").filter(Boolean);
  return answers.map((answer) => JSON.parse(answer) as Answer);
};

const AUTHOR = { GIT_AUTHOR_NAME: "A", GIT_AUTHOR_EMAIL: "a@b", GIT_COMMITTER_NAME: "A", GIT_COMMITTER_EMAIL: "a@b" };

/** git as a test uses it to build repositories: with no configuration except the repository's. */
export const git = (cwd: string, ...words: readonly string[]): string => {
  const env = {
    PATH: "/usr/bin:/bin",
    HOME: cwd,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_AUTHOR_DATE: "2024-01-02T03:04:05Z",
    GIT_COMMITTER_DATE: "2024-01-02T03:04:05Z",
    ...AUTHOR,
  };
  const done = spawnSync(
    "git",
    ["-c", "init.defaultBranch=main", "-c", "gc.auto=0", "-c", "maintenance.auto=false", ...words],
    { cwd, env, encoding: "utf8" },
  );
  return done.stdout;
};

/** Two commits; then one file changed, one only touched, one untracked. */
export const repository = (folder: string): string => {
  mkdirSync(folder, { recursive: true });
  git(folder, "init", "-q");
  writeFileSync(join(folder, "a.txt"), "first line\n");
  writeFileSync(join(folder, "b.txt"), "text\n");
  git(folder, "add", ".");
  git(folder, "commit", "-q", "-m", "one");
  writeFileSync(join(folder, "a.txt"), "first line\nsecond text\n");
  git(folder, "commit", "-q", "-am", "two");
  git(folder, "tag", "v1");
  return folder;
};

/** After the configuration became hostile: one file changed, one only touched, one untracked. */
export const change = (folder: string): void => {
  writeFileSync(join(folder, "a.txt"), "changed\nsecond text\n");
  utimesSync(join(folder, "b.txt"), 1_000_000_000, 1_000_000_000);
  writeFileSync(join(folder, "c.txt"), "new\n");
};
