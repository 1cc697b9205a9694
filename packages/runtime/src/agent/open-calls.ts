/** Which calls in the context have no result yet, and what is known about them?
 *  A call that had ended keeps its result, whether the process died or only the journal could not be written. Of all
 *  others only calls that change nothing run again; the rest are answered with what is known. This knowledge holds for
 *  the prefix under which it was gained and for no other, because a provider may use the same id again.
 *  Elsewhere: running a batch (dispatch.ts), what a journal says about calls (../journal). */

import { type ToolResultBlock, type ToolUseBlock, text } from "@prefork/wire";
import type { ProblemKind, Replayed } from "../journal/index.ts";
import type { Registry } from "../tools/index.ts";
import type { AgentGuard } from "./guard.ts";
import type { Lineage } from "./lineage.ts";

type Known = ReadonlyMap<string, ToolResultBlock>;

/** Calls that an earlier run of the session left without a result, and the results that are known. */
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

  constructor(line: Lineage, leftOpen: LeftOpen) {
    this.#line = line;
    this.#left = { ...leftOpen, under: line.prefix.hash };
  }

  /** A call has its result: it is in the journal, or the call only read and its result enters next. */
  ended(result: ToolResultBlock): void {
    const { hash } = this.#line.prefix;
    if (this.#endedUnder !== hash) this.#ended.clear();
    this.#endedUnder = hash;
    this.#ended.set(result.toolUseId, result);
  }

  /** Returns a result for each call that has none in the context. `answer` runs what may run. */
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
  // The line that recorded its start may be among the lost ones.
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
