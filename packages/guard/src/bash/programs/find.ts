/** find: its expression has a grammar of its own.
 *  Invariant: tests and printing only; -exec only for programs that only read, whatever names they receive. A name that find
 *  passes on starts with the folder it was found in, so it is never an option. It is never a link either, which could lead
 *  out of that folder. */

import { LISTS_NAMES } from "../indirect-reads.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import { checkRepetition, checkWidth, checkZone, type InnerCommand, type ProgramTable, program } from "./program.ts";

/** How many values each part of an expression takes. */
const PARTS: Readonly<Record<string, number>> = {
  ...{ "(": 0, ")": 0, "!": 0, "-not": 0, "-a": 0, "-and": 0, "-o": 0, "-or": 0, ",": 0 },
  ...{ "-true": 0, "-false": 0, "-print": 0, "-print0": 0, "-prune": 0, "-quit": 0, "-ls": 0, "-depth": 0, "-d": 0 },
  ...{ "-xdev": 0, "-mount": 0, "-daystart": 0, "-follow": 0, "-noleaf": 0, "-empty": 0, "-readable": 0 },
  ...{ "-writable": 0, "-executable": 0, "-nouser": 0, "-nogroup": 0, "-ignore_readdir_race": 0 },
  ...{ "-maxdepth": 1, "-mindepth": 1, "-name": 1, "-iname": 1, "-path": 1, "-ipath": 1, "-wholename": 1 },
  ...{
    "-iwholename": 1,
    "-regex": 1,
    "-iregex": 1,
    "-regextype": 1,
    "-lname": 1,
    "-ilname": 1,
    "-type": 1,
    "-xtype": 1,
  },
  ...{ "-size": 1, "-mtime": 1, "-mmin": 1, "-atime": 1, "-amin": 1, "-ctime": 1, "-cmin": 1, "-newer": 1 },
  ...{
    "-anewer": 1,
    "-cnewer": 1,
    "-newermt": 1,
    "-newerct": 1,
    "-newerat": 1,
    "-perm": 1,
    "-user": 1,
    "-group": 1,
    "-uid": 1,
    "-gid": 1,
  },
  ...{ "-links": 1, "-inum": 1, "-samefile": 1, "-used": 1, "-fstype": 1, "-printf": 1 },
};

const WRITING: readonly string[] = ["-delete", "-fprint", "-fprint0", "-fprintf", "-fls"];
const RUNNING: readonly string[] = ["-exec", "-execdir", "-ok", "-okdir"];

/** Programs that have dangerous options, but only read the files they are given as names. */
const READERS: readonly string[] = ["sed", "awk", "gawk", "mawk", "jq", "file", "rg", "sort"];

/** Stands for the names that find reports: any number, and none of them an option. */
export const FOUND_NAMES: PlanWord = { text: "./*", pattern: true, placeholder: true };

/** Parts whose value people often leave unquoted. Such a pattern never expands to an option, so never to an action. */
const NAMES: readonly string[] = ["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"];

type Exec = { readonly end: number; readonly command: readonly PlanWord[] };

const readExecAction = (words: readonly PlanWord[], at: number, inner: InnerCommand): Exec => {
  if (words[at]?.text !== "-exec")
    throw new Refusal(`find ${words[at]?.text} needs approval; use -exec, pipe to xargs, or use grep -r`);
  const end = words.findIndex(({ text }, index) => index > at && (text === ";" || text === "+"));
  const command = words.slice(at + 1, end < 0 ? words.length : end);
  const places = command.filter(({ text }) => text === "{}").length;
  const glued = command.some(({ text }) => text.includes("{}") && text !== "{}");
  if (end < 0 || places !== 1 || glued || command.at(-1)?.text !== "{}") {
    throw new Refusal("find -exec must end in {} \\; or {} +");
  }
  if (command.some(({ pattern }) => pattern)) throw new Refusal("find -exec takes plain words; quote patterns");
  const given = command.slice(0, -1);
  const isReader = READERS.includes(given[0]?.text ?? "");
  const judged = isReader ? inner([...given, FOUND_NAMES], "none").slice(0, -1) : inner(given, "last");
  return { end: end + 1, command: [...judged, { text: "{}" }, ...words.slice(end, end + 1)] };
};

