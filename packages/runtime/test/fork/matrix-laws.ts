/** What must hold in a family of the fork matrix: its bytes, its reads and its bill.
 *  Invariant: bytes are compared as they were sent; markers are left out only where a family may change them: where the
 *  parent had more than two, and where a cold family buys another lifetime than its parent. Reads are exact: the
 *  simulator counts them so.
 *  Elsewhere: what was sent (matrix-family.ts), which cells there are (matrix-cells.ts). */

import { contentTokens } from "@prefork/simulator";
import { forkPlans, type JsonObject, type LaunchPlan, modelFacts } from "@prefork/wire";
import type { Cell, Kind } from "./matrix-cells.ts";
import type { SeenFamily, Sent } from "./matrix-family.ts";
import { BEGIN, SUMMARY } from "./matrix-model.ts";

/** What does not hold, in words; empty where all does. */
export const brokenLaws = (cell: Cell, seen: SeenFamily): readonly string[] => {
  if (isRefused(cell)) return brokenRefusal(cell, seen);
  const course = brokenCourse(cell, seen);
  if (seen.firsts.length !== cell.forks) return course; // then there is nothing to compare
  return [...course, ...brokenBytes(cell, seen), ...brokenReads(cell, seen), ...brokenBill(cell, seen)];
};

/** Without its last turn such a parent ends in results, and a directive after them would strip its thinking. */
export const isRefused = ({ kind, tail }: Cell): boolean => kind === "a thinking-strip model" && tail === "trim";

const differs = (what: string, found: unknown, expected: unknown): readonly string[] => {
  const [is, should] = [JSON.stringify(found), JSON.stringify(expected)];
  return is === should ? [] : [`${what}: ${is}, not ${should}`];
};

// --- what happened ---------------------------------------------------------------------------------------------------

const brokenCourse = (
  { forks, entry, turns }: Cell,
  { end, tasks, firsts, later, events }: SeenFamily,
): readonly string[] => {
  const ended = tasks.map(({ state }) => (state.kind === "ended" ? state.end : state.kind));
  const missed = events.flatMap((event) => (event.type === "fork_cache_missed" ? [[event.level, event.cause]] : []));
  const foreseen = entry === "cold" ? [["info", "the parent's entry had expired, and this fork wrote it again"]] : [];
  return [
    ...differs("the exchange ended", end, "done"),
    ...differs("forks ended", [...new Set(ended)], ["reported"]),
    ...differs("tasks", tasks.length, forks),
    ...differs("first requests", firsts.length, forks),
    ...differs("later requests", later.length, (turns - 1) * forks),
    ...differs("misses told", missed, foreseen),
  ];
};

/** Is the parent what its kind says? Otherwise all that follows would hold for another one. */
export const brokenStory = ({ kind, forks, tail }: Cell, { parentLast, firsts }: SeenFamily): readonly string[] => {
  const parent = bytesOf(parentLast);
  const count = (part: string): number => parent.split(part).length - 1;
  const most = Math.max(...parentLast.json.messages.map(({ content }) => content.length));
  const given = firsts[0]?.json.messages.at(-1)?.content.length ?? 0;
  const told: Readonly<Record<Kind, boolean>> = {
    "one tool call": count('{"type":"tool_use"') === 1,
    "mixed tools": tail === "trim" || given === forks + 4,
    "thinking with signatures": count('"signature":"') === 1,
    images: count('{"type":"image"') === 2,
    "60 blocks in one turn": most >= 60 && (tail === "trim" || given === 61),
    "replaced tool results": parent.includes("14999") && !parent.includes("7500"),
    "after compaction": parent.includes(SUMMARY),
    "after resume": parent.includes(BEGIN) && parentLast.json.messages.length === 3,
    "a thinking-strip model": count('"signature":"') === 1,
  };
  return told[kind] ? [] : [`this is no parent with ${kind}`];
};

/** Every fork has failed for this reason, the parent was told, nothing of a child was sent, and all else went on. */
const brokenRefusal = (
  { forks, entry }: Cell,
  { end, tasks, firsts, later, parentNext, parentLast }: SeenFamily,
): readonly string[] => {
  const reason = /^Not started: cannot trim: \S+ drops earlier thinking when new user text arrives/;
  const said = wordsIn(parentNext);
  return [
    ...differs("the exchange ended", end, "done"),
    ...differs(
      "states",
      [...new Set(tasks.map(({ state }) => JSON.stringify(state)))],
      ['{"kind":"ended","end":"failed"}'],
    ),
    ...differs("tasks", tasks.length, forks),
    ...tasks.flatMap(({ id, result }) => (reason.test(result?.text ?? "") ? [] : [`${id} says ${result?.text}`])),
    ...tasks.flatMap(({ id }) =>
      new RegExp(`- ${id}: .*not started: cannot trim`).test(said) ? [] : [`${id} is not told of`],
    ),
    ...differs("requests of children", firsts.length + later.length, 0),
    ...differs(
      "the parent's next request reads",
      parentNext.row.read,
      entry === "cold" ? 0 : parentLast.row.promptTokens,
    ),
  ];
};

