/** N forks of one parent request, ready to send.
 *  Invariant: every member's body is the parent's up to the end of its last message, then the shared tail, then its own
 *  block; all members share the same memory.
 *  Elsewhere: how a family grows (family.ts), slicing a recording (recorded/), sending (send-family.ts). */

import { type InFlight, type LaunchDecision, modelFacts } from "./cost/index.ts";
import { InputError } from "./errors.ts";
import { type Addition, type FamilySizes, growLine, planFamily } from "./family.ts";
import { type ChildProtocol, directiveText, type SharedTail, shareTail, type TailOptions } from "./fork-messages.ts";
import { FrozenPrefix } from "./prefix/index.ts";
import { assemble, type Prepared } from "./prepare.ts";
import type { Protocol } from "./protocols/index.ts";
import {
  answerTextCalls,
  type RecordedAnswer,
  type RecordedParent,
  type Recording,
  readAnswer,
  readParent,
} from "./recorded/index.ts";
import { type Ttl, text } from "./request.ts";

export type FamilyOptions = Omit<TailOptions, "insideLastResult"> & {
  /** Children continue from the parent's last request and do not see its turn in flight. Siblings cannot confuse it
   *  with their own work, but they miss the parent's last words. The parent's own next request keeps the turn. Default:
   *  false. */
  readonly trim?: boolean;
  readonly protocol?: ChildProtocol; // default: standard
  /** Children will send no second request, so their own tails need no marker. Default: false. */
  readonly singleTurn?: boolean;
  /** The parent's entries have expired. Default: false. */
  readonly cold?: boolean;
  readonly ttl?: Ttl; // for new markers; default: 5m
  /** The size of the parent's last request as its provider counted it; the other sizes are estimated from it. */
  readonly parentTokens?: number;
  /** Also prepare the parent's own next request, with this note as its last block. */
  readonly parentNote?: string;
};

export type Family = {
  readonly members: readonly Prepared[];
  readonly parentNext?: Prepared;
  readonly sizes: FamilySizes;
  /** Whether to send all at once or the leader first, depending on the cost. */
  readonly launch: LaunchDecision;
};

/** What a family grows from: the parent's last request, as it was sent. */
export type ParentRequest = Pick<Prepared, "protocol" | "prefix" | "markers" | "closing" | "stream"> & {
  /** The provider also marks the end of each of these requests by itself. Default: false. */
  readonly implicit?: boolean;
  /** New user text would drop earlier thinking, and the cache with it. Default: what is known about the model. */
  readonly strips?: boolean;
};

export const forkFamily = (
  parent: ParentRequest,
  directives: readonly string[],
  options: FamilyOptions = {},
): Family => {
  if (directives.length === 0) throw new InputError("a family needs at least one directive");
  const {
    cold = false,
    ttl = "5m",
    singleTurn = false,
    trim = false,
    parentNote,
    parentTokens,
    protocol,
    ...turn
  } = options;
  const { strips = stripsThinking(parent.prefix), implicit = false } = parent;
  const kept = shareTail(parent.prefix, { ...turn, insideLastResult: strips });
  const tail = trim ? shareTail(parent.prefix) : kept;
  const { byteLength: bytes } = parent.prefix;
  const plan = planFamily({
    parent: {
      sent: parent.prefix,
      markers: parent.markers,
      measured: parentTokens ? { bytes, tokens: parentTokens } : undefined,
    },
    members: directives.map((directive) => ({ blocks: [text(directiveText(directive, protocol))], singleTurn })),
    ...{ tail, parentTail: kept, cold, implicit, inFlight: trim ? "trim" : "keep" },
    ttl: { members: ttl, parent: ttl },
    facts: modelFacts(parent.prefix.model),
    ...(parentNote === undefined ? {} : { parentNext: { blocks: [text(parentNote)] } }),
  });
  const requestOf = (from: SharedTail, line: number | "parent", additions: readonly Addition[]): Prepared => {
    const prefix = growLine(from.prefix, additions);
    return assemble({ ...parent, prefix, markers: plan.markers(line, prefix) });
  };
  return {
    members: plan.members.map((additions, place) => requestOf(tail, place, additions)),
    ...(parentNote === undefined ? {} : { parentNext: requestOf(kept, "parent", plan.parentNext) }),
    sizes: plan.sizes,
    launch: plan.decision,
  };
};

const stripsThinking = ({ model }: FrozenPrefix): boolean => modelFacts(model)?.earlierThinking === "last-turn";

// --- recordings ------------------------------------------------------------------------------------------------------

export type ForkRequestsOptions = Omit<FamilyOptions, "inFlight" | "others" | "trim"> & {
  /** The answer to the recorded request: a response body or its assistant message; in the Responses format, the
   *  response with its `output`. Not needed if the recorded list ends with it. */
  readonly answer?: Recording;
  readonly inFlight?: InFlight; // default: keep
  readonly betas?: readonly string[];
  /** The wire format and the endpoint of the recording. Default: recognised from the body. A Chat Completions body is
   *  taken to be OpenAI's if the model is OpenAI's, or an endpoint's that accepts the recording's kind of markers;
   *  otherwise the most careful assumptions apply: plain text, and an entry is readable only after its answer is
   *  complete. */
  readonly format?: Protocol | undefined;
};

/** N forks of any recorded request, for your own agent loop: Anthropic Messages, OpenAI Responses or Chat Completions.
 *  The notes say where the recording could not be used byte for byte. */
export const forkRequests = (
  parentRequest: Recording,
  directives: readonly string[],
  options: ForkRequestsOptions = {},
): Family & { readonly notes: readonly string[] } => {
  const { answer, inFlight = "keep", betas, format, ...rest } = options;
  const parent = readParent(parentRequest, { betas, format });
  const trim = inFlight === "trim";
  if (trim) checkTrim(parent);
  const turn = answer === undefined ? undefined : readAnswer(answer, parent);
  const others = answerTextCalls(parent, [...parent.textCalls, ...(turn?.textCalls ?? [])], rest);
  const family = forkFamily(parent, directives, {
    ttl: parent.ttl,
    ...rest,
    ...(turn ? { inFlight: turn.inFlight } : {}),
    others,
    trim,
  });
  return { ...family, notes: [...parent.notes, ...(turn?.notes ?? []), ...strippingNote(parent, turn)] };
};

/** Without a call to answer there is no result that could hold the directive. */
const strippingNote = ({ prefix, strips, thinks }: RecordedParent, turn: RecordedAnswer | undefined) => {
  if (!strips || !thinks || prefix.pending.length > 0 || (turn && hasCalls(turn))) return [];
  return [`${prefix.model} drops earlier thinking when the directive arrives, and the cache ends there`];
};

const hasCalls = ({ inFlight }: RecordedAnswer): boolean =>
  inFlight instanceof FrozenPrefix
    ? inFlight.pending.length > 0
    : inFlight.content.some(({ type }) => type === "tool_use");

const checkTrim = ({ prefix, strips, thinks, textCalls }: RecordedParent): void => {
  if (prefix.pending.length > 0 || textCalls.length > 0) {
    throw new InputError("cannot trim: the recorded messages already end with the in-flight turn");
  }
  if (strips && thinks) {
    throw new InputError(
      `cannot trim: ${prefix.model} drops earlier thinking when new user text arrives, so the fork would lose the cache from there; keep the in-flight turn`,
    );
  }
};
