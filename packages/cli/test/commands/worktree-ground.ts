/** A repository whose forks have changed it in worktrees, made by `prefork -p` on the simulator. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { callTools, lastUserText, type SimRequest, type SimScript, say, toolResults } from "@prefork/simulator";
import type { JsonObject } from "@prefork/wire";
import { type Ground, openGround, parsedLines, type Ran } from "../print/ground.ts";
import { directiveIn } from "./family.ts";

export const git = (cwd: string, ...words: readonly string[]): string =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...words], { cwd, encoding: "utf8" });

/** What a fork replaces, by its directive. */
export type Edits = Readonly<Record<string, { readonly file: string; readonly from: string; readonly to: string }>>;

export const EDITS: Edits = {
  first: { file: "a.txt", from: "one", to: "ONE" },
  second: { file: "b.txt", from: "two", to: "TWO" },
};

const COPY = /git worktree of your own: ([^\\\n]+)/;

/** The worktree that a note in the fork's request names. */
export const copyIn = ({ body }: SimRequest): string => COPY.exec(JSON.stringify(body.messages))?.[1] ?? "";

/** Resolves a conflict by writing this. */
export const RESOLVED = "both\n";

const lastWords = ({ body }: SimRequest): string =>
  JSON.stringify(Array.isArray(body.messages) ? body.messages.at(-1) : undefined);

const forkAnswer = (request: SimRequest, edits: Edits): ReturnType<SimScript> => {
  const directive = directiveIn(request) ?? "";
  const { file = "", from = "", to = "" } = edits[directive] ?? {};
  const path = `${copyIn(request)}/${file}`;
  const [result] = toolResults(request);
  const last = lastWords(request);
  if (last.includes("have conflict markers")) return callTools([{ name: "Read", input: { file_path: path } }]);
  if (result?.text.includes("<<<<<<<"))
    return callTools([{ name: "Write", input: { file_path: path, content: RESOLVED } }]);
  if (result?.text.includes(`\t${from}`))
    return callTools([{ name: "Edit", input: { file_path: path, old_string: from, new_string: to } }]);
  if (last.includes("fork-directive:") && file !== "") return callTools([{ name: "Read", input: { file_path: path } }]);
  return say(`Scope: ${directive}\nResult: done`);
};

export const isolating =
  (edits: Edits): SimScript =>
  (request) => {
    if (directiveIn(request) !== undefined) return forkAnswer(request, edits);
    if (lastWords(request).includes("task-notification")) return say("All have reported.");
    if (toolResults(request).length > 0) return say("I wait for them.");
    if (!lastUserText(request).startsWith("Change")) return say("heard");
    const calls = Object.keys(edits).map((prompt) => ({ description: prompt, prompt, isolation: "worktree" }));
    return callTools(calls.map((input) => ({ name: "Agent", input })));
  };

export type WorktreeGround = Ground & {
  /** In the repository. */
  readonly run: (argv: readonly string[], calling?: Parameters<Ground["prefork"]>[1]) => Promise<Ran>;
  /** By label. */
  readonly ids: () => Promise<Readonly<Record<string, string>>>;
  /** The content of the checkout, as git reports it. */
  readonly status: () => string;
};

export const CHANGE: readonly string[] = ["-p", "--permission-mode", "accept-edits", "Change all."];

export const openWorktreeGround = async (script: SimScript): Promise<WorktreeGround> => {
  const ground = await openGround(script);
  for (const [name, text] of [
    ["a.txt", "one\n"],
    ["b.txt", "two\n"],
    ["c.txt", "three\n"],
  ] as const)
    ground.put(name, text);
  git(ground.work, "init", "-q");
  git(ground.work, "add", "-A");
  git(ground.work, "commit", "-qm", "first");
  ground.put("untracked.txt", "not committed\n");
  const run: WorktreeGround["run"] = (argv, calling) => ground.prefork([...argv, "--cwd", ground.work], calling);
  return {
    ...ground,
    run,
    ids: async () => {
      const rows: readonly JsonObject[] = parsedLines((await run(["worktrees", "list", "--json"])).out);
      return Object.fromEntries(rows.map(({ label, task }) => [String(label), String(task)]));
    },
    status: () => `${git(ground.work, "status", "--porcelain")}${git(ground.work, "diff")}`,
    [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
  };
};

/** The repository after its forks have finished. */
export const changed = async (edits: Edits = EDITS): Promise<WorktreeGround> => {
  const ground = await openWorktreeGround(isolating(edits));
  const { code } = await ground.prefork(CHANGE);
  assert.equal(code, 0);
  return ground;
};
