/** What is asked: the words on the command line, and what stands on standard input.
 *  Invariant: input that nobody meant to give does not keep a run waiting; input that is given is never cut silently.
 *  Elsewhere: lines of prompts for a longer conversation (stream-input.ts). */

import { UsageError } from "../io.ts";

export type GivenInput = {
  readonly words: readonly string[];
  /** The text on standard input; undefined where there is none. */
  readonly piped: string | undefined;
};

/** 2 MB of text is more than any model reads at once. */
export const MOST_PIPED_CHARACTERS = 2_000_000;

export const promptOf = ({ words, piped }: GivenInput): string => {
  const asked = words.join(" ").trim();
  const given = piped?.trim() ?? "";
  if (given.length > MOST_PIPED_CHARACTERS)
    throw new UsageError(
      `standard input has ${given.length} characters; at most ${MOST_PIPED_CHARACTERS} are taken. Put it in a file and name the file`,
    );
  if (asked === "" && given === "")
    throw new UsageError('nothing is asked: prefork -p "…", or give the prompt on standard input');
  if (given === "") return asked;
  return asked === "" ? given : `${asked}\n\n<standard-input>\n${given}\n</standard-input>`;
};

/** A person at a terminal gives nothing; another program's open pipe may never say anything. */
const PATIENCE_MS = 1_500;

export const readPiped = async (
  lines: () => AsyncIterable<string>,
  isTerminal: boolean,
): Promise<string | undefined> => {
  if (isTerminal) return undefined;
  const iterator = lines()[Symbol.asyncIterator]();
  const nothing = Symbol("nothing");
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<typeof nothing>((done) => {
    timer = setTimeout(() => done(nothing), PATIENCE_MS);
  });
  const first = await Promise.race([iterator.next(), patience]);
  clearTimeout(timer);
  if (first === nothing) {
    void iterator.return?.();
    return undefined;
  }
  const all: string[] = [];
  for (let next = first; !next.done; next = await iterator.next()) all.push(next.value);
  return all.length === 0 ? undefined : all.join("\n");
};
