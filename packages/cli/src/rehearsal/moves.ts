/** What a task asks for, as data: the calls to make, and how to report their results.
 *  Invariant: a move holds everything it needs; nothing is looked up later.
 *  Elsewhere: reading a prompt (tasks.ts, reading-moves.ts, changing-moves.ts), making a move (work.ts). */

import type { JsonObject } from "@prefork/wire";

export type Call = { readonly name: string; readonly input: JsonObject };

/** A read-only call, and what kind of result to report. */
export type Look = Call & {
  readonly about: "search" | "names" | "count" | "list" | "read" | "run" | "repeats" | "tally";
};

export type Change =
  | { readonly kind: "replace"; readonly old: string; readonly new: string; readonly all: boolean }
  | { readonly kind: "append"; readonly text: string }
  /** `over`: an existing file may be replaced. */
  | { readonly kind: "write"; readonly text: string; readonly over: boolean };

export type Move =
  /** All calls at once, in one turn. */
  | { readonly kind: "look"; readonly looks: readonly Look[] }
  | { readonly kind: "change"; readonly path: string; readonly change: Change }
  | { readonly kind: "remember"; readonly items: readonly string[] }
  /** `isolated`: each in its own worktree. */
  | { readonly kind: "fork"; readonly items: readonly string[]; readonly isolated?: true }
  | { readonly kind: "unknown"; readonly text: string };

export const look = (...looks: readonly Look[]): Move => ({ kind: "look", looks });

export const bash = (command: string, extras: JsonObject = {}): Look => ({
  name: "Bash",
  input: { command, ...extras },
  about: "run",
});

/** The forms of prompts that a rehearsal understands. */
export const FORMS: readonly string[] = [
  "find `text` in src · where is name used · where is name defined",
  "read src/a.ts lines 10-20 · show the first 5 lines of README.md",
  "list *.ts files in src · which files contain `text`",
  "count lines in src/a.ts · count TODOs in src · how many files are in docs",
  "find duplicates of `text` in src · count files per folder in src",
  "run `command`",
  "git status · show the last 5 commits · what changed in src/a.ts · who wrote src/a.ts",
  "replace `old` with `new` in src/a.ts · rename oldName to newName in src/a.ts · append `text` to notes.md",
  "create file notes.md with: (a fenced text)",
  "remember to do something · plan: this; that",
  "in parallel: (a list of tasks) · in parallel, in worktrees: (a list of tasks)",
  "with a name for a fork: find `text` in src",
];
