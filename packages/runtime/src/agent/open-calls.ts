/** Which calls stand in the context without a result, and what is known of them?
 *  Invariant: a call that had ended keeps its result, whether the process died or only the journal could not be written;
 *  of all others only those that change nothing are run again, the rest is answered. What is known holds for the prefix
 *  that it was learned under and for no other: a provider may give the same id again.
 *  Elsewhere: running a batch (dispatch.ts), what a journal says of calls (../journal). */

import { type ToolResultBlock, type ToolUseBlock, text } from "@prefork/wire";
import type { ProblemKind, Replayed } from "../journal/index.ts";
import type { Registry } from "../tools/index.ts";
import type { AgentGuard } from "./guard.ts";
import type { Lineage } from "./lineage.ts";

type Known = ReadonlyMap<string, ToolResultBlock>;

/** What an earlier life of the session left without a result; results as far as they are known. */
export type LeftOpen = { readonly calls: readonly ToolUseBlock[]; readonly known: Known };

export type AnswerCalls = (calls: readonly ToolUseBlock[], known: Known) => Promise<readonly ToolResultBlock[]>;

const INTERRUPTED =
  "Interrupted: the session ended while this ran, so its effect is unknown. Look at the present state before you go on.";
const NOT_BEGUN = "Not run: the session ended before this began. Call it again if it is still needed.";
const LOST =
  "Unknown: the session's journal is damaged, so it cannot be told whether this ran. Look at the present state before you go on.";
const UNRECORDED =
  "Interrupted: what came of this could not be recorded, so its effect is unknown. Look at the present state before you go on.";

export class OpenCalls {
  readonly #line: Lineage;
  readonly #left: LeftOpen & { readonly under: string };
  readonly #ended = new Map<string, ToolResultBlock>();
  #endedUnder = "";

  constructor(line: Lineage, left: LeftOpen) {
    this.#line = line;
    this.#left = { ...left, under: line.prefix.hash };
  }

  /** A call has its result: the journal has it, or it only read and enters next. */
  ended(result: ToolResultBlock): void {
    const { hash } = this.#line.prefix;
    if (this.#endedUnder !== hash) this.#ended.clear();
    this.#endedUnder = hash;
    this.#ended.set(result.toolUseId, result);
  }

  /** A result for each call that has none in the context. `answer` runs what may be run. */
  async results(answer: AnswerCalls): Promise<readonly ToolResultBlock[]> {
    const { pending, hash } = this.#line.prefix;
    if (pending.length === 0) return [];
    const ended = this.#endedUnder === hash ? this.#ended : [];
    if (this.#left.under === hash) return answer(this.#left.calls, new Map([...this.#left.known, ...ended]));
    const known = new Map(ended);
    return pending.map((id) => known.get(id) ?? answered(id, UNRECORDED));
  }
}

export const readLeftOpen = (
  { openCalls, problems }: Replayed,
  { registry, guard }: { readonly registry: Registry; readonly guard: AgentGuard },
): LeftOpen => {
  const known = new Map<string, ToolResultBlock>();
  // The line that says that it began may be one of those that are gone.
  const notBegun = problems.some(({ kind }) => LOSSES.includes(kind)) ? LOST : NOT_BEGUN;
  for (const open of openCalls) {
    const { call } = open;
    if (open.status === "ended") known.set(call.id, open.result);
    else if (!guard.onlyReads(registry, call))
      known.set(call.id, answered(call.id, open.status === "started" ? INTERRUPTED : notBegun));
  }
  return { calls: openCalls.map(({ call }) => call), known };
};

const LOSSES: readonly ProblemKind[] = ["unreadable", "unknown", "lost"];

export const nothingLeftOpen: LeftOpen = { calls: [], known: new Map() };

const answered = (toolUseId: string, words: string): ToolResultBlock => ({
  type: "tool_result",
  toolUseId,
  content: [text(words)],
  isError: true,
});
