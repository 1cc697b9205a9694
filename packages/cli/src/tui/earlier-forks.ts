/** What a resumed session says about the forks of its earlier runs: what they did, what waits to be merged, and what was
 *  interrupted.
 *  Invariant: reads only; worktrees that cannot be read are not shown, and nothing else is lost by that.
 *  Elsewhere: the conversation itself (earlier-blocks.ts), merging (commands/worktrees.ts). */

import type { Session, Task } from "@prefork/runtime";
import type { SessionStore } from "@prefork/runtime/observe";
import { isUnmerged, type Worktree } from "@prefork/worktrees";
import { type EarlierConversation, readEarlier } from "./earlier-blocks.ts";
import { type Block, type Child, emptyConversation, safeLine } from "./state/index.ts";

/** So many forks are listed, the latest ones. */
const MAX_CHILDREN = 20;

export const readEarlierWithForks = async (session: Session, store: SessionStore): Promise<EarlierConversation> => {
  const tasks = session.tasks.filter(({ kind }) => kind === "fork" || kind === "agent");
  const { blocks } = await readEarlier(store, session.id, familyBlocks(tasks));
  const children = await unmergedForks(session, store);
  // With what its forks have cost.
  return { blocks: [...blocks, ...interruptedNotice(blocks, tasks)], usd: session.spent.usd, children };
};

/** One line for each family that is done. */
const familyBlocks = (tasks: readonly Task[]): readonly { readonly at: number; readonly block: Block }[] =>
  [...Map.groupBy(tasks, ({ family }) => family)].flatMap(([family, members]) => {
    const isDone = members.every(({ state }) => state.kind === "ended" && state.end !== "interrupted");
    if (!isDone) return [];
    const ends: Record<string, number> = {};
    for (const { state } of members) if (state.kind === "ended") ends[state.end] = (ends[state.end] ?? 0) + 1;
    const at = Math.max(...members.map(({ endedAt = 0 }) => endedAt));
    const block: Block = {
      ...{ kind: "family", isDone: true, family, forks: members.length, ends },
      usd: members.reduce((sum, { spent, result }) => sum + (spent?.usd ?? result?.usd ?? 0), 0),
      ms: at - Math.min(...members.map(({ startedAt }) => startedAt)),
    };
    return [{ at, block }];
  });

const interruptedNotice = (blocks: readonly Block[], tasks: readonly Task[]): readonly Block[] => {
  const forks = tasks.filter(({ state }) => state.kind === "ended" && state.end === "interrupted");
  const last = blocks.findLast(({ kind }) => kind === "call" || kind === "answer");
  const parts = [
    ...(last?.kind === "call" && last.fault === "interrupted" ? [`${last.tool} has no result`] : []),
    ...(forks.length === 0
      ? []
      : [
          `${forks.length} ${forks.length === 1 ? "fork" : "forks"} did not report (${forks.map(({ label }) => safeLine(label, 40)).join(", ")}; /tasks)`,
        ]),
  ];
  const text = `This session was interrupted while it worked: ${parts.join("; ")}.`;
  return parts.length === 0 ? [] : [{ kind: "notice", level: "warn", text }];
};

const unmergedForks = async (session: Session, store: SessionStore): Promise<readonly Child[]> => {
  try {
    const open = await session.worktrees();
    const { worktrees } = await open.table();
    const waiting = [...worktrees.values()].filter(
      (one) => one.session === session.id && one.top === open.top && one.state.kind === "finished" && isUnmerged(one),
    );
    const tasks = new Map(session.tasks.map((task) => [task.id, task]));
    return await Promise.all(
      waiting.slice(-MAX_CHILDREN).map((worktree) => toChild(worktree, tasks.get(worktree.task), store)),
    );
  } catch {
    return []; // no repository, or none that can be read: /worktrees says why
  }
};

const toChild = async (worktree: Worktree, task: Task | undefined, store: SessionStore): Promise<Child> => {
  const { task: id, label, family = id, createdAt, path, branch, files } = worktree;
  const said = task?.session === undefined ? undefined : await readEarlier(store, task.session).catch(() => undefined);
  return {
    ...{ id, label: safeLine(label, 80) || id, family, parent: "main", state: "ended", activity: "" },
    end: task?.state.kind === "ended" ? task.state.end : "reported",
    ...{ turns: 0, tokens: 0, usd: task?.spent?.usd ?? task?.result?.usd ?? 0, startedAt: createdAt },
    worktree: { path: safeLine(path), branch: safeLine(branch), files, state: "ready" },
    ...{ isForeground: false, isDetached: true },
    conversation: { ...emptyConversation, done: said?.blocks ?? [] },
  };
};
