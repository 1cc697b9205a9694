/** Which sessions could be resumed, and what were they about? For a list that a person chooses from.
 *  Invariant: what is shown is what the journals say now. The index only saves reading unchanged journals again; a
 *  missing, damaged or outdated index is rebuilt, and no session is hidden because of it.
 *  Elsewhere: what one journal says (survey.ts), the index file (preview-index.ts), finding words (search.ts). */

import { closeSync, fstatSync, lstatSync } from "node:fs";
import { type Folder, lockHolder, thisProcess } from "@prefork/guard/internal";
import { JournalError } from "./errors.ts";
import { type IndexedSurvey, journalKey, readIndex, type SurveyIndex, writeIndex } from "./preview-index.ts";
import {
  isChild,
  type ListedSession,
  type ListOptions,
  sessionIds,
  sizeOfOutputs,
  type UnreadableSession,
} from "./sessions.ts";
import {
  describeUnsafe,
  JOURNAL_FILE,
  openJournalFile,
  openSessionFolder,
  openSessions,
  readWholeFile,
} from "./storage.ts";
import { surveyJournal } from "./survey.ts";
import { readTitle } from "./title.ts";

export type SessionPreview = ListedSession & {
  /** The title that the user set, or else the first line of the first prompt. */
  readonly title: string;
  /** The first lines of the last answer. */
  readonly lastAnswer: string;
  /** The cost of its own requests. */
  readonly usd: number;
  /** The cost including its forks and other agents that still have journals. */
  readonly usdWithForks: number;
  /** The number of forks that started from it. */
  readonly forks: number;
};

/** Most recently used first; unreadable sessions last. `state` is the user's state folder. */
export const listSessionPreviews = async (
  state: string,
  { cwd, forks = false }: ListOptions = {},
): Promise<readonly (SessionPreview | UnreadableSession)[]> => {
  await using sessions = await openSessions(state);
  if (!sessions) return [];
  const { surveys, unreadable } = await surveyIndexed(sessions);
  const costs = familyCosts(surveys);
  const self = thisProcess();
  const previews: SessionPreview[] = [];
  for (const [id, survey] of surveys) {
    if ((cwd !== undefined && survey.cwd !== cwd) || (!forks && isChild(survey))) continue;
    try {
      await using folder = await openSessionFolder(sessions, id);
      if (!folder) continue;
      const holder = await lockHolder(folder, self);
      const { journalBytes, ...facts } = survey;
      previews.push({
        ...{ kind: "session", id, ...facts },
        title: readTitle(folder) ?? survey.title,
        usdWithForks: costs.get(id) ?? survey.usd,
        bytes: journalBytes + (await sizeOfOutputs(folder)),
        ...(holder ? { holder } : {}),
      });
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      unreadable.push({ kind: "unreadable", id, reason: error.message });
    }
  }
  return [...previews.toSorted((a, b) => b.usedAt - a.usedAt || (a.id < b.id ? -1 : 1)), ...unreadable];
};

type Surveyed = { readonly surveys: SurveyIndex; readonly unreadable: UnreadableSession[] };

const surveyIndexed = async (sessions: Folder): Promise<Surveyed> => {
  const before = await readIndex(sessions);
  const surveys: Map<string, IndexedSurvey & { readonly key: string }> = new Map();
  const unreadable: UnreadableSession[] = [];
  let changed = false;
  for (const id of await sessionIds(sessions)) {
    const known = before.get(id);
    if (known && known.key === keyNow(sessions, id)) {
      surveys.set(id, known);
      continue;
    }
    const found = await surveyOne(sessions, id);
    if (found === undefined) continue;
    if ("kind" in found) unreadable.push(found);
    else {
      surveys.set(id, found);
      changed = true;
    }
  }
  const gone = [...before.keys()].some((id) => !surveys.has(id));
  if (changed || gone) await writeIndex(sessions, surveys);
  return { surveys, unreadable };
};

/** The key of a journal that would be accepted without reading it again; undefined if it has to be inspected. */
const keyNow = (sessions: Folder, id: string): string | undefined => {
  try {
    const folder = lstatSync(sessions.at(id));
    if (!folder.isDirectory() || describeUnsafe(folder, id) !== undefined) return undefined;
    return journalKey(lstatSync(sessions.at(`${id}/${JOURNAL_FILE}`), { bigint: true }));
  } catch {
    return undefined;
  }
};

/** Undefined if the session was deleted in the meantime. */
const surveyOne = async (
  sessions: Folder,
  id: string,
): Promise<(IndexedSurvey & { readonly key: string }) | UnreadableSession | undefined> => {
  try {
    await using folder = await openSessionFolder(sessions, id);
    if (!folder) return undefined;
    const fd = openJournalFile(folder, "read");
    try {
      // Taken before reading: a line that is appended meanwhile makes the key outdated, never the survey.
      const key = journalKey(fstatSync(fd, { bigint: true }));
      const bytes = readWholeFile(fd);
      const found = surveyJournal(bytes);
      if (!found.ok) return { kind: "unreadable", id, reason: `session ${id} ${found.reason}` };
      const { ok: _ok, opened, ...facts } = found;
      const { cwd, model, parent, startedBy } = opened;
      const from = { ...(parent ? { parent } : {}), ...(startedBy ? { startedBy } : {}) };
      return { key, cwd, model, ...facts, journalBytes: bytes.length, ...from };
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (!(error instanceof JournalError)) throw error;
    return { kind: "unreadable", id, reason: error.message };
  }
};

/** The cost of each session together with all that it started. */
const familyCosts = (surveys: SurveyIndex): ReadonlyMap<string, number> => {
  const costs = new Map<string, number>();
  for (const { usd, ...survey } of surveys.values()) {
    // Up to the root. A damaged journal could name itself or a descendant as its parent.
    const passed = new Set<string>();
    let above = (survey.parent ?? survey.startedBy)?.session;
    while (above !== undefined && !passed.has(above)) {
      passed.add(above);
      costs.set(above, (costs.get(above) ?? 0) + usd);
      const next = surveys.get(above);
      above = (next?.parent ?? next?.startedBy)?.session;
    }
  }
  for (const [id, { usd }] of surveys) costs.set(id, (costs.get(id) ?? 0) + usd);
  return costs;
};
