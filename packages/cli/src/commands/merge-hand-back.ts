/** Merging where conflicts go back to the forks that made them: their session is opened, and they go on from their
 *  journals.
 *  Invariant: the session is opened only when there is a conflict to hand back; no engine that knows nothing of the work
 *  is passed off as one that does.
 *  Elsewhere: waking and merging (@prefork/runtime), the command (merge.ts). */

import type { MergeBackOptions } from "@prefork/runtime";
import { readSession } from "@prefork/runtime/observe";
import type { MergeOutcome, Worktrees } from "@prefork/worktrees";
import { type Io, UsageError } from "../io.ts";
import { asUsage, createPrinter, type EngineChoice, type EngineFlags, type SessionPlan } from "../print/index.ts";
import { resumedFor } from "./resumed-session.ts";
import { storeFor } from "./tasks-store.ts";

export type HandingBack = {
  readonly worktrees: Worktrees;
  readonly plan: SessionPlan;
  readonly flags: EngineFlags;
  readonly how: Omit<MergeBackOptions, "onConflict" | "check"> & {
    readonly check?: Exclude<MergeBackOptions["check"], string | undefined>;
  };
  readonly told: (outcome: MergeOutcome) => void;
};

export const mergeWithForks = async (
  tasks: readonly string[],
  handing: HandingBack,
  io: Io,
): Promise<readonly MergeOutcome[]> => {
  const { worktrees, how, told } = handing;
  const group = await worktrees.newGroup();
  const outcomes: MergeOutcome[] = [];
  for (const task of tasks) {
    if (io.signal.aborted) break;
    const [plain] = await worktrees.merge([task], { ...how, group, onConflict: "stop" });
    const outcome = plain?.kind === "conflicts" ? await handBack(task, { ...handing, group }, io) : plain;
    if (!outcome) break;
    outcomes.push(outcome);
    told(outcome);
    if (outcome.kind !== "merged" && outcome.kind !== "nothing-new") break;
  }
  return outcomes;
};

const handBack = async (
  task: string,
  { worktrees, plan, flags, how, group }: HandingBack & { readonly group: number },
  io: Io,
): Promise<MergeOutcome | undefined> => {
  const { session: id } = await worktrees.find(task);
  if (id === undefined) throw new UsageError(`${task} belongs to no session that could go on with it`);
  const mustSuit = (choice: EngineChoice): void => {
    if (choice.kind === "rehearsal" && choice.because !== undefined)
      throw new UsageError(
        `${task} conflicts, and its fork cannot go on: no ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY is set. Set one, or choose another --on-conflict (markers, mine, theirs, skip)`,
      );
  };
  const here = { ...plan, cwd: await folderOf(id, plan, io) };
  await using resumed = await resumedFor(id, { flags, plan: here, mustSuit }, io);
  const { session } = resumed;
  const printer = createPrinter("text", io);
  const events = session.events();
  const shown = (async () => {
    for await (const event of events) printer.event(event);
  })();
  try {
    io.err(`· ${task} is handed its conflicts …\n`);
    const stop = (): void => void session.stopTask(task);
    io.signal.addEventListener("abort", stop, { once: true });
    const [outcome] = await session.merge([task], { ...how, group, onConflict: "hand-back" });
    io.signal.removeEventListener("abort", stop);
    return outcome;
  } finally {
    events[Symbol.dispose]();
    await shown;
  }
};

/** It goes on in the folder it began in, wherever in the checkout this was called. */
const folderOf = async (id: string, { cwd }: SessionPlan, io: Io): Promise<string> => {
  try {
    return (await readSession(storeFor(io), id)).replayed.opened?.cwd ?? cwd;
  } catch (error) {
    throw asUsage(error);
  }
};