const wordsIn = ({ json }: Sent): string => JSON.stringify(json.messages.at(-1)?.content).replaceAll("\\n", "\n");

// --- bytes -----------------------------------------------------------------------------------------------------------

const MARKER = /,"cache_control":\{[^}]*\}/g;
const AFTER_MESSAGES = '],"max_tokens":';

/** Everything up to the end of the last message. What follows stands in no key. */
const sentMessages = (body: string): string => body.slice(0, body.lastIndexOf(AFTER_MESSAGES));
const CLOSES_MESSAGE = "]}";

/** Letters are bytes here, whatever they mean. */
const bytesOf = ({ body }: Sent): string => body.toString("latin1");
const unmarked = (body: string): string => body.replaceAll(MARKER, "");
const markersIn = (body: string): readonly string[] => body.match(MARKER) ?? [];

/** Where the last block of the last message begins. Quotes inside a text are escaped, so nothing in it looks like this. */
const lastBlockIn = (sent: Sent): number =>
  bytesOf(sent).lastIndexOf(`{"type":"${sent.json.messages.at(-1)?.content.at(-1)?.type}"`);

const brokenBytes = (cell: Cell, { parentLast, parentNext, firsts }: SeenFamily): readonly string[] => {
  const parent = bytesOf(parentLast);
  const isRemarked = markersIn(parent).length > 2 || (cell.entry === "cold" && cell.ttl === "1h");
  const shown = isRemarked ? unmarked : (body: string) => body;
  const grows = shown(sentMessages(parent));
  // Without the turn under way the parent's last message is the user's, and a child goes on inside it.
  const begins = cell.tail === "trim" ? grows.slice(0, -CLOSES_MESSAGE.length) : grows;
  const bodies = firsts.map(bytesOf);
  const [first = ""] = bodies;
  const ends = firsts.map(lastBlockIn);
  const shared = first.slice(0, ends[0]);
  const next = bytesOf(parentNext);
  return [
    ...bodies.flatMap((body, at) => [
      ...differsAt(`child ${at} begins with its parent's last request`, shown(body), begins),
      ...differsAt(`child ${at} is its siblings' up to the last block`, body, shared),
      ...differs(`last block of child ${at} begins at`, ends[at], shared.length),
      ...differs(`child ${at} closes as its siblings`, closingOf(body), closingOf(first)),
      ...(markersIn(body).length > 4 ? [`child ${at} has ${markersIn(body).length} markers`] : []),
    ]),
    ...differs("children have words of their own", new Set(bodies).size, firsts.length),
    // The parent keeps what it paid for; what it and its children share it spells alike.
    ...differsAt("the parent goes on from its last request", unmarked(next), unmarked(sentMessages(parent))),
    ...(sharesTail(cell)
      ? differsAt("the parent's next request begins with what all share", unmarked(next), unmarked(shared))
      : []),
  ];
};

const closingOf = (body: string): string => body.slice(body.lastIndexOf(AFTER_MESSAGES));

const differsAt = (what: string, body: string, start: string): readonly string[] => {
  if (Buffer.compare(Buffer.from(body.slice(0, start.length), "latin1"), Buffer.from(start, "latin1")) === 0) return [];
  let at = 0;
  while (body[at] === start[at]) at += 1;
  return [
    `not true that ${what}: differs at byte ${at}: ${body.slice(at - 60, at + 40)} / ${start.slice(at - 60, at + 40)}`,
  ];
};

// --- reads -----------------------------------------------------------------------------------------------------------

/** Does the parent go on with the same tail as its children? Not where they were given constants for real results. */
export const sharesTail = ({ tail, kind }: Cell): boolean =>
  tail === "keep" ||
  (tail === "placeholders all" &&
    kind !== "mixed tools" &&
    kind !== "60 blocks in one turn" &&
    kind !== "replaced tool results");

const tokensOf = (block: JsonObject): number => {
  const parts = Array.isArray(block.content) ? (block.content as readonly JsonObject[]) : [block];
  const called = block.type === "tool_use" ? JSON.stringify(block.input) : "";
  const text = called + parts.map((part) => part.text ?? part.thinking ?? "").join("");
  const images = parts.filter(({ type }) => type === "image").length;
  return contentTokens({ kind: String(block.type), text, images, documents: 0 });
};

/** As the simulator counts them. */
export const tokensIn = (messages: Sent["json"]["messages"]): number =>
  messages.flatMap(({ content }) => content).reduce((sum, block) => sum + tokensOf(block), 0);

