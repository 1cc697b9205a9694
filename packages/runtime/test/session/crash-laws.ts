/** What must hold for a session that was killed and resumed, beside one that nobody disturbed.
 *  Invariant: each law gives what breaks it, in words, and nothing where it holds; whether a law was put to the test at
 *  all is for the caller to see (`casesOf`).
 *  Elsewhere: making such sessions (killed-session.ts). */

import { isDeepStrictEqual } from "node:util";
import type { RuntimeEvent } from "@prefork/runtime";
import type { SessionReading } from "@prefork/runtime/observe";
import type { Block, ToolResultBlock, ToolUseBlock } from "@prefork/wire";
import { readable, rewriteFactor, wasTaken } from "./as-sent.ts";
import type { Killed, Whole } from "./killed-session.ts";
import { asksForSummary, doneWith } from "./scripted-model.ts";
import { tasks } from "./tasks.ts";

type Law = (killed: Killed, whole: Whole) => readonly string[];

// --- nothing that was shown is lost --------------------------------------------------------------------------------------

type Fact = Readonly<Record<string, unknown>>;

const textOf = (content: readonly Block[]): string =>
  content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("\n");

const shownFacts = (shown: readonly RuntimeEvent[]): readonly Fact[] =>
  shown.flatMap((event): readonly Fact[] => {
    switch (event.type) {
      case "turn_ended":
        return [{ kind: "turn", turn: event.turn, stop: event.stop, usage: event.usage }];
      case "call_ended":
        return [{ kind: "call", callId: event.callId, text: event.text, failed: event.fault !== undefined }];
      case "text_entered":
        return [{ kind: "text", text: event.text }];
      case "exchange_ended":
        return [{ kind: "exchange", end: event.end }];
      default:
        return [];
    }
  });

const resultsIn = (content: readonly Block[]): readonly ToolResultBlock[] =>
  content.filter((block) => block.type === "tool_result");

/** A call that only reads has its message for a record. */
const answerOf = ({ toolUseId: callId, content, isError }: ToolResultBlock): Fact => ({
  ...{ kind: "call", callId, text: textOf(content), failed: isError === true },
});

const keptFacts = ({ reading }: SessionReading): readonly Fact[] =>
  reading.entries.flatMap(({ entry }): readonly Fact[] => {
    switch (entry.kind) {
      case "response":
        return entry.turn === 0 ? [] : [{ kind: "turn", turn: entry.turn, stop: entry.stop, usage: entry.usage }];
      case "call_ended":
        return [answerOf(entry.result)];
      case "message": {
        const { role, content } = entry.message;
        if (role !== "assistant") return resultsIn(content).map(answerOf);
        return [{ kind: "text", text: textOf(content.filter(({ type }) => type === "text")) }];
      }
      case "exchange_ended":
        return [{ kind: "exchange", end: entry.reason }];
      default:
        return [];
    }
  });

const nothingShownIsLost: Law = ({ first, second, atKill, atEnd }) =>
  [
    { shown: first.shown, kept: keptFacts(atKill), when: "when it was killed" },
    { shown: [...first.shown, ...second.shown], kept: keptFacts(atEnd), when: "at the end" },
  ].flatMap(({ shown, kept, when }) =>
    shownFacts(shown)
      .filter((fact) => !kept.some((one) => isDeepStrictEqual(one, fact)))
      .map((fact) => `${when} the journal lacked what was shown: ${JSON.stringify(fact).slice(0, 200)}`),
  );

const journalOnlyGrows: Law = ({ atKill, atEnd }) => {
  const [before, after] = [atKill.reading.entries, atEnd.reading.entries];
  const same = isDeepStrictEqual(
    after.slice(0, before.length).map(({ seq, entry }) => ({ seq, entry })),
    before.map(({ seq, entry }) => ({ seq, entry })),
  );
  const troubles = atEnd.replayed.problems.map(({ line, detail }) => `journal line ${line}: ${detail}`);
  return same ? troubles : ["entries that were there when it was killed are gone or changed", ...troubles];
};

// --- no effect twice -----------------------------------------------------------------------------------------------------

type Calls = {
  readonly started: ReadonlySet<string>;
  readonly ended: ReadonlyMap<string, ToolResultBlock>;
  readonly answered: ReadonlyMap<string, ToolResultBlock>;
  readonly made: readonly ToolUseBlock[];
};