/** The words, with each inner command replaced by the form that may run. */
const readExpression = (words: readonly PlanWord[], inner: InnerCommand): readonly PlanWord[] => {
  const read: PlanWord[] = [];
  let at = 0;
  while (/^-[HLP]$/.test(words[at]?.text ?? "") && !words[at]?.pattern) at += 1;
  const isStart = (word: PlanWord | undefined): boolean => word !== undefined && !/^[-(!,)]/.test(word.text);
  while (at < words.length && isStart(words[at])) at += 1;
  read.push(...words.slice(0, at));
  while (at < words.length) {
    const { text, pattern } = words[at] as PlanWord;
    if (pattern) throw new Refusal("find: quote the pattern, or the shell expands it");
    if (WRITING.includes(text))
      throw new Refusal(`find ${text} deletes or writes files; use -print to list them`, "write");
    if (RUNNING.includes(text)) {
      const { end, command } = readExecAction(words, at, inner);
      read.push(words[at] as PlanWord, ...command);
      at = end;
      continue;
    }
    const takes = Object.hasOwn(PARTS, text) ? PARTS[text] : undefined;
    if (takes === undefined) throw new Refusal(`find ${text} is not a known read-only test; leave it out`);
    const values = words.slice(at + 1, at + 1 + takes);
    const open = NAMES.includes(text);
    if (values.length < takes || values.some((value) => (value.pattern && !open) || value.home)) {
      throw new Refusal(`find ${text} needs a plain or quoted value`);
    }
    const [value] = values;
    // Code that looks for an action among the words would find one here.
    if (value && RUNNING.includes(value.text))
      throw new Refusal(`find ${text} ${value.text} could be mistaken for an action; use another value`);
    if (value && text === "-printf") checkWidth("find -printf", value.text);
    if (value && /^-newer[acm]t$/.test(text)) checkZone(`find ${text}`, value.text);
    if (value && /^-i?regex$/.test(text)) checkRepetition("find", value.text);
    read.push(...words.slice(at, at + 1 + takes));
    at += 1 + takes;
  }
  return read;
};

/** Passes no link to a program that reads contents, and no pipe or socket that would make it wait. The added tests come
 *  right before each -exec, in parentheses with it, so that a `!` before it negates the whole and not the first test. */
const withoutLinks = (words: readonly PlanWord[]): readonly PlanWord[] => {
  const runs = words.flatMap(({ text }, at) => (text === "-exec" ? [words[at + 1]?.text ?? ""] : []));
  if (runs.every((name) => LISTS_NAMES.includes(name))) return words;
  if (words.some(({ text }) => text === "-L" || text === "-follow"))
    throw new Refusal("find -L -exec reads what links point to; leave out -L");
  const tests = ["l", "p", "s"].flatMap((kind) => [{ text: "!" }, { text: "-type" }, { text: kind }]);
  return parenthesizeExecs(words, tests);
};

const parenthesizeExecs = (words: readonly PlanWord[], tests: readonly PlanWord[]): readonly PlanWord[] => {
  const read: PlanWord[] = [];
  let isInside = false;
  for (const word of words) {
    const isEnd: boolean = isInside && (word.text === ";" || word.text === "+");
    const isBegin: boolean = !isInside && word.text === "-exec";
    read.push(...(isBegin ? [{ text: "(" }, ...tests] : []), word, ...(isEnd ? [{ text: ")" }] : []));
    isInside = isBegin || (isInside && !isEnd);
  }
  return read;
};

export const findPrograms: ProgramTable = {
  find: program({
    read: (words, inner) => withoutLinks(readExpression(words, inner)),
    searchText: (words) =>
      words.filter(({ text }, at) => /^\/(proc|sys|dev)(\/\*)?$/.test(text) && words[at - 1]?.text === "-path"),
  }),
};
