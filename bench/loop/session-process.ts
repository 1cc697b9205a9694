/** One client and one session in its own process: no client pays for the garbage of another, and the peak is its own.
 *  Started with a client's name and the simulator's URL; reports once and waits to be ended.
 *  Elsewhere: the clients (clients/), who compares them (sessions.ts). */

import { cpuMicros } from "../measure.ts";
import { type ClientName, type Converse, LAST_WORDS, TURNS, wordsOf } from "./conversation.ts";

export type SessionReport =
  /** CPU in microseconds: of turns after the first, each; of the first and the last ten of these. Memory in bytes. */
  | {
      readonly type: "ended";
      readonly turn: number;
      readonly early: number;
      readonly late: number;
      readonly peak: number;
    }
  | { readonly type: "failed"; readonly message: string };

/** Loads only what the client needs: anything else would count as its memory. */
const clientOf = async (name: ClientName): Promise<Converse> => {
  switch (name) {
    case "ours":
      return (await import("./clients/ours.ts")).converse;
    case "Vercel AI SDK":
      return (await import("./clients/ai-sdk.ts")).converse;
    case "Anthropic SDK":
      return (await import("./clients/anthropic-sdk.ts")).converse;
    case "Anthropic SDK, keeping nothing":
      return (await import("./clients/anthropic-sdk.ts")).converseKeeping(false);
  }
};

const TEN = 10;
/** The first turn connects, starts and compiles, so its cost counts as start-up. */
const SECOND = 2;
/** Turns whose start is measured; only these, because measuring costs time too. */
const MARKED: readonly number[] = [SECOND, SECOND + TEN, TURNS + 1 - TEN];

const measure = async (name: ClientName, baseUrl: string): Promise<SessionReport> => {
  const converse = await clientOf(name);
  const marks = new Map<number, number>();
  let started = 0;
  const { shown, text } = await converse(baseUrl, () => {
    started += 1;
    if (MARKED.includes(started)) marks.set(started, cpuMicros());
  });
  marks.set(TURNS + 1, cpuMicros());
  const expected = Array.from({ length: TURNS - 1 }, (_, index) => wordsOf(index + 1).length);
  const letters = expected.reduce((sum, length) => sum + length, LAST_WORDS.length);
  if (started !== TURNS || shown !== letters || text !== LAST_WORDS)
    throw new Error(`another conversation: ${started} turns, ${shown} letters of ${letters}, "${text}"`);
  const between = (from: number, to: number): number => ((marks.get(to) ?? 0) - (marks.get(from) ?? 0)) / (to - from);
  return {
    type: "ended",
    turn: between(SECOND, TURNS + 1),
    early: between(SECOND, SECOND + TEN),
    late: between(TURNS + 1 - TEN, TURNS + 1),
    peak: process.resourceUsage().maxRSS * 1_024,
  };
};

const [name, baseUrl] = process.argv.slice(2);
const tell = (report: SessionReport): void => void process.send?.(report);
process.on("disconnect", () => process.exit());
measure(name as ClientName, baseUrl ?? "").then(tell, (error: Error) =>
  tell({ type: "failed", message: `${error.message}${error.cause ? `: ${String(error.cause)}` : ""}` }),
);