const callsIn = ({ reading }: SessionReading): Calls => {
  const entries = reading.entries.map(({ entry }) => entry);
  const blocks = entries.flatMap((entry) => {
    if (entry.kind === "message") return entry.message.content;
    return entry.kind === "blocks" ? entry.blocks : [];
  });
  const results = blocks.filter((block) => block.type === "tool_result");
  return {
    started: new Set(entries.flatMap((entry) => (entry.kind === "call_started" ? [entry.callId] : []))),
    ended: new Map(entries.flatMap((entry) => (entry.kind === "call_ended" ? [[entry.callId, entry.result]] : []))),
    answered: new Map(results.map((result) => [result.toolUseId, result])),
    made: blocks.filter((block) => block.type === "tool_use"),
  };
};

const INTERRUPTED = /^Interrupted: .* effect is unknown/;
const NOT_BEGUN = /^Not run: /;

const noEffectTwice: Law = ({ atEnd, effects }) => {
  const { made, started, ended } = callsIn(atEnd);
  return made
    .filter(({ name, input }) => name === "Record" || input.includes("printf"))
    .flatMap(({ id }) => {
      const times = effects.filter((one) => one === id).length;
      const result = ended.get(id);
      const allowed = result ? [result.isError ? 0 : 1] : started.has(id) ? [0, 1] : [0];
      const status = result ? "ended" : started.has(id) ? "started" : "never begun";
      return allowed.includes(times) ? [] : [`call ${id}, ${status}, had its effect ${times} times`];
    });
};

// --- calls in flight -----------------------------------------------------------------------------------------------------

const READING_TOOLS: readonly string[] = ["Read", "Grep", "Glob", "Look"];

