/** Runs git in a repository that may be hostile.
 *  Invariant: git gets its words as they are, in a clean environment and with bounded memory; hooks, filters, drivers, monitors, signers
 *  and transports that the repository configures are switched off; every call is a step at which a test can stop.
 *  Elsewhere: what is always switched off (@prefork/guard), the repository's own filters and drivers (repository.ts). */

import { spawn } from "node:child_process";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { findProgram } from "@prefork/guard";
import { cleanEnvironment, shownName, withMemoryLimit } from "@prefork/guard/internal";
import { WorktreeError } from "./errors.ts";

/** Called before every git call and every record, with its name. Tests kill the process here. */
export type StepCallback = (name: string) => void;

export type GitOptions = {
  readonly input?: string | Buffer | AsyncIterable<Buffer>;
  /** Exit codes that are not errors. Default: only 0. */
  readonly okCodes?: readonly number[];
  readonly signal?: AbortSignal;
  readonly limitMs?: number; // default: 30 minutes
  /** Of its output. Default: 512 MiB. */
  readonly maxBytes?: number;
};

export type GitAnswer = { readonly code: number; readonly out: Buffer; readonly errorText: string };

type Settings = Readonly<Record<string, string>>;
/** Undefined unsets a variable. */
type Variables = Readonly<Record<string, string | undefined>>;

/** In addition to what is switched off for reading: what writing would start. */
const SWITCHED_OFF: Settings = {
  "gc.auto": "0",
  "maintenance.auto": "false",
  "core.logAllRefUpdates": "false",
  "core.splitIndex": "false",
  // Otherwise a crafted index could pass off any object as the content of an unchanged file.
  "core.checkStat": "default",
  "core.trustctime": "true",
  "index.recordEndOfIndexEntries": "false",
  "commit.gpgSign": "false",
  // With none, every file that git stores could be searched as plain text.
  "core.compression": "-1",
  "core.looseCompression": "1",
  "pack.compression": "-1",
  "merge.renames": "true",
  "merge.directoryRenames": "false", // a new file stays where it was created
  "advice.detachedHead": "false",
  "worktree.guessRemote": "false",
  "branch.autoSetupMerge": "false",
};

const IDENTITY: Settings = {
  GIT_AUTHOR_NAME: "Prefork",
  GIT_AUTHOR_EMAIL: "prefork@localhost",
  GIT_COMMITTER_NAME: "Prefork",
  GIT_COMMITTER_EMAIL: "prefork@localhost",
};

const environmentWith = (settings: Settings): Settings => {
  const clean = cleanEnvironment();
  const from = Number(clean.GIT_CONFIG_COUNT);
  const pairs = Object.entries({ ...SWITCHED_OFF, ...settings });
  const added = pairs.flatMap(([key, value], at) => [
    [`GIT_CONFIG_KEY_${from + at}`, key],
    [`GIT_CONFIG_VALUE_${from + at}`, value],
  ]);
  return { ...clean, ...Object.fromEntries(added), GIT_CONFIG_COUNT: String(from + pairs.length), ...IDENTITY };
};

const MAX_OUTPUT_BYTES = 1 << 29;
const MAX_ERROR_CHARACTERS = 2_000;

/** A file of the repository may be one that git waits for. */
const LONGEST_MS = 30 * 60_000;

/** Far more than git needs for any repository that people work in. A crafted object of a few kilobytes unpacks to any
 *  size. */
const MAX_KIBIBYTES = 4_194_304;

/** Ended by a signal, git first removes its locks. */
const TIDY_MS = 1_000;

const MAX_TRIES = 20;
const BETWEEN_TRIES_MS = 5;

/** Git reads the records of every worktree, and fails on one that another git is just creating. */
const isRaceWithOtherGit = ({ code, errorText: complaint }: GitAnswer, { input }: GitOptions): boolean =>
  code === 128 &&
  /failed to read \S*worktrees\/.*\/commondir/.test(complaint) &&
  (input === undefined || typeof input === "string" || Buffer.isBuffer(input));

/** Git in one folder, with one environment. */
export class Git {
  readonly cwd: string;
  readonly #program: string;
  readonly #settings: Settings;
  readonly #variables: Variables;
  readonly #step: StepCallback;
  readonly #until: AbortSignal | undefined;

  private constructor(program: string, { cwd, settings, variables, step, until }: GitContext) {
    this.#program = program;
    this.cwd = cwd;
    this.#settings = settings;
    this.#variables = variables;
    this.#step = step;
    this.#until = until;
  }

  static in(cwd: string, step: StepCallback = () => {}): Git {
    const program = findProgram("git");
    if (program === undefined)
      throw new WorktreeError("no-repository", "git is not installed; worktrees need it (apt install git)");
    return new Git(program, { cwd, settings: environmentWith({}), variables: {}, step, until: undefined });
  }

  get #where(): GitContext {
    const [settings, variables, step, until] = [this.#settings, this.#variables, this.#step, this.#until];
    return { cwd: this.cwd, settings, variables, step, until };
  }

