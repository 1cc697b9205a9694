/** /memory: the files about how to work here, which every conversation starts with.
 *  Invariant: the list is what the agent reads, with what it skips; a file is changed only by the person, in their editor.
 *  Elsewhere: reading them (@prefork/runtime), adding a line with `#text` (../remember.ts). */

import { lstat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import type { TerminalContext } from "../context.ts";
import { editFile } from "../external-editor.ts";
import { type ListItem, safeLine, safeText } from "../state/index.ts";
import { hint, openList, ownSession, type SlashCommand } from "./command.ts";

/** A path as people read it: below the working folder, or below the home folder. */
const shownPath = (path: string, { state, io: { env } }: TerminalContext): string => {
  const { cwd } = state();
  const home = env.HOME || homedir();
  if (path.startsWith(`${cwd}/`)) return safeLine(path.slice(cwd.length + 1));
  return safeLine(path.startsWith(`${home}/`) ? `~/${path.slice(home.length + 1)}` : path);
};

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

const memory: SlashCommand = {
  name: "memory",
  summary: "AGENTS.md, CLAUDE.md and what they import; Enter edits one",
  group: "Set up",
  run: async (_args, context) => {
    const own = await ownSession(context);
    const { files, notes } = await own.setup.conventions();
    const listed = files.map(
      ({ path, text, from }): ListItem => ({
        id: path,
        label: shownPath(path, context),
        detail: `${text.split("\n").length} lines${from === undefined ? "" : `, imported by ${shownPath(from, context)}`}`,
        preview: safeText(text.slice(0, 2_000)),
      }),
    );
    const skipped = notes.map(({ path, text }) => `${shownPath(path, context)} ${safeLine(text)}`);
    const ownFile = join(context.state().cwd, "AGENTS.md");
    const isMissing = !files.some(({ path }) => path === ownFile) && !(await exists(ownFile));
    openList(context, {
      title: "What every conversation here starts with",
      command: "memory",
      hint: "edits it",
      items: [
        ...listed,
        ...(isMissing
          ? [
              {
                id: ownFile,
                label: "Create AGENTS.md here",
                preview: "How to build, test and write code in this folder. #text on the input line adds a line to it.",
              },
            ]
          : []),
        ...(skipped.length === 0 ? [] : [{ id: "", label: `Skipped: ${skipped.length}`, preview: skipped.join("\n") }]),
      ],
    });
  },
  chosen: async (id, context) => {
    if (id === "") return;
    await editFile(id, context);
    hint(context, "The agent is told about changes with your next prompt.");
  },
};

export const memoryCommands: readonly SlashCommand[] = [memory];
