/** Which rule would allow this call, and little more? For the answer "always allow this".
 *  Invariant: a suggestion allows the call it is made for. It never opens an interpreter, a wrapper, deletion, the network, or more
 *  than one command.
 *  Elsewhere: what a rule means (rules.ts), when it is offered (decide.ts). */

import { broadFolderProblem } from "../bash/index.ts";
import { mayContainSecrets } from "../paths/index.ts";
import type { Target } from "./arguments.ts";
import { notesFor } from "./notes.ts";
import { isShell, isWrapper, programOf } from "./programs-with-programs.ts";
import { allowsOne, parseRule } from "./rules.ts";
import { starredWords } from "./running-options.ts";
import { isLiteral, readShell, type ShellCommand, type ShellWord } from "./shell-words.ts";

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

const LONGEST_EXACT = 120;

export type SuggestionPlace = {
  /** The workspace: its root is too much to offer for writing. */
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
  const count = starredWords(words.map(({ text: word }) => word));
  // A quoted word that looks like an assignment is a program to bash; a rule cannot say so.
  if (head && /^[A-Za-z_]\w*\+?=/.test(head.text)) return undefined;
  if (!head || isTooBroad(programOf(head))) return undefined;
  const inner = RUNNERS.has(programOf(head))
    ? words.slice(1).filter(({ text: word }) => !/^-|^(?:exec|run|compose|dlx)$/.test(word))
    : [];
  if (inner.slice(0, 3).some((word) => isTooBroad(programOf(word)))) return undefined;
  if (notesFor(text).length > 0) return undefined;
  const starred = count === undefined ? undefined : `Bash(${written(words.slice(0, count))}:*)`;
  const rule = starred !== undefined && allows(starred, command) ? starred : exact(words);
  return rule.length <= LONGEST_EXACT && allows(rule, command) ? rule : undefined;
};

/** Their words name another program. A rule for all that it may be given would be one for that program. */
const RUNNERS = new Set("npx yarn pnpm uv poetry bundle docker podman".split(" "));

const allows = (rule: string, command: ShellCommand): boolean => {
  const read = parseRule(rule, { list: "allow", base: "/", origin: "" });
  return read.kind === "rule" && allowsOne(read.rule, command);
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
