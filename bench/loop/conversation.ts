/** The conversation that all clients have: one task, ninety-nine calls of one tool, a closing word.
 *  Invariant: what the model says depends on the request alone, so every client is asked for the same work; four bytes
 *  of content count as a token (the simulator's rule), and the last prompt is about 200K tokens long.
 *  Elsewhere: who has it (clients/), who plays the model (simulator-process.ts). */

import { DEFAULT_MODEL } from "@prefork/wire";
import * as z from "zod";

/** Clients that record the conversation, as ours does; and the cheapest of them again, without a record. */
export const KEEPING_NAMES = ["ours", "Vercel AI SDK", "Anthropic SDK"] as const;
export const CLIENT_NAMES = [...KEEPING_NAMES, "Anthropic SDK, keeping nothing"] as const;
export type ClientName = (typeof CLIENT_NAMES)[number];

/** Runs the conversation, reports the start of each turn, and returns the number of characters shown and the last answer. */
export type Converse = (
  baseUrl: string,
  turnStarted: () => void,
) => Promise<{ readonly shown: number; readonly text: string }>;

export const MODEL = DEFAULT_MODEL;
export const TURNS = 100;
export const MAX_TOKENS = 8_192;
export const KEY = "no-key-needed";

export const PROMPT = "Go through the modules one by one and say at the end which of them need a change.";

export const ECHO = {
  name: "Echo",
  description: "Says a text so many times.",
  input: z.object({ text: z.string(), times: z.number().int() }),
  run: ({ text, times }: { readonly text: string; readonly times: number }): string => text.repeat(times),
} as const;

/** Source-like text with quotes, tabs and line breaks, because escaping these is what makes encoding expensive. */
const LINES = [
  'import { readFile } from "node:fs/promises";\n',
  "export const total = (rows: readonly Row[]): number => rows.reduce((sum, { value }) => sum + value, 0);\n",
  '\tif (entry === undefined) throw new Error("no entry for " + key);\n',
  "\treturn entries.filter(({ expires }) => expires > now).map(({ name }) => name);\n",
] as const;

const RESULT_BYTES = 7_650;

/** What the model wants echoed in a turn: a different text each time, which always has the same length once repeated. */
export const echoOf = (turn: number): { readonly text: string; readonly times: number } => {
  const text = `module ${turn}: ${LINES[turn % LINES.length]}`;
  return { text, times: Math.round(RESULT_BYTES / text.length) };
};

const WORDS =
  "The module is small and has one caller. Its test covers the usual case only, so the empty list and the expired " +
  "entry still have to be looked at; the next one is where both of them come from.";

export const wordsOf = (turn: number): string => `Module ${turn} is read. ${WORDS}`;
export const LAST_WORDS = "All modules are read. Two need a change: the store and its cache.";

/** For the clients without their own system prompt: as long as ours. */
export const SYSTEM = `You are a coding agent. You read, change and run things until the task is done.\n${LINES.join("").repeat(28)}`;
