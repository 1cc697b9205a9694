/** What is asked: the words on the command line, and what stands on standard input.
 *  Invariant: input that nobody meant to give does not keep a run waiting, nor the process from ending; input that is
 *  given is never left out silently.
 *  Elsewhere: lines of prompts for a longer conversation (stream-input.ts). */

import { type Io, UsageError } from "../io.ts";

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

/** Programs that start others often leave them a pipe into which nothing is ever written. */
const PATIENCE_MS = 1_500;

const NOT_WAITED_FOR =
  "nothing came on standard input, so it is not waited for; end it with </dev/null to go on at once, or give a slow text as a file";

/** Without any words the prompt itself must be there, however long it takes. */
export const readPiped = async (io: Io, { hasWords }: { readonly hasWords: boolean }): Promise<string | undefined> => {
  if (io.inputIsTerminal) return undefined;
  const letGo = new AbortController();
  const lines = io.input(letGo.signal)[Symbol.asyncIterator]();
  const first = await (hasWords ? withPatience(lines.next()) : lines.next());
  if (first === undefined) {
    letGo.abort();
    io.err(`prefork: ${NOT_WAITED_FOR}\n`);
    return undefined;
  }
  const all: string[] = [];
  for (let next = first; !next.done; next = await lines.next()) all.push(next.value);
  return all.length === 0 ? undefined : all.join("\n");
};

/** Undefined where it takes too long; what becomes of it then is nobody's. */
const withPatience = async <T>(waited: Promise<T>): Promise<T | undefined> => {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<undefined>((done) => {
    timer = setTimeout(() => done(undefined), PATIENCE_MS);
  });
  try {
    return await Promise.race([waited, patience]);
  } finally {
    clearTimeout(timer);
    waited.catch(() => undefined);
  }
};
