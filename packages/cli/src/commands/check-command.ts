/** `prefork check-command`: is a command read-only, and what would be run? For scripts, CI and tests.
 *  Invariant: one JSON line for one command, in order; nothing runs without --run, and then only the plan.
 *  Elsewhere: the judgement (guard of @prefork/runtime), running (its workspace). */

import { statSync } from "node:fs";
import { resolve } from "node:path";
import { type CommandPlan, classify, openCell, type PlanCell, planHazard, readJsonLine, runPlan } from "@prefork/guard";
import type { Command } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { type GivenLine, givenLines, jsonLine } from "../lines.ts";

type Asked = {
  readonly cmd: string;
  readonly cwd: string;
  /** Why nothing can be run there. A command can be judged all the same. */
  readonly noFolder?: string;
};

/** A text from outside as it may stand in an error: short, in quotes, in letters that every terminal only shows. */
const shown = (text: string): string =>
  JSON.stringify(text.slice(0, 200)).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

const isFolder = (path: string): boolean => {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // not there, not to be reached, or no name that the system can have
  }
};

type LineContext = { readonly from: string; readonly noteUnknown: (key: string) => void };

const readAsked = ({ line, number }: GivenLine, { from, noteUnknown }: LineContext): Asked => {
  const read = readJsonLine(line);
  if (read.kind !== "object") throw new UsageError(`line ${number}: ${read.reason}`);
  const { fields } = read;
  const cmd = fields.get("cmd");
  const cwd = fields.has("cwd") ? fields.get("cwd") : ".";
  if (typeof cmd !== "string") throw new UsageError(`line ${number}: "cmd" must be a string`);
  if (typeof cwd !== "string") throw new UsageError(`line ${number}: "cwd" must be a string`);
  for (const key of fields.keys()) if (key !== "cmd" && key !== "cwd") noteUnknown(key);
  const folder = resolve(from, cwd);
  return { cmd, cwd: folder, ...(isFolder(folder) ? {} : { noFolder: `the cwd ${shown(cwd)} is no folder` }) };
};

/** Each once: a file of thousands of lines may have its own notes in every one. */
const unknownKeys = (io: Io): ((key: string) => void) => {
  const told = new Set<string>();
  return (key) => {
    if (told.has(key)) return;
    told.add(key);
    io.err(`prefork: the key ${shown(key)} means nothing here; "cmd" and "cwd" are read\n`);
  };
};

type Judged = { readonly verdict: string; readonly reason: string; readonly plan?: CommandPlan };

const judge = ({ cmd, cwd }: Asked): Judged => {
  const judged = classify(cmd);
  if (judged.verdict !== "read-only") return judged;
  const hazard = planHazard(judged.plan, { cwd }); // a folder that is not there holds no repository
  return hazard === undefined ? judged : { verdict: "unknown", reason: hazard };
};

type Running = { readonly signal: AbortSignal; readonly cell?: PlanCell };

/** The layers that the agent has here too. */
const openRunning = async ({ signal }: Io): Promise<Running> => {
  const opened = await openCell({ mode: "auto" });
  return opened.kind === "on" ? { signal, cell: opened.cell } : { signal };
};

/** `running` undefined: nothing is run. */
const answer = async (asked: Asked, running: Running | undefined): Promise<string> => {
  const { verdict, reason, plan } = judge(asked);
  const judged = { cmd: asked.cmd, readOnly: plan !== undefined, verdict, reason, ...(plan ? { plan } : {}) };
  if (!running || !plan) return jsonLine(judged);
  if (asked.noFolder !== undefined) return jsonLine({ ...judged, stdout: "", exitCode: 127, refused: asked.noFolder });
  const { stdout, stderr, exitCode, refused } = await runPlan(plan, { cwd: asked.cwd, ...running });
  running.signal.throwIfAborted(); // what was cut off is no answer
  const complaint = stderr === "" ? {} : { stderr };
  return jsonLine({ ...judged, stdout, exitCode, ...complaint, ...(refused === undefined ? {} : { refused }) });
};

const quoted = (words: readonly string[]): string => `'${words.join(" ").slice(0, 80).replaceAll("'", `'\\''`)}'`;

export const checkCommandCommand = (io: Io): Command =>
  newCommand("check-command", io)
    .description("say whether bash commands are read-only, as the agent would judge them")
    .argument(
      "[command...]",
      'one command, in quotes; without it, JSON lines {"cmd", "cwd"?} are read from standard input',
    )
    .option("--run", "run the plan of a read-only command, and add its output and exit code")
    .option("--cwd <dir>", "working directory of the command, or of lines that name none", ".")
    .allowUnknownOption()
    .action(async (words: readonly string[], options: { readonly run?: true; readonly cwd: string }) => {
      const [command, ...more] = words;
      if (more.length > 0 || command?.startsWith("-"))
        throw new UsageError(`give the command as one word, in quotes: prefork check-command ${quoted(words)}`);
      const from = resolve(options.cwd);
      if (!isFolder(from)) throw new UsageError(`option '--cwd': ${shown(options.cwd)} is no folder`);
      const running = options.run ? await openRunning(io) : undefined;
      if (command !== undefined) {
        io.out(await answer({ cmd: command, cwd: from }, running));
        return;
      }
      const context = { from, noteUnknown: unknownKeys(io) };
      for await (const given of givenLines(io)) io.out(await answer(readAsked(given, context), running));
    });
