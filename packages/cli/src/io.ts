/** What a command may touch of the process it runs in, and how it says that it was called wrongly.
 *  Invariant: a command writes through Io and throws; it never exits, so tests run it in their own process.
 *  Elsewhere: the real streams and exit codes (main.ts). */

import { Command, type CommanderError } from "commander";
import { unknownCommand } from "./unknown-command.ts";

export type Io = {
  /** Text as it is: callers add their own line ends. */
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly colour: boolean;
  readonly isTerminal: boolean;
  readonly signal: AbortSignal;
  /** With which code an interrupted run ends. Default: 130, as by Ctrl-C. */
  readonly interruptedCode?: () => number;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The lines of standard input. It can be asked for once; after the signal it is let go, also in the middle of a wait. */
  readonly input: (signal?: AbortSignal) => AsyncIterable<string>;
  /** A person types there. */
  readonly inputIsTerminal: boolean;
  /** Is there a fork among the processes above this one? Default: nobody looked. */
  readonly hasForkAncestor?: () => Promise<boolean>;
  /** How a command that ran to its end wants the process to end; 0 unless it says so. */
  readonly exitWith: (code: number) => void;
};

/** Bad input: exit code 2 and one line that names the place. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly exitCode = 2;

  constructor(message: string, options?: ErrorOptions) {
    super(message.trim().replace(/\s*[\r\n]+\s*/g, " "), options);
  }
}

const asUsageError = (error: CommanderError, command: Command): never => {
  // Help and version arrive here too, with exit code 0: main ends quietly on them.
  if (error.exitCode === 0) throw error;
  throw new UsageError(unknownCommand(command) ?? error.message.replace(/^error: /, ""), { cause: error });
};

/** A command that writes to `io` and throws UsageError where commander would print and exit. */
export const newCommand = (name: string, io: Io): Command => {
  const command = new Command(name);
  return command
    .exitOverride((error) => asUsageError(error, command))
    .configureOutput({
      writeOut: (text) => io.out(text),
      writeErr: (text) => io.err(text),
      outputError: () => undefined, // the UsageError carries it; printing here would say it twice
      getOutHasColors: () => io.colour,
      getErrHasColors: () => io.colour,
    });
};

/** By what a fork's commands have in their environment, and by who started us where that was taken away. */
export const isStartedByFork = async ({ env, hasForkAncestor }: Io): Promise<boolean> =>
  env.PREFORK_LINEAGE?.startsWith("fork:") === true || ((await hasForkAncestor?.()) ?? false);

/** For a session: it starts nobody where a fork is above it. */
export const sessionEnvironment = async (io: Io): Promise<Io["env"]> =>
  (await isStartedByFork(io)) ? { PREFORK_LINEAGE: "fork:above", ...io.env } : io.env;
