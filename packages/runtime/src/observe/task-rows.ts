/** Which tasks are there, and who runs them? For lists, and for one task in full.
 *  Invariant: read from journals alone; nothing is locked or changed. A task that nobody runs any more is never shown
 *  as running, and a waiting one never as done.
 *  Elsewhere: states (../tasks), a family's requests (read-family.ts), stopping and resuming (../session). */

import type { LockHolder } from "@prefork/guard/internal";
import {
  addUsage,
  type Block,
  FORK_BOILERPLATE_TAG,
  FORK_DIRECTIVE_PREFIX,
  type Json,
  noUsage,
  type Usage,
} from "@prefork/wire";
import {
  JournalError,
  type ListedSession,
  listSessionPreviews,
  listSessions,
  readJournal,
  requireAllReadable,
  type SessionStore,
  type StoredEntry,
  type UnreadableSession,
} from "../journal/index.ts";
import { describeState, isEnded, type Task, tasksIn } from "../tasks/index.ts";
import type { RequestRow } from "./ledger.ts";
import { readFamily } from "./read-family.ts";

export type TaskRow = {
  readonly task: Task;
  /** The session that started it, and its working folder. */
  readonly session: string;
  readonly cwd: string;
  /** The process that writes that session now. */
  readonly owner?: LockHolder;
  /** In a few words. */
  readonly state: string;
  /** It was running when its process ended. */
  readonly isOrphan: boolean;
  readonly turns: number;
  readonly usage: Usage;
  readonly usd: number;
  readonly ageMs: number;
  /** Damage of its own and of its session's journal that was skipped. */
  readonly problems: readonly string[];
};

export type TasksOptions = {
  /** Only tasks of this session. Default: all. */
  readonly session?: string;
  /** Include ended tasks. Default: false. */
  readonly ended?: boolean;
  /** Called with each session that cannot be read. Its tasks are not in the list. */
  readonly onUnreadable?: (session: UnreadableSession) => void;
  /** Called with damage of a session's journal that was skipped: there may have been more tasks. */
  readonly onProblem?: (problem: string) => void;
};

/** Most recently used session first; within it, the task started last first. */
export const listTasks = async (store: SessionStore, options: TasksOptions = {}): Promise<readonly TaskRow[]> => {
  const { session, ended = false, onUnreadable, onProblem } = options;
  const rows: TaskRow[] = [];
  for (const listed of await listSessions(store)) {
    if (session !== undefined && listed.id !== session) continue;
    if (listed.kind === "unreadable") {
      onUnreadable?.(listed);
      continue;
    }
    const { tasks, problems } = await tasksOf(store, listed);
    for (const problem of problems) onProblem?.(problem);
    const wanted = tasks.filter((task) => ended || !isEnded(task));
    for (const task of wanted.toSorted((a, b) => b.startedAt - a.startedAt))
      rows.push(await rowOf(store, task, { listed, problems }));
  }
  return rows;
};

/** The tasks of the sessions that were used last in this folder, the latest first: enough to name one, and quick. */
export const recentTasks = async (
  store: SessionStore,
  { cwd, sessions = 5 }: { readonly cwd: string; readonly sessions?: number },
): Promise<readonly Task[]> => {
  const previews = await listSessionPreviews(store.state, { cwd });
  const latest = previews.filter((one) => one.kind === "session").slice(0, sessions);
  const found = await Promise.all(latest.map((listed) => tasksOf(store, listed)));
  return found.flatMap(({ tasks }) => tasks.toSorted((a, b) => b.startedAt - a.startedAt));
};

/** One task and everything its journal says about it. */
export type TaskDetail = TaskRow & {
  readonly directive?: string;
  /** Its requests. */
  readonly rows: readonly RequestRow[];
};

export const showTask = async (
  store: SessionStore,
  given: string,
  { cwd }: { readonly cwd: string },
): Promise<TaskDetail> => {
  const { task, listed, problems } = await findTask(store, given, cwd);
  const row = await rowOf(store, task, { listed, problems });
  const { rows } = await readFamily(store, listed.id);
  const directive = plannedDirective(task) ?? findDirective(await (await readingOf(store, task.session)).entries);
  return {
    ...row,
    ...(directive === undefined ? {} : { directive }),
    rows: rows.filter(({ agent }) => agent === task.id),
  };
};

// --- inside ------------------------------------------------------------------------------------------------------------

type FoundTask = InSession & { readonly task: Task };

type InSession = { readonly listed: ListedSession; readonly problems: readonly string[] };

