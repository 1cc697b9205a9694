/** How is a task done, call by call?
 *  Invariant: a generator yields the calls of one turn and receives their results. The same results always lead to the
 *  same next calls, so a request that contains them is enough to know what comes next. A change is tried at most twice.
 *  Elsewhere: finding the results in a request (replay.ts), summarizing them (results.ts). */

import { FORK_PLACEHOLDER_RESULT } from "@prefork/wire";
import type { Result } from "./conversation.ts";
import type { Call, Change, Look, Move } from "./moves.ts";
import { excerptOf, failure, isDenied, numberedLines, plural, type ResultSummary, summarizeResult } from "./results.ts";
import { nameOf, type Task } from "./tasks.ts";

/** The outcome of one call or change. */
export type Outcome = ResultSummary & {
  /** The tool and its arguments, for people. */
  readonly action: string;
  readonly changed: readonly string[];
};

export type Work<T = readonly Outcome[]> = Generator<readonly Call[], T, readonly Answered[]>;

/** A call that could not be made has a reason instead of a result. */
export type Answered = { readonly result: Result } | { readonly notMade: string };

/** `todoCall`: the to-do list while this task is in progress. */
export function* workOn(task: Task, todoCall: Call): Work {
  const outcomes: Outcome[] = [];
  for (const move of task.moves) outcomes.push(...(yield* runMove(move, todoCall)));
  return outcomes;
}

function* runMove(move: Move, todoCall: Call): Work {
  switch (move.kind) {
    case "look":
      return yield* lookAt(move.looks);
    case "change":
      return [yield* changeFile(move.path, move.change)];
    case "fork":
      return yield* fork(move);
    case "remember":
      return [yield* remember(move.items, todoCall)];
    case "unknown":
      return [toUnknownOutcome(move.text)];
  }
}

const toNotMadeOutcome = (did: string, reason: string): Outcome => ({
  ...{ action: did, ok: false, headline: `not done: ${reason}`, excerpt: [], files: [], changed: [] },
});

export const describeCall = ({ name, input }: Call): string => {
  const { command, pattern, path, glob, file_path: file, offset, limit } = input;
  if (typeof command === "string") return `${name} \`${command.replaceAll("\n", " ⏎ ")}\``;
  const lines = typeof offset === "number" && typeof limit === "number" ? ` from line ${offset}, at most ${limit}` : "";
  if (typeof file === "string") return `${name} ${file}${lines}`;
  const where = [path, glob].filter((place) => typeof place === "string");
  return `${name} \`${String(pattern)}\`${where.length > 0 ? ` in ${where.join(", ")}` : ""}`;
};

function* lookAt(looks: readonly Look[]): Work {
  const answers = yield looks.map(({ name, input }) => ({ name, input }));
  return looks.map((look, index) => {
    const answer = answers[index];
    const did = describeCall(look);
    if (answer === undefined || "notMade" in answer) return toNotMadeOutcome(did, answer?.notMade ?? "no answer");
    return { action: did, changed: [], ...summarizeResult(look, answer.result) };
  });
}

function* makeCall(call: Call): Work<Answered> {
  const [answer] = yield [call];
  return answer ?? { notMade: "no answer" };
}

const isFailed = (answer: Answered): boolean => "notMade" in answer || answer.result.isError;

const MAX_PAGES = 20;
/** A page with this many lines may have been cut off by the tool. */
const FULL_PAGE = 1_000;

/** Reads a file to its end, page by page. */
function* readToEnd(path: string): Work<FileReading> {
  const first = yield* makeCall({ name: "Read", input: { file_path: path } });
  if ("notMade" in first || first.result.isError) return { answer: first, lines: [] };
  const page = numberedLines(first.result.text);
  const lines = [...page.lines];
  let more = page.remark !== "" || page.lines.length >= FULL_PAGE;
  for (let turn = 0; more && turn < MAX_PAGES && lines.length > 0; turn += 1) {
    const next = yield* makeCall({ name: "Read", input: { file_path: path, offset: lines.length + 1 } });
    const found = "notMade" in next || next.result.isError ? [] : numberedLines(next.result.text).lines;
    lines.push(...found);
    more = found.length > 0;
  }
  return { answer: first, lines };
}

/** The shortest ending that occurs only once in the file: an edit appends after it. */
const uniqueEnd = (lines: readonly string[]): string | undefined => {
  const whole = lines.join("\n");
  for (let count = 1; count <= lines.length; count += 1) {
    const end = lines.slice(-count).join("\n");
    if (end !== "" && whole.indexOf(end) === whole.length - end.length) return end;
  }
  return undefined;
};

