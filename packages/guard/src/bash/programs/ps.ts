/** ps: lists processes, and never their environment.
 *  Invariant: when ps cannot make sense of its words, it reads all of them again as BSD options, where `e` shows every
 *  program's environment. So no word that could be read that way has such an `e`: `-e` is passed as `-A`, which means the
 *  same and is an error in the BSD reading, and values are plain. */

import { type ParsedArguments, readOptions } from "../options.ts";
import type { PlanWord } from "../plan.ts";
import { Refusal } from "../refusal.ts";
import { type ProgramTable, program } from "./program.ts";

/** Columns that ps may print; `environ` is not one of them. */
const COLUMNS: ReadonlySet<string> = new Set(
  (
    "pid ppid pgid sid tid lwp nlwp user uid ruser group gid args cmd command comm ucmd stat state s start stime lstart " +
    "etime etimes time cputime c cp pcpu %cpu pmem %mem rss rssize vsz vsize sz size tty tt tname ni nice pri psr wchan " +
    "cls rtprio"
  ).split(" "),
);

/** `pid,ppid=PARENT,args:50`. After a `=` the rest is a heading, which may contain a comma; then it is one column. */
const areColumns = (text: string): boolean =>
  text.length <= 500 &&
  text.split(/[, ]/).every((part) => {
    const [column = "", heading] = part.split(/=/);
    const name = /^[+-]?([a-z%]{1,9})(?::\d{1,4})?$/.exec(column)?.[1] ?? "";
    return COLUMNS.has(name) && /^[\w%]{0,30}$/.test(heading ?? "");
  });

const NUMBERS = /^[0-9]{1,9}(?:,[0-9]{1,9}){0,99}$/;
const USERS = /^[\w.+-]{1,32}(?:,[\w.+-]{1,32}){0,20}$/;
/** Letters that the BSD reading takes together, up to one that shows the environment. */
const SHOWS_ENVIRONMENT = /^-?[acfghHjlLmMnNrsSTuvwxXZ]*(?:e|[oOk].*env)/s;

const rule = program({
  flags: "AaefFlHLTjwx",
  valued: "oOpCUuGgst",
  long: "forest no-headers headers sort= pid= ppid= user= version",
}).rule;

const refuse = (text: string): never => {
  throw new Refusal(text);
};

const checkValue = (name: string, value: string): void => {
  if (/^(?:o|O|sort)$/.test(name)) {
    if (!areColumns(value)) refuse("ps -o takes known columns without the environment: ps -eo pid,ppid,user,args");
  } else if (/^(?:p|s|g|pid|ppid)$/.test(name)) {
    if (!NUMBERS.test(value)) refuse(`ps -${name} takes numbers: ps -p 1,2`);
  } else if (/^(?:U|u|G|user)$/.test(name)) {
    if (!USERS.test(value)) refuse(`ps -${name} takes plain user or group names`);
  } else if (name === "C") {
    if (!/^[\w.+:@-]{1,64}$/.test(value)) refuse("ps -C takes one program name: ps -C node");
  } else if (name === "t" && !/^[\w/?,]{1,32}$/.test(value)) refuse("ps -t takes a terminal name: ps -t pts/0");
  if (SHOWS_ENVIRONMENT.test(value) && !/^(?:o|O|sort)$/.test(name)) refuse("use ps aux or ps -ef");
};

const check = ({ options, operands }: ParsedArguments): void => {
  // Without a dash, the letters are BSD options.
  if (operands.length > 1 || operands.some(({ text, pattern }) => pattern || !/^a?u?xf?w{0,3}$/.test(text)))
    refuse("use ps aux or ps -ef");
  for (const { name, value } of options) if (value !== undefined) checkValue(name, value);
  const has = (letters: RegExp): boolean => options.some(({ name }) => letters.test(name));
  if (has(/^e$/) && (operands.length > 0 || has(/^[UuGgstax]$/) || (has(/^[fFlj]$/) && has(/^[oO]$/))))
    refuse("ps -e takes either -f or -o; use ps -ef or ps -eo pid,args");
};

/** Replaces `e` in a group of short options, up to the first letter that takes a value. */
const withoutE = ({ text }: PlanWord): PlanWord => {
  if (!/^-[^-]/.test(text)) return { text };
  const end = [...text].findIndex((letter, at) => at > 0 && rule.valued?.includes(letter));
  const letters = end < 0 ? text : text.slice(0, end);
  return { text: letters.replaceAll("e", "A") + text.slice(letters.length) };
};

const readPs = (words: readonly PlanWord[]): readonly PlanWord[] => {
  if (words.length === 1 && words[0]?.text === "--help") return words;
  check(readOptions("ps", words, rule));
  // A word that is the value of the option before it is left alone.
  return words.map((word, at) => (takesNext(words[at - 1]) ? word : withoutE(word)));
};

const takesNext = (word: PlanWord | undefined): boolean => {
  if (!word || !/^-[^-]/.test(word.text)) return false;
  const first = [...word.text].findIndex((letter, at) => at > 0 && rule.valued?.includes(letter));
  return first === word.text.length - 1;
};

export const psPrograms: ProgramTable = { ps: program({ read: readPs }) };
