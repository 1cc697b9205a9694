/** `prefork worktrees`: what forks left behind, what would happen to it, and what is removed or repaired. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { callTools, toolResults } from "@prefork/simulator";
import { run as runCommand } from "../../src/main.ts";
import { captured } from "../captured.ts";
import { parsedLines } from "../print/ground.ts";
import { directiveIn } from "./family.ts";
import { CHANGE, changed, copyIn, git, isolating, openWorktreeGround } from "./worktree-ground.ts";

test("the list names each worktree with its contents, and a single one is shown in full", async () => {
  await using ground = await changed();
  const { first = "", second = "" } = await ground.ids();
  assert.equal((await ground.run(["merge", second])).code, 0);
  const { out, err } = await ground.run(["worktrees"]);
  assert.equal(err, "");
  const [, , ...rows] = out.trimEnd().split("\n");
  const path = (task: string): string => parsedPath(ground.home, task);
  assert.deepEqual(
    rows.map((row) =>
      row
        .replace(/\d+ s/, "N s")
        .replace(/ +/g, " ")
        .replace(/\/worktrees\/\w+\//, "/worktrees/K/"),
    ),
    [
      `${first.slice(5)} first reported 1 no N s ${path(first)}`,
      `${second.slice(5)} second reported 1 yes N s ${path(second)}`,
    ],
  );
  const shown = await ground.run(["worktrees", "show", first.slice(5, 9), "--diff"]);
  assert.equal(shown.code, 0);
  assert.match(shown.out, /^would merge {3}cleanly, 1 file$/m);
  assert.match(shown.out, /^a\.txt {2}changed {2}\+1 −1$/m);
  assert.match(shown.out, new RegExp(`^Commits on prefork/${first}\n {2}[0-9a-f]{10} first$`, "m"));
  assert.match(shown.out, /^-one\n\+ONE$/m);
  const [object] = parsedLines((await ground.run(["worktrees", "show", first, "--json"])).out);
  assert.deepEqual(
    [object?.state, object?.end, object?.isMerged, object?.changed],
    ["finished", "reported", false, [{ path: "a.txt", how: "changed", added: 1, removed: 1 }]],
  );
  const where = (await ground.run(["worktrees", "path", first])).out.trim();
  assert.equal(readFileSync(`${where}/a.txt`, "utf8"), "ONE\n");
});

const parsedPath = (home: string, task: string): string => `${home}/.local/state/prefork/worktrees/K/trees/${task}`;

test("pruning removes merged worktrees; others only by name, after listing every file, and with a yes", async () => {
  await using ground = await changed();
  const { first = "", second = "" } = await ground.ids();
  assert.equal((await ground.run(["merge", second])).code, 0);
  const pruned = await ground.run(["worktrees", "prune"]);
  assert.deepEqual(pruned, {
    code: 0,
    out: `kept ${first}: not merged: 1 changed file\nremoved ${second}\n`,
    err: "",
  });
  const loss = `${first} (first) has unmerged work:\n  a.txt (changed, +1 −1)\n`;
  const unasked = await ground.run(["worktrees", "prune", "--force", first], { input: [] });
  assert.deepEqual(unasked, {
    code: 2,
    out: "",
    err: `${loss}prefork: nothing was removed: there is no terminal to ask on, so --force needs --yes\n`,
  });
  const asking = async (line: string): Promise<readonly [code: number, err: string]> => {
    const io = captured({
      env: ground.env,
      isTerminal: true,
      input: async function* () {
        yield line;
      },
    });
    const code = await runCommand(["worktrees", "prune", "--force", first, "--cwd", ground.work], io);
    return [code, io.errors()];
  };
  const question = "Delete the work of 1 task permanently? Type yes: ";
  assert.deepEqual(await asking("no"), [1, `${loss}${question}prefork: nothing was removed\n`]);
  assert.equal(git(ground.work, "show", `prefork/${first}:a.txt`), "ONE\n");
  assert.deepEqual(await asking("yes"), [0, `${loss}${question}`]);
  assert.deepEqual(await ground.ids(), {});
  assert.equal(git(ground.work, "branch", "--list", "prefork/*"), "");
});

test("work whose worktree was pruned after its merge survives an undo, and merges again", async () => {
  await using ground = await changed();
  const { first = "" } = await ground.ids();
  for (const argv of [
    ["merge", first],
    ["worktrees", "prune"],
    ["merge", "--undo"],
    ["worktrees", "prune"],
  ])
    assert.equal((await ground.run(argv)).code, 0, argv.join(" "));
  assert.equal(ground.read("a.txt"), "one\n");
  assert.equal(git(ground.work, "show", `prefork/${first}:a.txt`), "ONE\n");
  assert.match(
    (await ground.run(["worktrees", "show", first])).out,
    /the folder is gone; the branch still has the work/,
  );
  assert.equal((await ground.run(["merge", first])).code, 0);
  assert.equal(ground.read("a.txt"), "ONE\n");
});

test("work of a killed process is shown, kept, and can be repaired", async () => {
  const edits = { only: { file: "a.txt", from: "one", to: "ONE" } };
  const script = isolating(edits);
  await using ground = await openWorktreeGround((request) => {
    if (directiveIn(request) === undefined) return script(request);
    const [result] = toolResults(request);
    if (result?.text.includes("half.txt")) return new Promise<never>(() => {});
    return callTools([{ name: "Write", input: { file_path: `${copyIn(request)}/half.txt`, content: "half\n" } }]);
  });
  const running = ground.start(CHANGE);
  const half = async (): Promise<string | undefined> => {
    const [task = ""] = Object.values(await ground.ids());
    const path = task === "" ? "" : (await ground.run(["worktrees", "path", task])).out.trim();
    return existsSync(`${path}/half.txt`) ? task : undefined;
  };
  let task: string | undefined;
  while (task === undefined) task = await half();
  const refused = await ground.run(["merge", task]);
  assert.deepEqual(
    [refused.code, refused.out],
    [1, `not merged ${task}: ${task} is still working; wait until it ends, or stop it (prefork tasks stop ${task})\n`],
  );
  running.child.kill("SIGKILL");
  await running.ended;
  const listed = await ground.run(["worktrees"]);
  assert.match(listed.out, / interrupted by a crash /);
  assert.equal(
    listed.err,
    `prefork: a process died in the middle of its work: ${task} was working. To repair it: prefork worktrees repair\n`,
  );
  const repaired = await ground.run(["worktrees", "repair"]);
  assert.deepEqual(repaired, {
    code: 0,
    out: `${task} was working when its session ended: its work is committed on prefork/${task}: 1 changed file\n`,
    err: "",
  });
  assert.equal((await ground.run(["worktrees", "repair"])).out, "There is nothing to repair.\n");
  assert.equal(git(ground.work, "show", `prefork/${task}:half.txt`), "half\n");
  assert.equal(ground.status(), "?? untracked.txt\n");
});

test("a headless run reports on standard error what forks changed in worktrees, and streams it as events", async () => {
  await using ground = await openWorktreeGround(isolating({ only: { file: "a.txt", from: "one", to: "ONE" } }));
  const { out, err } = await ground.prefork(CHANGE);
  assert.equal(out, "All have reported.\n");
  assert.match(err, /^prefork: task-\w+ changed 1 file in its worktree \(prefork merge\)\n$/);
  const streamed = await ground.prefork([...CHANGE, "--output-format", "events"]);
  const types = parsedLines(streamed.out).map(({ type }) => String(type));
  assert.deepEqual(
    types.filter((type) => type.startsWith("worktree_")),
    ["worktree_created", "worktree_finished"],
  );
});
