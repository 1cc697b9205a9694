/** Opens a session again only for its tasks, with the tools, servers, skills and rights that its next prompt would have.
 *  Invariant: the user gets the same notices about engine, settings and servers as from `prefork -p --resume`.
 *  Elsewhere: prompts (print.ts), the commands that need it (tasks-control.ts, merge-hand-back.ts). */

import type { Session } from "@prefork/runtime";
import { readSession } from "@prefork/runtime/observe";
import type { Io } from "../io.ts";
import {
  chooseEngine,
  createPrinter,
  type EngineChoice,
  type EngineFlags,
  type OpenedSession,
  openSession,
  planSession,
  resumeTargetOf,
  type SessionFlags,
  type SessionPlan,
  toUsageError,
} from "../print/index.ts";
import { storeFor } from "./tasks-store.ts";

export type ResumeForTasksOptions = {
  readonly flags: SessionFlags & EngineFlags;
  /** Default: made from the flags. */
  readonly plan?: SessionPlan;
  /** Throws if this engine cannot do the work. */
  readonly checkEngine?: (choice: EngineChoice) => void;
};

type RunningTask = { readonly session: Session; readonly task: string };

/** Runs `act` while the session's events are printed. An interrupt stops the task. */
export const whilePrinting = async <T>({ session, task }: RunningTask, io: Io, act: () => Promise<T>): Promise<T> => {
  const printer = createPrinter("text", io);
  const events = session.events();
  const printing = (async () => {
    for await (const event of events) printer.event(event);
  })();
  const stop = (): void => void session.stopTask(task);
  io.signal.addEventListener("abort", stop, { once: true });
  try {
    return await act();
  } finally {
    io.signal.removeEventListener("abort", stop);
    events[Symbol.dispose]();
    await printing;
  }
};

export const resumeForTasks = async (id: string, resuming: ResumeForTasksOptions, io: Io): Promise<OpenedSession> => {
  const { flags, checkEngine } = resuming;
  try {
    const wanted = resumeTargetOf(id, (await readSession(storeFor(io), id)).replayed);
    const choice = chooseEngine(flags, io.env, wanted.before);
    checkEngine?.(choice);
    const plan = resuming.plan ?? (await planSession(flags, io));
    const opened = await openSession({ plan, choice, resume: wanted, model: flags.model }, io);
    for (const notice of opened.notices) io.err(`prefork: ${notice}\n`);
    return opened;
  } catch (error) {
    throw toUsageError(error);
  }
};
