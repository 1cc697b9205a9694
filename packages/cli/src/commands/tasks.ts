/** `prefork tasks`: the tasks of one session, and one task in full.
 *  Invariant: list and show change nothing and take no lock.
 *  Elsewhere: tasks of all sessions (ps.ts), layout (tasks-report.ts), ending and waking one (tasks-control.ts). */

import { resolve } from "node:path";
import { listTasks, resolveSession, showTask } from "@prefork/runtime/observe";
import type { Command } from "commander";
import { type Io, newCommand } from "../io.ts";
import { resumeCommand, stopCommand } from "./tasks-control.ts";
import { taskAsJson, taskAsText, tasksAsJson, taskTable } from "./tasks-report.ts";
import { reportProblem, reportUnreadable, said, storeFor } from "./tasks-store.ts";

type ListFlags = { readonly session?: string; readonly json?: true };

export const tasksCommand = (io: Io): Command => {
  const command = newCommand("tasks", io)
    .description("the tasks of a session, and one of them in full")
    .helpCommand(false)
    .addHelpText("after", "\nWithout a command: list.");
  command.addCommand(
    newCommand("list", io)
      .description("the tasks of the last session of this folder")
      .option("--session <id>", "of this session: its id, or the first letters of it")
      .option("--json", "one JSON object a line")
      .action((flags: ListFlags) => said(() => list(flags, io))),
    { isDefault: true },
  );
  command.addCommand(
    newCommand("show", io)
      .description("what a task was told, what it reported, and what its requests cost")
      .argument("<task>", "its id, or the first letters of it")
      .option("--json", "as one JSON object")
      .action((task: string, { json }: { readonly json?: true }) =>
        said(async () => {
          const detail = await showTask(storeFor(io), task, { cwd: resolve(".") });
          io.out(json ? taskAsJson(detail) : taskAsText(detail, io.colour));
          detail.problems.forEach(reportProblem(io));
        }),
      ),
  );
  command.addCommand(stopCommand(io));
  command.addCommand(resumeCommand(io));
  return command;
};

const list = async ({ session: given, json }: ListFlags, io: Io): Promise<void> => {
  const store = storeFor(io);
  const session = await resolveSession(store, given, resolve("."));
  const told = { onUnreadable: reportUnreadable(io), onProblem: reportProblem(io) };
  const rows = await listTasks(store, { session, ended: true, ...told });
  if (json) io.out(tasksAsJson(rows));
  else io.out(rows.length > 0 ? taskTable(rows, io.colour) : `Session ${session} has no tasks.\n`);
};
