/** `prefork check-command`: is a command read-only, and what would run? For scripts, CI and tests.
 *  Invariant: one JSON line per command, in order; nothing runs without --run, and then only the command plan.
 *  Elsewhere: the decision and running it (@prefork/guard). */

import { statSync } from "node:fs";
import { resolve } from "node:path";
import {
  type CommandPlan,
  classify,
  openReadOnlySandbox,
  planHazard,
  type ReadOnlySandbox,
  readJsonLine,
  runPlan,
} from "@prefork/guard";
import type { Command } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { type InputLine, inputLines, jsonLine } from "../lines.ts";

type CommandQuery = {
  readonly cmd: string;
  readonly cwd: string;
  /** Why nothing can run there. The command can still be judged. */
  readonly noFolder?: string;
};

/** Outside text for an error message: short, quoted, in printable ASCII only. */
const quoteText = (text: string): string =>
  JSON.stringify(text.slice(0, 200)).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

const isFolder = (path: string): boolean => {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // missing, unreachable, or not a valid name
  }
};

type LineContext = { readonly from: string; readonly noteUnknown: (key: string) => void };

const readQuery = ({ line, number }: InputLine, { from, noteUnknown }: LineContext): CommandQuery => {
  const read = readJsonLine(line);
  if (read.kind !== "object") throw new UsageError(`line ${number}: ${read.reason}`);
  const { fields } = read;
  const cmd = fields.get("cmd");
  const cwd = fields.has("cwd") ? fields.get("cwd") : ".";
  if (typeof cmd !== "string") throw new UsageError(`line ${number}: "cmd" must be a string`);
  if (typeof cwd !== "string") throw new UsageError(`line ${number}: "cwd" must be a string`);
  for (const key of fields.keys()) if (key !== "cmd" && key !== "cwd") noteUnknown(key);
  const folder = resolve(from, cwd);
  return { cmd, cwd: folder, ...(isFolder(folder) ? {} : { noFolder: `the cwd ${quoteText(cwd)} is not a folder` }) };
};

/** Warns once per key: thousands of lines may share the same unknown key. */
const unknownKeys = (io: Io): ((key: string) => void) => {
  const warned = new Set<string>();
  return (key) => {
    if (warned.has(key)) return;
    warned.add(key);
    io.err(`prefork: the key ${quoteText(key)} is ignored; only "cmd" and "cwd" are used\n`);
  };
};

type Judgement = { readonly verdict: string; readonly reason: string; readonly plan?: CommandPlan };

const judge = ({ cmd, cwd }: CommandQuery): Judgement => {
  const judged = classify(cmd);
  if (judged.verdict !== "read-only") return judged;
  const hazard = planHazard(judged.plan, { cwd }); // a missing folder holds no repository
  return hazard === undefined ? judged : { verdict: "unknown", reason: hazard };
};

type RunOptions = { readonly signal: AbortSignal; readonly readOnlySandbox?: ReadOnlySandbox };

/** With the same layers of protection that the agent has here. */
const openRunOptions = async ({ signal }: Io): Promise<RunOptions> => {
  const opened = await openReadOnlySandbox({ mode: "auto" });
  return opened.kind === "on" ? { signal, readOnlySandbox: opened.sandbox } : { signal };
};

/** Without `running` nothing runs. */
const answer = async (asked: CommandQuery, running: RunOptions | undefined): Promise<string> => {
  const { verdict, reason, plan } = judge(asked);
  const judged = { cmd: asked.cmd, readOnly: plan !== undefined, verdict, reason, ...(plan ? { plan } : {}) };
  if (!running || !plan) return jsonLine(judged);
  if (asked.noFolder !== undefined) return jsonLine({ ...judged, stdout: "", exitCode: 127, refused: asked.noFolder });
  const { stdout, stderr, exitCode, refused } = await runPlan(plan, { cwd: asked.cwd, ...running });
  running.signal.throwIfAborted(); // a cut-off output is not an answer
  const complaint = stderr === "" ? {} : { stderr };
  return jsonLine({ ...judged, stdout, exitCode, ...complaint, ...(refused === undefined ? {} : { refused }) });
};

const shellQuote = (words: readonly string[]): string => `'${words.join(" ").slice(0, 80).replaceAll("'", `'\\''`)}'`;

export const checkCommandCommand = (io: Io): Command =>
  newCommand("check-command", io)
    .description("check whether bash commands are read-only, as the agent would decide")
    .argument(
      "[command...]",
      'one command, in quotes; without it, reads JSON lines {"cmd", "cwd"?} from standard input',
    )
    .option("--run", "run a read-only command, and add its output and exit code")
    .option("--cwd <dir>", "working directory of the command, and of lines without one", ".")
    .allowUnknownOption()
    .action(async (words: readonly string[], options: { readonly run?: true; readonly cwd: string }) => {
      const [command, ...more] = words;
      if (more.length > 0 || command?.startsWith("-"))
        throw new UsageError(`give the command as one argument, in quotes: prefork check-command ${shellQuote(words)}`);
      const from = resolve(options.cwd);
      if (!isFolder(from)) throw new UsageError(`option '--cwd': ${quoteText(options.cwd)} is not a folder`);
      const running = options.run ? await openRunOptions(io) : undefined;
      if (command !== undefined) {
        io.out(await answer({ cmd: command, cwd: from }, running));
        return;
      }
      const context = { from, noteUnknown: unknownKeys(io) };
      for await (const given of inputLines(io)) io.out(await answer(readQuery(given, context), running));
    });
