/** How does a session go back to an earlier point, or to one that it had left?
 *  Files first, then the conversation: the entry that names the branch also says that its files are in place, so after a
 *  crash a session has the old files and the old conversation, or the new ones. Everything in memory then follows what
 *  the journal adds up to, exactly as if the session had been closed there and resumed. Forks that run keep what they
 *  started from.
 *  Elsewhere: the points (../observe), what a branch means (../journal), files (files.ts). */

import { InputError } from "@prefork/wire";
import type { Agent } from "../agent/index.ts";
import { escapeTags } from "../context/index.ts";
import type { EventBody } from "../events.ts";
import { goBack, type JournalWriter, openJournal, type Replayed, type SessionStore } from "../journal/index.ts";
import { readTree, type SessionTree } from "../observe/index.ts";
import type { RewindOptions, RewindResult } from "../ports.ts";
import type { Inbox } from "../tasks/index.ts";
import { type Restoration, SessionFiles } from "./files.ts";

export type RewindParts = {
  readonly journal: JournalWriter;
  /** For a fork: what it continues. */
  readonly inherited: Replayed | undefined;
  readonly now: () => number;
  readonly files: SessionFiles;
  /** Absent if the session is not open: then there is only the journal. */
  readonly live?: LiveParts;
};

type LiveParts = {
  readonly agent: Agent;
  readonly inbox: Inbox;
  /** Saves what a fork would inherit now. */
  readonly saveSnapshot: () => void;
  readonly emit: (event: EventBody) => void;
};

export const treeOf = ({ journal, now }: Pick<RewindParts, "journal" | "now">): SessionTree =>
  readTree(journal.read().entries, now());

/** Call it while no exchange runs. */
export const rewindSession = async (parts: RewindParts, options: RewindOptions): Promise<RewindResult> => {
  const { to, place = "before", restore = "conversation", preview = false } = options;
  const { journal, files, live, inherited } = parts;
  const { entries } = journal.read();
  const point = readTree(entries, parts.now()).pointAt(options);
  const stays = restore === "files";
  const prompt = stays || point.prompt === undefined ? {} : { prompt: point.prompt };
  if (!stays && live) requireSameEngine(live.agent, goBack(entries, point.after, inheriting(inherited)).replayed);
  const restored = restore === "conversation" ? undefined : await files.restore(point, entries, preview);
  const changed = restored ? { files: restored.files } : {};
  if (preview) return { ...prompt, ...changed };
  const also = restored?.also ?? (await files.present());
  const node = await branch(parts, stays ? undefined : point.after, also);
  const paths = restored ? [...restored.files.restored, ...restored.files.removed].map(({ path }) => path) : [];
  if (stays && paths.length > 0) tellRestored(parts, node, paths);
  live?.emit({ type: "rewound", node, to, place, restored: restore, files: paths.length });
  return { node, ...prompt, ...changed };
};

/** `after`: undefined stays where the conversation is. */
const branch = async (
  { journal, inherited, live }: RewindParts,
  after: number | undefined,
  also: Restoration["also"],
): Promise<string> => {
  // Nothing may run between reading and the end: the journal and what is in memory must agree.
  const { entries, lastSeq } = journal.read();
  const { entry, replayed } = goBack(entries, after ?? lastSeq, inheriting(inherited));
  const seq = journal.appendAll([{ entry }, ...also.map((each) => ({ entry: each }))]) - also.length;
  if (live && after !== undefined) {
    live.agent.goBack(replayed);
    live.inbox.goBack(replayed.notices);
    live.saveSnapshot();
  }
  await journal.flush();
  return `n${seq}`;
};

const MAX_NAMED = 20;

/** The conversation goes on, and does not know that its files are other ones now. */
const tellRestored = ({ journal, live }: RewindParts, node: string, paths: readonly string[]): void => {
  const more = paths.length > MAX_NAMED ? ` and ${paths.length - MAX_NAMED} more` : "";
  const names = paths.slice(0, MAX_NAMED).map(escapeTags).join(", ");
  const text = `The user restored files to an earlier state; read them again before you rely on them: ${names}${more}`;
  const id = `restored-${node}`;
  if (live) live.inbox.add({ id, task: "user", text });
  else journal.append({ kind: "notice", id, text, source: "user" });
};

const inheriting = (inherited: Replayed | undefined): { readonly inherited?: Replayed } =>
  inherited ? { inherited } : {};

/** A model cannot continue what only another one can read. */
const requireSameEngine = (agent: Agent, { openEpoch, protocol }: Replayed): void => {
  const { head, protocol: current } = agent.line.state;
  if (!openEpoch || !protocol) throw new InputError("the journal does not say what the conversation was at that point");
  if (openEpoch.head.model === head.model && protocol.name === current.name) return;
  throw new InputError(
    `at that point the conversation was with ${openEpoch.head.model}; close this session, rewind it with prefork rewind, and resume it with --model ${openEpoch.head.model}`,
  );
};

/** A session that was closed in the middle of a rewind has its old files again. */
export const RECOVERED =
  "A rewind was interrupted before it was complete. The files are as they were before it; rewind again if you still want to.";

export type ClosedSession = {
  readonly id: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly notice: (text: string) => void;
};

/** Rewinds a session that no process has open. Throws JournalError if one has. */
export const rewindClosed = async (
  store: SessionStore,
  { id, environment, notice }: ClosedSession,
  options: RewindOptions,
): Promise<RewindResult> => {
  const { journal, replayed } = await openJournal(store, id);
  await using _closing = journal;
  const cwd = replayed.opened?.cwd ?? "/";
  const files = new SessionFiles({ cwd, environment, journal, isOn: true, notice });
  if (await files.recover(replayed.state)) notice(RECOVERED);
  return await rewindSession({ journal, inherited: replayed.inherited, now: store.now, files }, options);
};
