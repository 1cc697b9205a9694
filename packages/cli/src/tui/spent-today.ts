/** What did all sessions cost since midnight?
 *  Invariant: reads journals only, and only those that were used today; a journal that cannot be read counts as nothing.
 *  Elsewhere: what a session's requests cost (@prefork/runtime/observe). */

import { homedir } from "node:os";
import { stateFolder } from "@prefork/guard";
import { listSessionPreviews, readFamily, type SessionStore } from "@prefork/runtime/observe";
import type { Io } from "../io.ts";

/** More sessions in a day than anybody opens by hand; scripts may open more. */
const MAX_SESSIONS = 200;

const storeIn = ({ env }: Io): SessionStore => ({
  state: stateFolder(env, env.HOME || homedir()),
  now: Date.now,
  newId: () => "",
});

/** Remembers what each session cost, so that only sessions that were used since are read again. */
export class SpentToday {
  readonly #store: SessionStore;
  readonly #known = new Map<string, { readonly key: string; readonly usd: number }>();

  constructor(io: Io) {
    this.#store = storeIn(io);
  }

  async sum(now: number): Promise<number> {
    const midnight = new Date(now).setHours(0, 0, 0, 0);
    const used = (await listSessionPreviews(this.#store.state)).flatMap((session) =>
      session.kind === "session" && session.usedAt >= midnight ? [session] : [],
    );
    const sums = await Promise.all(
      used.slice(0, MAX_SESSIONS).map(async ({ id, usedAt, usdWithForks }) => {
        const key = `${midnight} ${usedAt} ${usdWithForks}`;
        const known = this.#known.get(id);
        if (known?.key === key) return known.usd;
        const usd = await spentSince(this.#store, id, midnight);
        this.#known.set(id, { key, usd });
        return usd;
      }),
    );
    return sums.reduce((sum, usd) => sum + usd, 0);
  }
}

export const spentToday = (io: Io, now: number): Promise<number> => new SpentToday(io).sum(now);

const spentSince = async (store: SessionStore, id: string, since: number): Promise<number> => {
  try {
    const { rows } = await readFamily(store, id);
    return rows.filter(({ at }) => at >= since).reduce((sum, { usd = 0 }) => sum + usd, 0);
  } catch {
    return 0;
  }
};
