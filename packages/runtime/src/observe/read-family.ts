/** How is a session read together with everything it started, even while another process writes?
 *  Invariant: nothing is locked and nothing is changed. What cannot be read is reported next to what can.
 *  Elsewhere: journals (../journal), what they add up to (ledger.ts, explain.ts), lists of tasks (task-rows.ts). */

import { noUsage } from "@prefork/wire";
import {
  findSession,
  JournalError,
  latestSession,
  readSession,
  type SessionReading,
  type SessionStore,
} from "../journal/index.ts";
import { type Task, tasksIn } from "../tasks/index.ts";
import { type Explanation, explain, type UnreadTask } from "./explain.ts";
import { ledgerOf, type RequestRow } from "./ledger.ts";
import { type AgentJournal, openedIn } from "./timeline.ts";

export type ObservedFamily = {
  /** The session that started all others. */
  readonly session: string;
  readonly cwd: string;
  readonly model: string;
  readonly tasks: readonly Task[];
  readonly rows: readonly RequestRow[];
  readonly unread: readonly UnreadTask[];
  /** Damage that was skipped, with the session it is in. */
  readonly problems: readonly string[];
};

/** `id` in full. For a fork, its parent's family is read. */
export const readFamily = async (store: SessionStore, id: string): Promise<ObservedFamily> => {
  const root = await rootOf(store, id);
  const { reading, replayed } = root.session;
  const tasks = tasksIn(replayed.state);
  const model = replayed.openEpoch?.head.model ?? replayed.opened?.model ?? "";
  const journals: AgentJournal[] = [{ agent: "main", session: root.id, entries: reading.entries }];
  const unread: UnreadTask[] = [];
  const problems = [...problemsOf(root.id, root.session)];
  for (const task of tasks) {
    if (task.session === undefined) continue;
    const read = await readOrError(() => readSession(store, task.session ?? ""));
    if (read instanceof JournalError) unread.push(toUnreadTask(task, { model, reason: read.message }));
    else {
      journals.push({ agent: task.id, session: task.session, entries: read.reading.entries });
      problems.push(...problemsOf(task.session, read));
    }
  }
  const rows = ledgerOf(journals, store.protocols);
  return { session: root.id, cwd: replayed.opened?.cwd ?? "", model, tasks, rows, unread, problems };
};

/** For all agents, or for one. */
export const explainFamily = ({ rows, unread }: ObservedFamily, agent?: string): Explanation => {
  const isMeant = (each: { readonly agent: string }): boolean => agent === undefined || each.agent === agent;
  return explain(rows.filter(isMeant), unread.filter(isMeant));
};

/** Resolves an id, the start of an id, or "latest": the last used session of this folder. */
export const resolveSession = async (store: SessionStore, given: string | undefined, cwd: string): Promise<string> => {
  if (given !== undefined && given !== "latest") return findSession(store, given);
  const latest = await latestSession(store, cwd);
  if (latest) return latest.id;
  throw new JournalError("not-found", `there is no session of ${cwd}`);
};

type Root = { readonly id: string; readonly session: SessionReading };

const rootOf = async (store: SessionStore, id: string, passed: readonly string[] = []): Promise<Root> => {
  const session = await readSession(store, id);
  const opened = openedIn(session.reading.entries);
  const above = opened?.parent?.session ?? opened?.startedBy?.session;
  if (above === undefined || passed.includes(above)) return { id, session };
  return rootOf(store, above, [...passed, id]);
};

const readOrError = async (read: () => Promise<SessionReading>): Promise<SessionReading | JournalError> => {
  try {
    return await read();
  } catch (error) {
    if (error instanceof JournalError) return error;
    throw error;
  }
};

const toUnreadTask = (
  { id, result }: Task,
  { model, reason }: { readonly model: string; readonly reason: string },
): UnreadTask => ({
  ...{ agent: id, reason, model, usage: result?.usage ?? noUsage },
  usd: result?.usd ?? 0,
});

const problemsOf = (id: string, { replayed }: SessionReading): readonly string[] =>
  replayed.problems.map(({ line, detail }) => `session ${id}, line ${line}: ${detail}`);
