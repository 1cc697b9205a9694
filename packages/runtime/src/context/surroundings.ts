/** What does a conversation begin with: the first user content, from what lies around the session to the user's words.
 *  Invariant: the parts come in one order, from what changes least to what changes most, so that another session of the
 *  same project agrees with this one for as long as possible; the user's words are the last block, as they were typed.
 *  Elsewhere: what comes before it (system-prompt.ts), what is added when the surroundings change (notes.ts). */

import type { Mode } from "@prefork/guard";
import { type DocumentBlock, type ImageBlock, type TextBlock, text } from "@prefork/wire";
import type { NoteKind } from "../events.ts";
import type { ConventionFile, Conventions } from "./conventions.ts";
import { type Environment, environmentText, type GitSummary, headWords, MODE_WORDS } from "./environment.ts";
import { bytesOfText, enclose, encloseParts, escapeNote, escapeTags, figure, headOf, oneLine } from "./text.ts";
import { type Offered, type ToolHashes, toldTools, toolWords } from "./tool-servers.ts";

export type ContentBlock = TextBlock | ImageBlock | DocumentBlock;

/** More that a session begins with: its skills, its agents. */
export type Section = { readonly name: string; readonly text: string };

/** What lies around a conversation. Each part is plain data. */
export type Surroundings = {
  /** Absent for agents that are to know none. */
  readonly conventions?: Conventions;
  readonly sections?: readonly Section[];
  /** Tools of servers beside those of the list. */
  readonly offered?: Offered;
  readonly environment?: Environment;
  readonly mode?: Mode;
};

export type Prompt = string | readonly ContentBlock[];

/** `notes`: what extensions add to this prompt. */
export const firstContent = (
  around: Surroundings,
  prompt: Prompt,
  notes: readonly TextBlock[] = [],
): readonly ContentBlock[] => [...surroundingBlocks(around), ...notes, ...promptBlocks(prompt)];

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

const offeredText = (offered: Offered): readonly string[] => {
  const words = toolWords(offered);
  return words === undefined ? [] : [encloseParts("section", [words], { name: "tool-servers" })];
};

const ABOUT_CONVENTIONS =
  "Copied from files of the user and of this project; general ones first, the nearest to the working folder last.";

/** Nothing at all where there is nothing to say. */
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

/** What is the model told when something around the conversation changed after it began?
 *  Invariant: what was said once is never edited: a change is a note at the tail, and what did not change is not said
 *  again. The same two states give the same notes, byte for byte.
 *  Elsewhere: where in a request a note goes (../agent), what it was at first (first-content.ts). */

export type Note = { readonly kind: NoteKind; readonly text: string };

/** As much of the surroundings as later changes are measured against: small enough to be journalled at each change. */
export type Told = {
  readonly date?: string;
  readonly mode?: Mode;
  readonly git?: { readonly kind: GitSummary["kind"]; readonly branch?: string };
  readonly files: readonly { readonly path: string; readonly hash: string }[];
  /** Tools of servers, in the list or announced. */
  readonly tools?: ToolHashes;
};

/** What a conversation that begins with these surroundings has been told; or one that was told of the changes since
 *  `before`. */
export const toldOf = ({ environment, mode, conventions, offered }: Surroundings, before?: Told): Told => ({
  ...(mode === undefined ? {} : { mode }),
  ...(environment === undefined ? {} : { date: environment.date, git: gitOf(environment.git) }),
  files: (conventions?.files ?? []).map(({ path, hash }) => ({ path, hash })),
  ...(offered === undefined ? {} : { tools: toldTools(offered, before?.tools) }),
});

const gitOf = (git: GitSummary): NonNullable<Told["git"]> => {
  const branch = git.kind === "repository" ? git.branch : undefined;
  return { kind: git.kind, ...(branch === undefined ? {} : { branch }) };
};

