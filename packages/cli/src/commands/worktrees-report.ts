/** Formats worktrees: a table of many, one in full, and both as JSON.
 *  Invariant: labels, names and diffs cannot control the terminal; a worktree that no process works in is not shown as
 *  working.
 *  Elsewhere: the worktrees (@prefork/worktrees), texts about a merge (merge-report.ts). */

import type { ChangedFile, MergeOutcome, Worktree, WorktreeInspection, Worktrees } from "@prefork/worktrees";
import { jsonLine } from "../lines.ts";
import { painter, type Row, renderTable } from "../table.ts";
import { visible } from "../visible.ts";
import { formatAge } from "./tasks-report.ts";
import { inLine, shortId } from "./tasks-store.ts";
import { counted } from "./worktrees-store.ts";

const LONGEST_LABEL = 32;

type LeftByCrash = Awaited<ReturnType<Worktrees["interrupted"]>>;
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
      { title: "age", align: "right", dispensable: 2 },
      { title: "path", dispensable: 1 },
    ],
    rows: rows.map((worktree): Row => {
      const { task, label, createdAt, path, state } = worktree;
      const isInterrupted = interrupted.has(task);
      return {
        cells: [
          shortId(task),
          inLine(label, LONGEST_LABEL),
          stateText(worktree, isInterrupted),
          fileCountText(worktree),
          mergedText(worktree),
          formatAge(now - createdAt),
          state.kind === "gone" ? "" : inLine(path),
        ],
        ...(isInterrupted ? { style: "bad" } : state.kind === "gone" ? { style: "faint" } : {}),
      };
    }),
    colour,
  });

const stateText = ({ state }: Worktree, isInterrupted: boolean): string => {
  if (isInterrupted) return "interrupted by a crash";
  switch (state.kind) {
    case "creating":
      return "being created";
    case "working":
      return "working";
    case "finished":
      return inLine(state.end, LONGEST_LABEL);
    case "removing":
      return "being removed";
    case "gone":
      return "removed";
  }
};

/** Files are counted only when the task has ended. */
const fileCountText = ({ tip, files }: Worktree): string => (tip === undefined ? "–" : String(files));

const mergedText = ({ tip, mergedTip, files }: Worktree): string => {
  if (tip === undefined) return "–";
  if (mergedTip !== undefined) return mergedTip === tip ? "yes" : "partly";
  return files === 0 ? "empty" : "no";
};

export const crashLines = ({ worktrees, points }: LeftByCrash): readonly string[] => {
  const what = [
    ...worktrees.map(({ task, state }) => `${task} was ${WORKTREE_STATES[state.kind] ?? state.kind}`),
    ...points.map(({ point, task, state }) => `merge ${point} (${task}) was ${MERGE_STATES[state] ?? state}`),
  ];
  return what.length === 0
    ? []
    : [`a process died in the middle of its work: ${what.join("; ")}. To repair it: prefork worktrees repair`];
};

const MERGE_STATES: Readonly<Record<string, string>> = {
  merging: "in progress",
  merged: "being checked",
  undoing: "being undone",
};

const WORKTREE_STATES: Readonly<Record<string, string>> = {
  creating: "being created",
  working: "working",
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

export type WorktreeDetail = {
  readonly worktree: Worktree;
  readonly looked: WorktreeInspection;
  readonly preview: MergeOutcome | undefined;
  readonly interrupted: ReadonlySet<string>;
  /** No crash left anything unfinished. */
  readonly isQuiet: boolean;
  readonly diff: string | undefined;
};

export const worktreeAsJson = ({ worktree, looked, preview, interrupted, diff }: WorktreeDetail): string =>
  jsonLine({
    ...worktreeAsObject(worktree, interrupted),
    changed: looked.files,
    commits: looked.commits,
    notCommitted: looked.leftOut,
    preview: preview ?? null,
    ...(diff === undefined ? {} : { diff }),
  });

export const worktreeAsText = (shown: WorktreeDetail, { now, colour }: Layout): string => {
  const { worktree, looked, interrupted, diff } = shown;
  const { task, label, branch, path, top, session, createdAt, leftOut } = worktree;
  const facts: Readonly<Record<string, string>> = {
    task: inLine(task),
    label: inLine(label),
    state: stateText(worktree, interrupted.has(task)),
    merged: mergedText(worktree),
    "would merge": previewText(shown),
    age: formatAge(now - createdAt),
    branch: inLine(branch),
    path: looked.exists ? inLine(path) : `${inLine(path)} (the folder is gone; the branch still has the work)`,
    checkout: inLine(top),
    session: session === undefined ? "none" : inLine(session),
    ...(leftOut.length === 0 ? {} : { "not copied": leftOut.map((name) => inLine(name)).join(", ") }),
    ...(looked.leftOut.length === 0 ? {} : { "not committed": looked.leftOut.map((name) => inLine(name)).join(", ") }),
  };
  return [
    ...Object.entries(facts).map(([name, value]) => `${name.padEnd(13)} ${value}\n`),
    `\n${looked.files.length === 0 ? "No file was changed.\n" : fileTable(looked.files, colour)}`,
    looked.commits.length === 0
      ? ""
      : `\nCommits on ${inLine(branch)}\n${looked.commits.map(({ id, subject }) => `  ${id.slice(0, 10)} ${inLine(subject)}\n`).join("")}`,
    diff === undefined ? "" : `\n${paintedDiff(diff, colour)}`,
  ].join("");
};

const previewText = ({ preview, isQuiet, worktree }: WorktreeDetail): string => {
  if (!isQuiet) return "unknown; run prefork worktrees repair first";
  if (!preview) return worktree.state.kind === "finished" ? "unknown" : "unknown until it ends";
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
      cells: [inLine(path), how, added === undefined ? "binary" : `+${added} −${removed}`],
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