const onlyReads = ({ name, input }: ToolUseBlock): boolean =>
  READING_TOOLS.includes(name) || (name === "Bash" && /^\{"command":"(git|wc) /.test(input));

/** A file that keeps a long result is never written over: where the first life had made one, the second makes another,
 *  under the same name with a number. That name alone may differ. */
const asKept = (result: ToolResultBlock | undefined): string =>
  JSON.stringify(result)?.replace(/(\/outputs\/result-\w+)-\d+\.txt/g, "$1.txt") ?? "";

const inFlightIsAnswered: Law = ({ atKill, atEnd }, whole) => {
  const [now, undisturbed] = [callsIn(atEnd), callsIn(whole.session)];
  return atKill.replayed.openCalls.flatMap((open) => {
    const { call, status } = open;
    const result = now.answered.get(call.id);
    const what = `${call.name} ${call.id}, ${status} when it was killed,`;
    if (!result) return [`${what} was never answered`];
    const words = textOf(result.content.filter((block) => block.type === "text"));
    if (status === "ended" || onlyReads(call))
      return asKept(result) === asKept(undisturbed.answered.get(call.id))
        ? []
        : [`${what} was answered otherwise than without the kill: ${words.slice(0, 200)}`];
    const expected = status === "started" ? INTERRUPTED : NOT_BEGUN;
    return expected.test(words) && result.isError ? [] : [`${what} was answered with: ${words.slice(0, 200)}`];
  });
};

/** What a tool had learned is kept with its result: a file that was read need not be read again. */
const whatWasReadIsKnown: Law = ({ second }) =>
  second.shown.flatMap((event) =>
    event.type === "call_ended" && /was not read in this session|was changed since it was read/.test(event.text)
      ? [`${event.tool} ${event.callId} was refused: ${event.text}`]
      : [],
  );

// --- the same bytes, read from the cache ---------------------------------------------------------------------------------

const beginsWith = (bytes: Buffer, beginning: Buffer): boolean => bytes.subarray(0, beginning.length).equals(beginning);

const prefixOf = ({ replayed }: SessionReading): Buffer => Buffer.concat([...(replayed.prefix?.chunks() ?? [])]);

const sameBytes: Law = ({ atKill, requests, before }, whole) => {
  const kept = prefixOf(atKill);
  const next = requests[before];
  const undisturbed = [...whole.requests.map(({ bytes }) => bytes), prefixOf(whole.session)];
  return [
    ...(atKill.replayed.exact ? [] : ["the journal did not give the bytes that were sent"]),
    ...(kept.length > 0 ? [] : ["the journal held no prefix"]),
    ...(undisturbed.some((bytes) => beginsWith(bytes, kept)) ? [] : ["without the kill other bytes were sent"]),
    ...(next && beginsWith(next.bytes, kept)
      ? []
      : ["the first request after the kill does not begin with the journal"]),
  ];
};

/** Of a window of 29,000 tokens what is left with a quarter for the answer and an eighth for the summary set aside. */
const POINT = 18_125;
const BYTES_PER_TOKEN = 3;

/** A session that goes on says a few words more: with them it may pass the point that it had not passed without. Reckoned
 *  from what its provider had counted before the kill. */
const passesThePoint = ({ atKill, second }: Killed): boolean => {
  const { measured } = atKill.replayed;
  const summed = second.shown.find((event) => event.type === "compaction_ended");
  if (!measured || !summed) return false;
  return measured.tokens + Math.ceil((summed.bytesBefore - measured.bytes) / BYTES_PER_TOKEN) > POINT;
};

const sumsUpOnlyWhenDue: Law = (killed, whole) => {
  const { atKill, atEnd, requests, before } = killed;
  const kept = prefixOf(atKill);
  const next = requests[before];
  const isLast = !whole.requests.some(({ bytes, body }) => beginsWith(bytes, kept) && !asksForSummary(body));
  const epochs = atEnd.reading.entries.filter(({ entry }) => entry.kind === "epoch").length;
  return [
    ...(next && asksForSummary(next.body) && !isLast && !passesThePoint(killed)
      ? ["it was summed up after the kill, and there was room"]
      : []),
    ...(epochs === 2 ? [] : [`there were ${epochs} epochs instead of two`]),
  ];
};

const readsWhatIsCached: Law = ({ requests, head }) => [
  ...requests.flatMap((sent, at) => {
    const allowed = readable(sent, requests.slice(0, at), head);
    const { read, missWords } = sent.row;
    return !wasTaken(sent) || read === allowed
      ? []
      : [`request ${at + 1} read ${read} tokens instead of ${allowed}: ${missWords}`];
  }),
  ...(rewriteFactor(requests, head) <= 1.02 ? [] : [`re-write factor ${rewriteFactor(requests, head)}`]),
];

// --- and it goes on ------------------------------------------------------------------------------------------------------

const exchangesIn = ({ shown }: Killed["first"]): number =>
  shown.filter(({ type }) => type === "exchange_ended").length;

const finishes: Law = ({ first, second, lockedBy }, whole) => {
  // After its last exchange it gives the lock back by itself, which a kill may come too late for.
  const wasKilled = first.signal === "SIGKILL" && exchangesIn(first) < exchangesIn(whole.life);
  const ends = second.shown.flatMap((event) => (event.type === "exchange_ended" ? [event.end] : []));
  const last = second.shown.findLast((event) => event.type === "text_entered")?.text;
  return [
    ...(!wasKilled || lockedBy.includes(first.pid) ? [] : ["the dead process had no lock that could be taken over"]),
    ...(second.exitCode === 0 ? [] : [`the second process ended with ${second.exitCode ?? second.signal}`]),
    ...(ends.every((end) => end === "done") ? [] : [`exchanges ended with ${ends.join(", ")}`]),
    ...(last === doneWith(tasks.length) ? [] : [`its last words were ${JSON.stringify(last)}`]),
  ];
};

const LAWS: Readonly<Record<string, Law>> = {
  ...{ nothingShownIsLost, journalOnlyGrows, noEffectTwice, inFlightIsAnswered, whatWasReadIsKnown },
  ...{ sameBytes, sumsUpOnlyWhenDue, readsWhatIsCached, finishes },
};

/** What does not hold, with the moment of the kill. */
export const broken = (killed: Killed, whole: Whole): readonly string[] => {
  const { events, ms } = killed.moment;
  return Object.entries(LAWS).flatMap(([name, law]) =>
    law(killed, whole).map((words) => `killed ${ms} ms after event ${events}: ${name}: ${words}`),
  );
};

/** What the kill hit, so that a soak can show what it has put to the test. */
export const casesOf = ({ first, atKill, requests, before }: Killed): readonly string[] => {
  const { openCalls, unanswered } = atKill.replayed;
  const last = requests[before - 1];
  return [
    ...(first.signal === "SIGKILL" ? [] : ["not killed in time"]),
    ...(unanswered ? ["a request in flight"] : []),
    ...(last && asksForSummary(last.body) ? ["about a compaction"] : []),
    ...openCalls.map((open) => `${open.status}, ${onlyReads(open.call) ? "only reading" : "changing"}`),
  ];
};
