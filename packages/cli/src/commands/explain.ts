/** `prefork explain`: what every request of a session and its forks read, wrote and cost, and why.
 *  Invariant: it reads journals only, so it works while the session runs; text and JSON state the same figures.
 *  Elsewhere: the figures (@prefork/runtime), their layout (explain-report.ts). */

import { resolve } from "node:path";
import type { Task } from "@prefork/runtime";
import { explainFamily, type ObservedFamily, readFamily, resolveSession } from "@prefork/runtime/observe";
import type { Command } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { type Explained, explainedAsJson, explainedAsText } from "./explain-report.ts";
import { reportProblem, storeFor, withJournalErrors } from "./tasks-store.ts";

export const explainCommand = (io: Io): Command =>
  newCommand("explain", io)
    .description("show what each request of a session and its forks read, wrote and cost, and why")
    .argument("[session]", "session id, or its first letters; latest: the last one in this folder", "latest")
    .argument("[task]", "only this task: task id, or its first letters")
    .option("--json", "print one JSON object")
    .action((session: string, task: string | undefined, { json }: { readonly json?: true }) =>
      withJournalErrors(async () => {
        const explained = await explainOne(session, task, io);
        io.out(json ? explainedAsJson(explained) : explainedAsText(explained, io.colour));
        if (json) explained.problems.forEach(reportProblem(io));
      }),
    );

const explainOne = async (given: string, task: string | undefined, io: Io): Promise<Explained> => {
  const store = storeFor(io);
  const id = await resolveSession(store, given, resolve("."));
  const family = await readFamily(store, id);
  const only = task === undefined ? family.tasks.find(({ session }) => session === id) : taskIn(family, task);
  const { rows, unread, ...about } = family;
  const isSelected = ({ agent }: { readonly agent: string }): boolean => only === undefined || agent === only.id;
  return {
    ...about,
    ...(only ? { only } : {}),
    rows: rows.filter(isSelected),
    unread: unread.filter(isSelected),
    explanation: explainFamily(family, only?.id),
  };
};

const taskIn = ({ tasks, session }: ObservedFamily, given: string): Task => {
  const named = tasks.filter(({ id }) => id.startsWith(given) || id.startsWith(`task-${given}`));
  const exact = tasks.find(({ id }) => id === given);
  const [only, ...others] = exact ? [exact] : named;
  if (only === undefined) throw new UsageError(`session ${session} has no task ${given}`);
  if (others.length === 0) return only;
  throw new UsageError(`${named.length} tasks begin with ${given}: ${named.map(({ id }) => id).join(", ")}`);
};
