/** How is git run on a repository that nobody vouches for?
 *  Invariant: started directly, without a shell, in an environment of our own; hooks, filters, drivers, monitors, signers
 *  and transports that the repository configures are switched off; every call is a step that a test can stop at.
 *  Elsewhere: what is switched off for all (@prefork/guard), which filters and drivers there are (repository.ts). */

import { spawn } from "node:child_process";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { findProgram } from "@prefork/guard";
import { cleanEnvironment, shownName } from "@prefork/guard/internal";
import { WorktreeError } from "./errors.ts";

/** Told before every git call and every record, with its name. A test ends the process here. */
export type Steps = (name: string) => void;

export type GitOptions = {
  readonly input?: string | Buffer | AsyncIterable<Buffer>;
  /** Exit codes that are answers. Default: 0 alone. */
  readonly may?: readonly number[];
  readonly signal?: AbortSignal;
  readonly limitMs?: number; // default: 30 minutes
};

export type GitAnswer = { readonly code: number; readonly out: Buffer; readonly complaint: string };

type Settings = Readonly<Record<string, string>>;
/** Undefined: as if it were not set. */
type Variables = Readonly<Record<string, string | undefined>>;

/** Beside what is switched off for every read: what writing would start. */
const QUIET: Settings = {
  "gc.auto": "0",
  "maintenance.auto": "false",
  "core.logAllRefUpdates": "false",
  "core.splitIndex": "false",
  "index.recordEndOfIndexEntries": "false",
  "commit.gpgSign": "false",
  "merge.renames": "true",
  "merge.directoryRenames": "false", // a file that nobody moved stays where it was put
  "advice.detachedHead": "false",
  "worktree.guessRemote": "false",
  "branch.autoSetupMerge": "false",
};

const WHO: Settings = {
  GIT_AUTHOR_NAME: "Prefork",
  GIT_AUTHOR_EMAIL: "prefork@localhost",
  GIT_COMMITTER_NAME: "Prefork",
  GIT_COMMITTER_EMAIL: "prefork@localhost",
};

const environmentWith = (settings: Settings): Settings => {
  const clean = cleanEnvironment();
  const from = Number(clean.GIT_CONFIG_COUNT);
  const pairs = Object.entries({ ...QUIET, ...settings });
  const added = pairs.flatMap(([key, value], at) => [
    [`GIT_CONFIG_KEY_${from + at}`, key],
    [`GIT_CONFIG_VALUE_${from + at}`, value],
  ]);
  return { ...clean, ...Object.fromEntries(added), GIT_CONFIG_COUNT: String(from + pairs.length), ...WHO };
};

const MOST_BYTES = 1 << 29;
const COMPLAINT_CHARACTERS = 2_000;

/** A file of the repository may be one that git waits for. */
const LONGEST_MS = 30 * 60_000;

const MOST_TRIES = 20;
const BETWEEN_TRIES_MS = 5;

/** Git reads the files of every worktree, and gives up on one that another git is just making. */
const isHalfSeen = ({ code, complaint }: GitAnswer, { input }: GitOptions): boolean =>
  code === 128 &&
  /failed to read \S*worktrees\/.*\/commondir/.test(complaint) &&
  (input === undefined || typeof input === "string" || Buffer.isBuffer(input));

/** Git in one folder, with one environment. */
export class Git {
  readonly cwd: string;
  readonly #program: string;
  readonly #settings: Settings;
  readonly #variables: Variables;
  readonly #step: Steps;

  private constructor(program: string, { cwd, settings, variables, step }: Where) {
    this.#program = program;
    this.cwd = cwd;
    this.#settings = settings;
    this.#variables = variables;
    this.#step = step;
  }

  static in(cwd: string, step: Steps = () => {}): Git {
    const program = findProgram("git");
    if (program === undefined)
      throw new WorktreeError("no-repository", "git is not installed; worktrees need it (apt install git)");
    return new Git(program, { cwd, settings: environmentWith({}), variables: {}, step });
  }

