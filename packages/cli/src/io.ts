/** What a command may use of its process, and the error for wrong usage.
 *  Invariant: a command writes through Io and throws; it never exits, so that tests can run it in their own process.
 *  Elsewhere: the real streams and exit codes (main.ts). */

import { Command, type CommanderError } from "commander";
import { unknownCommand } from "./unknown-command.ts";
import { helpWidth } from "./width.ts";

export type Io = {
  /** Writes text unchanged; callers add their own line feeds. */
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly colour: boolean;
  readonly isTerminal: boolean;
  readonly signal: AbortSignal;
  /** The exit code of an interrupted run. Default: 130, as for Ctrl-C. */
  readonly interruptedCode?: () => number;
  /** While it is held, Ctrl-C is reported here and ends nothing. Default: Ctrl-C cannot be taken. */
  readonly takeInterrupts?: (onInterrupt: () => void) => Disposable;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The lines of standard input. It can be read once; the signal stops reading, even while it waits. */
  readonly input: (signal?: AbortSignal) => AsyncIterable<string>;
  /** Standard input is a terminal. */
  readonly inputIsTerminal: boolean;
  /** Is one of the parent processes a fork? Default: not checked. */
  readonly hasForkAncestor?: () => Promise<boolean>;
  /** Runs another command in this process. Default: there is none. */
  readonly run?: (argv: readonly string[], io: Omit<Io, "exitWith">) => Promise<number>;
  /** Sets the exit code of a command that did not throw; 0 by default. */
  readonly exitWith: (code: number) => void;
};

/** Wrong usage: exit code 2 and one line that says what is wrong. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly exitCode = 2;

  constructor(message: string, options?: ErrorOptions) {
    super(message.trim().replace(/\s*[\r\n]+\s*/g, " "), options);
  }
}

const asUsageError = (error: CommanderError, command: Command): never => {
  // Help and version arrive here too, with exit code 0; main handles them.
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
      outputError: () => undefined, // the UsageError has the text; printing it here would repeat it
      getOutHelpWidth: helpWidth,
      getErrHelpWidth: helpWidth,
      getOutHasColors: () => io.colour,
      getErrHasColors: () => io.colour,
    });
};

/** For an option that may be given several times. */
export const collect = (value: string, earlier: readonly string[] | undefined): readonly string[] => [
  ...(earlier ?? []),
  value,
];

/** A fork's commands have PREFORK_LINEAGE in their environment; if it was removed, the parent processes tell. */
export const isStartedByFork = async ({ env, hasForkAncestor }: Io): Promise<boolean> =>
  env.PREFORK_LINEAGE?.startsWith("fork:") === true || ((await hasForkAncestor?.()) ?? false);

/** The environment of a session, which marks it as started by a fork if it was. */
export const sessionEnvironment = async (io: Io): Promise<Io["env"]> =>
  (await isStartedByFork(io)) ? { PREFORK_LINEAGE: "fork:above", ...io.env } : io.env;
