/** The error for an unknown command, such as `prefork worktrees remove` or `prefork dmeo`.
 *  Invariant: it names the unknown command, its group, and every valid name. Commander would only say that `list`, the
 *  default, got too many arguments, and suggests no hidden commands.
 *  Elsewhere: errors of one command (io.ts). */

import type { Command } from "commander";

/** Names that people know from other programs, in groups of the same meaning. */
const SYNONYMS: readonly (readonly string[])[] = [
  ["delete", "remove", "prune", "rm", "del", "erase", "clean"],
  ["stop", "kill", "cancel", "abort", "end"],
  ["list", "ls", "all", "status"],
  ["show", "cat", "view", "get", "info", "inspect", "describe"],
  ["test", "try", "check", "ping"],
  ["add", "new", "create"],
  ["resume", "continue", "restart", "retry"],
  ["repair", "fix", "recover", "restore"],
  ["export", "save", "dump"],
];

/** Undefined if the command itself was named, or no word was given. */
export const unknownCommand = (command: Command): string | undefined => {
  const { parent } = command;
  if (!parent) return unknownAtTopLevel(command);
  const [first = ""] = parent.args;
  const asked = first.startsWith("-") ? command.args.find((word) => !word.startsWith("-")) : first;
  if (!parent.parent || !asked || asked === command.name()) return undefined;
  return unknownInGroup(parent, asked);
};

/** The group has no command `asked`. */
export const unknownInGroup = (group: Command, asked: string): string => {
  const names = group.commands.map((one) => one.name());
  const meant = suggestionFor(asked.toLowerCase(), names);
  const hint = meant === undefined ? "" : ` (Did you mean ${meant}?)`;
  return `unknown command '${asked}' for 'prefork ${group.name()}'${hint}; commands: ${names.join(", ")}`;
};

const unknownAtTopLevel = (all: Command): string | undefined => {
  const [asked = ""] = all.args;
  const names = all.commands.map((one) => one.name());
  if (names.length === 0 || asked === "" || asked.startsWith("-") || names.includes(asked)) return undefined;
  const meant = suggestionFor(asked.toLowerCase(), names);
  return `unknown command '${asked}'${meant === undefined ? " (prefork help lists all commands)" : ` (Did you mean ${meant}?)`}`;
};

const suggestionFor = (asked: string, names: readonly string[]): string | undefined => {
  const known = SYNONYMS.find((alike) => alike.includes(asked));
  const near = names.filter((name) => isNear(asked, name));
  return names.find((name) => known?.includes(name)) ?? near[0] ?? names.find((name) => name.startsWith(asked));
};

/** One letter added, dropped or changed, or two swapped. */
const isNear = (asked: string, name: string): boolean => {
  let start = 0;
  while (start < name.length && asked[start] === name[start]) start++;
  const [a, b] = [asked.slice(start), name.slice(start)];
  return (
    a.slice(1) === b.slice(1) ||
    a.slice(1) === b ||
    a === b.slice(1) ||
    (a.slice(2) === b.slice(2) && a[0] === b[1] && a[1] === b[0])
  );
};
