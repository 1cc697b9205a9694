/** Commands in which something is decided late: names that turn up in a pipe, wrappers before a program, and options of
 *  which the last wins. Most of them are refused; those that are not are really run, among files with hostile names. */

import type { SeededRandom } from "@prefork/testing/chance";

const LISTERS: readonly string[] = [
  ...[
    "find . -print0",
    "find .",
    "find . -type f -print0",
    "find names -print0",
    "find sub -name '*'",
    "ls",
    "ls names",
  ],
  ...["ls -1", "ls -a", "git ls-files", "git ls-files -z", "git ls-files -o", "grep -rl text .", "grep -rlZ text ."],
  ...[
    "printf '%s\\0' a.txt",
    "printf '%s\\0' -i a.txt",
    "echo a.txt",
    "cat list",
    "find . -maxdepth 1 -print0",
    "ls -d *",
  ],
];

const ON_THE_WAY: readonly string[] = [
  "sort",
  "sort -z",
  "head -5",
  "grep -v x",
  "tail -3",
  "uniq",
  "tac",
  "cut -c1-9",
];

const PLACES: readonly string[] = ["{}", "%", "@"];

const XARGS_OPTIONS: readonly string[] = [
  ...["-0", "-r", "-n1", "-n 2", "-L1", "-L 2", "-P2", "-t", "-x", "-d '\\n'", "-d '\\0'", "--null", "--max-args=1"],
  ...["--max-lines", "-0r", "-r0", "--delimiter='\\n'", "-i", "-a list", "--arg-file=list", "-E x", "-p", "--replace"],
];

/** Programs with the words that a name could do harm beside; `_` is where one may stand. */
const INNER: readonly string[] = [
  ...[
    "cat",
    "head -1",
    "tail -1",
    "wc -l",
    "grep text",
    "grep -f",
    "grep -e",
    "sed -n p",
    "sed",
    "sed -e",
    "sed -n -e p",
  ],
  ...[
    "awk 1",
    "awk",
    "awk -f",
    "awk -v x=1 1",
    "jq .",
    "jq",
    "sort",
    "sort -k",
    "file",
    "rg text",
    "rg",
    "du",
    "ls",
    "stat",
  ],
  ...[
    "basename",
    "printf '%s\\n'",
    "printf",
    "echo",
    "xargs cat",
    "timeout 5 cat",
    "find",
    "git log",
    "env",
    "sh -c",
    "tee",
  ],
  ...["sed -n _p a.txt", "sed -n '/_/p' a.txt", "sed 's/x/_/' a.txt", "awk '/_/' a.txt", "awk '{print \"_\"}' a.txt"],
  ...[
    "grep _ a.txt",
    "grep -rn _ .",
    "grep -e _ a.txt",
    "grep -f _ a.txt",
    "cat _",
    "cat ./_",
    "cat sub/_",
    "head -n _ a.txt",
  ],
  ...[
    "jq _ a.json",
    "jq .a _",
    "jq '.a | _' a.json",
    "sort -o _ a.txt",
    "sort _",
    "uniq a.txt _",
    "tac _",
    "_ a.txt",
    "wc -l _ a.txt",
  ],
  ...[
    "sed -n 1p _",
    "sed -i _ a.txt",
    "awk 1 _",
    "awk _ a.txt",
    "file _",
    "file -m _",
    "rg _ a.txt",
    "rg --pre _ text",
    "echo _",
  ],
  ...[
    "stat -c _ a.txt",
    "printf _",
    "printf '%s' _",
    "xz -l _",
    "gzip -dc _",
    "tar tf _",
    "diff a.txt _",
    "tail _",
    "nl _",
  ],
];

const WRAPPERS: readonly string[] = [
  ...[
    "timeout 5",
    "timeout 1s",
    "timeout 0.5m",
    "timeout -k 1 5",
    "nice",
    "nice -n 5",
    "stdbuf -oL",
    "env",
    "nohup",
    "command",
  ],
  ...[
    "timeout 5 timeout 5",
    "timeout 5 nice",
    "nice timeout 5",
    "time",
    "exec",
    "builtin",
    "setsid",
    "ionice -c3",
    "/usr/bin/timeout 5",
  ],
];

