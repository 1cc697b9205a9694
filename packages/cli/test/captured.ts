/** An Io that remembers what a command wrote. */

import type { Io } from "../src/io.ts";

export type Captured = Io & { readonly text: () => string; readonly errors: () => string };

export const captured = (changed: Partial<Io> = {}): Captured => {
  const out: string[] = [];
  const err: string[] = [];
  return {
    out: (text) => out.push(text),
    err: (text) => err.push(text),
    colour: false,
    isTerminal: false,
    signal: new AbortController().signal,
    env: {},
    input: async function* () {},
    ...changed,
    text: () => out.join(""),
    errors: () => err.join(""),
  };
};
