/** The tree of commands: which ones the help lists first, which it lists under "more", and how each is loaded.
 *  Invariant: only the requested command is loaded, so it does not pay for the imports of others; old names keep working.
 *  Elsewhere: what each command does (its own file), help and errors (../main.ts). */

import type { Command } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { unknownInGroup } from "../unknown-command.ts";

type CommandMaker = (io: Io) => Command;
type Loader = () => Promise<CommandMaker>;

const WORK = "Sessions and their work:";
const CACHE = "Your prompt cache, with any agent:";
const SET_UP = "Set up:";

/** The commands of `prefork cache`; each also works without "cache". */
const CACHE_COMMANDS: ReadonlyMap<string, Loader> = new Map([
  ["cost", async () => (await import("./cost.ts")).costCommand],
  ["xray", async () => (await import("./xray.ts")).xrayCommand],
  ["proxy", async () => (await import("./proxy.ts")).proxyCommand],
  ["sim", async () => (await import("./sim.ts")).simCommand],
]);

const mergeCommand: Loader = async () => (await import("./merge.ts")).mergeCommand;

const sessionsCommand: Loader = async () => {
  const [{ sessionsCommand: make }, { treeCommand, rewindCommand }] = await Promise.all([
    import("./sessions.ts"),
    import("./rewind.ts"),
  ]);
  return (io) => make(io).addCommand(treeCommand(io)).addCommand(rewindCommand(io));
};

const worktreesCommand: Loader = async () => {
  const [{ worktreesCommand: make }, merge] = await Promise.all([import("./worktrees.ts"), mergeCommand()]);
  return (io) => make(io).addCommand(merge(io));
};

const cacheCommand = async (asked: string | undefined): Promise<CommandMaker> => {
  const named = CACHE_COMMANDS.get(asked ?? "");
  const makers = await Promise.all((named ? [named] : [...CACHE_COMMANDS.values()]).map((load) => load()));
  return (io) => {
    const command = newCommand("cache", io)
      .description("cost of forks, x-ray of cache misses, a proxy that reports them, a simulated provider")
      .helpCommand(false)
      .allowExcessArguments()
      .action((_flags: unknown, { args: [asked] }: Command) => {
        if (asked !== undefined) throw new UsageError(unknownInGroup(command, asked));
        command.outputHelp();
      });
    for (const make of makers) command.addCommand(make(io));
    return command;
  };
};

type Shown = { readonly group: string; readonly load: (words: readonly string[]) => Promise<CommandMaker> };

/** In the order of the help. */
const COMMANDS: ReadonlyMap<string, Shown> = new Map<string, Shown>([
  ["sessions", { group: WORK, load: sessionsCommand }],
  ["tasks", { group: WORK, load: async () => (await import("./tasks.ts")).tasksCommand }],
  ["attach", { group: WORK, load: async () => (await import("./attach.ts")).attachCommand }],
  ["worktrees", { group: WORK, load: worktreesCommand }],
  ["explain", { group: WORK, load: async () => (await import("./explain.ts")).explainCommand }],
  ["cache", { group: CACHE, load: ([, asked]) => cacheCommand(asked) }],
  ["mcp", { group: SET_UP, load: async () => (await import("./mcp.ts")).mcpCommand }],
  ["trust", { group: SET_UP, load: async () => (await import("./trust.ts")).trustCommand }],
  ["config", { group: SET_UP, load: async () => (await import("./config.ts")).configCommand }],
  ["doctor", { group: SET_UP, load: async () => (await import("./doctor.ts")).doctorCommand }],
  ["completion", { group: SET_UP, load: async () => (await import("./completion.ts")).completionCommand(loadAll) }],
]);

/** Listed by `prefork help more`: demonstrations, checks of the guard, and short names. */
const MORE: ReadonlyMap<string, Loader> = new Map([
  ["print", async () => (await import("./print.ts")).printCommand],
  ["tour", async () => (await import("./tour.ts")).tourCommand],
  ["demo", async () => (await import("./demo.ts")).demoCommand],
  ["check-command", async () => (await import("./check-command.ts")).checkCommandCommand],
  ["check-path", async () => (await import("./check-path.ts")).checkPathCommand],
  ["ps", async () => (await import("./tasks.ts")).psCommand],
  ["merge", mergeCommand],
  ["rewind", async () => (await import("./rewind.ts")).rewindCommand],
  ...CACHE_COMMANDS,
]);

export const isCommand = (name: string): boolean => COMMANDS.has(name) || MORE.has(name) || name === "help";

export const isMore = (name: string): boolean => MORE.has(name);

/** `terminal` is what `prefork` does without a command, so no help lists it. */
export const TERMINAL = "terminal";

export const loadTerminal = async (): Promise<typeof import("./terminal.ts").terminalCommand> =>
  (await import("./terminal.ts")).terminalCommand;

/** The name of what completion scripts call. It is not a command: it must start fast, and no help lists it. */
export const COMPLETE = "__complete";

export const loadComplete = async (): Promise<typeof import("./complete.ts").printCandidates> =>
  (await import("./complete.ts")).printCandidates;

/** Every command, for completion scripts. */
const loadAll = async (io: Io): Promise<{ readonly program: Command; readonly own: readonly Command[] }> => {
  const program = newCommand("prefork", io).version("", "-v, --version", "print the version");
  await addCommands(program, [], io);
  program.addCommand(newCommand("help", io).description("show help for prefork or for one command"));
  const terminal = await loadTerminal();
  const print = program.commands.filter((command) => command.name() === "print");
  return { program, own: [terminal(async () => 0)(io), ...print] };
};

const asksForHelp = (words: readonly string[]): boolean => words.includes("--help") || words.includes("-h");

/** Adds details and examples to the commands' help, which are loaded only for this. */
const addPages = async (program: Command): Promise<Command> => {
  const { addHelpPages } = await import("../help/index.ts");
  for (const command of program.commands) addHelpPages(command, [command.name()]);
  return program;
};

/** For what `prefork` does without a command. */
export const addPagesIfAsked = async (program: Command, words: readonly string[]): Promise<Command> =>
  asksForHelp(words) ? await addPages(program) : program;

/** Adds only the command that the words name; if they name none, adds all, for help and suggestions. */
export const addCommands = async (program: Command, words: readonly string[], io: Io): Promise<Command> => {
  const [name = ""] = words;
  const isKnown = isCommand(name) && name !== "help";
  for (const [known, { group, load }] of COMMANDS)
    if (!isKnown || known === name) program.addCommand((await load(isKnown ? words : []))(io).helpGroup(group));
  for (const [known, load] of MORE)
    if (!isKnown || known === name) program.addCommand((await load())(io), { hidden: true });
  if (!isKnown || words.length === 1 || asksForHelp(words)) await addPages(program);
  return program;
};
