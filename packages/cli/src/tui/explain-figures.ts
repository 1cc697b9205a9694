/** Figures for the screen that are read from the journal: what a family saved, and why a request missed the cache.
 *  Invariant: reads journals only; where they do not say it, neither does the screen.
 *  Elsewhere: how they are calculated (@prefork/runtime/observe). */

import { homedir } from "node:os";
import { stateFolder } from "@prefork/guard";
import { explainFamily, readFamily, type SessionStore } from "@prefork/runtime/observe";
import type { Io } from "../io.ts";
import { readEarlier } from "./earlier-blocks.ts";
import type { Block, State } from "./state/index.ts";

const storeOf = ({ env }: Io): SessionStore => ({
  state: stateFolder(env, env.HOME || homedir()),
  now: Date.now,
  newId: () => "",
});

export const conversationOf = async (session: string, io: Io): Promise<readonly Block[]> =>
  (await readEarlier(storeOf(io), session)).blocks;

export const familyFigures = async (family: string, state: State, io: Io): Promise<{ readonly freshUsd?: number }> => {
  if (state.session === undefined) return {};
  try {
    const observed = await readFamily(storeOf(io), state.session);
    const members = new Set(
      [...state.children.values()].filter((child) => child.family === family).map(({ id }) => id),
    );
    const rows = observed.rows.filter(({ agent }) => members.has(agent));
    const cold = explainFamily({ ...observed, rows, unread: [] }).instead.find(({ id }) => id === "cold-at-once");
    return cold?.usd === undefined ? {} : { freshUsd: cold.usd };
  } catch {
    return {};
  }
};

export const lastMiss = async (agent: string, state: State, io: Io): Promise<string | undefined> => {
  if (state.session === undefined) return undefined;
  try {
    return explainFamily(await readFamily(storeOf(io), state.session)).misses.findLast((miss) => miss.agent === agent)
      ?.why;
  } catch {
    return undefined;
  }
};
