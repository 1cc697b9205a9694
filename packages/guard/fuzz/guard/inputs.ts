/** Commands nobody wrote: made from a grammar of programs and options, or by disturbing those of the corpora. */

import type { SeededRandom } from "@prefork/testing/chance";
import { lateInput } from "./late-inputs.ts";
import { requoted } from "./quoting.ts";

export type Corpora = {
  readonly allowed: readonly string[];
  readonly denied: readonly string[];
  readonly programs: readonly string[];
};

const OPERANDS: readonly string[] = [
  ...[
    "a.txt",
    "b.txt",
    "sub",
    ".",
    "..",
    "-",
    "--",
    "./a.txt",
    "sub/c.txt",
    "HEAD",
    "main",
    "v1",
    "HEAD~1",
    "HEAD:a.txt",
    "out",
    "/dev/null",
  ],
  ...[
    "*",
    "*.txt",
    "sub/*",
    "?.txt",
    "[ab].txt",
    "~",
    "~/x",
    "{a,b}.txt",
    "'a b'",
    '"a"',
    "''",
    "1",
    "5",
    "+5",
    "-5",
    "x=1",
    "/etc/hostname",
    "\\;",
    "{}",
    "+",
  ],
  ...[
    "list",
    "show",
    "p",
    "'1,3p'",
    "'s/a/b/'",
    "'{print $1}'",
    "'/x/{n++} END{print n}'",
    ".",
    "'.a[]'",
    "text",
    "'te*'",
    "1~2p",
    "'$='",
  ],
];

const OPTIONS: readonly string[] = [
  ..."abcdefghijklmnopqrstuvwxyzABCDEFGHILMNOPRSTUVWXZ0123456789".split("").map((letter) => `-${letter}`),
  ...[
    "-la",
    "-rn",
    "-nr",
    "-uo",
    "-Lo",
    "-ps",
    "-L2",
    "-n5",
    "-c1",
    "-d,",
    "-k2",
    "-f1",
    "-aux",
    "-ef",
    "-exec",
    "-name",
    "-type",
    "-print",
    "-delete",
  ],
  ...[
    "-maxdepth",
    "-newer",
    "-iname",
    "-path",
    "-prune",
    "-o",
    "!",
    "-not",
    "-print0",
    "-printf",
    "-size",
    "-ok",
    "-fprint",
    "-quit",
  ],
  ...[
    "--output=out",
    "--output",
    "--all",
    "--stat",
    "--oneline",
    "--format=%h",
    "--format",
    "--pretty",
    "--since",
    "--unified",
    "--color",
  ],
  ...[
    "--version",
    "--help",
    "--files",
    "--pre=sh",
    "--null",
    "--max-lines",
    "--max-args",
    "--compress-program=sh",
    "--expression",
    "--in-place",
  ],
  ...[
    "--reverse",
    "--unique",
    "--key=1",
    "--lines=3",
    "--bytes=3",
    "--exec",
    "--abbrev",
    "--contains",
    "--list",
    "--cached",
    "--no-index",
    "--dirty",
  ],
];

const JOINTS: readonly string[] = [" | ", " && ", " || ", "; ", "\n", " |& ", ";", "|", " & "];
const REDIRECTS: readonly string[] = [
  " 2>/dev/null",
  " >/dev/null",
  " 2>&1",
  " < a.txt",
  " > out",
  " &>/dev/null",
  " >&2",
  " 2> out",
  " <<< x",
  " <>out",
];
const SUBCOMMANDS: readonly string[] = [
  ...[
    "status",
    "log",
    "diff",
    "show",
    "blame",
    "grep",
    "branch",
    "tag",
    "stash",
    "remote",
    "config",
    "reflog",
    "describe",
    "rev-parse",
    "ls-files",
  ],
  ...[
    "shortlog",
    "cat-file",
    "for-each-ref",
    "show-ref",
    "worktree",
    "notes",
    "rev-list",
    "diff-tree",
    "range-diff",
    "symbolic-ref",
    "clean",
    "name-rev",
  ],
];
const ODD: readonly string[] = [
  ..."'\"\\`$(){}[]<>|&;!#*?~ \t\n=-/:,.@%^+",
  "$(",
  "${",
  "<<",
  ">>",
  "&&",
  "||",
  "''",
  "$'",
  "\\\n",
  "\u00a0",
  "é",
  "\0",
  "\r",
  "--",
  " -o ",
  " out ",
];

/** A simple command: a known program with words that may or may not suit it. */
const command = (corpora: Corpora, chance: SeededRandom): string => {
  const name = chance.one(corpora.programs);
  const words: string[] = name === "git" ? [chance.one(SUBCOMMANDS)] : [];
  if (name === "xargs" || name === "timeout")
    words.push(...(name === "timeout" ? ["5"] : []), chance.one(corpora.programs));
  for (let left = chance.below(5); left > 0; left -= 1)
    words.push(chance.one(chance.happens(0.5) ? OPTIONS : OPERANDS));
  const text = [name, ...words]
    .map((word) => (chance.happens(0.08) && /^[\w./-]+$/.test(word) ? requoted(word, chance) : word))
    .join(" ");
  return chance.happens(0.1) ? text + chance.one(REDIRECTS) : text;
};

