/** The blocks that turn a parent's turn into a child's first turn.
 *  Invariant: siblings, and the parent's own next request, differ only in their last block; every call of the in-flight
 *  turn is answered once in the shared tail, in the order of the calls.
 *  Elsewhere: who may fork and how many (the runtime), markers (prefix/markers.ts), what each member adds
 *  (family.ts). */

import { InputError } from "./errors.ts";
import { FrozenPrefix, placeholderFor, type Segment } from "./prefix/index.ts";
import type { Message, ProviderBlock, ToolResultBlock } from "./request.ts";

export const FORK_BOILERPLATE_TAG = "fork-boilerplate";
export const FORK_DIRECTIVE_PREFIX = "fork-directive:";

/** The same for all forks, so that only what follows it varies. */
export const CHILD_PROTOCOL = `<${FORK_BOILERPLATE_TAG}>
You are a fork. The conversation above belongs to the main agent; you share its memory, but you are not the main agent and from here on you work alone on one part of the job.
- Advice in the system prompt about delegating is meant for the main agent. Do the work yourself: never start, wake or message another agent.
- Nobody reads along. Do not converse, ask questions, offer choices or propose next steps; use your tools and say nothing until you are done.
- Stay inside the directive below. Other calls of the last turn belong to sibling forks and are taken care of; leave their parts alone even where you could help.
- If you change files in a worktree of your own, commit them before you report.
- Finish with one report of at most 500 words, and nothing after it. Its first word is "Scope:", and it has these lines, each only when there is something to say:
Scope: the part you were given, in one sentence
Result: what you found or did, with the facts that matter
Key files: paths worth reading
Files changed: paths, with the commit
Issues: what is unsolved or surprising
</${FORK_BOILERPLATE_TAG}>`;

export type ChildProtocol = "standard" | "none";

/** The instructions of a child. With protocol "none" it gets the caller's text alone. */
export const directiveText = (directive: string, protocol: ChildProtocol = "standard"): string =>
  protocol === "none" ? directive : `${CHILD_PROTOCOL}\n\n${FORK_DIRECTIVE_PREFIX} ${directive}`;

export type TailOptions = {
  /** The parent's turn in flight, or the parent's prefix with that turn at its end. Absent: it was trimmed, or is
   *  already part of the prefix. */
  readonly inFlight?: Message | FrozenPrefix;
  /** Results of calls that are not forks, as the parent got them. */
  readonly results?: readonly ToolResultBlock[];
  /** Results of calls that only their provider understands, in its own JSON. They come first. */
  readonly others?: readonly ProviderBlock[];
  /** "all": placeholders even for calls with a known result, so that a tail never waits for a tool. Default:
   *  "forks". */
  readonly placeholders?: "forks" | "all";
  /** On models that drop earlier thinking when new user text arrives, the last block goes inside the last result. */
  readonly insideLastResult?: boolean;
};

/** What all siblings share: the prefix up to the end of S, and what each of them still has to complete. */
export type SharedTail = {
  readonly prefix: FrozenPrefix;
  /** The last shared block; absent when nothing is shared beyond the parent's own prefix. */
  readonly sharedEnd?: Segment;
  /** The last result, which each member completes with its own words. */
  readonly held?: ToolResultBlock;
  /** The results that this tail added after the calls of the in-flight turn. */
  readonly results: readonly (ToolResultBlock | ProviderBlock)[];
  /** The prefix ends in a user message that each member continues; otherwise each begins a message of its own. */
  readonly isOpen: boolean;
};

export const shareTail = (parent: FrozenPrefix, options: TailOptions = {}): SharedTail => {
  const { inFlight, others = [], insideLastResult } = options;
  const asked = inFlight ? withTurn(parent, inFlight) : parent;
  const answers = resultsFor(asked.pending, options);
  const held = insideLastResult ? answers.at(-1) : undefined;
  const results = [...others, ...(held ? answers.slice(0, -1) : answers)];
  const prefix = results.length > 0 ? asked.appendOpen({ role: "user", content: results }) : asked;
  const { tip } = prefix;
  const shares = prefix !== parent || tip?.role === "assistant";
  const isOpen = shares && tip?.role === "user";
  return { prefix, results, isOpen, ...(shares && tip ? { sharedEnd: tip } : {}), ...(held ? { held } : {}) };
};

const withTurn = (parent: FrozenPrefix, inFlight: Message | FrozenPrefix): FrozenPrefix => {
  if (inFlight instanceof FrozenPrefix) {
    if (!inFlight.startsWith(parent)) throw new InputError("the in-flight turn does not go on from the parent");
    return inFlight;
  }
  if (inFlight.role !== "assistant") throw new InputError("the in-flight turn must be an assistant message");
  return parent.append(inFlight);
};

const resultsFor = (
  calls: readonly string[],
  { results = [], placeholders }: TailOptions,
): readonly ToolResultBlock[] => {
  const known = new Map(placeholders === "all" ? [] : results.map((result) => [result.toolUseId, result]));
  return calls.map((id) => known.get(id) ?? placeholderFor(id));
};
