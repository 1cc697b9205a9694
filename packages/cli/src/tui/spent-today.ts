/** What did all sessions cost since midnight?
 *  Invariant: reads journals only, and only those that were used today; a journal that cannot be read counts as nothing.
 *  Elsewhere: what a session's requests cost (@prefork/runtime/observe). */

import { homedir } from "node:os";
import { stateFolder } from "@prefork/guard";
import { listSessionPreviews, readFamily, type SessionStore } from "@prefork/runtime/observe";
import type { Io } from "../io.ts";

/** More sessions in a day than anybody opens by hand; scripts may open more. */
const MAX_SESSIONS = 200;

export const spentToday = async ({ env }: Io, now: number): Promise<number> => {
  const store: SessionStore = {
    state: stateFolder(env, env.HOME || homedir()),
    now: () => now,
    newId: () => "",
  };
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const used = (await listSessionPreviews(store.state)).flatMap((session) =>
    session.kind === "session" && session.usedAt >= midnight ? [session.id] : [],
  );
  const sums = await Promise.all(used.slice(0, MAX_SESSIONS).map((id) => spentSince(store, id, midnight)));
  return sums.reduce((sum, usd) => sum + usd, 0);
};

const spentSince = async (store: SessionStore, id: string, since: number): Promise<number> => {
  try {
    const { rows } = await readFamily(store, id);
    return rows.filter(({ at }) => at >= since).reduce((sum, { usd = 0 }) => sum + usd, 0);
  } catch {
    return 0;
  }
};