/** Most of a changed file that a note repeats, and of all of them together. */
const FILE_BYTES = 16_000;
const ALL_FILES_BYTES = 48_000;

export const changesBetween = (before: Told, now: Surroundings): readonly Note[] => {
  const { environment, mode, conventions, offered } = now;
  return [
    ...(environment === undefined ? [] : dateNotes(before.date, environment.date)),
    ...(mode === undefined ? [] : modeNotes(before.mode, mode)),
    ...(environment === undefined ? [] : gitNotes(before.git, gitOf(environment.git))),
    ...(conventions === undefined ? [] : conventionNotes(before.files, conventions)),
    ...(offered === undefined ? [] : toolNotes(before.tools, offered)),
  ];
};

const toolNotes = (before: ToolHashes | undefined, offered: Offered): readonly Note[] => {
  const words = toolWords(offered, before);
  return words === undefined ? [] : [{ kind: "servers", text: words }];
};

const dateNotes = (before: string | undefined, date: string): readonly Note[] =>
  date === before ? [] : [{ kind: "date", text: `The date is now ${date}.` }];

const modeNotes = (before: Mode | undefined, mode: Mode): readonly Note[] => {
  if (mode === before) return [];
  const was = before === undefined ? "" : ` (it was ${before})`;
  return [{ kind: "mode", text: `The permission mode is now ${mode}${was}: ${MODE_WORDS[mode]}.` }];
};

/** Counts of changed files go stale with every edit, and git can be asked for them; only the branch is told. A summary
 *  that could not be made says nothing about the branch. */
const gitNotes = (before: Told["git"], now: NonNullable<Told["git"]>): readonly Note[] => {
  if (now.kind === "left-out") return [];
  if (now.kind === "none")
    return before?.kind === "repository"
      ? [{ kind: "git", text: "The working folder is in no git repository now." }]
      : [];
  if (before?.kind === "repository" && before.branch === now.branch) return [];
  const was = before?.kind === "repository" ? ` (it was: ${checkedOut(before)})` : "";
  return [{ kind: "git", text: `Git has now checked out: ${checkedOut(now)}${was}.` }];
};

const checkedOut = ({ branch }: NonNullable<Told["git"]>): string => escapeTags(headWords(branch));

const conventionNotes = (before: Told["files"], { files, notes }: Conventions): readonly Note[] => {
  const told = new Map(before.map(({ path, hash }) => [path, hash]));
  const there = new Set(files.map(({ path }) => path));
  const gone = before.filter(({ path }) => !there.has(path));
  const changed = files.filter(({ path, hash }) => told.get(path) !== hash);
  let room = ALL_FILES_BYTES;
  return [
    ...gone.map(({ path }) => {
      const why = notes.find((note) => note.path === path)?.text;
      const words = why === undefined ? "is gone; what it said holds no longer" : `${why}; what it said before is old`;
      return conventionNote(`${nameOf(path)} ${escapeTags(oneLine(words, 600))}.`);
    }),
    ...changed.map((file) => {
      const shown = headOf(file.text, Math.min(FILE_BYTES, room));
      room -= bytesOfText(shown);
      const verb = told.has(file.path) ? "has changed and now says" : "is new and says";
      return conventionNote(`${nameOf(file.path)} ${verb}:\n${shownText(file, shown)}`);
    }),
  ];
};

const conventionNote = (words: string): Note => ({ kind: "conventions", text: words });

const nameOf = (path: string): string => escapeTags(oneLine(path, 4_096));

const shownText = (file: ConventionFile, shown: string): string => {
  const left = bytesOfText(file.text) - bytesOfText(shown);
  const rest = left === 0 ? "" : `\n(${figure(left)} more bytes are in the file itself.)`;
  return `${conventionFileText({ ...file, text: shown })}${rest}`;
};

/** The text of a note as it is sent. */
export const noteText = ({ kind, text }: Note): string => `<note kind="${kind}">${escapeNote(text)}</note>`;
