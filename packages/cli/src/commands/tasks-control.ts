/** `prefork tasks stop` and `prefork tasks resume`: stops a task that runs in another process, or resumes one that ended.
 *  Invariant: the process that runs a task stops it and keeps its partial work. A task resumes from its journal with the
 *  permissions given now, and its parent is told of the new end when its own session resumes.
 *  Elsewhere: listing tasks (tasks.ts), running prompts (print.ts). */

import { setTimeout as sleep } from "node:timers/promises";
import { requestStop } from "@prefork/runtime/internal";
import { type SessionStore, showTask, type TaskDetail } from "@prefork/runtime/observe";
import type { Command } from "commander";
import { type Io, isStartedByFork, newCommand, UsageError } from "../io.ts";
import { type EngineFlags, PROVIDERS, type SessionFlags, toUsageError } from "../print/index.ts";
import { addSessionOptions } from "../session-options.ts";
import { visible } from "../visible.ts";
import { resumeForTasks, whilePrinting } from "./resumed-session.ts";
import { storeFor, withJournalErrors } from "./tasks-store.ts";

/** How long a running process may take to stop a task. */
const STOP_TIMEOUT_MS = 15_000;
const POLL_MS = 100;

export const stopCommand = (io: Io): Command =>
  newCommand("stop", io)
    .description("stop a task and keep its partial work")
    .argument("<task>", "task id, or its first letters")
    .action((given: string) =>
      withJournalErrors(async () => {
        if (await isStartedByFork(io))
          throw new UsageError("a fork started this command, and a fork may not stop other tasks");
        const store = storeFor(io);
        const found = await showTask(store, given, { cwd: process.cwd() });
        const { task, session, state, owner } = found;
        if (task.state.kind === "ended") return void io.out(`${task.id} has already ended: ${visible(state)}\n`);
        if (!owner)
          throw new UsageError(
            `${task.id} is not running: its process has ended. Resume the task (prefork tasks resume ${task.id}) or its session (prefork -p --resume ${session})`,
          );
        await requestStop(store, session, task.id);
        const ended = await waitUntilEnded(store, task.id, io.signal);
        if (!ended)
          throw new UsageError(`process ${owner.pid} was asked to stop ${task.id} and has not stopped it yet`);
        io.out(`${task.id} ended: ${visible(ended.state)}\n`);
      }),
    );

const waitUntilEnded = async (
  store: SessionStore,
  task: string,
  signal: AbortSignal | undefined,
): Promise<TaskDetail | undefined> => {
  for (let waited = 0; waited < STOP_TIMEOUT_MS; waited += POLL_MS) {
    const found = await showTask(store, task, { cwd: process.cwd() });
    if (found.task.state.kind === "ended") return found;
    await sleep(POLL_MS, undefined, signal ? { signal } : {});
  }
  return undefined;
};

type ResumeFlags = SessionFlags & EngineFlags;

export const resumeCommand = (io: Io): Command =>
  addSessionOptions(
    newCommand("resume", io)
      .description("resume a task that ended or was interrupted, and print its report")
      .argument("<task>", "task id, or its first letters")
      .argument("[message...]", "what else it should do; required if it has reported"),
    { providers: PROVIDERS },
  ).action((given: string, words: readonly string[], flags: ResumeFlags) =>
    withJournalErrors(async () => io.exitWith(await resume(given, { words, flags }, io))),
  );

type ResumeRequest = { readonly words: readonly string[]; readonly flags: ResumeFlags };

const resume = async (given: string, { words, flags }: ResumeRequest, io: Io): Promise<number> => {
  const { task, session: id, owner, cwd } = await showTask(storeFor(io), given, { cwd: process.cwd() });
  if (owner)
    throw new UsageError(
      `session ${id} is in use by process ${owner.pid}; resume the task there, or end that process first`,
    );
  await using resumed = await resumeForTasks(id, { flags: { ...flags, cwd: flags.cwd ?? cwd } }, io);
  const { session } = resumed;
  const message = words.join(" ").trim();
  try {
    const { result, state } = await whilePrinting({ session, task: task.id }, io, () =>
      session.resumeTask(task.id, message === "" ? {} : { message }),
    );
    io.out(`${visible(result?.text ?? "")}\n`);
    return state.kind === "ended" && state.end === "reported" ? 0 : 1;
  } catch (error) {
    throw toUsageError(error);
  }
};
