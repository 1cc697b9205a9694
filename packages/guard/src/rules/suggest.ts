/** Which rule would allow this call, and little more? For the answer "always allow this".
 *  Invariant: a suggestion allows the call it is made for; it never opens an interpreter, a wrapper, deletion, the
 *  network, or more than one command.
 *  Elsewhere: what a rule means (rules.ts), when it is offered (decide.ts). */

import { broadFolderProblem } from "../bash/index.ts";
import { mayContainSecrets } from "../paths/index.ts";
import { notesFor } from "./notes.ts";
import { isShell, isWrapper, programOf } from "./programs-with-programs.ts";
import { allowsOne, parseRule } from "./rules.ts";
import { goesBeyond } from "./running-options.ts";
import { isLiteral, readShell, type ShellWord } from "./shell-words.ts";
import type { Target } from "./targets.ts";

/** Programs that do whatever their arguments say: any rule for them would be too broad. */
const TOO_BROAD = new Set(
  (
    "python python2 python3 node deno bun ruby perl php lua awk gawk sed osascript ssh scp sftp rsync nc ncat telnet " +
    "curl wget rm rmdir unlink shred dd chmod chown chgrp kill pkill killall find tee export alias crontab at batch " +
    "mount umount shutdown reboot halt poweroff systemctl launchctl iptables mkfs fdisk parted wipefs open xdg-open"
  ).split(" "),
);

export const isTooBroad = (name: string): boolean => {
  const program = name.toLowerCase();
  return TOO_BROAD.has(program) || isShell(program) || isWrapper(program) || /^(?:python|mkfs)[\d.]/.test(program);
};

/** How many words say what is done; what follows are its details. `""` is for any subcommand not named. */
const ARITY: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  npm: { run: 3, "run-script": 3, test: 2, t: 2, ci: 2, install: 2, i: 2, ls: 2, outdated: 2, audit: 2 },
  pnpm: { run: 3, test: 2, install: 2, i: 2, add: 2 },
  yarn: { run: 3, test: 2, install: 2, add: 2, "": 2 },
  npx: { "": 2 },
  cargo: { build: 2, check: 2, test: 2, clippy: 2, fmt: 2, doc: 2, bench: 2, nextest: 3 },
  go: { build: 2, test: 2, vet: 2, fmt: 2, mod: 3 },
  git: { add: 2, commit: 2, fetch: 2, pull: 2, stash: 3, switch: 2, worktree: 3 },
  docker: { compose: 3, build: 2, ps: 2, logs: 2, pull: 2 },
  kubectl: { get: 2, describe: 2, logs: 2 },
  terraform: { plan: 2, validate: 2, fmt: 2 },
  make: { "": 2 },
  just: { "": 2 },
  mvn: { "": 2 },
  gradle: { "": 2 },
  dotnet: { build: 2, test: 2, restore: 2, format: 2 },
  poetry: { run: 3, install: 2 },
  uv: { run: 3, sync: 2, pip: 3 },
  pip: { install: 2, list: 2, show: 2 },
  bundle: { exec: 3, install: 2 },
  swift: { build: 2, test: 2 },
  mix: { "": 2 },
  bazel: { build: 2, test: 2, query: 2 },
};
/** Tools that check, build or format, and do so with any arguments. */
const WHOLE = new Set(
  "tsc eslint biome prettier vitest jest mocha pytest ruff mypy black flake8 shellcheck rubocop rspec ctest".split(" "),
);
/** The last of the words that count is itself a program. */
const RUNNERS = new Set("npx uv poetry bundle".split(" "));
const LONGEST_EXACT = 120;

export type SuggestionPlace = {
  /** The workspace: its root itself is too much to offer for writing. */
  readonly roots: readonly string[];
  readonly home?: string;
};

