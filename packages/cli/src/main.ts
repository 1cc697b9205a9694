/** The command line as one function: runs a command and returns its exit code.
 *  Invariant: 0 done, 1 failed, 2 usage error, 130 interrupted (129 by SIGHUP, 143 by SIGTERM), others as the command
 *  documents; an error is one line on standard error; after a signal the command shuts down in order.
 *  Elsewhere: what each command does (commands/). */

import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { addAbortSignal } from "node:stream";
import { type Command, CommanderError } from "commander";
import {
  addCommands,
  addPagesIfAsked,
  COMPLETE,
  isCommand,
  isMore,
  loadComplete,
  loadTerminal,
  TERMINAL,
} from "./commands/index.ts";
import { type Io, newCommand, UsageError } from "./io.ts";
import { linesOf } from "./lines.ts";
import { visible } from "./visible.ts";

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  readonly version: string;
};

const program = async (io: Io, words: readonly string[]): Promise<Command> => {
  const all = newCommand("prefork", io)
    .description("Forked sub-agents that share the parent's prompt cache.")
    .configureHelp({ commandUsage: () => 'prefork -p "prompt" | prefork <command>' })
    .version(version, "-v, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand(false)
    .showSuggestionAfterError()
    .addHelpText("after", FOOTER);
  if (words[0] === TERMINAL) {
    const terminalCommand = await loadTerminal();
    return await addPagesIfAsked(all.addCommand(terminalCommand(run)(io), { hidden: true }), words);
  }
  await addCommands(all, words, io);
  return all.addCommand(helpCommand(io).helpGroup("Set up:"));
};

const FOOTER = `
Open the terminal:  prefork                             (options: prefork --continue --help)
Run one prompt:     prefork -p "fix the failing test"   (options: prefork help print)
See a demo:         prefork tour                        (needs no API key)
More commands:      prefork help more
Exit codes: 0 done, 1 failed, 2 usage error, 130 interrupted.
prefork -p has more exit codes: prefork help print`;

/** Our own, because commander's shows the whole help for an unknown name, without an error. */
const helpCommand = (io: Io): Command =>
  newCommand("help", io)
    .description("show help for prefork or for one command")
    .argument("[command...]", "its name, and the name of its group before it")
    .addHelpText(
      "after",
      `
Examples:
  prefork help sessions search  help for one command
  prefork help more             demonstrations, checks and short names`,
    )
    .action((names: readonly string[], _options: unknown, self: Command) => {
      const all = self.parent;
      if (!all) return;
      if (names.length === 1 && names[0] === "more") return io.out(moreHelp(all));
      let named = all;
      for (const [at, name] of names.entries()) {
        const next = named.commands.find((command) => command.name() === name);
        const asked = names.slice(0, at + 1).join(" ");
        if (!next) throw new UsageError(`there is no command '${asked}' (prefork help lists them)`);
        named = next;
      }
      named.outputHelp();
    });

const moreHelp = (all: Command): string => {
  const rows = all.commands.filter((command) => isMore(command.name()));
  const width = Math.max(...rows.map((command) => command.name().length));
  const lines = rows.map((command) => `  ${command.name().padEnd(width)}  ${command.description()}`);
  return `More commands:\n${lines.join("\n")}\n`;
};

/** Runs one command and returns its exit code. */
export const run = async (argv: readonly string[], given: Omit<Io, "exitWith">): Promise<number> => {
  const ended = { code: 0 };
  const exitWith = (code: number): void => {
    ended.code = code;
  };
  const io: Io = { ...given, run, exitWith };
  try {
    if (argv[0] === COMPLETE) {
      const printCandidates = await loadComplete();
      await printCandidates(argv.slice(1), io);
      return 0;
    }
    const words = wordsOf(argv, io);
    const commands = await program(io, words);
    if (words.length === 0) {
      commands.outputHelp();
      return 0;
    }
    await commands.parseAsync([...words], { from: "user" });
    return ended.code;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    if (io.signal.aborted) return 130;
    io.err(`prefork: ${oneLine(error)}\n`);
    return isUsageError(error) ? 2 : 1;
  }
};

/** The words with the name of the command that they mean. */
export const wordsOf = (argv: readonly string[], io: Io): readonly string[] => {
  if (asksToPrint(argv)) return ["print", ...argv.map(asWord)];
  return asksForTerminal(argv, io) ? [TERMINAL, ...argv] : argv;
};

/** `prefork`, `prefork "fix the test"`, `prefork --continue`. One word alone is rather a mistyped command. */
const asksForTerminal = (argv: readonly string[], io: Io): boolean => {
  const [first] = argv;
  if (first === undefined) return io.isTerminal && io.inputIsTerminal;
  if (isCommand(first) || OWN_OPTIONS.includes(first)) return false;
  return /\s/.test(first.trim()) || first.startsWith("-");
};

const OWN_OPTIONS: readonly string[] = ["-h", "--help", "-v", "--version"];

/** `prefork -p …` names no command, and its prompt and options may come in any order. */
const asksToPrint = (argv: readonly string[]): boolean => {
  const options = argv.slice(0, argv.includes("--") ? argv.indexOf("--") : argv.length);
  return !isCommand(argv[0] ?? "") && options.some((word) => word === "-p" || word === "--print");
};

/** A prompt may start with a list item ("- …"); no option starts with a dash and a space. */
const asWord = (word: string): string => (/^-+\s/.test(word) ? ` ${word}` : word);

/** By name, so that help and errors load nothing extra. */
const USAGE_ERRORS: readonly string[] = ["UsageError", "InputError", "SimulatorError"];

const isUsageError = (error: unknown): boolean => error instanceof Error && USAGE_ERRORS.includes(error.name);

const oneLine = (error: unknown): string => {
  if (error instanceof Error && "syscall" in error && error.syscall === "uv_cwd")
    return "the working folder was deleted; change to an existing folder: cd ~";
  return visible((error instanceof Error ? error.message : String(error)).replace(/\s+/g, " "));
};

/** Uses the process's own streams, colours and signals. A second signal of the same kind ends the process at once. */
export const main = async (argv: readonly string[]): Promise<number> => {
  const interrupt = new AbortController();
  const received: { signal?: NodeJS.Signals } = {};
  const stop = (): void => interrupt.abort();
  const taken: { onInterrupt?: () => void } = {};
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    const receive = (): void => {
      if (signal === "SIGINT" && taken.onInterrupt) taken.onInterrupt();
      else {
        process.off(signal, receive);
        received.signal ??= signal;
        stop();
      }
    };
    process.on(signal, receive);
  }
  // A reader that closes the pipe (`prefork demo | head -1`) is not a failure, but the command shuts down in order.
  const reader = { left: false };
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    // EIO: the terminal is gone; a SIGHUP follows.
    if (error.code === "EPIPE" || error.code === "EIO") {
      reader.left = true;
      return stop();
    }
    process.stderr.write(`prefork: cannot write the output: ${error.message}\n`);
    process.exit(1);
  });
  process.stderr.on("error", () => {}); // nobody reads the errors; the command still shuts down in order
  const interruptedCode = (): number => 128 + constants.signals[received.signal ?? "SIGINT"];
  const { env } = process;
  const isTerminal = process.stdout.isTTY === true;
  const colour = env.NO_COLOR ? false : env.FORCE_COLOR ? env.FORCE_COLOR !== "0" : isTerminal && env.TERM !== "dumb";
  const code = await run(argv, {
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
    colour,
    isTerminal: isTerminal && process.stderr.isTTY === true,
    signal: interrupt.signal,
    interruptedCode,
    takeInterrupts: (onInterrupt) => {
      taken.onInterrupt = onInterrupt;
      return { [Symbol.dispose]: () => void delete taken.onInterrupt };
    },
    env,
    hasForkAncestor: async () => (await import("@prefork/runtime/internal")).hasForkAncestor(),
    // An interrupt must work while the input is still open.
    inputIsTerminal: process.stdin.isTTY === true,
    input: (signal = interrupt.signal) =>
      linesOf(addAbortSignal(AbortSignal.any([interrupt.signal, signal]), process.stdin)),
  });
  if (received.signal !== undefined && (code === 130 || reader.left)) return interruptedCode();
  return reader.left ? 0 : code;
};

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
