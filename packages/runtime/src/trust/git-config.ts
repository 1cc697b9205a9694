/** Which lines of a repository's configuration change every day and can run nothing?
 *  Invariant: a line is left out only if it is exactly what git writes when a branch starts to follow another; any other
 *  spelling, and anything near a continued line, counts. Nothing is interpreted.
 *  Elsewhere: hashing what is left (configuration.ts). */

const SECTION = /^\[branch "[\w./+@-]+"\]$/;
const FOLLOWS = [/^\tremote = [\w.-]+$/, /^\tmerge = refs\/heads\/[\w./+@-]+$/, /^\trebase = (?:true|false)$/];

/** Pushing a new branch must not ask for trust again, or people learn to say yes without reading. */
export const withoutBranches = (text: string): string => {
  const kept: string[] = [];
  let inBranch = false;
  let continued = false;
  for (const line of text.split("\n")) {
    const follows: boolean = inBranch && !continued && FOLLOWS.some((form) => form.test(line));
    inBranch = follows || (!continued && SECTION.test(line));
    continued = line.endsWith("\\");
    if (!inBranch) kept.push(line);
  }
  return kept.join("\n");
};