export const suggestRule = (tool: string, target: Target, place: SuggestionPlace): string | undefined => {
  switch (target.kind) {
    case "command":
      return suggestCommand(target.command);
    case "file":
      return suggestPath(tool, target, place);
    case "mcp":
      return target.name;
    case "site":
      return /^[a-z0-9.-]+$/.test(target.host) ? `WebFetch(domain:${target.host})` : undefined;
    default:
      return undefined;
  }
};

const suggestCommand = (text: string): string | undefined => {
  const reading = readShell(text);
  if (reading.kind === "unread" || reading.definesFunction || reading.evaluatesUnseen) return undefined;
  const [command, ...others] = reading.commands;
  if (!command || others.length > 0 || !command.words.every((word) => isLiteral(word) && !word.home)) return undefined;
  const { words, redirects, input, assignments } = command;
  if (redirects.length + input.length + assignments.length > 0) return undefined;
  const [head] = words;
  const count = aritySays(words);
  const inner = count !== undefined && head && RUNNERS.has(head.text) ? words[count - 1] : undefined;
  // A quoted word that looks like an assignment is a program to bash; a rule cannot say so.
  if (head && /^[A-Za-z_]\w*\+?=/.test(head.text)) return undefined;
  if (!head || isTooBroad(programOf(head)) || (inner && isTooBroad(programOf(inner)))) return undefined;
  if (notesFor(text).length > 0) return undefined;
  const rest = words.slice(count ?? 0).map(({ text: word }) => word);
  const rule =
    count === undefined || goesBeyond(head.text, rest) ? exact(words) : `Bash(${written(words.slice(0, count))}:*)`;
  const read = parseRule(rule, { list: "allow", base: "/", origin: "" });
  const isUseful = rule.length <= LONGEST_EXACT && read.kind === "rule" && allowsOne(read.rule, command);
  return isUseful ? rule : undefined;
};

/** How many words to keep, or undefined where only the whole command will do. */
const aritySays = (words: readonly ShellWord[]): number | undefined => {
  const [program = "", subcommand = ""] = words.map(({ text }) => text);
  if (WHOLE.has(program)) return 1;
  const arities = Object.hasOwn(ARITY, program) ? ARITY[program] : undefined;
  if (!arities) return undefined;
  const count = Object.hasOwn(arities, subcommand) ? arities[subcommand] : arities[""];
  if (count === undefined || words.length < count) return undefined;
  return words.slice(1, count).every(({ text }) => /^[\w@:][\w@:./-]*$/.test(text)) ? count : undefined;
};

const exact = (words: readonly ShellWord[]): string => `Bash(${written(words)})`;

const written = (words: readonly ShellWord[]): string =>
  words.map(({ text }) => (/^[\w@%+=:,./^-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)).join(" ");

const suggestPath = (
  tool: string,
  { access, path, names }: Extract<Target, { readonly kind: "file" }>,
  { roots, home }: SuggestionPlace,
): string | undefined => {
  if (/[*?[\]{}()!\\]/.test(path) || names.length === 0) return undefined;
  const ruleTool = access === "read" ? "Read" : tool === "Write" ? "Write" : "Edit";
  const isFolder = tool === "Grep" || tool === "Glob";
  const folder = isFolder ? path : `/${names.slice(0, -1).join("/")}`;
  const holds = (inner: string): boolean => inner === folder || inner.startsWith(folder === "/" ? "/" : `${folder}/`);
  const isAround = [
    ...(home === undefined ? [] : [home]),
    ...roots.filter((root) => access === "write" || root !== folder),
  ];
  const isTooMuch = isAround.some(holds) || broadFolderProblem(folder) !== undefined;
  // A rule for its folder would open every other file that may contain secrets.
  if (mayContainSecrets(path, home === undefined ? [] : [home])) return isFolder ? undefined : `${ruleTool}(/${path})`;
  if (!isTooMuch) return `${ruleTool}(/${folder}/**)`;
  return isFolder ? undefined : `${ruleTool}(/${path})`;
};
