/** /fork, /tasks, /worktrees, /merge, /undo: children and their work.
 *  Elsewhere: the fork strip (../views: strip.ts), merging (@prefork/worktrees). */

import { safeLine } from "../state/index.ts";
import { notice, type SlashCommand, showCli } from "./command.ts";

const fork: SlashCommand = {
  name: "fork",
  args: "<what to do>, or one task per line",
  summary: "start forks that know this conversation and work beside it",
  group: "Forks",
  run: async (args, context) => {
    const directives = args
      .split("\n")
      .map((line) => line.replace(/^\s*(?:[-*]|\d+[.)])\s+/, "").trim())
      .filter((line) => line !== "");
    if (directives.length === 0) throw new Error("Say what the fork should do: /fork find every caller of parse()");
    const { own } = await context.session();
    if (!own) throw new Error("This terminal is attached to a session of another process, which starts its own forks.");
    const handles = own.forkAll(directives.map((directive) => ({ directive, label: safeLine(directive, 60) })));
    own.background();
    for (const handle of handles) void handle.result().catch(() => undefined); // its end is an event
    notice(
      context,
      `Started ${handles.length} ${handles.length === 1 ? "fork" : "forks"}. You are told when they report.`,
    );
  },
};

const tasks: SlashCommand = {
  name: "tasks",
  summary: "all forks of this session, running and done",
  group: "Forks",
  run: (_args, context) => showCli(context, "Tasks", ["tasks", "list"]),
};

const worktrees: SlashCommand = {
  name: "worktrees",
  summary: "worktrees of forks, and what is in them",
  group: "Forks",
  run: (_args, context) => showCli(context, "Worktrees", ["worktrees"]),
};

const merge: SlashCommand = {
  name: "merge",
  args: "[fork]",
  summary: "merge a fork's worktree into this checkout; shows what would change first",
  group: "Forks",
  run: async (args, context) => {
    const ids = args.split(/\s+/).filter(Boolean);
    const which = ids.length === 0 ? ["--family"] : ids;
    const preview = await context.runCli(["merge", ...which, "--preview"]);
    context.dispatch({
      type: "pageOpened",
      page: {
        kind: "list",
        title: "Merge",
        command: "merge",
        selected: 0,
        filter: "",
        hint: "choose",
        items: [
          { id: ["merge", ...which].join(" "), label: "Merge into this checkout", preview: preview.text },
          { id: "", label: "Do nothing", preview: preview.text },
        ],
      },
    });
  },
  chosen: async (id, context) => {
    if (id === "") return;
    const { text, code } = await context.runCli(id.split(" "));
    notice(context, text.trim(), code === 0 ? "info" : "warn");
  },
};

const undo: SlashCommand = {
  name: "undo",
  summary: "undo the last merge",
  group: "Forks",
  run: async (_args, context) => {
    const { text, code } = await context.runCli(["merge", "--undo"]);
    notice(context, text.trim(), code === 0 ? "info" : "warn");
  },
};

export const forkCommands: readonly SlashCommand[] = [fork, tasks, worktrees, merge, undo];
