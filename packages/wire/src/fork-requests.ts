/** N forks of one parent request, ready to send.
 *  Invariant: every member's body is the parent's up to the end of its last message, then the shared tail, then its own
 *  block; all members share the same memory.
 *  Elsewhere: the tail's blocks (fork-messages.ts), slicing a recording (recorded.ts), sending (family.ts). */

import type { InFlight } from "./economics/index.ts";
import { InputError } from "./errors.ts";
import {
  branch,
  type ChildProtocol,
  directiveText,
  type SharedTail,
  shareTail,
  type TailOptions,
} from "./fork-messages.ts";
import { isArray, isObject, itemsOf, membersOf, parseJson, skipSpace } from "./json.ts";
import { type FamilyMarkerOptions, familyMarkers } from "./markers.ts";
import { modelFacts } from "./models.ts";
import type { FrozenPrefix } from "./prefix.ts";
import { assemble, type Prepared } from "./prepare.ts";
import { anthropic, readBlock } from "./protocols/index.ts";
import { checkBlocks, type RecordedRequest, type Recording, readRecorded } from "./recorded.ts";
import type { Block, Json, JsonObject, Message, RawJson, Ttl } from "./request.ts";

export type FamilyOptions = Omit<TailOptions, "insideLastResult"> & {
  /** Children go on from the parent's last request and do not see its in-flight turn: nothing for siblings to confuse,
   *  but they miss their parent's last words. The parent's own next request keeps the turn. Default: false. */
  readonly trim?: boolean;
  readonly protocol?: ChildProtocol; // default: standard
  /** Children will send no second request: their own tails are not worth a marker. Default: false. */
  readonly singleTurn?: boolean;
  /** The parent's entries have expired. Default: false. */
  readonly cold?: boolean;
  readonly ttl?: Ttl; // for new markers; default: 5m
  /** How long the parent's last request was, as its provider counted it: the other lengths are estimated from it. */
  readonly parentTokens?: number;
  /** Also prepare the parent's own next request, with this note as its last block. */
  readonly parentNote?: string;
};

export type Family = {
  readonly members: readonly Prepared[];
  readonly parentNext?: Prepared;
  /** Tokens of what is inherited (P), shared (S), each member's own (D, on average) and the parent's note. */
  readonly estimate: {
    readonly prefix: number;
    readonly tail: number;
    readonly directive: number;
    readonly trailing: number;
  };
  readonly trim: boolean;
  readonly cold: boolean;
};

/** What a family grows from: the parent's last request, as it was sent. */
export type ParentRequest = Pick<Prepared, "protocol" | "prefix" | "markers" | "closing" | "stream">;

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
  const kept = shareTail(parent.prefix, { ...turn, insideLastResult: stripsThinking(parent.prefix) });
  const shared = trim ? shareTail(parent.prefix) : kept;
  const line = (tail: SharedTail, words: string, place: Pick<FamilyMarkerOptions, "line" | "tail">): Prepared => {
    const prefix = branch(tail, words);
    const end = tail.sharedEnd ? { sharedEnd: tail.sharedEnd } : {};
    const markers = familyMarkers(prefix, parent.markers, { ttl, cold, ...place, ...end });
    return assemble({ ...parent, prefix, markers });
  };
  const members = directives.map((directive) =>
    line(shared, directiveText(directive, protocol), { line: "fork", tail: !singleTurn }),
  );
  const parentNext = parentNote === undefined ? undefined : line(kept, parentNote, { line: "parent", tail: true });
  const perToken = parentTokens ? parent.prefix.byteLength / parentTokens : BYTES_PER_TOKEN;
  const tokens = (grown: FrozenPrefix, from: FrozenPrefix): number =>
    Math.round((grown.byteLength - from.byteLength) / perToken);
  const own = members.reduce((sum, { prefix }) => sum + tokens(prefix, shared.prefix), 0);
  return {
    members,
    ...(parentNext ? { parentNext } : {}),
    estimate: {
      prefix: parentTokens ?? Math.round(parent.prefix.byteLength / perToken),
      tail: tokens(kept.prefix, parent.prefix),
      directive: own / members.length,
      trailing: parentNext ? tokens(parentNext.prefix, kept.prefix) : 0,
    },
    trim,
    cold,
  };
};

