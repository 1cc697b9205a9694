/** What is the model told about the session's surroundings, at the beginning and when they change?
 *  Invariant: the parts of the first content have a fixed order, from what changes least to what changes most, so that
 *  sessions of the same project share the longest possible prefix. The user's prompt is the last block, as it was
 *  typed. What was said once is never edited: a change is a note at the tail, and what did not change is not repeated.
 *  The same two states give the same notes, byte for byte.
 *  Elsewhere: what comes before it (system-prompt.ts), where a note goes in a request (../agent). */

import type { Mode } from "@prefork/guard";
import { type DocumentBlock, type ImageBlock, type TextBlock, text } from "@prefork/wire";
import type { NoteKind } from "../events.ts";
import type { ConventionFile, Conventions } from "./conventions.ts";
import { describeHead, type Environment, environmentText, type GitSummary, MODE_DESCRIPTIONS } from "./environment.ts";
import { byteLength, enclose, encloseParts, escapeNote, escapeTags, formatNumber, oneLine, takeHead } from "./text.ts";
import { describeOfferedTools, knownTools, type OfferedTools, type ToolHashes } from "./tool-servers.ts";

export type ContentBlock = TextBlock | ImageBlock | DocumentBlock;

/** Further text that a session begins with: its skills, its agents. */
export type Section = { readonly name: string; readonly text: string };

/** The surroundings of a conversation. Each part is plain data. */
export type Surroundings = {
  /** Absent for agents that do not get any. */
  readonly conventions?: Conventions;
  readonly sections?: readonly Section[];
  /** Tools of servers in addition to the tool list. */
  readonly offered?: OfferedTools;
  readonly environment?: Environment;
  readonly mode?: Mode;
};

export type Prompt = string | readonly ContentBlock[];

/** `notes`: what extensions add to this prompt. */
export const firstContent = (
  surroundings: Surroundings,
  prompt: Prompt,
  notes: readonly TextBlock[] = [],
): readonly ContentBlock[] => [...surroundingBlocks(surroundings), ...notes, ...promptBlocks(prompt)];

export const promptBlocks = (prompt: Prompt): readonly ContentBlock[] =>
  typeof prompt === "string" ? [text(prompt)] : prompt;

export const surroundingBlocks = ({
  conventions,
  sections = [],
  offered,
  environment,
  mode,
}: Surroundings): readonly TextBlock[] =>
  [
    ...(conventions === undefined ? [] : conventionsText(conventions)),
    ...sections.map((section) => enclose("section", section.text, { name: section.name })),
    ...(offered === undefined ? [] : offeredText(offered)),
    ...(environment === undefined ? [] : [environmentText(environment, mode)]),
  ].map((part) => text(part));

const offeredText = (offered: OfferedTools): readonly string[] => {
  const words = describeOfferedTools(offered);
  return words === undefined ? [] : [encloseParts("section", [words], { name: "tool-servers" })];
};

const ABOUT_CONVENTIONS =
  "Copied from files of the user and of this project; general ones first, the nearest to the working folder last.";

/** Empty if there is nothing to say. */
const conventionsText = ({ files, notes }: Conventions): readonly string[] => {
  if (files.length === 0 && notes.length === 0) return [];
  const parts = [
    ABOUT_CONVENTIONS,
    ...files.map(conventionFileText),
    ...notes.map(({ path, text: words }) => enclose("left-out", oneLine(`${path} ${words}`, 500))),
  ];
  return [encloseParts("conventions", parts)];
};

export const conventionFileText = (file: {
  readonly path: string;
  readonly text: string;
  readonly from?: string;
}): string => enclose("convention-file", file.text, { path: file.path, "imported-by": file.from });

/** A message about a change, for the tail of the conversation. */

export type Note = { readonly kind: NoteKind; readonly text: string };

/** What the model knows of the surroundings, to compare later states with. Small enough to be journalled at each
 *  change. */
export type KnownSurroundings = {
  readonly date?: string;
  readonly mode?: Mode;
  readonly git?: { readonly kind: GitSummary["kind"]; readonly branch?: string };
  readonly files: readonly { readonly path: string; readonly hash: string }[];
  /** Tools of servers, in the tool list or announced. */
  readonly tools?: ToolHashes;
};

/** What a conversation knows that began with these surroundings, or that was told the changes since `before`. */
export const toKnownSurroundings = (
  { environment, mode, conventions, offered }: Surroundings,
  before?: KnownSurroundings,
): KnownSurroundings => ({
  ...(mode === undefined ? {} : { mode }),
  ...(environment === undefined ? {} : { date: environment.date, git: gitOf(environment.git) }),
  files: (conventions?.files ?? []).map(({ path, hash }) => ({ path, hash })),
  ...(offered === undefined ? {} : { tools: knownTools(offered, before?.tools) }),
});

