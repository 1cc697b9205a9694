/** Which tasks does a prompt contain, in which order?
 *  Invariant: pure; every list item is one task, and without a list every sentence is one. A task that is not understood
 *  stays in the list, so that the answer can say so.
 *  Elsewhere: what a clause asks for (reading-moves.ts, command-moves.ts, changing-moves.ts), doing it (work.ts). */

import { changeMoves, forkMove, rememberMove } from "./changing-moves.ts";
import { gitMove, pipeMove, runMove } from "./command-moves.ts";
import type { Move } from "./moves.ts";
import { countMove, listMove, readMove, searchMove } from "./reading-moves.ts";
import { displayText, type Masked, mask, unmasked } from "./spans.ts";

export type Task = { readonly title: string; readonly moves: readonly Move[] };

type Item = { readonly depth: number; readonly text: string };

const BULLET = /^([ \t]*)(?:[-*•+]|\(?\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(.*)$/;

type Block = { readonly lead: readonly string[]; readonly items: readonly Item[]; readonly rest: readonly string[] };

/** The lines before the first item, the items with their lines, and the lines after the last item. */
const readBlock = (text: string): Block => {
  const lead: string[] = [];
  const rest: string[] = [];
  const items: { depth: number; text: string }[] = [];
  for (const line of text.split("\n")) {
    const [, indent, words] = BULLET.exec(line) ?? [];
    const last = items.at(-1);
    if (words !== undefined) items.push({ depth: (indent ?? "").replaceAll("\t", "    ").length, text: words });
    else if (line.trim() === "") continue;
    else if (last === undefined) lead.push(line.trim());
    else if (/^[ \t]/.test(line) || /^[\uE000]\d+[\uE001]$/.test(line.trim())) last.text += `\n${line.trim()}`;
    else rest.push(line.trim());
  }
  return { lead, items, rest };
};

/** Every turn sends the to-do list with all tasks; with more tasks, the lists would dominate the requests. */
const MOST_TASKS = 100;

export const readTasks = (prompt: string): readonly Task[] => {
  const tasks = readAll(prompt);
  const over = tasks.length - MOST_TASKS;
  if (over <= 0) return tasks;
  const title = `${over} more tasks: a rehearsal follows at most ${MOST_TASKS}`;
  return [...tasks.slice(0, MOST_TASKS), { title, moves: [{ kind: "unknown", text: title }] }];
};

const readAll = (prompt: string): readonly Task[] => {
  const masked = mask(prompt);
  const { lead, items, rest } = readBlock(masked.text);
  if (items.length === 0) return fromSentences(lead.join("\n"), masked);
  const before = lead.slice(0, lead.at(-1)?.endsWith(":") ? -1 : undefined).join("\n");
  const heading = (lead.at(-1) ?? "").replace(/:$/, "");
  const whole = lead.at(-1)?.endsWith(":") ? taskFromHeading(heading, items, masked) : undefined;
  return [
    ...onlyUnderstood(fromSentences(before, masked)),
    ...(whole === undefined ? fromItems(items, masked) : [whole]),
    ...onlyUnderstood(fromSentences(rest.join("\n"), masked)),
  ];
};

/** Text around a list is mostly talk; only what is understood counts. */
const onlyUnderstood = (tasks: readonly Task[]): readonly Task[] =>
  tasks.filter(({ moves }) => moves.every(({ kind }) => kind !== "unknown"));

/** A heading that takes the whole list: `In parallel:`, `Plan:`. */
const taskFromHeading = (heading: string, items: readonly Item[], masked: Masked): Task | undefined => {
  const below = items.map(({ text }) => unmasked({ ...masked, text }));
  const words = tidy(heading);
  const move = forkMove(words, below) ?? rememberMove(words, below);
  return move === undefined ? undefined : { title: displayText({ ...masked, text: heading }), moves: [move] };
};

const fromItems = (items: readonly Item[], masked: Masked): readonly Task[] => {
  const tasks: Task[] = [];
  for (let at = 0; at < items.length; at += 1) {
    const item = items[at];
    if (item === undefined) break;
    const end = items.findIndex(({ depth }, index) => index > at && depth <= item.depth);
    const below = items.slice(at + 1, end === -1 ? items.length : end);
    const whole = below.length === 0 ? undefined : taskFromHeading(item.text.replace(/:$/, ""), below, masked);
    if (whole !== undefined) {
      tasks.push(whole);
      at += below.length;
    } else {
      const task = taskOf(item.text, masked);
      // A mere heading over items that are tasks themselves.
      if (below.length === 0 || onlyUnderstood([task]).length > 0) tasks.push(task);
    }
  }
  return tasks;
};

const VERBS =
  "find|search|grep|read|show|open|list|count|run|execute|replace|rename|append|create|write|delete|remove|remember|git|print";
const SENTENCE = new RegExp(
  `(?<=[\\w)?!\\uE001])[.!?]\\s+(?=\\S)|\\s*;\\s+|\\s*,?\\s+(?:and\\s+)?then\\s+|,?\\s+and\\s+(?=(?:${VERBS})\\b)|\\n(?!\\uE000)`,
  "i",
);

const fromSentences = (text: string, masked: Masked): readonly Task[] => {
  const whole = wholeMove(text, masked);
  if (whole !== undefined) return [{ title: displayText({ ...masked, text }), moves: [whole] }];
  return text
    .split(SENTENCE)
    .filter((sentence) => sentence.trim() !== "")
    .map((sentence) => ({
      title: displayText({ ...masked, text: tidy(sentence) }),
      moves: movesOf(sentence, masked),
    }));
};

const taskOf = (text: string, masked: Masked): Task => {
  const whole = wholeMove(text, masked);
  const parts = text.split(SENTENCE).filter((part) => part.trim() !== "");
  const moves = whole === undefined ? parts.flatMap((part) => movesOf(part, masked)) : [whole];
  return { title: displayText({ ...masked, text: tidy(text) }), moves: joinLooks(moves) };
};

/** Moves whose own text has parts: they are looked for before a text is cut into sentences, and again in each. */
const wholeMove = (text: string, masked: Masked): Move | undefined => {
  const words = tidy(unmasked({ ...masked, text }));
  return forkMove(words, []) ?? rememberMove(words, []);
};

/** Looks that follow each other need not wait for each other. */
const joinLooks = (moves: readonly Move[]): readonly Move[] => {
  const joined: Move[] = [];
  for (const move of moves) {
    const last = joined.at(-1);
    const looks = move.kind === "look" && last?.kind === "look" ? [...last.looks, ...move.looks] : [];
    if (looks.length === 0 || looks.some(({ about }) => about === "run")) joined.push(move);
    else joined.splice(-1, 1, { kind: "look", looks });
  }
  return joined;
};

const POLITE =
  /^(?:(?:please|first|firstly|second|secondly|third|next|then|finally|lastly|also|now|afterwards|and|ok|okay|so|can you|could you|would you|kindly|i want you to|you should|let's|tell me|go and)[\s,:]+)+/i;

const tidy = (text: string): string => text.trim().replace(POLITE, "").trim();

/** `Router: find …`: what the work is called, and then the work. `In src: replace …` says where. */
const NAMED = new RegExp(`^(?!in\\s)([a-z][\\w &-]{0,30}):\\s+(?=(?:${VERBS}|how many|where|which)\\b)`, "i");

/** What a task calls itself, if it does. */
export const nameOf = (text: string): string | undefined => NAMED.exec(text.trim())?.[1];

/** What a prompt forbids or only asks about is not done. */
const NOT_ASKED = /^(?:do not|don't|never|avoid|explain|describe|why|what does|what would|how does|how would)\b/i;

/** No form is this long; a pasted text is. */
const MOST_LETTERS = 2_000;

const movesOf = (text: string, masked: Masked): readonly Move[] => {
  const clause = { ...masked, text: tidy(text) };
  if (clause.text.length > MOST_LETTERS || NOT_ASKED.test(clause.text))
    return [{ kind: "unknown", text: displayText(clause) }];
  const whole = wholeMove(text, masked);
  if (whole !== undefined) return [whole];
  const asked = { ...clause, text: clause.text.replace(NAMED, "") };
  const changes = changeMoves(asked);
  if (changes !== undefined) return changes;
  const readers = [gitMove, pipeMove, countMove, listMove, readMove, searchMove, runMove];
  for (const reader of readers) {
    const move = reader(asked);
    if (move !== undefined) return [move];
  }
  return [{ kind: "unknown", text: displayText(clause) }];
};