type Sizes = {
  readonly prefix: number; // P
  readonly tail: number; // S, of the children
  readonly parentTail: number; // S, of the parent
  readonly directives: readonly number[]; // D
  readonly trailing: number; // what only the parent is told
};

/** As the provider counted them. */
const sizesOf = ({ parentLast, parentNext, firsts }: SeenFamily, cell: Cell): Sizes => {
  const prefix = parentLast.row.promptTokens;
  const directives = firsts.map(({ json }) => tokensOf(json.messages.at(-1)?.content.at(-1) ?? {}));
  const tail = (firsts[0]?.row.promptTokens ?? 0) - prefix - (directives[0] ?? 0);
  const trailing = tokensOf(parentNext.json.messages.at(-1)?.content.at(-1) ?? {});
  const parentTail = sharesTail(cell) ? tail : parentNext.row.promptTokens - prefix - trailing;
  return { prefix, tail, parentTail, directives, trailing };
};

const isAtOnce = ({ events }: SeenFamily): boolean =>
  events.some((event) => event.type === "family_launched" && event.reason.startsWith("at once"));

const brokenReads = (cell: Cell, seen: SeenFamily): readonly string[] => {
  const { firsts, parentNext, later } = seen;
  const sizes = sizesOf(seen, cell);
  const { prefix, tail, directives, parentTail, trailing } = sizes;
  const leader = cell.entry === "cold" ? 0 : prefix;
  const followers = firsts.slice(1).map(() => prefix + tail);
  const reads = firsts.map(({ row }) => row.read);
  const prompts = firsts.map(({ row }) => row.promptTokens);
  const next = prefix + (sharesTail(cell) ? tail : 0);
  // All at once is for where it costs hardly more: then nobody waits for the tail to be written.
  const isMeantAtOnce = cell.entry === "warm" && (cell.tail === "trim" || cell.tokens > 50_000);
  const short = [...firsts, parentNext].filter(({ row }) => row.read < prefix);
  return [
    ...(prefix < cell.tokens ? [`the parent has ${prefix} tokens only`] : []),
    ...(cell.tail === "trim" ? differs("shared tail without the turn under way", tail, 0) : []),
    ...differs(
      "prompts of children",
      prompts,
      directives.map((directive) => prefix + tail + directive),
    ),
    ...differs("the parent's next prompt", parentNext.row.promptTokens, prefix + parentTail + trailing),
    ...differs("launched at once", isAtOnce(seen), isMeantAtOnce),
    ...(isMeantAtOnce
      ? differs(
          "read less than the parent wrote",
          short.map(({ row }) => row.read),
          [],
        )
      : [
          ...differs("reads of children, leader first", reads, [leader, ...followers]),
          ...differs("read of the parent's next request", parentNext.row.read, next),
          ...differs("sent beside the unanswered leader", seen.besideLeader, 0),
        ]),
    // A child's second turn reads all of its first.
    ...later.flatMap(({ row }) => (prompts.includes(row.read) ? [] : [`a child's second request read ${row.read}`])),
  ];
};

// --- the bill --------------------------------------------------------------------------------------------------------

const MOST = 1.01;

/** Held against the cheapest plan of the same blocks. */
const brokenBill = (cell: Cell, seen: SeenFamily): readonly string[] => {
  const { prefix, tail, parentTail, directives, trailing } = sizesOf(seen, cell);
  const facts = modelFacts(seen.model);
  const directive = directives.reduce((sum, tokens) => sum + tokens, 0) / directives.length;
  const fanOut = {
    ...{ prefix, directive, forks: cell.forks, warm: cell.entry !== "cold", singleTurn: cell.turns === 1, facts },
    parentTtl: cell.ttl,
    parentNext: { trailing },
  };
  const kept = forkPlans({ ...fanOut, tail });
  const trimmed = trimOf(forkPlans({ ...fanOut, tail: parentTail }).plans);
  const cheapest = (): number => {
    if (cell.tail === "trim") return trimmed?.total.units ?? 0;
    if (sharesTail(cell)) return kept.cheapestKept.total.units;
    // Nobody writes the parent's own results for it, as where its forks have none.
    const children = kept.plans.filter(
      ({ inFlight, applies, id }) => inFlight === "keep" && applies && id !== "no-cache",
    );
    return Math.min(...children.map((plan) => plan.children.units)) + (trimmed?.parentNext.units ?? 0);
  };
  // A request without a bill makes the sum no number, and then nothing holds.
  const bills = [...seen.firsts, seen.parentNext].map(({ row }) => row.billed.inputUnits ?? Number.NaN);
  const paid = bills.reduce((sum, units) => sum + units, 0);
  return paid <= cheapest() * MOST ? [] : [`paid ${paid} uncached tokens, and ${cheapest()} would do`];
};

const trimOf = (plans: readonly LaunchPlan[]): LaunchPlan | undefined =>
  plans.find(({ inFlight, applies }) => inFlight === "trim" && applies);
