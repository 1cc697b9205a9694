/** How is a program started that reads data of a stranger, so that it cannot take all memory?
 *  Invariant: the program gets its words as they are; it replaces the shell that sets the limits, so its process id is
 *  that of the started process. A limit that the system does not know is skipped.
 *  Elsewhere: limits of the programs of a pipe, which share one amount (../run/render-pipe.ts). */

/** Enough for every question that git is asked. A crafted object of a few kilobytes unpacks to gigabytes. */
export const QUESTION_KIBIBYTES = 524_288;

export const withMemoryLimit = (argv: readonly string[], kibibytes = QUESTION_KIBIBYTES): readonly string[] => {
  const limits = `ulimit -c 0 2>/dev/null; ulimit -d ${kibibytes} 2>/dev/null; exec "$@"`;
  return ["/bin/bash", "--noprofile", "--norc", "-c", limits, "bash", ...argv];
};
