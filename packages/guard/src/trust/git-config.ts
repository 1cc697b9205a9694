/** Which lines of a repository's configuration change every day and can run nothing?
 *  Invariant: a section is skipped only as a whole, and only if it is exactly what git writes when a branch starts to track another.
 *  Any other spelling, and anything near a continued line, counts. So no line is ever read as part of a different section than
 *  in git. Nothing is interpreted.
 *  Elsewhere: hashing the rest (configuration.ts). */

const SECTION = /^\[branch "[\w./+@-]+"\]$/;
const FOLLOWS = [/^\tremote = [\w.-]+$/, /^\tmerge = refs\/heads\/[\w./+@-]+$/, /^\trebase = (?:true|false)$/];

/** git treats a carriage return before a line feed as part of the line end. */
const CONTINUED = /\\\r?$/;

/** In a longer file, everything counts. */
const MAX_LENGTH = 1_000_000;

/** Pushing a new branch must not ask for trust again, or people learn to approve without reading. */
export const withoutBranches = (text: string): string => {
  if (text.length > MAX_LENGTH) return text;
  const kept: string[] = [];
  /** The lines of a branch's section so far; skipped if another section or the end follows. */
  let branch: string[] = [];
  let continued = false;
  const lines = text.split("\n");
  for (const [at, line] of lines.entries()) {
    if (branch.length > 0 && FOLLOWS.some((form) => form.test(line))) {
      branch.push(line);
      continue;
    }
    const isEnd = line === "" && at === lines.length - 1;
    if (!isEnd && !line.startsWith("[")) for (const left of branch) kept.push(left);
    branch = !continued && SECTION.test(line) ? [line] : [];
    if (branch.length === 0) kept.push(line);
    continued = CONTINUED.test(line);
  }
  return kept.join("\n");
};
