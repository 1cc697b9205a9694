/** Which session is gone on with, if any?
 *  Invariant: looking changes nothing; a session goes on in its own folder, and what cannot be gone on with is refused
 *  with the way out.
 *  Elsewhere: ids and journals (@prefork/runtime), opening it (../commands/print.ts). */

import { existsSync } from "node:fs";
import { JournalError } from "@prefork/runtime";
import { addressIn } from "@prefork/runtime/internal";
import { findSession, latestSession, readSession, type SessionStore } from "@prefork/runtime/observe";
import { UsageError } from "../io.ts";
import type { Answered } from "./engine-choice.ts";

export type ResumeFlags = { readonly continue?: true; readonly resume?: string | true };

export type Wanting = {
  readonly state: string;
  readonly cwd: string;
  /** Whether a prompt stands on the command line. */
  readonly hasWords: boolean;
};

/** What the caller can do something about; the rest is a failure. */
const CALLERS_FAULTS: readonly JournalError["reason"][] = ["not-found", "ambiguous", "locked", "newer-version"];

/** A session to go on with, and who has answered it so far; nobody, where nothing of it can be read. */
export type WantedSession = { readonly id: string; readonly before?: Answered };

export const asUsage = (error: unknown): unknown =>
  error instanceof JournalError && CALLERS_FAULTS.includes(error.reason)
    ? new UsageError(error.message, { cause: error })
    : error;

/** Undefined for a new one. */
export const wantedSession = async (
  { continue: goesOn, resume }: ResumeFlags,
  { state, cwd, hasWords }: Wanting,
): Promise<WantedSession | undefined> => {
  const store: SessionStore = { state, now: Date.now, newId: () => "" };
  if (resume === undefined && !goesOn) return undefined;
  try {
    if (typeof resume === "string") return await ofFolder(await named(store, resume, { hasWords }), { store, cwd });
    const latest = await latestSession(store, cwd);
    if (latest === undefined) throw new UsageError(`there is no session of ${cwd} to go on with`);
    return wantedOf(latest.id, (await readSession(store, latest.id)).replayed);
  } catch (error) {
    throw asUsage(error);
  }
};

const named = async (store: SessionStore, id: string, { hasWords }: Pick<Wanting, "hasWords">): Promise<string> => {
  try {
    return await findSession(store, id);
  } catch (error) {
    // `--resume "go on"` takes the prompt for an id.
    if (hasWords || !(error instanceof JournalError) || error.reason !== "not-found") throw error;
    const advice = 'to go on with the last session give the prompt first: prefork -p "…" --resume';
    throw new UsageError(`${error.message}; ${advice}`, { cause: error });
  }
};

/** What a session knows is about its own folder: in another one its paths would mislead. One that was moved goes on. */
const ofFolder = async (
  id: string,
  { store, cwd }: { readonly store: SessionStore; readonly cwd: string },
): Promise<WantedSession> => {
  const { replayed } = await readSession(store, id);
  const folder = replayed.opened?.cwd ?? cwd;
  if (folder !== cwd && existsSync(folder))
    throw new UsageError(`session ${id} belongs to ${folder}; --cwd ${folder} goes on there`);
  return wantedOf(id, replayed);
};

type Replayed = Awaited<ReturnType<typeof readSession>>["replayed"];

export const wantedOf = (id: string, replayed: Replayed): WantedSession => {
  const { openEpoch: began } = replayed;
  if (!began) return { id };
  const address = addressIn(replayed);
  const before = { protocol: began.protocol, model: began.head.model };
  return { id, before: address === undefined ? before : { ...before, address } };
};
