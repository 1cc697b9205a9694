/** What should a person know before approving a command? One line for each effect that is hard to undo.
 *  Invariant: the verdict never depends on it. Text that a command only prints or searches gives no note.
 *  Elsewhere: whether it may run (decide.ts), parsing the text (shell-words.ts). */

import { judgePath, partsBelow, protectedName } from "../paths/index.ts";
import { commandsIn, isShell, programOf, type RunCommand } from "./programs-with-programs.ts";
import { COMPUTED, readShell, type ShellWord } from "./shell-words.ts";

export type NotesPlace = {
  /** The workspace folders, absolute. Without them, only relative paths count as inside. */
  readonly roots?: readonly string[];
};

type NotedCommand = {
  readonly program: string;
  readonly args: readonly ShellWord[];
  readonly texts: readonly string[];
  /** Whether one of the letters is in a group of short options, or one of the long options is given, also abbreviated. */
  readonly has: (letters: string, ...long: readonly string[]) => boolean;
  readonly run: RunCommand;
  readonly place: NotesPlace;
};

export const notesFor = (command: string, place: NotesPlace = {}): readonly string[] => {
  const reading = readShell(command);
  if (reading.kind === "unread") return [`cannot be read in full: ${reading.reason}`];
  const runs = commandsIn(reading);
  const found = runs.flatMap((run) => {
    const about = describeRun(run, place);
    return NOTES.flatMap((note) => note(about) ?? []);
  });
  return [...new Set([...found, ...(downloadsIntoShell(runs) ? ["pipes a download into a shell"] : [])])];
};

const describeRun = (run: RunCommand, place: NotesPlace): NotedCommand => {
  const [head, ...args] = run.words;
  const texts = args.map(({ text }) => text);
  const end = texts.indexOf("--");
  const options = (end === -1 ? texts : texts.slice(0, end)).filter((text) => /^-./.test(text));
  const letters = new Set(options.filter((text) => /^-[^-]/.test(text)).flatMap((text) => [...text.slice(1)]));
  const names = [...new Set(options.map((text) => text.split("=")[0] ?? text))].filter((name) => /^--../.test(name));
  const has = (short: string, ...long: readonly string[]): boolean =>
    [...short].some((letter) => letters.has(letter)) ||
    names.some((name) => long.some((option) => option.slice(0, name.length) === name));
  return { program: head ? programOf(head) : "", args, texts, has, run, place };
};

type Note = (describeRun: NotedCommand) => string | undefined;

/** `git -C x push` → ["push", …]. */
const gitWords = ({ program, texts }: NotedCommand): readonly string[] => {
  if (program !== "git") return [];
  const start = texts.findIndex(
    (text, at) => !/^-/.test(text) && !/^-[Cc]$|^--(?:git-dir|work-tree)$/.test(texts[at - 1] ?? ""),
  );
  return start === -1 ? [] : texts.slice(start);
};

const isOutside = (word: ShellWord, roots: readonly string[]): boolean => {
  const { text, home } = word;
  if (home || /(?:^|\/)\.\.(?:\/|$)/.test(text)) return true;
  if (!text.startsWith("/")) return false;
  const judged = judgePath(text);
  const inside = (root: string): boolean =>
    judged.ok && (partsBelow(root.split("/").filter(Boolean), judged.parts)?.length ?? 0) > 0;
  return !roots.some(inside);
};

const deletes: Note = ({ program, args, has, place }) => {
  if (program !== "rm" || !has("rR", "--recursive")) return undefined;
  const operands = args.filter(({ text }) => !/^-./.test(text));
  if (operands.some((word) => isOutside(word, place.roots ?? []))) return "deletes recursively outside the project";
  if (operands.some(({ text }) => text.split("/")[0]?.includes(COMPUTED)))
    return "deletes recursively whatever a pattern or variable comes to";
  return "deletes folders with everything in them";
};

const pushes: Note = (command) => {
  const [subcommand, ...rest] = gitWords(command);
  if (subcommand !== "push") return undefined;
  if (command.has("f", "--force", "--force-with-lease", "--mirror") || rest.some((text) => /^\+./.test(text)))
    return "force push: replaces history that others may have";
  const deletesRemote = command.has("d", "--delete", "--prune") || rest.some((text) => /^:./.test(text));
  return deletesRemote ? "deletes a branch or tag on the remote" : undefined;
};

const discards: Note = (command) => {
  const [subcommand, ...rest] = gitWords(command);
  const { has } = command;
  const lost = {
    reset: has("", "--hard", "--merge"),
    checkout: has("f", "--force") || rest.includes("--") || rest.includes("."),
    restore: !has("S", "--staged") || has("W", "--worktree"),
    clean: has("f", "--force"),
    switch: has("f", "--force", "--discard-changes"),
    stash: rest[0] === "drop" || rest[0] === "clear",
    worktree: rest[0] === "remove" && has("f", "--force"),
  } as const;
  return Object.hasOwn(lost, subcommand ?? "") && lost[subcommand as keyof typeof lost]
    ? "discards uncommitted work"
    : undefined;
};

const rewrites: Note = (command) => {
  const [subcommand = "", ...rest] = gitWords(command);
  const amends = subcommand === "commit" && command.has("", "--amend");
  const expires = subcommand === "reflog" && ["expire", "delete"].includes(rest[0] ?? "");
  return amends || expires || ["rebase", "filter-branch", "filter-repo"].includes(subcommand)
    ? "rewrites history"
    : undefined;
};

const dropsBranch: Note = (command) => {
  const [subcommand] = gitWords(command);
  const forced = command.has("D") || (command.has("d", "--delete") && command.has("f", "--force"));
  return subcommand === "branch" && forced ? "deletes a branch even if it is not merged" : undefined;
};

