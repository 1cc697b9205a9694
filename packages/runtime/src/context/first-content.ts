/** What does a conversation begin with: the first user content, from what lies around the session to the user's words.
 *  Invariant: the parts come in one order, from what changes least to what changes most, so that another session of the
 *  same project agrees with this one for as long as possible; the user's words are the last block, as they were typed.
 *  Elsewhere: what comes before it (system-prompt.ts), what is added when the surroundings change (notes.ts). */

import type { Mode } from "@prefork/guard";
import { type DocumentBlock, type ImageBlock, type TextBlock, text } from "@prefork/wire";
import type { Conventions } from "./conventions.ts";
import { type Environment, environmentText } from "./environment.ts";
import { enclose, encloseParts, oneLine } from "./tags.ts";
import { type Offered, toolWords } from "./tool-servers.ts";

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