const gitOf = (git: GitSummary): NonNullable<KnownSurroundings["git"]> => {
  const branch = git.kind === "repository" ? git.branch : undefined;
  return { kind: git.kind, ...(branch === undefined ? {} : { branch }) };
};

/** Limits for the text of changed files in notes: per file, and together. */
const FILE_BYTES = 16_000;
const ALL_FILES_BYTES = 48_000;

export const changesBetween = (before: KnownSurroundings, now: Surroundings): readonly Note[] => {
  const { environment, mode, conventions, offered } = now;
  return [
    ...(environment === undefined ? [] : dateNotes(before.date, environment.date)),
    ...(mode === undefined ? [] : modeNotes(before.mode, mode)),
    ...(environment === undefined ? [] : gitNotes(before.git, gitOf(environment.git))),
    ...(conventions === undefined ? [] : conventionNotes(before.files, conventions)),
    ...(offered === undefined ? [] : toolNotes(before.tools, offered)),
  ];
};

const toolNotes = (before: ToolHashes | undefined, offered: OfferedTools): readonly Note[] => {
  const words = describeOfferedTools(offered, before);
  return words === undefined ? [] : [{ kind: "servers", text: words }];
};

const dateNotes = (before: string | undefined, date: string): readonly Note[] =>
  date === before ? [] : [{ kind: "date", text: `The date is now ${date}.` }];

const modeNotes = (before: Mode | undefined, mode: Mode): readonly Note[] => {
  if (mode === before) return [];
  const was = before === undefined ? "" : ` (it was ${before})`;
  return [{ kind: "mode", text: `The permission mode is now ${mode}${was}: ${MODE_DESCRIPTIONS[mode]}.` }];
};

/** Counts of changed files go stale with every edit, and the model can ask git for them. Only the branch is
 *  announced. If there is no summary, nothing is known about the branch. */
const gitNotes = (before: KnownSurroundings["git"], now: NonNullable<KnownSurroundings["git"]>): readonly Note[] => {
  if (now.kind === "left-out") return [];
  if (now.kind === "none")
    return before?.kind === "repository"
      ? [{ kind: "git", text: "The working folder is in no git repository now." }]
      : [];
  if (before?.kind === "repository" && before.branch === now.branch) return [];
  const was = before?.kind === "repository" ? ` (it was: ${describeCheckout(before)})` : "";
  return [{ kind: "git", text: `Git has now checked out: ${describeCheckout(now)}${was}.` }];
};

const describeCheckout = ({ branch }: NonNullable<KnownSurroundings["git"]>): string =>
  escapeTags(describeHead(branch));

const conventionNotes = (before: KnownSurroundings["files"], { files, notes }: Conventions): readonly Note[] => {
  const knownHashes = new Map(before.map(({ path, hash }) => [path, hash]));
  const present = new Set(files.map(({ path }) => path));
  const removed = before.filter(({ path }) => !present.has(path));
  const changed = files.filter(({ path, hash }) => knownHashes.get(path) !== hash);
  let room = ALL_FILES_BYTES;
  return [
    ...removed.map(({ path }) => {
      const why = notes.find((note) => note.path === path)?.text;
      const words = why === undefined ? "is gone; what it said holds no longer" : `${why}; what it said before is old`;
      return conventionNote(`${nameOf(path)} ${escapeTags(oneLine(words, 600))}.`);
    }),
    ...changed.map((file) => {
      const shown = takeHead(file.text, Math.min(FILE_BYTES, room));
      room -= byteLength(shown);
      const verb = knownHashes.has(file.path) ? "has changed and now says" : "is new and says";
      return conventionNote(`${nameOf(file.path)} ${verb}:\n${changedFileText(file, shown)}`);
    }),
  ];
};

const conventionNote = (words: string): Note => ({ kind: "conventions", text: words });

const nameOf = (path: string): string => escapeTags(oneLine(path, 4_096));

const changedFileText = (file: ConventionFile, shown: string): string => {
  const left = byteLength(file.text) - byteLength(shown);
  const rest = left === 0 ? "" : `\n(${formatNumber(left)} more bytes are in the file itself.)`;
  return `${conventionFileText({ ...file, text: shown })}${rest}`;
};

/** The text of a note as it is sent. */
export const noteText = ({ kind, text }: Note): string => `<note kind="${kind}">${escapeNote(text)}</note>`;
