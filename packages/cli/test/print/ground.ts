/** A workspace, a home and a provider for `prefork -p`, and two ways to run it: in this process, and in its own.
 *  Invariant: a test sees nothing of the user's own home, state or keys, and everything is closed and removed at its end. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type SimScript, type Simulator, say, startSimulator } from "@prefork/simulator";
import type { Json, JsonObject } from "@prefork/wire";
import { run } from "../../src/main.ts";
import { captured } from "../captured.ts";
import { compiled } from "../compiled.ts";
import { hideBwrap } from "../optional.ts";

export type Ran = { readonly code: number | null; readonly out: string; readonly err: string };

export type Calling = {
  readonly env?: Readonly<Record<string, string>>;
  /** Lines of standard input. Default: a terminal, so none. */
  readonly input?: AsyncIterable<string> | readonly string[];
  readonly signal?: AbortSignal;
  /** Standard input is a terminal, and a person types the lines. */
  readonly isTerminal?: boolean;
};

export type Started = {
  readonly child: ChildProcess;
  /** What it has printed so far. */
  readonly out: () => string;
  readonly ended: Promise<Ran & { readonly signal: NodeJS.Signals | null }>;
};

export type Ground = AsyncDisposable & {
  readonly simulator: Simulator;
  readonly home: string;
  /** The folder that `prefork` works in. */
  readonly work: string;
  readonly at: (name: string) => string;
  readonly put: (name: string, content: string) => string;
  readonly putHome: (name: string, content: string) => string;
  readonly read: (name: string) => string;
  readonly env: Readonly<Record<string, string>>;
  /** In this process. */
  readonly prefork: (argv: readonly string[], calling?: Calling) => Promise<Ran>;
  /** As a process of its own, in the workspace. `input`: what is written before its standard input ends. */
  readonly start: (argv: readonly string[], options?: Starting) => Started;
  readonly bodies: () => readonly JsonObject[];
};

export type Starting = {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Default: empty. */
  readonly input?: string | "open";
};

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

hideBwrap();

export const openGround = async (script: SimScript = () => say("done")): Promise<Ground> => {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "prefork-print-")));
  const [home, work] = [join(path, "home"), join(path, "work")];
  for (const folder of [home, work]) mkdirSync(folder);
  const simulator = await startSimulator({ keepBodies: true, script });
  const env = {
    PATH: [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter),
    HOME: home,
    ANTHROPIC_BASE_URL: simulator.url,
    ANTHROPIC_API_KEY: "any",
  };
  const inWork = (argv: readonly string[]): readonly string[] =>
    argv.some((word) => word === "-p") && !argv.includes("--cwd") ? ["--cwd", work, ...argv] : argv;
  return {
    ...{ simulator, home, work, env },
    at: (name) => join(work, name),
    put: (name, content) => putIn(work, name, content),
    putHome: (name, content) => putIn(home, name, content),
    read: (name) => readFileSync(join(work, name), "utf8"),
    prefork: (argv, calling = {}) => inThisProcess(inWork(argv), { ...calling, env: { ...env, ...calling.env } }),
    start: (argv, options = {}) => start(argv, { cwd: work, ...options, env: { ...env, ...options.env } }),
    bodies: () => simulator.requests().map(({ body }) => JSON.parse(body.toString("utf8")) as JsonObject),
    [Symbol.asyncDispose]: async () => {
      await simulator.close();
      rmSync(path, { recursive: true, force: true });
    },
  };
};

const putIn = (folder: string, name: string, content: string): string => {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
};

const inThisProcess = async (argv: readonly string[], { env, input, signal, isTerminal }: Calling): Promise<Ran> => {
  const io = captured({
    ...(env === undefined ? {} : { env }),
    ...(signal === undefined ? {} : { signal }),
    ...(input === undefined ? {} : { inputIsTerminal: isTerminal ?? false, input: () => linesOf(input) }),
    ...(isTerminal ? { isTerminal } : {}),
  });
  const code = await run(argv, io);
  return { code, out: io.text(), err: io.errors() };
};

async function* linesOf(lines: AsyncIterable<string> | readonly string[]): AsyncGenerator<string> {
  yield* lines;
}

const start = (argv: readonly string[], { env, cwd, input = "" }: Starting): Started => {
  const child = spawn(process.execPath, [...process.execArgv, MAIN, ...argv], {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...compiled, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const printed: Buffer[] = [];
  const complained: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => printed.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => complained.push(chunk));
  if (input !== "open") child.stdin.end(input);
  const out = (): string => Buffer.concat(printed).toString();
  const { promise: ended, resolve } = Promise.withResolvers<Awaited<Started["ended"]>>();
  child.once("close", (code, signal) =>
    resolve({ code, signal, out: out(), err: Buffer.concat(complained).toString() }),
  );
  return { child, out, ended };
};

/** Processes whose command line has this text. */
export const processesWith = (text: string): readonly string[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ");
      } catch {
        return ""; // it has ended
      }
    })
    .filter((line) => line.includes(text));

// --- what was sent and printed -----------------------------------------------------------------------------------------

export const objectsIn = (value: Json | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter(isObject) : [];

const isObject = (value: Json): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The texts of the last message that the user's side sent. */
export const lastTexts = (body: JsonObject | undefined): readonly string[] =>
  objectsIn(objectsIn(body?.messages).at(-1)?.content).flatMap(({ type, text }) =>
    type === "text" ? [String(text)] : [],
  );

/** The working folder that the session reports. */
export const folderIn = (body: JsonObject): string => {
  const texts = objectsIn(body.messages).flatMap(({ content }) => objectsIn(content).map(({ text }) => String(text)));
  return texts.flatMap((text) => /^Working folder: (\/.*)$/m.exec(text)?.slice(1) ?? []).at(-1) ?? "";
};

export const parsedLines = (out: string): readonly JsonObject[] =>
  out
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as JsonObject);

/** The object that a run with --output-format json printed. */
export const resultIn = (out: string): JsonObject => JSON.parse(out) as JsonObject;
