/** The slash commands of the terminal.
 *  Invariant: only commands that work are listed; an unknown one names the nearest.
 *  Elsewhere: what each does (the files beside this one). */

import type { TerminalContext } from "../context.ts";
import { safeLine } from "../state/index.ts";
import { openPage, type SlashCommand } from "./command.ts";
import { costCommands } from "./cost.ts";
import { forkCommands } from "./forks.ts";
import { helpText } from "./help.ts";
import { screenCommands } from "./screen.ts";
import { sessionCommands } from "./session.ts";

const help: SlashCommand = {
  name: "help",
  summary: "keys and commands (also: ?)",
  group: "Screen",
  run: (_args, context) => openPage(context, { title: "Help", text: helpText(slashCommands), isMarkdown: true }),
};

export const slashCommands: readonly SlashCommand[] = [
  ...forkCommands,
  ...sessionCommands,
  ...costCommands,
  ...screenCommands,
  help,
];

export const runCommand = async (name: string, args: string, context: TerminalContext): Promise<void> => {
  const command = slashCommands.find((one) => one.name === name);
  if (command) return command.run(args, context);
  const near = slashCommands.find((one) => one.name.startsWith(name.slice(0, 3)));
  throw new Error(
    `There is no command /${safeLine(name, 40)}.${near ? ` Did you mean /${near.name}?` : ""} /help lists all of them.`,
  );
};

export const runChosen = async (name: string, id: string, context: TerminalContext): Promise<void> =>
  slashCommands.find((one) => one.name === name)?.chosen?.(id, context);
