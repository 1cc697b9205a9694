/** `prefork ps`: what runs beside the conversations, in every session of this user.
 *  Invariant: looking changes nothing and waits for nobody; a task that waits is not done, and one without its process
 *  does not run.
 *  Elsewhere: one session's tasks, and one task in full (tasks.ts), layout (tasks-report.ts). */

import { listTasks, type UnreadableSession } from "@prefork/runtime/observe";
import type { Command } from "commander";
import { type Io, newCommand } from "../io.ts";
import { tasksAsJson, taskTable } from "./tasks-report.ts";
import { reportProblem, reportUnreadable, said, storeFor } from "./tasks-store.ts";

type PsFlags = { readonly all?: true; readonly json?: true };

export const psCommand = (io: Io): Command =>
  newCommand("ps", io)
    .description("forks and other tasks that are queued, at work or waiting, in all sessions")
    .option("--all", "those that have ended too")
    .option("--json", "one JSON object a line")
    .action(({ all, json }: PsFlags) =>
      said(async () => {
        const unread: UnreadableSession[] = [];
        const rows = await listTasks(storeFor(io), {
          ended: all === true,
          onUnreadable: (one) => unread.push(one),
          onProblem: reportProblem(io),
        });
        unread.forEach(reportUnreadable(io));
        if (json) io.out(tasksAsJson(rows));
        else if (rows.length > 0) io.out(taskTable(rows, io.colour));
        else if (unread.length === 0)
          io.out(all ? "There are no tasks.\n" : "No task is under way; --all lists those that have ended too.\n");
      }),
    );
