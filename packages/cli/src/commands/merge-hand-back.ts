/** Merges, and hands each conflict back to the fork that made it: the fork's session is opened, and the fork resumes from
 *  its journal.
 *  Invariant: a session is opened only if there is a conflict to hand back, and never with the rehearsal engine unless the
 *  user chose it.
 *  Elsewhere: resuming and merging (@prefork/runtime), the command (merge.ts). */

import type { MergeBackOptions } from "@prefork/runtime";
import { readSession } from "@prefork/runtime/observe";
import type { MergeOutcome, Worktrees } from "@prefork/worktrees";
import { type Io, UsageError } from "../io.ts";
import { type EngineChoice, type EngineFlags, type SessionPlan, toUsageError } from "../print/index.ts";
import { resumeForTasks, whilePrinting } from "./resumed-session.ts";
import { storeFor } from "./tasks-store.ts";

export type HandBackOptions = {
  readonly worktrees: Worktrees;
  readonly plan: SessionPlan;
  readonly flags: EngineFlags;
  readonly options: Omit<MergeBackOptions, "onConflict" | "check"> & {
    readonly check?: Exclude<MergeBackOptions["check"], string | undefined>;
  };
  readonly onOutcome: (outcome: MergeOutcome) => void;
};

export const mergeWithForks = async (
  tasks: readonly string[],
  handing: HandBackOptions,
  io: Io,
): Promise<readonly MergeOutcome[]> => {
  const { worktrees, options, onOutcome } = handing;
  const group = await worktrees.newGroup();
  const outcomes: MergeOutcome[] = [];
  for (const task of tasks) {
    if (io.signal.aborted) break;
    const [first] = await worktrees.merge([task], { ...options, group, onConflict: "stop" });
    const outcome = first?.kind === "conflicts" ? await handBack(task, { ...handing, group }, io) : first;
    if (!outcome) break;
    outcomes.push(outcome);
    onOutcome(outcome);
    if (outcome.kind !== "merged" && outcome.kind !== "nothing-new") break;
  }
  return outcomes;
};

const handBack = async (
  task: string,
  { worktrees, plan, flags, options, group }: HandBackOptions & { readonly group: number },
  io: Io,
): Promise<MergeOutcome | undefined> => {
  const { session: id } = await worktrees.find(task);
  if (id === undefined) throw new UsageError(`${task} has no session that could resume it`);
  const checkEngine = (choice: EngineChoice): void => {
    if (choice.kind === "rehearsal" && choice.because !== undefined)
      throw new UsageError(
        `${task} has conflicts, and its fork cannot resume: no ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY is set. Set one, or choose another --on-conflict (markers, mine, theirs, skip)`,
      );
  };
  const planInFolder = { ...plan, cwd: await sessionFolder(id, plan, io) };
  await using resumed = await resumeForTasks(id, { flags, plan: planInFolder, checkEngine }, io);
  const { session } = resumed;
  return await whilePrinting({ session, task }, io, async () => {
    io.err(`· handing the conflicts back to ${task} …\n`);
    const [outcome] = await session.merge([task], { ...options, group, onConflict: "hand-back" });
    return outcome;
  });
};

/** The fork resumes in the folder where its session started, wherever in the checkout this command runs. */
const sessionFolder = async (id: string, { cwd }: SessionPlan, io: Io): Promise<string> => {
  try {
    return (await readSession(storeFor(io), id)).replayed.opened?.cwd ?? cwd;
  } catch (error) {
    throw toUsageError(error);
  }
};
