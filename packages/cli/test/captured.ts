/** An Io that records what a command wrote. */

import type { Io } from "../src/io.ts";

export type Captured = Io & {
  readonly text: () => string;
  readonly errors: () => string;
  readonly codes: readonly number[];
};

export const captured = (changed: Partial<Io> = {}): Captured => {
  const out: string[] = [];
  const err: string[] = [];
  const codes: number[] = [];
  return {
    out: (text) => out.push(text),
    err: (text) => err.push(text),
    colour: false,
    isTerminal: false,
    signal: new AbortController().signal,
    env: {},
    input: async function* () {},
    inputIsTerminal: true,
    exitWith: (code) => codes.push(code),
    ...changed,
    text: () => out.join(""),
    errors: () => err.join(""),
    codes,
  };
};