  at(cwd: string): Git {
    return new Git(this.#program, { ...this.#where, cwd });
  }

  /** With git settings that override those of the repository. */
  configured(settings: Settings): Git {
    return new Git(this.#program, { ...this.#where, settings: environmentWith(settings) });
  }

  /** With another index file than the checkout's. */
  indexed(index: string): Git {
    return this.in({ GIT_INDEX_FILE: index });
  }

  in(variables: Variables): Git {
    return new Git(this.#program, { ...this.#where, variables: { ...this.#variables, ...variables } });
  }

  /** Every call ends when this signal aborts, and rejects with its reason. Replaces an earlier one. */
  until(signal: AbortSignal | undefined): Git {
    return new Git(this.#program, { ...this.#where, until: signal });
  }

  /** Reads objects from `from`, and writes new ones only to `to`. */
  writingTo(to: string, from: string): Git {
    return this.in({ GIT_OBJECT_DIRECTORY: to, GIT_ALTERNATE_OBJECT_DIRECTORIES: quotedPath(from) });
  }

  /** Its output. Throws if git fails. */
  async out(words: readonly string[], options: GitOptions = {}): Promise<Buffer> {
    return (await this.ask(words, options)).out;
  }

  /** Its output as one line. */
  async line(words: readonly string[], options: GitOptions = {}): Promise<string> {
    return (await this.out(words, options)).toString().replace(/\n$/, "");
  }

  async ask(words: readonly string[], options: GitOptions = {}): Promise<GitAnswer> {
    this.#step(`git ${words.slice(0, 2).join(" ")}`);
    let answer = await this.#run(words, options);
    for (let tries = 1; tries < MAX_TRIES && isRaceWithOtherGit(answer, options); tries += 1) {
      await sleep(tries * BETWEEN_TRIES_MS);
      answer = await this.#run(words, options);
    }
    const { okCodes: may = [0] } = options;
    if (may.includes(answer.code)) return answer;
    options.signal?.throwIfAborted();
    const message = answer.errorText.trim().split("\n").slice(-3).join("; ") || `it exited with ${answer.code}`;
    const reason = /No space left on device|Disk quota exceeded/.test(message) ? "disk-full" : "git";
    throw new WorktreeError(reason, `git ${words[0]}: ${message}`);
  }

  #run(words: readonly string[], options: GitOptions): Promise<GitAnswer> {
    const { input, signal, limitMs = LONGEST_MS, maxBytes = MAX_OUTPUT_BYTES } = options;
    const until = this.#until;
    if (until?.aborted) return Promise.reject(until.reason);
    const { promise, resolve, reject } = Promise.withResolvers<GitAnswer>();
    const [program = "", ...args] = withMemoryLimit([this.#program, ...words], MAX_KIBIBYTES);
    const child = spawn(program, args, {
      cwd: this.cwd,
      env: { ...this.#settings, ...this.#variables },
      stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
      ...{ timeout: limitMs, killSignal: "SIGKILL" },
      ...(signal ? { signal } : {}),
    });
    const chunks: Buffer[] = [];
    let [size, complaint] = [0, ""];
    child.stdout?.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) child.kill("SIGKILL");
      else chunks.push(chunk);
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      complaint = (complaint + chunk.toString()).slice(-MAX_ERROR_CHARACTERS);
    });
    child.stdin?.on("error", () => {}); // it exited before reading everything; the exit code says why
    if (input === undefined || typeof input === "string" || Buffer.isBuffer(input)) child.stdin?.end(input);
    else if (child.stdin)
      pipeline(input, child.stdin).catch((error: unknown) => {
        if (child.exitCode === null) child.kill("SIGKILL"); // its input cannot be read
        reject(error);
      });
    let last: NodeJS.Timeout | undefined;
    const stop = (): void => {
      child.kill("SIGTERM");
      last = setTimeout(() => child.kill("SIGKILL"), TIDY_MS);
    };
    until?.addEventListener("abort", stop, { once: true });
    child.on("error", reject);
    child.on("close", (code, killed) => {
      until?.removeEventListener("abort", stop);
      clearTimeout(last);
      if (until?.aborted && killed) reject(until.reason);
      const why = size > maxBytes ? `it printed more than ${maxBytes >> 20} MiB` : killed && `killed by ${killed}`;
      // It may have ended before it could be killed; what it printed is not complete all the same.
      const ended = size > maxBytes ? 128 : (code ?? 128);
      resolve({ code: ended, out: Buffer.concat(chunks), errorText: why ?? complaint });
    });
    return promise;
  }
}

type GitContext = {
  readonly cwd: string;
  /** The environment that carries our git settings. */
  readonly settings: Settings;
  /** Variables on top of that; they survive a change of settings. */
  readonly variables: Variables;
  readonly step: StepCallback;
  readonly until: AbortSignal | undefined;
};

/** Quoted as git expects in a list separated by colons. */
const quotedPath = (path: string): string =>
  /[:"\\\n]/.test(path) ? `"${path.replace(/["\\]/g, "\\$&").replaceAll("\n", "\\n")}"` : path;

/** A path relative to the top of a repository, with one character per byte (latin1), because names need not be valid
 *  UTF-8. */
export type TreePath = string;

/** Splits the output of a git command with -z. */
export const fieldsOf = (out: Buffer): readonly TreePath[] => out.toString("latin1").split("\0").slice(0, -1);

/** Input for a git command with -z. */
export const inputOf = (fields: readonly TreePath[]): Buffer =>
  Buffer.from(fields.map((field) => `${field}\0`).join(""), "latin1");

export const bytesOf = (path: TreePath): Buffer => Buffer.from(path, "latin1");

/** A path for people. */
export const displayPath = (path: TreePath): string => bytesOf(path).toString();

/** A path inside a message, quoted if needed. */
export const messagePath = (path: TreePath): string => shownName(displayPath(path));