  get #where(): Where {
    return { cwd: this.cwd, settings: this.#settings, variables: this.#variables, step: this.#step };
  }

  at(cwd: string): Git {
    return new Git(this.#program, { ...this.#where, cwd });
  }

  /** With settings of git in place of those of the repository. */
  configured(settings: Settings): Git {
    return new Git(this.#program, { ...this.#where, settings: environmentWith(settings) });
  }

  /** With an index of our own in place of the checkout's. */
  indexed(index: string): Git {
    return this.in({ GIT_INDEX_FILE: index });
  }

  in(variables: Variables): Git {
    return new Git(this.#program, { ...this.#where, variables: { ...this.#variables, ...variables } });
  }

  /** Reads the objects of `from`, and writes its own into `to` alone. */
  writingTo(to: string, from: string): Git {
    return this.in({ GIT_OBJECT_DIRECTORY: to, GIT_ALTERNATE_OBJECT_DIRECTORIES: quotedPath(from) });
  }

  /** Its output. Throws where git says no. */
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
    for (let tries = 1; tries < MOST_TRIES && isHalfSeen(answer, options); tries += 1) {
      await sleep(tries * BETWEEN_TRIES_MS);
      answer = await this.#run(words, options);
    }
    const { may = [0] } = options;
    if (may.includes(answer.code)) return answer;
    options.signal?.throwIfAborted();
    const said = answer.complaint.trim().split("\n").slice(-3).join("; ") || `it ended with ${answer.code}`;
    const reason = /No space left on device|Disk quota exceeded/.test(said) ? "disk-full" : "git";
    throw new WorktreeError(reason, `git ${words[0]}: ${said}`);
  }

  #run(words: readonly string[], { input, signal, limitMs = LONGEST_MS }: GitOptions): Promise<GitAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<GitAnswer>();
    const child = spawn(this.#program, [...words], {
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
      if (size > MOST_BYTES) child.kill("SIGKILL");
      else chunks.push(chunk);
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      complaint = (complaint + chunk.toString()).slice(-COMPLAINT_CHARACTERS);
    });
    child.stdin?.on("error", () => {}); // it ended before it read all: its exit code says why
    if (input === undefined || typeof input === "string" || Buffer.isBuffer(input)) child.stdin?.end(input);
    else if (child.stdin)
      pipeline(input, child.stdin).catch((error: unknown) => {
        if (child.exitCode === null) child.kill("SIGKILL"); // what it was to be told cannot be read
        reject(error);
      });
    child.on("error", reject);
    child.on("close", (code, killed) =>
      resolve({ code: code ?? 128, out: Buffer.concat(chunks), complaint: killed ? `ended by ${killed}` : complaint }),
    );
    return promise;
  }
}

type Where = {
  readonly cwd: string;
  /** What our settings of git make of the environment. */
  readonly settings: Settings;
  /** Set over that; they survive a change of settings. */
  readonly variables: Variables;
  readonly step: Steps;
};

/** As git reads a list that is separated by colons. */
const quotedPath = (path: string): string =>
  /[:"\\\n]/.test(path) ? `"${path.replace(/["\\]/g, "\\$&").replaceAll("\n", "\\n")}"` : path;

/** A path below the top of a repository as git spells it: its bytes, one a character (latin1), since names need not be
 *  text. */
export type TreePath = string;

/** Of an answer with -z. */
export const fieldsOf = (out: Buffer): readonly TreePath[] => out.toString("latin1").split("\0").slice(0, -1);

/** As git reads a list with -z. */
export const inputOf = (fields: readonly TreePath[]): Buffer =>
  Buffer.from(fields.map((field) => `${field}\0`).join(""), "latin1");

export const bytesOf = (path: TreePath): Buffer => Buffer.from(path, "latin1");

/** For people. */
export const shownPath = (path: TreePath): string => bytesOf(path).toString();

/** The same inside a message, where it must stay one word of the line. */
export const toldPath = (path: TreePath): string => shownName(shownPath(path));
