/** Which lines of a repository's configuration change every day and can run nothing?
 *  Invariant: a section is left out only as a whole, and only if it is exactly what git writes when a branch starts to
 *  follow another; any other spelling, and anything near a continued line, counts. So no line is ever read as part of
 *  another section than git's. Nothing is interpreted.
 *  Elsewhere: hashing what is left (configuration.ts). */

const SECTION = /^\[branch "[\w./+@-]+"\]$/;
const FOLLOWS = [/^\tremote = [\w.-]+$/, /^\tmerge = refs\/heads\/[\w./+@-]+$/, /^\trebase = (?:true|false)$/];

/** git takes a carriage return before the end of a line for a part of that end. */
const CONTINUED = /\\\r?$/;

/** Everything in a longer file counts. */
const MAX_LENGTH = 1_000_000;

/** Pushing a new branch must not ask for trust again, or people learn to say yes without reading. */
export const withoutBranches = (text: string): string => {
  if (text.length > MAX_LENGTH) return text;
  const kept: string[] = [];
  /** The lines of a branch's section so far: left out if another section follows, or the end. */
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
