/** `prefork merge`: merges the work of forks into the checkout, one after another, with checks in between, and undoes it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { parsedLines } from "../print/ground.ts";
import { changed, EDITS, git, RESOLVED } from "./worktree-ground.ts";

const UNTOUCHED = "?? untracked.txt\n";

test("a family is merged with a check after each task, and undone as one", async () => {
  await using ground = await changed();
  const { first, second } = await ground.ids();
  assert.equal(ground.status(), UNTOUCHED);
  const merged = await ground.run(["merge", "--family", "--check", "grep -q ONE a.txt"]);
  assert.deepEqual(
    [merged.code, merged.out],
    [0, `merged ${first} (first): 1 file (merge 1)\n  a.txt\nmerged ${second} (second): 1 file (merge 2)\n  b.txt\n`],
  );
  assert.match(merged.err, /^· grep -q ONE a\.txt …\n· grep -q ONE a\.txt: ok after [\d.]+ s\n/);
  assert.match(merged.err, /\nprefork: to undo: prefork merge --undo --family\n$/);
  assert.deepEqual([ground.read("a.txt"), ground.read("b.txt")], ["ONE\n", "TWO\n"]);
  const undone = await ground.run(["merge", "--undo", "--family"]);
  assert.deepEqual(undone, {
    code: 0,
    out: `undone: merge 2 (${second}), 1 file restored\n  b.txt\nundone: merge 1 (${first}), 1 file restored\n  a.txt\n`,
    err: "",
  });
  assert.equal(ground.status(), UNTOUCHED);
  const again = await ground.run(["merge", "--undo"]);
  assert.deepEqual([again.code, again.err], [2, "prefork: there is no merge to undo in this checkout\n"]);
});

test("a preview shows file by file what the merge would do, stops where it would, and touches nothing", async () => {
  const third = { file: "b.txt", from: "two", to: "2" };
  await using ground = await changed({ ...EDITS, third, fourth: { file: "c.txt", from: "three", to: "3" } });
  const ids = await ground.ids();
  const before = ground.status();
  const { code, out, err } = await ground.run(["merge", "--family", "--preview"]);
  assert.deepEqual(
    { code, out, err },
    {
      code: 1,
      out: [
        `would merge ${ids.first} (first): 1 file`,
        "  a.txt",
        `would merge ${ids.second} (second): 1 file`,
        "  b.txt",
        `not merged ${ids.third} (third): 1 conflict with this checkout`,
        "  b.txt: conflict (content)",
        "",
      ].join("\n"),
      err: `prefork: the merge would stop there; not tried: ${ids.fourth}\n`,
    },
  );
  assert.equal(ground.status(), before);
});

test("a conflict stops the queue and does not merge that task; by choice it is skipped, marked, or one side is taken", async () => {
  await using ground = await changed();
  const { first = "", second = "" } = await ground.ids();
  ground.put("a.txt", "uno\n");
  const before = ground.status();
  const stopped = await ground.run(["merge", first, second]);
  assert.deepEqual(
    [stopped.code, stopped.out],
    [1, `not merged ${first} (first): 1 conflict with this checkout\n  a.txt: conflict (content)\n`],
  );
  assert.equal(
    stopped.err,
    `prefork: ${first} was not merged; choose what to do with --on-conflict: markers, mine, theirs, skip, or hand-back to the fork\nprefork: not tried: ${second}\n`,
  );
  assert.equal(ground.status(), before);
  const skipped = await ground.run(["merge", first, second, "--on-conflict", "skip"]);
  assert.deepEqual([skipped.code, ground.read("a.txt"), ground.read("b.txt")], [1, "uno\n", "TWO\n"]);
  const marked = await ground.run(["merge", first, "--on-conflict", "markers"]);
  assert.deepEqual(
    [marked.code, marked.err.split("\n")[0]],
    [5, "prefork: conflicts are left in a.txt; resolve them before you continue"],
  );
  assert.equal(ground.read("a.txt"), `<<<<<<< your checkout\nuno\n=======\nONE\n>>>>>>> prefork/${first}\n`);
  assert.equal((await ground.run(["merge", "--undo"])).code, 0);
  const previewed = await ground.run(["merge", first, "--on-conflict", "markers", "--preview"]);
  assert.deepEqual([previewed.code, ground.read("a.txt")], [5, "uno\n"]);
  const checked = await ground.run(["merge", first, "--on-conflict", "markers", "--check", "true"]);
  assert.deepEqual([checked.code, ground.read("a.txt")], [1, "uno\n"]);
  assert.match(checked.out, /the check was not run: conflicts are left in a\.txt/);
  for (const [side, content] of [
    ["mine", "uno\n"],
    ["theirs", "ONE\n"],
  ] as const) {
    const taken = await ground.run(["merge", first, "--on-conflict", side, "--json"]);
    assert.deepEqual(
      parsedLines(taken.out).map(({ kind }) => kind),
      [side === "mine" ? "nothing-new" : "merged"],
    );
    assert.equal(ground.read("a.txt"), content);
    assert.equal((await ground.run(["merge", "--undo"])).code, 0);
  }
});

test("a merge whose check fails is undone and stops the queue, unless it should be kept", async () => {
  await using ground = await changed();
  const { first, second } = await ground.ids();
  const check = ["--check", "echo tests fail >&2; false"];
  const failed = await ground.run(["merge", "--family", ...check]);
  assert.equal(failed.code, 1);
  assert.equal(
    failed.out,
    `not merged ${first} (first): the check failed; the merge was undone\n  a.txt\n  | tests fail\n`,
  );
  assert.match(failed.err, new RegExp(`not tried: ${second}\n$`));
  assert.equal(ground.status(), UNTOUCHED);
  const kept = await ground.run(["merge", "--family", "--keep-failed", ...check]);
  assert.equal(kept.code, 1);
  assert.match(kept.out, /^merged .*: the check failed; merge 2 is kept\n/);
  assert.equal(ground.read("a.txt"), "ONE\n");
});

test("check and conflict choice come from the user's settings unless the command line gives them", async () => {
  await using ground = await changed();
  const settings = { sandbox: { mode: "off" }, worktrees: { check: "false", onConflict: "theirs" } };
  const { writeFileSync, mkdirSync } = await import("node:fs");
  mkdirSync(`${ground.home}/.prefork`, { recursive: true });
  writeFileSync(`${ground.home}/.prefork/settings.json`, JSON.stringify(settings));
  ground.put("a.txt", "uno\n");
  const { first = "" } = await ground.ids();
  assert.match((await ground.run(["merge", first])).out, /the check failed; the merge was undone/);
  assert.equal(ground.read("a.txt"), "uno\n");
  assert.equal((await ground.run(["merge", first, "--no-check"])).code, 0);
  assert.equal(ground.read("a.txt"), "ONE\n");
});

test("conflicts are handed back to the fork that made them, which resumes and is then merged", async () => {
  await using ground = await changed();
  const { first = "", second = "" } = await ground.ids();
  ground.put("a.txt", "uno\n");
  const argv = ["merge", first, second, "--on-conflict", "hand-back"];
  const keyless = await ground.run(argv, { env: { ANTHROPIC_API_KEY: "", ANTHROPIC_BASE_URL: "" } });
  assert.equal(keyless.code, 2);
  assert.match(
    keyless.err,
    new RegExp(`^prefork: ${first} has conflicts, and its fork cannot resume: no ANTHROPIC_API_KEY`),
  );
  assert.equal(ground.read("a.txt"), "uno\n");
  const merged = await ground.run([...argv, "--permission-mode", "accept-edits"]);
  assert.deepEqual([merged.code, ground.read("a.txt"), ground.read("b.txt")], [0, RESOLVED, "TWO\n"]);
  assert.match(merged.err, new RegExp(`^· handing the conflicts back to ${first} …\n`));
  assert.equal((await ground.run(["merge", "--undo", "--family"])).code, 0);
  assert.deepEqual([ground.read("a.txt"), ground.read("b.txt")], ["uno\n", "two\n"]);
});

test("an undo does not overwrite later changes unless forced, and then it keeps them", async () => {
  await using ground = await changed();
  const { first = "" } = await ground.ids();
  assert.equal((await ground.run(["merge", first])).code, 0);
  ground.put("a.txt", "ONE and more\n");
  const refused = await ground.run(["merge", "--undo"]);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /^prefork: changed since the merge: a\.txt; nothing was undone\. --force/);
  assert.equal(ground.read("a.txt"), "ONE and more\n");
  const forced = await ground.run(["merge", "--undo", "--force"]);
  assert.equal(forced.code, 0);
  const ref = /is kept on (\S+)/.exec(forced.out)?.[1] ?? "";
  assert.equal(git(ground.work, "show", `${ref}:a.txt`), "ONE and more\n");
  assert.equal(ground.status(), UNTOUCHED);
});

test("a usage error is one line and exit code 2, and nothing is touched", async () => {
  await using ground = await changed();
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [["merge"], /^prefork: no task given: name the tasks to merge, or use --family/],
    [["merge", "nobody"], /^prefork: there is no worktree of nobody \(prefork worktrees lists them\)\n$/],
    [["merge", "t"], /^prefork: t is ambiguous: task-\w+ or task-\w+; give more letters\n$/],
    [["merge", "--on-conflict", "guess", "t"], /^prefork: option '--on-conflict <what>' argument 'guess' is invalid/],
    [["merge", "--undo", "x"], /^prefork: .*Expected a whole number above 0\.\n$/],
    [["merge", "--undo", "2"], /^prefork: there is no merge to undo in this checkout\n$/],
    [["merge", "--force", "t"], /^prefork: --force works only with --undo/],
    [["merge", "--undo", "--preview"], /^prefork: --undo can be combined only with/],
  ];
  for (const [argv, line] of wrong) {
    const { code, out, err } = await ground.run(argv);
    assert.deepEqual([code, out], [2, ""], argv.join(" "));
    assert.match(err, line);
    assert.equal(err.split("\n").length, 2);
  }
  const nowhere = await ground.prefork(["merge", "--family", "--cwd", ground.home]);
  assert.deepEqual(nowhere, {
    code: 2,
    out: "",
    err: "prefork: this folder is not in a git repository, which worktrees need (git init)\n",
  });
  assert.equal(ground.status(), UNTOUCHED);
});
