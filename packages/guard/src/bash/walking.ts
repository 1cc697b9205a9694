/** Which folders does a command walk through, reading what files hold?
 *  Invariant: what an option takes as its value is no starting point; where options cannot be read, the walk begins where
 *  the command is.
 *  Elsewhere: which commands walk, and where a walk may begin (below.ts). */

import { walkOf as walkIn } from "./below.ts";
import { readOptions } from "./options.ts";
import type { PlanWord } from "./plan.ts";
import { programs } from "./programs/index.ts";
import { Refusal } from "./refusal.ts";

/** `starts` is empty where it begins in the working directory. */
export const walkOf = (
  program: string,
  args: readonly PlanWord[],
): { readonly starts: readonly PlanWord[] } | undefined => {
  const walk = walkIn(program, args);
  const known = programs.get(program);
  if (!walk || !known || known.read) return walk;
  try {
    return { starts: readOptions(program, args, known.rule).operands.filter(({ sought }) => !sought) };
  } catch (error) {
    if (error instanceof Refusal) return { starts: [] };
    throw error;
  }
};
