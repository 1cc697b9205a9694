/** One task's whole life, step by step, so that it can be interrupted anywhere and resumed.
 *  Elsewhere: the process that runs it (life-process.ts), what must hold after an interruption (crash.ts). */

import { appendFileSync, chmodSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Worktrees } from "../src/index.ts";
import { commitUsual, type Files, filesIn, type Ground } from "./ground.ts";

/** The steps in order; each is recorded when it is done. */
export type Phase = "opened" | "created" | "edited" | "finished" | "own" | "merged" | "undone" | "again" | "pruned";

export const prepareLife = (ground: Ground): void => {
  commitUsual(ground);
  ground.put("private", "p\n", 0o600);
  ground.put("flat/file", "f\n");
  ground.git("add", "-A");
  ground.git("commit", "-qm", "two");
  ground.put("a.txt", "1\n2x\n3\n4\n5\n6\n7\n8\n9\n");
  ground.put("staged", "s\n");
  ground.git("add", "staged");
  ground.put("x.log", "ignored\n");
};

export const editCopy = ({ put, drop, path }: Files): void => {
  put("a.txt", "1\n2x\n3\n4\n5\n6\n7\n8\nnine\n");
  put("private", "of the task\n");
  put("made/by/task", "m\n");
  if (existsSync(join(path, "d"))) drop("d");
  if (existsSync(join(path, "flat/file"))) {
    drop("flat");
    put("flat", "a file\n");
  }
  chmodSync(join(path, "b"), 0o755);
};

/** In git's order. */
export const EDITED = ["a.txt", "b", "d/e/f", "flat", "flat/file", "made/by/task", "private"];

export const editCheckout = ({ put }: Files): void => {
  put("a.txt", "one\n2x\n3\n4\n5\n6\n7\n8\n9\n");
  put("own", "o\n");
};

export type Life = {
  readonly worktrees: Worktrees;
  readonly checkout: Files;
  readonly home: string;
  readonly done: (phase: Phase) => void;
};

const mustBe = (is: boolean, words: string): void => {
  if (!is) throw new Error(words);
};

const merge = async ({ worktrees }: Life): Promise<void> => {
  const [outcome] = await worktrees.merge(["t"]);
  mustBe(outcome?.kind === "merged", JSON.stringify(outcome));
};

export const begin = async (life: Life): Promise<void> => {
  const { worktrees, home, done } = life;
  const created = await worktrees.create({ task: "t", label: "", snapshot: await worktrees.snapshot() });
  done("created");
  editCopy(filesIn(created.path, home));
  done("edited");
};

export const goOn = async (life: Life): Promise<void> => {
  const { worktrees, checkout, done } = life;
  await worktrees.finish("t", { message: "m\n", end: "reported" });
  done("finished");
  editCheckout(checkout);
  done("own");
  await merge(life);
  done("merged");
  await worktrees.undo(1);
  done("undone");
  await merge(life);
  done("again");
  const [pruned] = await worktrees.prune();
  mustBe(pruned?.kind === "removed", JSON.stringify(pruned));
  done("pruned");
};

export const notesOf = (file: string): readonly Phase[] =>
  existsSync(file) ? (readFileSync(file, "utf8").split("\n").filter(Boolean) as Phase[]) : [];

export const note =
  (file: string) =>
  (phase: Phase): void =>
    appendFileSync(file, `${phase}\n`);