function* changeFile(path: string, change: Change): Work<Outcome> {
  const seen = yield* readFor(path, change);
  const call = callFor(path, change, seen);
  if ("refusal" in call) return { ...toNotMadeOutcome(`${change.kind} ${path}`, call.refusal), files: [path] };
  const did = `${call.name} ${path}`;
  const first = yield* makeCall(call);
  if ("notMade" in first) return toNotMadeOutcome(did, first.notMade);
  if (!first.result.isError) return toChangedOutcome({ did, path, result: first.result, tries: 1 });
  if (isDenied(first.result)) return { action: did, changed: [], ...failure(call.name, first.result), files: [path] };
  // Stale, or not as expected: read the file again and retry once with its current content.
  const retry = callFor(path, change, yield* readFor(path, change));
  if ("refusal" in retry) return { action: did, changed: [], ...failure(call.name, first.result), files: [path] };
  const second = yield* makeCall(retry);
  if ("notMade" in second) return toNotMadeOutcome(did, second.notMade);
  if (!second.result.isError) return toChangedOutcome({ did, path, result: second.result, tries: 2 });
  const secondFailure = failure(call.name, second.result);
  return {
    action: did,
    changed: [],
    ...secondFailure,
    headline: `${secondFailure.headline}, also after reading the file again`,
    files: [path],
  };
}

type FileReading = { readonly answer: Answered; readonly lines: readonly string[] };

/** A replacement names its location. A change to the end of a file, or to all of it, needs the file read to its end. */
function* readFor(path: string, change: Change): Work<FileReading> {
  if (change.kind !== "replace") return yield* readToEnd(path);
  return { answer: yield* makeCall({ name: "Read", input: { file_path: path } }), lines: [] };
}

/** Any other error leaves open whether the file exists, and an existing file must not be lost. */
const MISSING_FILE = /\b(?:not exist|no such|not found|not there|does ?n[o']t exist|nothing at|ENOENT|is no file)\b/i;

const callFor = (path: string, change: Change, seen: FileReading): Call | { readonly refusal: string } => {
  const isThere = !isFailed(seen.answer);
  const problem = "notMade" in seen.answer ? seen.answer.notMade : seen.answer.result.text;
  const isMissing = !isThere && MISSING_FILE.test(problem);
  if (change.kind === "replace") {
    if (!isThere) return { refusal: `${path} could not be read: ${oneLine(problem)}` };
    const all = change.all ? { replace_all: true } : {};
    return { name: "Edit", input: { file_path: path, old_string: change.old, new_string: change.new, ...all } };
  }
  if (!isThere && !isMissing) return { refusal: `${path} could not be read: ${oneLine(problem)}` };
  if (change.kind === "write") {
    if (isThere && !change.over)
      return { refusal: `${path} already exists; "overwrite ${path} with …" would replace it` };
    return { name: "Write", input: { file_path: path, content: change.text } };
  }
  const end = uniqueEnd(seen.lines);
  if (end === undefined) return { name: "Write", input: { file_path: path, content: change.text } };
  const added = `${end}\n${change.text.replace(/\n$/, "")}`;
  return { name: "Edit", input: { file_path: path, old_string: end, new_string: added } };
};

const oneLine = (text: string): string => excerptOf([text.replaceAll(/\s+/g, " ").trim()]).join("");

type CompletedChange = { readonly did: string; readonly path: string; readonly result: Result; readonly tries: number };

const toChangedOutcome = ({ did, path, result, tries }: CompletedChange): Outcome => ({
  action: did,
  ok: true,
  headline: tries === 1 ? "changed" : "changed on the second try",
  excerpt: excerptOf(
    result.text.split("\n").filter((line) => line.trim() !== ""),
    4,
  ),
  files: [path],
  changed: [path],
});

/** Includes more arguments than any one Agent tool takes; only those that the declared schema knows are sent. */
function* fork({ items, isolated }: Extract<Move, { kind: "fork" }>): Work {
  const calls = items.map((item) => ({
    name: "Agent",
    input: {
      ...{ description: nameOf(item) ?? oneLine(item).slice(0, 60).toWellFormed(), prompt: item, directive: item },
      ...(isolated ? { isolation: "worktree" } : {}),
    },
  }));
  const answers = yield calls;
  return items.map((item, index) => {
    const answer = answers[index];
    const did = `Agent "${oneLine(item)}"`;
    if (answer === undefined || "notMade" in answer) return toNotMadeOutcome(did, answer?.notMade ?? "no answer");
    if (answer.result.isError) return { action: did, changed: [], ...failure("Agent", answer.result) };
    // A fork that was started has nothing to say yet.
    const text = answer.result.text === FORK_PLACEHOLDER_RESULT ? "" : answer.result.text;
    const excerpt = excerptOf(text.split("\n").filter((line) => line.trim() !== ""));
    return { action: did, ok: true, headline: "started", excerpt, files: [], changed: [] };
  });
}

function* remember(items: readonly string[], todoCall: Call): Work<Outcome> {
  const did = "TodoWrite";
  const answer = yield* makeCall(todoCall);
  if ("notMade" in answer) return toNotMadeOutcome(did, answer.notMade);
  if (answer.result.isError) return { action: did, changed: [], ...failure(did, answer.result) };
  const headline = `${plural(items.length, "item")} on the to-do list`;
  return { action: did, ok: true, headline, excerpt: excerptOf(items), files: [], changed: [] };
}

const toUnknownOutcome = (text: string): Outcome => ({
  ...{ action: `"${oneLine(text)}"`, ok: false, headline: "not understood", excerpt: [], files: [], changed: [] },
});