/** First in the folder's last session, because people usually mean that one; then everywhere. */
const findTask = async (store: SessionStore, given: string, cwd: string): Promise<FoundTask> => {
  const sessions = await listSessions(store);
  const all = sessions.filter((listed) => listed.kind === "session");
  const latest = all.find((listed) => listed.cwd === cwd);
  for (const looked of latest ? [[latest], all] : [all]) {
    const found: FoundTask[] = [];
    for (const listed of looked) {
      const { tasks, problems } = await tasksOf(store, listed);
      for (const task of tasks) if (isNamed(task, given)) found.push({ task, listed, problems });
    }
    const exact = found.find(({ task }) => task.id === given);
    const [only, ...others] = exact ? [exact] : found;
    if (only && others.length === 0) return only;
    if (only) {
      const ids = found.map(({ task }) => task.id);
      throw new JournalError("ambiguous", `${ids.length} tasks begin with ${given}: ${ids.slice(0, 5).join(", ")}`);
    }
  }
  requireAllReadable(sessions, `no readable session has a task ${given}`);
  throw new JournalError("not-found", `there is no task ${given}`);
};

/** Task ids begin with a word that nobody types. */
const isNamed = ({ id }: Task, given: string): boolean =>
  given !== "" && (id.startsWith(given) || id.startsWith(`task-${given}`));

type SessionTasks = { readonly tasks: readonly Task[]; readonly problems: readonly string[] };

const tasksOf = async (store: SessionStore, { id }: ListedSession): Promise<SessionTasks> => {
  const state = new Map<string, Json>();
  const { entries, problems } = await readingOf(store, id);
  for (const { entry } of entries) if (entry.kind === "state") state.set(entry.slot, entry.value);
  return { tasks: tasksIn(state), problems };
};

type Reading = { readonly entries: readonly StoredEntry[]; readonly problems: readonly string[] };

/** Empty if they cannot be read, with the reason. */
const readingOf = async (store: SessionStore, id: string | undefined): Promise<Reading> => {
  if (id === undefined) return { entries: [], problems: [] };
  try {
    const { entries, problems } = await readJournal(store, id);
    return { entries, problems: problems.map(({ line, detail }) => `session ${id}, line ${line}: ${detail}`) };
  } catch (error) {
    if (error instanceof JournalError) return { entries: [], problems: [error.message] };
    throw error;
  }
};

const rowOf = async (store: SessionStore, task: Task, { listed, problems }: InSession): Promise<TaskRow> => {
  const { id: session, cwd, holder } = listed;
  const own = await readingOf(store, task.session);
  const isOrphan = !isEnded(task) && holder === undefined;
  return {
    ...{ task, session, cwd, isOrphan },
    ...(holder ? { owner: holder } : {}),
    state: isOrphan ? "interrupted (owner gone)" : describeState(task),
    ...spentBy(task, own.entries),
    problems: [...problems, ...own.problems],
    ageMs: Math.max(0, store.now() - task.startedAt),
  };
};

/** Everything in its own journal; without one, what was reported at its end. */
const spentBy = (
  { result, session }: Task,
  entries: readonly StoredEntry[],
): Pick<TaskRow, "turns" | "usage" | "usd"> => {
  const { turns, usage, usd } = result ?? { turns: 0, usage: noUsage, usd: 0 };
  if (session === undefined) return { turns, usage, usd };
  const answers = entries.flatMap(({ entry }) => (entry.kind === "response" || entry.kind === "billed" ? [entry] : []));
  return {
    turns: answers.filter(({ kind }) => kind === "response").length,
    usage: answers.reduce((sum, answer) => addUsage(sum, answer.usage), noUsage),
    usd: answers.reduce((sum, answer) => sum + (answer.usd ?? 0), 0),
  };
};

const plannedDirective = ({ plan }: Task): string | undefined => {
  const directive = typeof plan === "object" && plan !== null && "directive" in plan ? plan.directive : undefined;
  return typeof directive === "string" && directive !== "" ? directive : undefined;
};

/** The last text that it was told before its first request, without what is the same for all forks. */
const findDirective = (entries: readonly StoredEntry[]): string | undefined => {
  const firstRequest = entries.findIndex(({ entry }) => entry.kind === "request");
  const words = entries
    .slice(0, firstRequest < 0 ? entries.length : firstRequest)
    .flatMap(({ entry }) =>
      entry.kind === "blocks" ? entry.blocks : entry.kind === "message" ? entry.message.content : [],
    )
    .flatMap(textsIn)
    .at(-1);
  const after = words?.indexOf(DIRECTIVE) ?? -1;
  return after < 0 ? words : words?.slice(after + DIRECTIVE.length);
};

const DIRECTIVE = `</${FORK_BOILERPLATE_TAG}>\n\n${FORK_DIRECTIVE_PREFIX} `;

const textsIn = (block: Block): readonly string[] => {
  if (block.type === "tool_result") return block.content.flatMap(textsIn);
  return block.type === "text" ? [block.text] : [];
};