/** Options that say what a program does, and its files. */
const MODES: Readonly<Record<string, readonly [options: readonly string[], operands: readonly string[]]>> = {
  xz: [
    ["-l", "-d", "-c", "-k", "-z", "-t", "-v", "-q", "-ld", "-dc", "-dl", "-cl", "--list", "--decompress", "--stdout"],
    ["f.xz"],
  ],
  gzip: [
    ["-l", "-d", "-c", "-k", "-t", "-v", "-ld", "-dc", "-dk", "--list", "--stdout", "--decompress"],
    ["f.gz", "a.txt"],
  ],
  gunzip: [["-l", "-c", "-k", "-v", "-d", "--list", "--stdout"], ["f.gz"]],
  bzip2: [
    ["-d", "-c", "-k", "-z", "-v", "-dk", "-dc", "--stdout", "--decompress"],
    ["f.bz2", "a.txt"],
  ],
  tar: [
    ["-t", "-x", "-tf", "tf", "xf", "-tvf", "tvf", "-tzf", "cf", "-txf", "-f", "-v", "--list"],
    ["a.tar", "x"],
  ],
  unzip: [
    ["-l", "-p", "-o", "-t", "-v", "-Z1", "-x", "-q"],
    ["a.zip", "a.txt"],
  ],
  ar: [["t", "x", "tv", "-t", "p", "r", "d"], ["a.a"]],
  sort: [
    ["-c", "-C", "-o", "-m", "-u", "-n", "-z", "-k1", "+1", "-1", "-t,"],
    ["a.txt", "out"],
  ],
  uniq: [
    ["-c", "-d", "-f1", "+1", "-1", "--"],
    ["a.txt", "out"],
  ],
  date: [
    ["-u", "-R", "-d now", "-r a.txt", "-s now", "-I", "+%s", "--utc"],
    ["1112", "+%F"],
  ],
  sed: [
    ["-n", "-i", "-e p", "-s", "-E", "-z", "--posix", "--debug", "-u", "-ne p", "-ni", "-n -i"],
    ["p", "a.txt"],
  ],
  ps: [
    [
      "-e",
      "-f",
      "-x",
      "-g e",
      "-C e",
      "-u x",
      "-p 1",
      "-o pid",
      "-t e",
      "-H",
      "-L",
      "-ef",
      "-aux",
      "-a",
      "--sort=pid",
      "-O s",
      "-T",
    ],
    ["aux", "e", "1", "ax", "f"],
  ],
  "git branch": [
    [
      "--list",
      "-a",
      "-d",
      "-D",
      "-m",
      "-r",
      "-v",
      "--merged",
      "--contains",
      "--show-current",
      "-l",
      "-i",
      "--column",
      "-f",
    ],
    ["x", "v1", "HEAD"],
  ],
  "git tag": [
    ["-l", "-d", "-n", "-n3", "--list", "--contains", "-f", "-i", "--sort=refname", "-a"],
    ["v1", "x"],
  ],
  "git stash": [["list", "show", "drop", "pop", "-p", "--stat", "push"], ["HEAD"]],
  "git remote": [
    ["-v", "show", "get-url", "add", "prune", "--all"],
    ["origin", "x"],
  ],
  "git config": [
    ["--get", "--list", "--unset", "--get-all", "-l", "--add", "--local", "--bool", "get", "set"],
    ["user.name", "core.bare", "x"],
  ],
  "git reflog": [
    ["show", "expire", "delete", "--all", "-n 1", "--expire=now", "exists"],
    ["HEAD", "main"],
  ],
  "git symbolic-ref": [
    ["-q", "--short", "-d", "-m x"],
    ["HEAD", "refs/heads/main"],
  ],
  "git worktree": [["list", "add", "-v", "prune", "--porcelain"], ["x"]],
  "git notes": [["list", "show", "add", "remove"], ["HEAD"]],
  "git apply": [["--stat", "--check", "--apply", "--numstat", "-R", "--summary"], ["x.patch"]],
  "git clean": [["-n", "-f", "-d", "-x", "-i", "--dry-run", "-nd"], ["sub"]],
  find: [
    [
      "-print",
      "-delete",
      "-exec cat {} +",
      "-exec jq {} +",
      "-exec sed -n p {} \\;",
      "-name '*'",
      "-quit",
      "-fprint out",
      "-ok rm {} \\;",
      "-ls",
      "-type f",
    ],
    [".", "names"],
  ],
  tail: [
    ["-n 1", "-1", "+1", "-f", "+1f", "-c3", "-F"],
    ["a.txt", "+2"],
  ],
  head: [["-1", "-n 1", "-c 3", "-q", "-1c"], ["a.txt"]],
  jq: [
    ["-r", "-n", "-c", "-f a.json", "--arg x 1", "--args", "-s", "--rawfile x a.txt", "-L sub"],
    [".", "a.json"],
  ],
  awk: [
    ["-F,", "-f a.txt", "-v x=1", "--", "-i inplace"],
    ["1", "a.txt", "x=1"],
  ],
};

const some = (of: readonly string[], most: number, chance: SeededRandom): readonly string[] =>
  Array.from({ length: chance.below(most + 1) }, () => chance.one(of));

const modes = (chance: SeededRandom): string => {
  const [name, [options, operands]] = chance.one(Object.entries(MODES));
  const words = [...some(options, 4, chance), ...some(operands, 2, chance)];
  // Options may stand after operands.
  if (chance.happens(0.2)) words.reverse();
  return [name, ...words].join(" ");
};

const fed = (chance: SeededRandom): string => {
  const way = chance.happens(0.25) ? ` | ${chance.one(ON_THE_WAY)}` : "";
  const place = chance.happens(0.5) ? chance.one(PLACES) : undefined;
  const options = [...some(XARGS_OPTIONS, 2, chance), ...(place === undefined ? [] : [`-I${place}`])];
  const inner = chance.one(INNER).replaceAll("_", place ?? "_");
  const input = chance.happens(0.05) ? " < list" : "";
  return `${chance.one(LISTERS)}${way} | ${["xargs", ...options, inner].join(" ")}${input}`;
};

const found = (chance: SeededRandom): string => {
  const inner = chance.one(INNER).replaceAll("_", "{}");
  const place = inner.includes("{}") ? "" : " {}";
  return `find ${chance.one([".", "names", "sub"])} -type f -exec ${inner}${place} ${chance.one(["+", "\\;"])}`;
};

/** A wrapper before one of the commands of a pipe. */
const wrapped = (text: string, chance: SeededRandom): string => {
  const parts = text.split(" | ");
  const at = chance.below(parts.length);
  parts[at] = `${chance.one(WRAPPERS)} ${parts[at]}`;
  return parts.join(" | ");
};

export const lateInput = (chance: SeededRandom): string => {
  const text = chance.one([fed, fed, found, modes])(chance);
  return chance.happens(0.3) ? wrapped(text, chance) : text;
};
