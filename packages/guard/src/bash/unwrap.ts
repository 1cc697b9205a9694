/** What a command really runs: `timeout` only says how long, so it is taken off before anything else is asked.
 *  Invariant: after this every check, and the runner, sees the program itself; no other place knows the name of a wrapper.
 *  Other wrappers (nice, stdbuf, env, nohup …) are not read at all, nor is one inside another.
 *  Elsewhere: programs that make up arguments for another one (programs/xargs.ts, programs/find.ts). */

import type { PlanWord } from "./plan.ts";
import { Refusal } from "./refusal.ts";

export type Unwrapped = {
  readonly words: readonly PlanWord[];
  /** How long `timeout` lets the program run, as it was written. */
  readonly limit?: string;
};

export const WRAPPER = "timeout";
const NAMES: readonly string[] = [WRAPPER, `/bin/${WRAPPER}`, `/usr/bin/${WRAPPER}`];
const DURATION = /^0{0,9}[1-9]\d{0,9}(?:\.\d{1,9})?[smh]?$/;

const isPlain = (word: PlanWord | undefined): word is PlanWord =>
  word !== undefined && !word.pattern && !word.home && !word.status;

const isWrapper = (word: PlanWord | undefined): boolean => isPlain(word) && NAMES.includes(word.text);

export const unwrapped = (words: readonly PlanWord[]): Unwrapped => {
  if (!isWrapper(words[0])) return { words };
  const [, limit, ...rest] = words;
  if (!isPlain(limit) || !DURATION.test(limit.text))
    throw new Refusal("timeout takes a number of seconds and a command");
  if (rest.length === 0) throw new Refusal("timeout needs a command");
  if (isWrapper(rest[0])) throw new Refusal("one timeout is enough");
  return { words: rest, limit: limit.text };
};
