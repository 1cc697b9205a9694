/** `prefork tasks stop` and `prefork tasks resume`: ends a task that runs in another process, or goes on with one that
 *  has ended.
 *  Invariant: a task is stopped by the process that runs it, which keeps what it did; one that goes on does so from its
 *  journal, with the permissions that are stated now, and its end is told to its parent when that goes on.
 *  Elsewhere: looking at tasks (tasks.ts), running prompts (print.ts). */

import { setTimeout as sleep } from "node:timers/promises";
import { requestStop } from "@prefork/runtime/internal";
import { type SessionStore, showTask, type TaskDetail } from "@prefork/runtime/observe";
import { type Command, Option } from "commander";
import { type Io, isStartedByFork, newCommand, UsageError } from "../io.ts";
import { asUsage, createPrinter, type EngineFlags, PROVIDERS, type SessionFlags } from "../print/index.ts";
import { visible } from "../visible.ts";
import { resumedFor } from "./resumed-session.ts";
import { said, storeFor } from "./tasks-store.ts";

/** How long a running process may take to end a task. */
const PATIENCE_MS = 15_000;
const EVERY_MS = 100;

export const stopCommand = (io: Io): Command =>
  newCommand("stop", io)
    .description("end a task; what it has done until then is kept")
    .argument("<task>", "its id, or the first letters of it")
    .action((given: string) =>
      said(async () => {
        if (await isStartedByFork(io))
          throw new UsageError("this was started by a fork, which ends nobody's work but its own");
        const store = storeFor(io);
        const found = await showTask(store, given, { cwd: process.cwd() });
        const { task, session, state, owner } = found;
        if (task.state.kind === "ended") return void io.out(`${task.id} had ended before: ${visible(state)}\n`);
        if (!owner)
          throw new UsageError(
            `${task.id} does not run: its process has ended. Go on with it (prefork tasks resume ${task.id}), or with its session (prefork -p --resume ${session})`,
          );
        await requestStop(store, session, task.id);
        const ended = await untilEnded(store, task.id, io.signal);
        if (!ended) throw new UsageError(`process ${owner.pid} was asked to end ${task.id} and has not done so yet`);
        io.out(`${task.id} ended: ${visible(ended.state)}\n`);
      }),
    );

const untilEnded = async (
  store: SessionStore,
  task: string,
  signal: AbortSignal | undefined,
): Promise<TaskDetail | undefined> => {
  for (let waited = 0; waited < PATIENCE_MS; waited += EVERY_MS) {
    const found = await showTask(store, task, { cwd: process.cwd() });
    if (found.task.state.kind === "ended") return found;
    await sleep(EVERY_MS, undefined, signal ? { signal } : {});
  }
  return undefined;
};

type ResumeFlags = SessionFlags & EngineFlags;

const gather = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value];

export const resumeCommand = (io: Io): Command =>
  newCommand("resume", io)
    .description("go on with a task that has ended or was interrupted, from its journal, and print its report")
    .argument("<task>", "its id, or the first letters of it")
    .argument("[message...]", "what else it is to do; needed where it had reported")
    .option("--model <id>", "model to ask for")
    .addOption(new Option("--provider <name>", "who answers").choices([...PROVIDERS]))
    .option("--base-url <url>", "another endpoint that speaks the provider's format")
    .option("--permission-mode <mode>", "default, accept-edits, plan or bypass")
    .option("--allow <rule>", "allow calls under this rule; may be given again", gather)
    .option("--deny <rule>", "deny calls under this rule; may be given again", gather)
    .option("--max-budget-usd <amount>", "stop before a request could cost more than this in all")
    .action((given: string, words: readonly string[], flags: ResumeFlags) =>
      said(async () => io.exitWith(await resume(given, { words, flags }, io))),
    );

type Resuming = { readonly words: readonly string[]; readonly flags: ResumeFlags };

const resume = async (given: string, { words, flags }: Resuming, io: Io): Promise<number> => {
  const { task, session: id, owner, cwd } = await showTask(storeFor(io), given, { cwd: process.cwd() });
  if (owner) throw new UsageError(`session ${id} is in use by process ${owner.pid}; ask there, or end it first`);
  await using resumed = await resumedFor(id, { flags: { ...flags, cwd: flags.cwd ?? cwd } }, io);
  const { session } = resumed;
  const printer = createPrinter("text", io);
  const events = session.events();
  const shown = (async () => {
    for await (const event of events) printer.event(event);
  })();
  try {
    const message = words.join(" ").trim();
    const stop = (): void => void session.stopTask(task.id);
    io.signal?.addEventListener("abort", stop, { once: true });
    const ended = await session.resumeTask(task.id, message === "" ? {} : { message });
    io.signal?.removeEventListener("abort", stop);
    const { result, state: now } = ended;
    io.out(`${visible(result?.text ?? "")}\n`);
    return now.kind === "ended" && now.end === "reported" ? 0 : 1;
  } catch (error) {
    throw asUsage(error);
  } finally {
    events[Symbol.dispose]();
    await shown;
  }
};
