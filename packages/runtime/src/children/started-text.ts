/** What only the parent is told of what its turn started: which task is which call.
 *  Invariant: stands in the parent's own last block and never in a result, so that children share all before it.
 *  Elsewhere: starting them (host.ts), how their ends are told (../tasks). */

import { escapeTags, noteText, oneLine } from "../context/index.ts";
import type { ForkPlan } from "../ports.ts";

type Starting = {
  readonly problems: ReadonlyMap<string, string>;
  readonly instead: ReadonlyMap<string, string>;
};

export const startedText = (plans: readonly ForkPlan[], { problems, instead }: Starting): string => {
  const lines = plans.map(({ task, label, agentType }) => {
    const problem = problems.get(task);
    const state = problem === undefined ? "async_launched" : `not started: ${oneLine(problem)}`;
    const reason = instead.get(task);
    const why = reason === undefined ? "" : `; no fork: ${oneLine(reason)}, so it knows only its prompt`;
    const kind = agentType === "fork" ? "" : `${agentType}, `;
    return escapeTags(`- ${task}: ${label} (${kind}${state}${why})`);
  });
  const words = [
    "You are the main agent. Your Agent calls were started in the background, in this order:",
    ...lines,
    "Each reports by a task notification; do not guess what it finds, and do not do its part yourself.",
  ];
  return noteText({ kind: "tasks", text: words.join("\n") });
};
