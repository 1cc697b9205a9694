/** What would the tour's work cost in other ways: a fresh sub-agent for each part, one part after the other, no cache?
 *  Invariant: the first two are run for real, on simulators of their own, so nothing in them reads a cache entry of the
 *  tour; their money is the simulator's bill, their time is measured. Only "no cache" is computed: the tour's own requests
 *  at the uncached price, and the tour's own time.
 *  Elsewhere: the run that they are compared with (run.ts), the table (../commands/tour-report.ts). */

import { anthropicEngine, builtInTools, createSession, type Session, type SessionOptions } from "@prefork/runtime";
import type { Explanation, ObservedFamily } from "@prefork/runtime/observe";
import { type Embedded, startEmbedded } from "../rehearsal/index.ts";
import { type Part, partPrompt, serialPrompt } from "./job.ts";

export type ComparedWay = "fresh-agents" | "one-by-one" | "no-cache";

export type Alternative = {
  readonly id: ComparedWay;
  readonly requests: number;
  readonly usd: number;
  readonly ms: number;
};

/** How long the simulator waits before each answer, in every run: time then depends on how many requests follow one
 *  another, as it does with a provider, and hardly on this machine. */
export const FIRST_EVENT_MS = 300;

export type SessionFolders = {
  readonly cwd: string;
  readonly home: string;
  readonly state: string;
  readonly path: string | undefined;
};

export const sessionOptions = (embedded: Embedded, { cwd, home, state, path }: SessionFolders): SessionOptions => {
  const { baseUrl, credential, model, engine: name } = embedded;
  return {
    engine: anthropicEngine({ name, model, baseUrl, credential }),
    ...{ cwd, home, state },
    environment: { HOME: home, ...(path === undefined ? {} : { PATH: path }) },
    permissions: { mode: "default" }, // stated, so that forks may run with nobody to ask
  };
};

/** The finished run with forks. */
export type ForkedRun = {
  readonly family: ObservedFamily;
  readonly explanation: Explanation;
  readonly startedAt: number;
  readonly ms: number;
};

export type AlternativeOptions = SessionFolders & { readonly parts: readonly Part[]; readonly signal: AbortSignal };

export const runAlternatives = async (
  forked: ForkedRun,
  options: AlternativeOptions,
): Promise<readonly Alternative[]> => {
  const { parts, signal } = options;
  // Both runs end before an error is thrown: the caller removes the folder that they work in.
  const [fresh, serial] = await Promise.allSettled([
    runPrompts(parts.map(partPrompt), options),
    runPrompts([serialPrompt(parts)], options),
  ]);
  signal.throwIfAborted();
  if (fresh.status === "rejected") throw fresh.reason;
  if (serial.status === "rejected") throw serial.reason;
  const parent = parentShare(forked);
  const uncached = forked.explanation.instead.find(({ id }) => id === "no-cache");
  return [
    {
      id: "fresh-agents",
      requests: fresh.value.requests + parent.requests,
      usd: fresh.value.usd + parent.usd,
      ms: fresh.value.ms + parent.ms,
    },
    { id: "one-by-one", ...serial.value },
    { id: "no-cache", requests: uncached?.requests ?? 0, usd: uncached?.usd ?? 0, ms: forked.ms },
  ];
};

type RunSum = Omit<Alternative, "id">;

/** The agents that work alone keep no to-do list: a fork does not either, and the list would add requests. */
const TOOLS = builtInTools.filter(({ name }) => name !== "TodoWrite");

/** One session for each prompt, all at once. */
const runPrompts = async (prompts: readonly string[], options: AlternativeOptions): Promise<RunSum> => {
  await using embedded = await startEmbedded({ firstEventMs: FIRST_EVENT_MS });
  const sessions: Session[] = [];
  try {
    for (const _ of prompts)
      sessions.push(await createSession({ ...sessionOptions(embedded, options), forks: "off", tools: TOOLS }));
    const startedAt = Date.now();
    const results = await Promise.all(
      sessions.map((session, index) => session.prompt(prompts[index] ?? "", { signal: options.signal }).result()),
    );
    const ms = Date.now() - startedAt;
    for (const { end, reason } of results) if (end !== "done") throw new Error(`a comparison ended early: ${reason}`);
    const rows = embedded.ledger();
    return { requests: rows.length, usd: rows.reduce((sum, { billed }) => sum + (billed.usd ?? 0), 0), ms };
  } finally {
    for (const session of sessions) await session.close();
  }
};

/** Fresh sub-agents need a parent that starts them and reads their reports. Its requests are the same as with forks, so
 *  they are taken from the forked run: what they cost, and the time before the first fork and after the last one. */
const parentShare = ({ family, explanation, startedAt, ms }: ForkedRun): RunSum => {
  const main = explanation.agents.find(({ agent }) => agent === "main");
  const forkedAt = Math.min(...family.rows.filter(({ agent }) => agent !== "main").map(({ at }) => at));
  const resumedAt = Math.max(...family.rows.filter(({ agent }) => agent === "main").map(({ at }) => at));
  return {
    requests: main?.requests ?? 0,
    usd: main?.usd ?? 0,
    ms: Math.max(0, forkedAt - startedAt) + Math.max(0, startedAt + ms - resumedAt),
  };
};
