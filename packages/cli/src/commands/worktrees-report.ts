/** How worktrees are laid out: a table of many, one in full, and both as JSON.
 *  Invariant: labels, names and diffs are shown as letters; what nobody works on any more is never shown as at work.
 *  Elsewhere: what is there (@prefork/runtime), the words of a merge (merge-report.ts). */

import type { ChangedFile, Looked, MergeOutcome, Worktree, Worktrees } from "@prefork/worktrees";
import { jsonLine } from "../lines.ts";
import { painter, type Row, renderTable } from "../table.ts";
import { visible } from "../visible.ts";
import { ageWords } from "./tasks-report.ts";
import { inLine, shortId } from "./tasks-store.ts";
import { counted } from "./worktrees-store.ts";

const LONGEST_LABEL = 32;

type Left = Awaited<ReturnType<Worktrees["underWay"]>>;
type Layout = { readonly now: number; readonly colour: boolean };

export const worktreeTable = (
  rows: readonly Worktree[],
  { interrupted, now, colour }: Layout & { readonly interrupted: ReadonlySet<string> },
): string =>
  renderTable({
    columns: [
      { title: "task" },
      { title: "label" },
      { title: "state" },
      { title: "files", align: "right" },
      { title: "merged" },
      { title: "age", align: "right" },
      { title: "path" },
    ],
    rows: rows.map((worktree): Row => {
      const { task, label, createdAt, path, state } = worktree;
      const isLeft = interrupted.has(task);
      return {
        cells: [
          shortId(task),
          inLine(label, LONGEST_LABEL),
          stateWords(worktree, isLeft),
          filesWord(worktree),
          mergedWord(worktree),
          ageWords(now - createdAt),
          state.kind === "gone" ? "" : inLine(path),
        ],
        ...(isLeft ? { style: "bad" } : state.kind === "gone" ? { style: "faint" } : {}),
      };
    }),
    colour,
  });

const stateWords = ({ state }: Worktree, isLeft: boolean): string => {
  if (isLeft) return "left by a crash";
  switch (state.kind) {
    case "creating":
      return "being made";
    case "working":
      return "at work";
    case "finished":
      return inLine(state.end, LONGEST_LABEL);
    case "removing":
      return "being removed";
    case "gone":
      return "removed";
  }
};

/** What it has is not counted before it has ended. */
const filesWord = ({ tip, files }: Worktree): string => (tip === undefined ? "–" : String(files));

const mergedWord = ({ tip, mergedTip, files }: Worktree): string => {
  if (tip === undefined) return "–";
  if (mergedTip !== undefined) return mergedTip === tip ? "yes" : "in part";
  return files === 0 ? "empty" : "no";
};

export const leftLines = ({ worktrees, points }: Left): readonly string[] => {
  const what = [
    ...worktrees.map(({ task, state }) => `${task} was ${LEFT[state.kind] ?? state.kind}`),
    ...points.map(({ point, task, state }) => `merge ${point} (${task}) was ${UNDER_WAY[state] ?? state}`),
  ];
  return what.length === 0
    ? []
    : [`a process ended in the middle: ${what.join("; ")}. prefork worktrees repair brings it to an end`];
};

const UNDER_WAY: Readonly<Record<string, string>> = {
  merging: "under way",
  merged: "being checked",
  undoing: "being taken back",
};

const LEFT: Readonly<Record<string, string>> = {
  creating: "being made",
  working: "at work",
  removing: "being removed",
};

export const worktreeAsObject = (worktree: Worktree, interrupted: ReadonlySet<string>): object => {
  const { state, tip, mergedTip, conflicted: _names, ignored: _ignored, ...rest } = worktree;
  const isMerged = mergedTip !== undefined && mergedTip === tip;
  return {
    ...rest,
    state: state.kind,
    end: state.kind === "finished" ? state.end : null,
    isLeftByCrash: interrupted.has(worktree.task),
    tip: tip ?? null,
    isMerged,
  };
};

export type Shown = {
  readonly worktree: Worktree;
  readonly looked: Looked;
  readonly preview: MergeOutcome | undefined;
  readonly interrupted: ReadonlySet<string>;
  /** Nothing was left under way by a crash. */
  readonly isQuiet: boolean;
  readonly diff: string | undefined;
};

export const shownAsJson = ({ worktree, looked, preview, interrupted, diff }: Shown): string =>
  jsonLine({
    ...worktreeAsObject(worktree, interrupted),
    changed: looked.files,
    commits: looked.commits,
    notCommitted: looked.leftOut,
    preview: preview ?? null,
    ...(diff === undefined ? {} : { diff }),
  });

export const shownAsText = (shown: Shown, { now, colour }: Layout): string => {
  const { worktree, looked, interrupted, diff } = shown;
  const { task, label, branch, path, top, session, createdAt, leftOut } = worktree;
  const facts: Readonly<Record<string, string>> = {
    task: inLine(task),
    label: inLine(label),
    state: stateWords(worktree, interrupted.has(task)),
    merged: mergedWord(worktree),
    "would merge": previewWords(shown),
    age: ageWords(now - createdAt),
    branch: inLine(branch),
    path: looked.isThere ? inLine(path) : `${inLine(path)} (the folder is gone; the branch has the work)`,
    checkout: inLine(top),
    session: session === undefined ? "none" : inLine(session),
    ...(leftOut.length === 0 ? {} : { "not copied": leftOut.map((name) => inLine(name)).join(", ") }),
    ...(looked.leftOut.length === 0 ? {} : { "not committed": looked.leftOut.map((name) => inLine(name)).join(", ") }),
  };
  return [
    ...Object.entries(facts).map(([name, value]) => `${name.padEnd(13)} ${value}\n`),
    `\n${looked.files.length === 0 ? "No file is changed.\n" : fileTable(looked.files, colour)}`,
    looked.commits.length === 0
      ? ""
      : `\nCommits on ${inLine(branch)}\n${looked.commits.map(({ id, subject }) => `  ${id.slice(0, 10)} ${inLine(subject)}\n`).join("")}`,
    diff === undefined ? "" : `\n${paintedDiff(diff, colour)}`,
  ].join("");
};

const previewWords = ({ preview, isQuiet, worktree }: Shown): string => {
  if (!isQuiet) return "not known: prefork worktrees repair first";
  if (!preview) return worktree.state.kind === "finished" ? "not known" : "when it has ended";
  switch (preview.kind) {
    case "would-merge":
      return preview.files.length === 0 ? "nothing new" : `cleanly, ${counted(preview.files.length, "file")}`;
    case "conflicts":
      return `with conflicts: ${preview.conflicts.map(({ path, kind }) => `${inLine(path)} (${inLine(kind)})`).join(", ")}`;
    case "failed":
      return `no: ${inLine(preview.reason)}`;
    default:
      return "nothing new";
  }
};

const fileTable = (files: readonly ChangedFile[], colour: boolean): string =>
  renderTable({
    columns: [{ title: "file" }, { title: "" }, { title: "lines", align: "right" }],
    rows: files.map(({ path, how, added, removed }) => ({
      cells: [inLine(path), how, added === undefined ? "no text" : `+${added} −${removed}`],
    })),
    colour,
  });

const paintedDiff = (diff: string, colour: boolean): string => {
  const paint = painter(colour);
  return visible(diff)
    .split("\n")
    .map((line) => {
      if (line.startsWith("+") && !line.startsWith("+++ ")) return paint("good", line);
      if (line.startsWith("-") && !line.startsWith("--- ")) return paint("bad", line);
      return line.startsWith("diff ") ? paint("bold", line) : line;
    })
    .join("\n");
};
