/** `prefork tasks` and `prefork ps`: the tasks of one session, one task in full, and the tasks of all sessions.
 *  Invariant: listing and showing change nothing and take no lock; a waiting task is not shown as done, nor a task whose
 *  process is gone as running.
 *  Elsewhere: layout (tasks-report.ts), stopping and resuming a task (tasks-control.ts). */

import { resolve } from "node:path";
import { listTasks, resolveSession, showTask, type TaskRow, type UnreadableSession } from "@prefork/runtime/observe";
import type { Command } from "commander";
import { type Io, newCommand } from "../io.ts";
import { resumeCommand, stopCommand } from "./tasks-control.ts";
import { taskAsJson, taskAsText, tasksAsJson, taskTable } from "./tasks-report.ts";
import {
  attachable,
  attachHints,
  reportProblem,
  reportUnreadable,
  storeFor,
  withJournalErrors,
} from "./tasks-store.ts";

type ListFlags = { readonly session?: string; readonly json?: true };

export const tasksCommand = (io: Io): Command => {
  const command = newCommand("tasks", io)
    .description("list, show, stop and resume the tasks of a session")
    .helpCommand(false);
  command.addCommand(
    newCommand("list", io)
      .description("list the tasks of the last session in this folder")
      .option("--session <id>", "of this session: session id, or its first letters")
      .option("--json", "print one JSON object per line")
      .action((flags: ListFlags) => withJournalErrors(() => list(flags, io))),
    { isDefault: true },
  );
  command.addCommand(
    newCommand("show", io)
      .description("show a task's instructions, its report, and the cost of its requests")
      .argument("<task>", "task id, or its first letters")
      .option("--json", "print one JSON object")
      .action((task: string, { json }: { readonly json?: true }) =>
        withJournalErrors(async () => {
          const detail = await showTask(storeFor(io), task, { cwd: resolve(".") });
          if (json) io.out(taskAsJson(detail));
          else {
            const isAttachable = detail.owner !== undefined && (await attachable([detail.session], io)).length > 0;
            io.out(taskAsText(detail, { colour: io.colour, isAttachable }));
          }
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
  const callbacks = { onUnreadable: reportUnreadable(io), onProblem: reportProblem(io) };
  const rows = await listTasks(store, { session, ended: true, ...callbacks });
  if (json) return void io.out(tasksAsJson(rows));
  io.out(rows.length > 0 ? taskTable(rows, io.colour) : `Session ${session} has no tasks.\n`);
  io.out(await attachHints(ownedSessions(rows), io));
};

const ownedSessions = (rows: readonly TaskRow[]): readonly string[] =>
  rows.flatMap(({ session, owner }) => (owner ? [session] : []));

type PsFlags = { readonly all?: true; readonly json?: true };

export const psCommand = (io: Io): Command =>
  newCommand("ps", io)
    .description("list running, queued and waiting tasks of all sessions")
    .option("--all", "also list tasks that have ended")
    .option("--json", "print one JSON object per line")
    .action(({ all, json }: PsFlags) =>
      withJournalErrors(async () => {
        const unread: UnreadableSession[] = [];
        const rows = await listTasks(storeFor(io), {
          ended: all === true,
          onUnreadable: (one) => unread.push(one),
          onProblem: reportProblem(io),
        });
        unread.forEach(reportUnreadable(io));
        if (json) io.out(tasksAsJson(rows));
        else if (rows.length > 0) io.out(`${taskTable(rows, io.colour)}${await attachHints(ownedSessions(rows), io)}`);
        else if (unread.length === 0)
          io.out(all ? "There are no tasks.\n" : "No task is running. To list ended tasks too: prefork ps --all\n");
      }),
    );
