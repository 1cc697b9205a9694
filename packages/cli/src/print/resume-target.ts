/** Which session should be resumed, if any?
 *  Invariant: looking changes nothing; a session resumes only in its own folder; a refusal names the command that helps.
 *  Elsewhere: ids and journals (@prefork/runtime), opening it (open-session.ts). */

import { existsSync } from "node:fs";
import { JournalError } from "@prefork/runtime";
import { addressIn } from "@prefork/runtime/internal";
import { findSession, latestSession, readSession, type SessionStore } from "@prefork/runtime/observe";
import { UsageError } from "../io.ts";
import type { PreviousEngine } from "./engine-choice.ts";

export type ResumeFlags = { readonly continue?: true; readonly resume?: string | true };

export type ResumeContext = {
  readonly state: string;
  readonly cwd: string;
  /** There is a prompt on the command line. */
  readonly hasWords: boolean;
};

/** The user can fix these; every other reason is a failure. */
const CALLERS_FAULTS: readonly JournalError["reason"][] = ["not-found", "ambiguous", "locked", "newer-version"];

/** A session to resume, and the engine that answered it so far, if its journal says. */
export type ResumeTarget = { readonly id: string; readonly before?: PreviousEngine };

export const toUsageError = (error: unknown): unknown =>
  error instanceof JournalError && CALLERS_FAULTS.includes(error.reason)
    ? new UsageError(`${error.message}${attachAdvice(error)}`, { cause: error })
    : error;

/** A session that another process has open can be used from here. */
const attachAdvice = ({ reason, message }: JournalError): string => {
  const [, id] = /^session (\S+) is in use by process \d+/.exec(message) ?? [];
  return reason !== "locked" || id === undefined ? "" : `; to use it from here: prefork attach ${id}`;
};

/** Undefined for a new session. */
export const findResumeTarget = async (
  { continue: resumesLast, resume }: ResumeFlags,
  { state, cwd, hasWords }: ResumeContext,
): Promise<ResumeTarget | undefined> => {
  const store: SessionStore = { state, now: Date.now, newId: () => "" };
  if (resume === undefined && !resumesLast) return undefined;
  try {
    if (typeof resume === "string")
      return await requireSameFolder(await findNamedSession(store, resume, { hasWords }), { store, cwd });
    const latest = await latestSession(store, cwd);
    if (latest === undefined) throw new UsageError(`there is no session in ${cwd} to resume`);
    return resumeTargetOf(latest.id, (await readSession(store, latest.id)).replayed);
  } catch (error) {
    throw toUsageError(error);
  }
};

const findNamedSession = async (
  store: SessionStore,
  id: string,
  { hasWords }: Pick<ResumeContext, "hasWords">,
): Promise<string> => {
  try {
    return await findSession(store, id);
  } catch (error) {
    // `--resume "fix it"` takes the prompt for an id.
    if (hasWords || !(error instanceof JournalError) || error.reason !== "not-found") throw error;
    const advice = 'to resume the last session, give the prompt first: prefork -p "…" --resume';
    throw new UsageError(`${error.message}; ${advice}`, { cause: error });
  }
};

/** A session's paths belong to its folder and would mislead in another one. If the folder is gone, it was moved. */
const requireSameFolder = async (
  id: string,
  { store, cwd }: { readonly store: SessionStore; readonly cwd: string },
): Promise<ResumeTarget> => {
  const { replayed } = await readSession(store, id);
  const folder = replayed.opened?.cwd ?? cwd;
  if (folder !== cwd && existsSync(folder))
    throw new UsageError(`session ${id} belongs to ${folder}; resume it there with --cwd ${folder}`);
  return resumeTargetOf(id, replayed);
};

type Replayed = Awaited<ReturnType<typeof readSession>>["replayed"];

export const resumeTargetOf = (id: string, replayed: Replayed): ResumeTarget => {
  const { openEpoch } = replayed;
  if (!openEpoch) return { id };
  const address = addressIn(replayed);
  const before = { protocol: openEpoch.protocol, model: openEpoch.head.model };
  return { id, before: address === undefined ? before : { ...before, address } };
};