const skipsHooks: Note = (command) => {
  const [subcommand] = gitWords(command);
  const isShort = subcommand === "commit" && command.has("n");
  const off = command.texts.some((text) => /^core\.hookspath=/i.test(text));
  return command.program === "git" && (isShort || off || command.has("", "--no-verify")) ? "skips hooks" : undefined;
};

const becomesRoot: Note = ({ program }) =>
  ["sudo", "doas", "su", "pkexec", "runuser"].includes(program) ? "runs as another user, by default root" : undefined;

const opensUp: Note = ({ program, texts, has }) => {
  if (!["chmod", "chown", "chgrp"].includes(program)) return undefined;
  const what = program === "chmod" ? "permissions" : "owners";
  if (has("R", "--recursive")) return `changes ${what} recursively`;
  const everybody = texts.some((text) => /^0?[0-7]?[0-7]{2}[2367]$|^[^=+ao]*[ao][^=+]*[+=][^,w]*w/.test(text));
  return program === "chmod" && everybody ? "lets every user write" : undefined;
};

const DEVICE = /^\/dev\/(?!null$|stdout$|stderr$|tty$|shm\/|fd\/)/;

const overwritesDevice: Note = ({ program, texts, run }) => {
  if (/^mkfs(?:\.|$)/.test(program) || ["wipefs", "fdisk", "parted", "blkdiscard"].includes(program))
    return "overwrites a device";
  const targets = run.command.redirects
    .filter(({ operator }) => operator.includes(">"))
    .map(({ target }) => target?.text ?? "");
  const copied = program === "dd" ? texts.flatMap((text) => /^of=(.*)$/s.exec(text)?.[1] ?? []) : [];
  const named = ["shred", "tee", "cp"].includes(program) ? texts : [];
  return [...targets, ...copied, ...named].some((text) => DEVICE.test(text)) ? "overwrites a device" : undefined;
};

const shreds: Note = ({ program }) => (program === "shred" ? "destroys files beyond recovery" : undefined);

const findsAndDeletes: Note = ({ program, texts }) =>
  program === "find" && texts.includes("-delete") ? "deletes every file it finds" : undefined;

const writesProtected: Note = ({ run }) => {
  const targets = run.command.redirects.filter(({ operator }) => operator.includes(">"));
  const name = targets.flatMap(({ target }) => protectedName((target?.text ?? "").split("/").filter(Boolean)) ?? [])[0];
  return name === undefined ? undefined : `writes a protected file: ${name}`;
};

const DATABASES = new Set(
  "psql mysql mariadb sqlite3 sqlcmd clickhouse-client duckdb mongosh mongo cockroach".split(" "),
);

const dropsData: Note = ({ program, texts, run }) => {
  const isClient = DATABASES.has(program);
  if (program === "dropdb") return "drops a database";
  if (!isClient) return undefined;
  const sql = [...texts, ...run.command.input.map(({ text }) => text)].join("\n");
  if (/\b(?:drop|truncate)\s+(?:table|database|schema)\b|\btruncate\s+\w|\.drop(?:Database)?\(/i.test(sql))
    return "drops a table or database";
  return /\bdelete\s+from\s+\S+\s*(?:;|$)/im.test(sql) ? "deletes every row of a table" : undefined;
};

/** The first words of commands that affect more than this machine's files, and what they do. */
const FAR: readonly (readonly [string, string])[] = [
  ["docker system prune", "deletes containers, images or volumes"],
  ["docker volume rm", "deletes containers, images or volumes"],
  ["docker volume prune", "deletes containers, images or volumes"],
  ["kubectl delete", "deletes resources of a cluster"],
  ["terraform destroy", "destroys infrastructure"],
  ["terraform apply", "changes infrastructure"],
  ["npm publish", "publishes a package"],
  ["pnpm publish", "publishes a package"],
  ["yarn publish", "publishes a package"],
  ["cargo publish", "publishes a package"],
  ["twine upload", "publishes a package"],
  ["gem push", "publishes a package"],
  ["gh repo delete", "deletes a repository"],
  ["crontab -r", "deletes all scheduled jobs"],
  ["shutdown", "stops the machine"],
  ["reboot", "stops the machine"],
  ["poweroff", "stops the machine"],
  ["halt", "stops the machine"],
  ["killall", "ends processes by name"],
  ["pkill", "ends processes by name"],
];

const reachesFar: Note = ({ program, texts, has }) => {
  const words = [program, ...texts];
  const isCompose = program === "docker" && texts[0] === "compose" && texts.includes("down");
  if (isCompose && has("v", "--volumes")) return "deletes containers, images or volumes";
  return FAR.find(([start]) => start.split(" ").every((word, at) => words[at] === word))?.[1];
};

const runsComputed: Note = ({ program, args }) =>
  program === "eval" && args.some(({ text }) => text.includes(COMPUTED)) ? "runs text that it computes" : undefined;

const NOTES: readonly Note[] = [
  becomesRoot,
  deletes,
  findsAndDeletes,
  shreds,
  discards,
  rewrites,
  pushes,
  dropsBranch,
  skipsHooks,
  opensUp,
  overwritesDevice,
  writesProtected,
  dropsData,
  reachesFar,
  runsComputed,
];

const downloadsIntoShell = (runs: readonly RunCommand[]): boolean => {
  const programs = runs.map(({ words: [head] }) => (head ? programOf(head) : ""));
  const fed = runs.some(({ words: [head, ...rest], command }) => {
    if (!head || !(isShell(programOf(head)) || /^(?:python[\d.]*|perl|ruby|node)$/.test(programOf(head)))) return false;
    return command.piped || rest.some(({ text }) => text.includes(COMPUTED));
  });
  return fed && programs.some((program) => ["curl", "wget", "fetch"].includes(program));
};