const grown = (corpora: Corpora, chance: SeededRandom): string => {
  let text = command(corpora, chance);
  while (chance.happens(0.25)) text += chance.one(JOINTS) + command(corpora, chance);
  return text;
};

const changeOnce = (text: string, corpora: Corpora, chance: SeededRandom): string => {
  const at = chance.below(text.length + 1);
  const to = Math.min(text.length, at + 1 + chance.below(4));
  switch (chance.below(8)) {
    case 0:
      return text.slice(0, at) + text.slice(to);
    case 1:
      return text.slice(0, at) + chance.one(ODD) + text.slice(at);
    case 2:
      return text.slice(0, to) + text.slice(at);
    case 3:
      return text.slice(0, at) + chance.one(ODD) + text.slice(to);
    case 4: {
      const words = text.split(" ");
      words.splice(
        chance.below(words.length + 1),
        chance.below(2),
        chance.one(chance.happens(0.5) ? OPTIONS : OPERANDS),
      );
      return words.join(" ");
    }
    case 5: {
      const words = text.split(" ");
      const place = chance.below(words.length);
      words[place] = requoted(words[place] ?? "", chance);
      return words.join(" ");
    }
    case 6: {
      const other = chance.one(chance.happens(0.7) ? corpora.allowed : corpora.denied);
      return text.slice(0, at) + other.slice(chance.below(other.length));
    }
    default:
      return text + chance.one(JOINTS) + chance.one(corpora.allowed);
  }
};

/** One input; most stem from commands that are allowed, because those are near to others that must not be. */
export const input = (corpora: Corpora, chance: SeededRandom): string => {
  if (chance.happens(0.2)) return lateInput(chance);
  if (chance.happens(0.35)) return grown(corpora, chance);
  let text = chance.one(chance.happens(0.75) ? corpora.allowed : corpora.denied).slice(0, 2_000);
  for (let left = 1 + chance.below(3); left > 0; left -= 1) text = changeOnce(text, corpora, chance);
  return text;
};

/** Four folders, each of which may be there or not, and words that may be a path in any of the sixteen. */
const wordsAfterFolders = (length: number, word: string, program = "cat"): string => {
  const folders = `cd ${"b/".repeat(length / 32)}; `.repeat(4);
  return folders + program + word.repeat((length - folders.length - program.length) / word.length);
};

const FOUR_FOLDERS = "cd a; cd b; cd c; cd d; ";

/** An option of as many letters as a name may have, with names behind them. */
const lettersBefore = (program: string, names: string, length: number): string => {
  const option = `${program} -${program === "grep" ? "e" : "L"}${"a".repeat(Math.min(255, length / 4))}`;
  return option + names.repeat((length - option.length) / names.length);
};

