/** How is a task done, call by call?
 *  Invariant: a generator yields the calls of one turn and is given their results; with the same results it goes the same
 *  way, so a request that holds them is enough to know what comes next. A change is tried twice at most.
 *  Elsewhere: finding the results in a request (replay.ts), telling them (results.ts). */

import type { Result } from "./conversation.ts";
import type { Call, Change, Look, Move } from "./moves.ts";
import { excerptOf, failure, isDenied, numberedLines, plural, type ResultSummary, summarizeResult } from "./results.ts";
import { nameOf, type Task } from "./tasks.ts";

/** What became of one call or change. */
export type Outcome = ResultSummary & {
  /** The tool and what it was asked. */
  readonly did: string;
  readonly changed: readonly string[];
};

export type Work<T = readonly Outcome[]> = Generator<readonly Call[], T, readonly Answered[]>;

/** A call that could not be made has a reason in place of a result. */
export type Answered = { readonly result: Result } | { readonly notMade: string };

/** `todoCall`: the to-do list as it stands while this task is under way. */
export function* workOn(task: Task, todoCall: Call): Work {
  const outcomes: Outcome[] = [];
  for (const move of task.moves) outcomes.push(...(yield* make(move, todoCall)));
  return outcomes;
}

function* make(move: Move, todoCall: Call): Work {
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
      return [notUnderstood(move.text)];
  }
}

const notMade = (did: string, reason: string): Outcome => ({
  ...{ did, ok: false, headline: `not done: ${reason}`, excerpt: [], files: [], changed: [] },
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
    if (answer === undefined || "notMade" in answer) return notMade(did, answer?.notMade ?? "no answer");
    return { did, changed: [], ...summarizeResult(look, answer.result) };
  });
}

function* one(call: Call): Work<Answered> {
  const [answer] = yield [call];
  return answer ?? { notMade: "no answer" };
}

const failed = (answer: Answered): boolean => "notMade" in answer || answer.result.isError;

const PAGES = 20;
/** So many lines may be all that a tool shows at once. */
const FULL_PAGE = 1_000;

/** The lines of a file up to its end, page by page. */
function* readToEnd(path: string): Work<Seen> {
  const first = yield* one({ name: "Read", input: { file_path: path } });
  if ("notMade" in first || first.result.isError) return { answer: first, lines: [] };
  const page = numberedLines(first.result.text);
  const lines = [...page.lines];
  let more = page.remark !== "" || page.lines.length >= FULL_PAGE;
  for (let turn = 0; more && turn < PAGES && lines.length > 0; turn += 1) {
    const next = yield* one({ name: "Read", input: { file_path: path, offset: lines.length + 1 } });
    const found = "notMade" in next || next.result.isError ? [] : numberedLines(next.result.text).lines;
    lines.push(...found);
    more = found.length > 0;
  }
  return { answer: first, lines };
}

/** The shortest end of a file that stands in it once: what an addition is attached to. */
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
  if ("refusal" in call) return { ...notMade(`${change.kind} ${path}`, call.refusal), files: [path] };
  const did = `${call.name} ${path}`;
  const first = yield* one(call);
  if ("notMade" in first) return notMade(did, first.notMade);
  if (!first.result.isError) return changed({ did, path, result: first.result, tries: 1 });
  if (isDenied(first.result)) return { did, changed: [], ...failure(call.name, first.result), files: [path] };
  // Stale, or not as expected: look again, and try once more with what is there now.
  const retry = callFor(path, change, yield* readFor(path, change));
  if ("refusal" in retry) return { did, changed: [], ...failure(call.name, first.result), files: [path] };
  const second = yield* one(retry);
  if ("notMade" in second) return notMade(did, second.notMade);
  if (!second.result.isError) return changed({ did, path, result: second.result, tries: 2 });
  const told = failure(call.name, second.result);
  return { did, changed: [], ...told, headline: `${told.headline}, also after reading the file again`, files: [path] };
}

type Seen = { readonly answer: Answered; readonly lines: readonly string[] };

/** A replacement names its place; what touches the end of a file, or all of it, must have seen it to the end. */
function* readFor(path: string, change: Change): Work<Seen> {
  if (change.kind !== "replace") return yield* readToEnd(path);
  return { answer: yield* one({ name: "Read", input: { file_path: path } }), lines: [] };
}

/** Unable to say: a file may be there that must not be lost. */
const NOT_THERE = /\b(?:not exist|no such|not found|not there|does ?n[o']t exist|nothing at|ENOENT|is no file)\b/i;

const callFor = (path: string, change: Change, seen: Seen): Call | { readonly refusal: string } => {
  const isThere = !failed(seen.answer);
  const problem = "notMade" in seen.answer ? seen.answer.notMade : seen.answer.result.text;
  const isMissing = !isThere && NOT_THERE.test(problem);
  if (change.kind === "replace") {
    if (!isThere) return { refusal: `${path} could not be read: ${oneLine(problem)}` };
    const all = change.all ? { replace_all: true } : {};
    return { name: "Edit", input: { file_path: path, old_string: change.old, new_string: change.new, ...all } };
  }
  if (!isThere && !isMissing) return { refusal: `${path} could not be read: ${oneLine(problem)}` };
  if (change.kind === "write") {
    if (isThere && !change.over)
      return { refusal: `${path} is there already; "overwrite ${path} with …" would replace it` };
    return { name: "Write", input: { file_path: path, content: change.text } };
  }
  const end = uniqueEnd(seen.lines);
  if (end === undefined) return { name: "Write", input: { file_path: path, content: change.text } };
  const added = `${end}\n${change.text.replace(/\n$/, "")}`;
  return { name: "Edit", input: { file_path: path, old_string: end, new_string: added } };
};

const oneLine = (text: string): string => excerptOf([text.replaceAll(/\s+/g, " ").trim()]).join("");

type Changed = { readonly did: string; readonly path: string; readonly result: Result; readonly tries: number };

const changed = ({ did, path, result, tries }: Changed): Outcome => ({
  did,
  ok: true,
  headline: tries === 1 ? "changed" : "changed, at the second try",
  excerpt: excerptOf(
    result.text.split("\n").filter((line) => line.trim() !== ""),
    4,
  ),
  files: [path],
  changed: [path],
});

/** More names than any one tool takes: the declared schema picks those it knows. */
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
    if (answer === undefined || "notMade" in answer) return notMade(did, answer?.notMade ?? "no answer");
    if (answer.result.isError) return { did, changed: [], ...failure("Agent", answer.result) };
    const excerpt = excerptOf(answer.result.text.split("\n").filter((line) => line.trim() !== ""));
    return { did, ok: true, headline: "started", excerpt, files: [], changed: [] };
  });
}

function* remember(items: readonly string[], todoCall: Call): Work<Outcome> {
  const did = "TodoWrite";
  const answer = yield* one(todoCall);
  if ("notMade" in answer) return notMade(did, answer.notMade);
  if (answer.result.isError) return { did, changed: [], ...failure(did, answer.result) };
  const headline = `${plural(items.length, "item")} on the to-do list`;
  return { did, ok: true, headline, excerpt: excerptOf(items), files: [], changed: [] };
}

const notUnderstood = (text: string): Outcome => ({
  ...{ did: `"${oneLine(text)}"`, ok: false, headline: "not understood", excerpt: [], files: [], changed: [] },
});
