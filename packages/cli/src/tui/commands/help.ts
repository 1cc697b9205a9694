/** The help page: keys first, then commands by group.
 *  Invariant: docs/terminal.md has the same keys, which a test checks.
 *  Elsewhere: the keys (../state: keys.ts), the commands (index.ts). */

import type { SlashCommand } from "./command.ts";

export const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ["Enter", "send; while the agent works, the prompt is queued"],
  ["Shift-Enter, Ctrl-J", "new line"],
  ["Esc", "stop what runs; twice on an empty input: go back to an earlier prompt"],
  ["↓ or Tab", "to the forks below the conversation; Enter opens one, s steers, x stops, m merges"],
  ["Ctrl-Q", "to the open question; then y once, a always in this session, n no, s no and stop"],
  ["Shift-Tab", "change what is allowed without asking"],
  ["Ctrl-O", "the whole conversation, with every diff and output"],
  ["Ctrl-B", "move a fork that is waited for to the background"],
  ["Ctrl-G", "edit the prompt in your editor"],
  ["Ctrl-V", "add the image on the clipboard; a pasted path of an image adds that image"],
  ["↑", "earlier prompts, or take back a queued one"],
  ["Ctrl-C", "stop, clear, and twice: quit"],
  ["@file", "names a file; !command runs a command; #text adds a note to AGENTS.md"],
];

export const helpText = (commands: readonly SlashCommand[]): string => {
  const groups = [...new Set(commands.map(({ group }) => group))];
  const keys = KEYS.map(([key, what]) => `- **${key}** ${what}`).join("\n");
  const lists = groups.map((group) => {
    const own = commands.filter((command) => command.group === group);
    const rows = own.map(({ name, args, summary }) => `- **/${name}**${args ? ` ${args}` : ""}: ${summary}`);
    return `## ${group}\n${rows.join("\n")}`;
  });
  return `## Keys\n${keys}\n\n${lists.join("\n\n")}`;
};
