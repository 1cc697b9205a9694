/** What does a conversation go on with after it was summed up?
 *  Invariant: pure and bounded; surroundings are read anew, so notes of the old epoch have no place in it; what still runs
 *  is named, so that nothing is lost or started twice.
 *  Elsewhere: the summary (compaction.ts), the same beginning without a past (first-content.ts). */

import { text } from "@prefork/wire";
import type { Todo } from "../events.ts";
import { type ContentBlock, type Prompt, promptBlocks, type Surroundings, surroundingBlocks } from "./first-content.ts";
import { bytesOfText, bytesOfTokens, figure, headOf } from "./measure.ts";
import { enclose, encloseParts, escapeTags, oneLine } from "./tags.ts";

/** A file as it is now, read anew. */
export type ReadFile = { readonly path: string; readonly text: string };

export type OpenTask = { readonly id: string; readonly label: string; readonly state: string };

export type NextEpoch = {
  readonly around: Surroundings;
  readonly summary: string;
  /** What the user asked last, as it was typed. */
  readonly lastPrompt?: string;
  readonly todos?: readonly Todo[];
  readonly openTasks?: readonly OpenTask[];
  /** The most recently read first. */
  readonly files?: readonly ReadFile[];
  /** What they may take in all, where the window is small. */
  readonly filesTokens?: number;
  /** "go-on": in the middle of an exchange. "wait": the user speaks next. */
  readonly followedBy: { readonly kind: "go-on" | "wait" } | { readonly kind: "prompt"; readonly prompt: Prompt };
};

const MOST_FILES = 5;
const FILE_BYTES = 16_000;
const ALL_FILES_BYTES = 48_000;
const LAST_PROMPT_BYTES = 8_000;

const COMPACTED =
  "The earlier conversation was compacted: it is no longer here, and this summary stands in its place. Everything it says was done is done.";

export const nextEpochContent = (next: NextEpoch): readonly ContentBlock[] => [
  ...surroundingBlocks(next.around),
  ...pastParts(next).map((part) => text(part)),
  ...(next.followedBy.kind === "prompt" ? promptBlocks(next.followedBy.prompt) : []),
  ...(next.followedBy.kind === "go-on" ? [text(GO_ON)] : []),
];

const GO_ON = "Go on with the next step of the summary, without saying again what was said.";

const pastParts = ({
  summary,
  lastPrompt,
  todos = [],
  openTasks = [],
  files = [],
  filesTokens = Number.POSITIVE_INFINITY,
}: NextEpoch): readonly string[] => [
  `${COMPACTED}\n${enclose("earlier-conversation", summary)}`,
  ...(lastPrompt === undefined ? [] : [lastPromptText(lastPrompt)]),
  ...(todos.length === 0 ? [] : [encloseParts("todo-list", todos.map(todoLine))]),
  ...(openTasks.length === 0 ? [] : [encloseParts("open-tasks", [STILL_RUNNING, ...openTasks.map(taskLine)])]),
  ...fileParts(files, Math.min(ALL_FILES_BYTES, bytesOfTokens(filesTokens))),
];

const lastPromptText = (prompt: string): string => {
  const shown = headOf(prompt, LAST_PROMPT_BYTES);
  const cut = bytesOfText(prompt) - bytesOfText(shown);
  return enclose("last-message", shown, { from: "user", "bytes-cut": cut === 0 ? undefined : cut });
};

const todoLine = ({ content, status }: Todo): string => escapeTags(`- [${status}] ${oneLine(content, 500)}`);

const STILL_RUNNING = "Still running; each reports by a notification. Do not start them again.";

const taskLine = ({ id, label, state }: OpenTask): string =>
  escapeTags(`- ${id}: ${oneLine(label)} (${oneLine(state)})`);

/** From the most recent on, while there is room. */
const fileParts = (files: readonly ReadFile[], most: number): readonly string[] => {
  const parts: string[] = [];
  let room = most;
  for (const file of files.slice(0, MOST_FILES)) {
    const shown = headOf(file.text, Math.min(FILE_BYTES, room));
    const size = bytesOfText(shown);
    if (size === 0 && file.text !== "") break;
    room -= size;
    const cut = bytesOfText(file.text) - size;
    const more = cut === 0 ? undefined : `${figure(cut)} bytes more in the file`;
    parts.push(enclose("read-file", shown, { path: file.path, cut: more }));
  }
  return parts.length === 0 ? [] : [`Files last read, as they are now:\n${parts.join("\n")}`];
};