/** Texts of a given length that punish whoever reads a part again and again. */
export const GROWING: Readonly<Record<string, (length: number) => string>> = {
  "dots inside a name": (length) => `which ${".".repeat(length)}x`,
  "many commands": (length) => "ls;".repeat(length / 3),
  "a long pipe": (length) => `ls${"|cat".repeat(length / 4)}`,
  "a long word": (length) => `ls ${"a".repeat(length)}`,
  "many words": (length) => `ls${" a".repeat(length / 2)}`,
  "many quotes": (length) => `ls ${"''".repeat(length / 2)}`,
  "nested brackets": (length) => "(".repeat(length / 2) + ")".repeat(length / 2),
  "open brackets": (length) => "(".repeat(length),
  "nested substitutions": (length) => `echo ${"$(".repeat(length / 3)}${")".repeat(length / 3)}`,
  "open substitutions": (length) => `echo ${"$(".repeat(length / 2)}`,
  "open parameters": (length) => `echo ${"${a:-".repeat(length / 5)}`,
  "nested parameters": (length) => `echo ${"${a:-".repeat(length / 6)}${"}".repeat(length / 6)}`,
  "back quotes": (length) => `echo ${"`".repeat(length)}`,
  "double quotes and substitutions": (length) => `echo ${'"$('.repeat(length / 5)}${')"'.repeat(length / 5)}`,
  "open braces": (length) => `ls ${"{a,".repeat(length / 3)}`,
  "pairs of braces": (length) => `ls ${"{a,b}".repeat(length / 5)}`,
  stars: (length) => `ls ${"*".repeat(length)}`,
  "stars and letters": (length) => `ls ${"*a".repeat(length / 2)}`,
  "open sets": (length) => `ls ${"[a".repeat(length / 2)}`,
  "here-documents": (length) => `cat ${"<<E ".repeat(length / 4)}`,
  "lines of a here-document": (length) => `cat <<E\n${"x\n".repeat(length / 2)}`,
  redirections: (length) => `ls${" >/dev/null".repeat(length / 11)}`,
  comments: (length) => `ls ${"#\n".repeat(length / 2)}`,
  continuations: (length) => `ls ${"\\\n".repeat(length / 2)}`,
  "open tests": (length) => `[[ ${"( ".repeat(length / 2)}`,
  "tests of not": (length) => `[[ ${"! ".repeat(length / 2)}-f a ]]`,
  negations: (length) => `${"! ".repeat(length / 2)}ls`,
  ifs: (length) => "if ls; then ".repeat(length / 12),
  functions: (length) => "a(){ ".repeat(length / 5),
  "a sed script": (length) => `sed '${"p;".repeat(length / 2)}'`,
  "sed braces": (length) => `sed '${"{".repeat(length)}'`,
  "sed sets": (length) => `sed 's/${"[".repeat(length)}/x/'`,
  "an awk program": (length) => `awk '${"(".repeat(Math.min(length, 1_900))}'`,
  "awk slashes": (length) => `awk '${")/".repeat(Math.min(length / 2, 900))}'`,
  "awk sets": (length) => `awk '/${"[a".repeat(Math.min(length / 2, 900))}/'`,
  "find tests": (length) => `find .${" -true".repeat(length / 6)}`,
  "find actions": (length) => `find .${" -exec cat {} +".repeat(length / 15)}`,
  timeouts: (length) => `${"timeout 5 ".repeat(length / 10)}ls`,
  folders: (length) => `${"cd a;".repeat(length / 5)}git status`,
  "git options": (length) => `git ${"-C a ".repeat(length / 5)}status`,
  "a jq filter": (length) => `jq '${".a|".repeat(length / 3)}.'`,
  paths: (length) => `cat ${"../".repeat(length / 3)}x`,
  slashes: (length) => `cat ${"/".repeat(length)}x`,
  "columns of ps": (length) => `ps -o ${"pid,".repeat(length / 4)}x`,
  "headings of ps": (length) => `ps -o ${"pid= ".repeat(length / 5)}!`,
  "jq places": (length) => `jq 'recurse(.${"[]".repeat(Math.min(length, 3_900) / 2)}!)'`,
  "jq sets": (length) => `jq 'gsub("[${"[:\\\\]".repeat(Math.min(length, 3_800) / 5)}"; "")' f`,
  "lines of a sed loop": (length) =>
    `sed ':a${"\n".repeat(length / 3)}N${"\n".repeat(length / 3)}$!ba${"\n".repeat(length / 3)}'`,
  "awk counters": (length) => {
    const sum = (name: string): string => `${name}+`.repeat(Math.min(length, 1_800) / 12) + name;
    return `awk '{for(i=0;i<a;i++)x;a=${sum("b")};b=${sum("c")};c=${sum("d")};d=${sum("e")};e=${sum("f")}}'`;
  },
  "globs after cd": (length) => `cd a; cd b; cd c; cd d; cat${" .*?*?*?*?*?*?*?z".repeat(length / 17)}`,
  "devices after cd": (length) => `cd a; cd b; cd c; cd d; cat ${"dev/".repeat(length / 4)}x`,
  "long folders": (length) => `cd ${"a/".repeat(length / 4)}; cat${" x".repeat(length / 4)}`,
  "words after long folders": (length) => wordsAfterFolders(length, " x"),
  "words of many names after long folders": (length) => wordsAfterFolders(length, " -f=a/b:c/d"),
  "searches after long folders": (length) => wordsAfterFolders(length, " x", "grep -r"),
  "letters before a path": (length) => lettersBefore("grep", "/b.c", length),
  "letters before a path after cd": (length) => FOUR_FOLDERS + lettersBefore("grep", "/b.c", length - 24),
  "letters before parts after cd": (length) => FOUR_FOLDERS + lettersBefore("git log", ":b/b", length - 24),
  "letters before many paths after cd": (length) =>
    FOUR_FOLDERS + `${lettersBefore("grep", "/b", 800)} x;`.repeat((length - 24) / 806),
  "many options of many letters": (length) => `grep${` -e${"a".repeat(77)}`.repeat(length / 80)} x`,
  "many options of some letters after cd": (length) =>
    `${FOUR_FOLDERS}${`grep -e${"a".repeat(20)} x;`.repeat(length / 30)}`,
  "escaped sets": (length) => `ls${" | ls[:\\]".repeat(length / 10)}`,
  "open arithmetic": (length) => `ls ${"$[:\\]".repeat(length / 5)}`,
  "tar letters": (length) => `tar -${"t".repeat(length)}!`,
  "letters of git grep": (length) => `git grep -${"l".repeat(length)}e! x | xargs cat`,
  "spaces in awk": (length) => `ls | awk '{print $1${" ".repeat(Math.min(length, 1_900))}!}' | xargs cat`,
  "places of xargs": (length) => `ls | xargs -I% echo${" %".repeat(length / 2)}`,
  "code in code": (length) => `sh${" -c".repeat(length / 3)} x`,
  assignments: (length) => `${"LC_ALL=C ".repeat(length / 9)}ls`,
  "ANSI-C quotes": (length) => `ls ${"$'\\n'".repeat(length / 5)}`,
  pictures: (length) => `ls ${"\u{1f600}\u200d".repeat(length / 3)}`,
};