/** Where no provider has counted yet: close enough to weigh one plan against another. */
const BYTES_PER_TOKEN = 4;

const stripsThinking = ({ model }: FrozenPrefix): boolean => modelFacts(model)?.earlierThinking === "last-turn";

// --- recordings ------------------------------------------------------------------------------------------------------

export type ForkOptions = Omit<FamilyOptions, "inFlight" | "trim"> & {
  /** The answer to the recorded request: a response body, or an assistant message. Not needed when the recorded
   *  messages end with it. */
  readonly answer?: Recording;
  readonly inFlight?: InFlight; // default: keep
  readonly betas?: readonly string[];
};

/** N forks of any recorded Anthropic request, for people with a loop of their own. The notes say where the recording
 *  could not be taken letter for letter. */
export const forkRequests = (
  parentRequest: Recording,
  directives: readonly string[],
  options: ForkOptions = {},
): Family & { readonly notes: readonly string[] } => {
  const { answer, inFlight = "keep", betas, ...rest } = options;
  const recorded = readRecorded(parentRequest, betas);
  const trim = inFlight === "trim";
  if (trim) checkTrim(recorded);
  const turn: Pick<FamilyOptions, "inFlight"> = answer === undefined ? {} : { inFlight: readAnswer(answer) };
  const parent = { protocol: anthropic, ...recorded, stream: recorded.value.stream === true };
  const family = forkFamily(parent, directives, { ...rest, ...turn, trim });
  return { ...family, notes: [...recorded.notes, ...strippingNote(recorded, turn.inFlight)] };
};

/** With no call to answer there is no result to put the directive into. */
const strippingNote = ({ prefix, value }: RecordedRequest, inFlight: Message | undefined): readonly string[] => {
  const calls = inFlight?.content.some(({ type }) => type === "tool_use") || prefix.pending.length > 0;
  if (calls || !stripsThinking(prefix) || !thinksInLoop(value)) return [];
  return [`${prefix.model} drops earlier thinking when the directive arrives, and the cache ends there`];
};

const checkTrim = ({ prefix, value }: RecordedRequest): void => {
  if (prefix.pending.length > 0) {
    throw new InputError("cannot trim: the recorded messages already end with the in-flight turn");
  }
  if (stripsThinking(prefix) && thinksInLoop(value)) {
    throw new InputError(
      `cannot trim: ${prefix.model} drops earlier thinking when new user text arrives, so the fork would lose the cache from there; keep the in-flight turn`,
    );
  }
};

/** The blocks of the answer as their provider spelled them. */
const readAnswer = (answer: Recording): Message => {
  const given = typeof answer === "string" || answer instanceof Uint8Array ? answer : JSON.stringify(answer);
  const bytes = Buffer.from(given);
  const value = parseJson(bytes.toString("utf8"), "the parent's answer");
  if (!isObject(value) || value.role !== "assistant" || !isArray(value.content) || value.content.length === 0) {
    throw new InputError("the parent's answer must be an assistant message with a `content` array");
  }
  checkBlocks(value.content, "the parent's answer: content");
  const content = membersOf(bytes, skipSpace(bytes, 0)).find(({ key }) => key === "content");
  const spans = content ? itemsOf(bytes, content.start) : [];
  return { role: "assistant", content: spans.map(({ start, end }) => verbatim(bytes.toString("utf8", start, end))) };
};

const verbatim = (raw: RawJson): Block => {
  const block = readBlock(raw);
  return block.type === "provider" ? block : { ...block, raw };
};

/** True while the parent is between a call and its last result, with thinking that new user text would strip. */
const thinksInLoop = ({ messages }: JsonObject): boolean => {
  const turns = isArray(messages) ? messages : [];
  const since = turns.findLastIndex((turn) => isObject(turn) && turn.role === "user" && !onlyResults(turn.content));
  return turns.slice(since + 1).some((turn) => isObject(turn) && blocksOf(turn.content).some(isThinking));
};

const blocksOf = (content: Json | undefined): readonly Json[] => (isArray(content) ? content : []);
const onlyResults = (content: Json | undefined): boolean =>
  isArray(content) && content.every((block) => isObject(block) && block.type === "tool_result");
const isThinking = (block: Json): boolean =>
  isObject(block) && (block.type === "thinking" || block.type === "redacted_thinking");
