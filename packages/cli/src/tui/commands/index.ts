/** The slash commands of the terminal.
 *  Invariant: only commands that work are listed; an unknown one names the nearest.
 *  Elsewhere: what each does (the files beside this one), completing them (../completion.ts). */

import type { TerminalContext } from "../context.ts";
import { safeLine } from "../state/index.ts";
import { openPage, type SlashCommand } from "./command.ts";
import { costCommands } from "./cost.ts";
import { exportCommands } from "./export.ts";
import { forkCommands } from "./forks.ts";
import { helpText } from "./help.ts";
import { mcpCommands } from "./mcp.ts";
import { memoryCommands } from "./memory.ts";
import { modelCommands } from "./model.ts";
import { permissionCommands } from "./permissions.ts";
import { rewindCommands } from "./rewind.ts";
import { sessionCommands, sessionItems } from "./session.ts";
import { setupCommands } from "./setup.ts";
import { worktreeCommands } from "./worktrees.ts";

export type { ArgumentChoice, SlashCommand } from "./command.ts";
export { sessionItems };

const help: SlashCommand = {
  name: "help",
  summary: "keys and commands (also: ?)",
  group: "Screen",
  run: (_args, context) => openPage(context, { title: "Help", text: helpText(slashCommands), isMarkdown: true }),
};

export const slashCommands: readonly SlashCommand[] = [
  ...forkCommands,
  ...worktreeCommands,
  ...sessionCommands,
  ...rewindCommands,
  ...modelCommands,
  ...exportCommands,
  ...costCommands,
  ...permissionCommands,
  ...memoryCommands,
  ...mcpCommands,
  ...setupCommands,
  help,
];

export const runCommand = async (name: string, args: string, context: TerminalContext): Promise<void> => {
  const command = slashCommands.find((one) => one.name === name);
  if (command) return command.run(args, context);
  const near = nearest(name);
  throw new Error(
    `There is no command /${safeLine(name, 40)}.${near ? ` Did you mean /${near}?` : ""} /help lists all of them.`,
  );
};

export const runChosen = async (name: string, id: string, context: TerminalContext): Promise<void> =>
  slashCommands.find((one) => one.name === name)?.chosen?.(id, context);

/** The command that shares the longest start with what was typed; at least two letters. */
const nearest = (name: string): string | undefined => {
  const shared = (other: string): number => {
    const end = [...other].findIndex((letter, index) => letter !== name[index]);
    return end === -1 ? other.length : end;
  };
  const best = slashCommands.map((one) => one.name).toSorted((a, b) => shared(b) - shared(a))[0];
  return best !== undefined && shared(best) >= 2 ? best : undefined;
};
