/** Forks in worktrees, end to end: what they are told, where their calls lead, what is kept of them, and how it comes
 *  back into the checkout. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { mergeLayers } from "@prefork/guard";
import { callTools } from "@prefork/simulator";
import type { Answer, Question } from "../../src/index.ts";
import { bash, endsOf, type FamilyScript, gate, part, prompted, starts } from "../fork/family-ground.ts";
import {
  checkout,
  copyIn,
  edit,
  git,
  isolated,
  openRepository,
  read,
  report,
  withRules,
  working,
  write,
} from "./isolated-ground.ts";

test("forks in worktrees do not change the checkout until they are merged, and an undo restores it", async () => {
  const heard: string[] = [];
  await using ground = await openRepository({
    main: (seen) => {
      heard.push(...seen.told.map(({ result = "" }) => result));
      return starts([isolated("first"), isolated("second")])(seen);
    },
    fork: working((seen) => {
      const [theirs, own] = [ground.folder.at("work/a.txt"), `${copyIn(seen)}/a.txt`];
      return {
        first: [[read(theirs)], [edit(theirs, "one", "ONE")]],
        second: [[read(own)], [edit(own, "seven", "SEVEN"), write(`${copyIn(seen)}/sub/new.txt`, "new\n")]],
      };
    }),
  });
  const before = checkout(ground.work);
  await using session = await ground.open();
  const { events } = await prompted(session, "Split it");
  assert.deepEqual(endsOf(session), { first: "reported", second: "reported" });
  assert.deepEqual(checkout(ground.work), before);
  assert.deepEqual(
    events.flatMap((event) => (event.type === "worktree_finished" ? [[event.taskId, event.files]] : [])).sort(),
    [
      ["task-1", 1],
      ["task-2", 2],
    ],
  );
  assert.match(heard.join("\n"), /its work is on branch prefork\/task-1: 1 file changed.*prefork merge task-1/s);
  writeFileSync(ground.folder.at("work/b.txt"), "changed meanwhile\n");
  const outcomes = await session.merge(["task-1", "task-2"], { check: "test -f a.txt" });
  assert.deepEqual(
    outcomes.map(({ kind, files }) => [kind, files]),
    [
      ["merged", ["a.txt"]],
      ["merged", ["a.txt", "sub/new.txt"]],
    ],
  );
  assert.equal(readFileSync(ground.folder.at("work/a.txt"), "utf8"), "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
  assert.equal(readFileSync(ground.folder.at("work/b.txt"), "utf8"), "changed meanwhile\n");
  await session.undoMerge("group");
  writeFileSync(ground.folder.at("work/b.txt"), "b\n");
  assert.deepEqual(checkout(ground.work), before);
});

test("siblings of one turn start from the same state of the checkout, whatever their kind and order", async () => {
  await using ground = await openRepository({
    main: (seen) => {
      if (seen.words === "an agent of its own") return report("agent");
      const empty = { ...isolated("agent"), prompt: "an agent of its own", subagent_type: "general-purpose" };
      return starts([part("in the checkout"), isolated("late"), empty])(seen);
    },
    fork: working((seen) => ({
      "in the checkout": [[write(ground.folder.at("work/late.txt"), "written by the first\n")]],
      late: [[write(`${copyIn(seen)}/own.txt`, "own\n")]],
    })),
  });
  // One at a time: the first has changed the checkout before the next one begins.
  await using session = await ground.open({ mostTasks: 1 });
  await prompted(session, "Split it");
  assert.deepEqual(endsOf(session), { "in the checkout": "reported", late: "reported", agent: "reported" });
  const { worktrees } = await (await session.worktrees()).table();
  const made = [...worktrees.values()];
  assert.deepEqual(
    made.map(({ task, order, origin }) => [task, order, git(ground.work, "ls-tree", "--name-only", origin)]),
    ["task-2", "task-3"].map((task, at) => [task, at + 1, "a.txt\nb.txt\nuntracked.txt\n"]),
  );
  assert.equal(new Set(made.map(({ family }) => family)).size, 1);
});

test("a fork in a worktree reads about both folders at the very end of its request, and siblings share everything before", async () => {
  await using ground = await openRepository({
    main: starts([isolated("first"), isolated("second")]),
    fork: working(() => ({})),
  });
  await using session = await ground.open();
  await prompted(session, "Split it");
  const lasts = ground.bodies().flatMap((body) => {
    const messages = body.messages as readonly { readonly content: readonly { readonly text?: string }[] }[];
    const text = messages.at(-1)?.content.at(-1)?.text ?? "";
    return text.includes("fork-directive:") ? [text] : [];
  });
  assert.equal(lasts.length, 2);
  for (const [at, text] of lasts.entries()) {
    const copy = `${ground.folder.at("state")}/worktrees/`;
    assert.match(text, new RegExp(`fork-directive: (first|second)\n\nYou work in a git worktree of your own: ${copy}`));
    assert.ok(text.includes(`/task-${at + 1}\nIt is a copy of the checkout at ${ground.work}, `));
    assert.match(text, /Read a file there again before you edit it/);
  }
  assert.equal(git(ground.work, "worktree", "list").trim().split("\n").length, 1, "empty worktrees are gone");
  assert.equal(git(ground.work, "for-each-ref", "refs/prefork", "refs/heads/prefork"), "");
});

test("the work of a fork in its worktree is kept if the fork does not report", async () => {
  await using ground = await openRepository({
    main: starts([isolated("breaks off")]),
    fork: (seen) => callTools([write(`${copyIn(seen)}/half.txt`, "half\n")]),
  });
  await using session = await ground.open({ forking: { fork: { turns: 1 } } });
  await prompted(session, "Split it");
  assert.deepEqual(endsOf(session), { "breaks off": "out-of-turns" });
  assert.equal(git(ground.work, "show", "prefork/task-1:half.txt"), "half\n");
  assert.match(session.tasks[0]?.result?.text ?? "", /its work is on branch prefork\/task-1: 1 file changed/);
});

test("file tools of a fork in a worktree never reach the checkout, whatever the path looks like", async () => {
  const got: string[] = [];
  await using ground = await openRepository({
    main: starts([isolated("escapes")]),
    fork: (seen) => {
      const { answers, results } = seen;
      if (answers > 0) got.push(...results.map(({ text, isError }) => `${isError ? "! " : ""}${text.split("\n")[0]}`));
      const top = ground.work;
      const copy = copyIn(seen);
      const up = `${copy}/${"../".repeat(12)}${top.slice(1)}`;
      const calls = [
        [write(`${top}/new1.txt`, "x"), write(`${up}/new2.txt`, "x"), write(`${copy}/link/new3.txt`, "x")],
        [bash(`cat ${top}/b.txt`), bash(`git -C ${top} log -1`), bash(`cd ${top} && cat b.txt`)],
        [
          bash(`GIT_DIR=${top}/.git git log -1`),
          bash("cat link/b.txt"),
          bash("git stash"),
          write(`${copy}/.git`, "gitdir: /elsewhere"),
          write(`${top}/.git/objects/info/alternates`, "/elsewhere"),
          { name: "Grep", input: { pattern: "b", path: top } },
        ],
      ][answers];
      return calls ? callTools(calls) : report("escapes");
    },
  });
  execFileSync("ln", ["-s", ground.work, ground.folder.at("work/link")]);
  const before = checkout(ground.work);
  await using session = await ground.open({
    permissions: { policy: { ...mergeLayers([]), sandbox: "off" }, mode: "accept-edits", stated: true },
  });
  await prompted(session, "Split it");
  assert.deepEqual(checkout(ground.work), before);
  const [moved, link] = [
    /^\[.* is in the checkout that you were forked from; this is .* in your worktree\]/,
    /links are not followed/,
  ];
  const [closed, variable] = [
    /^! Not allowed: the command names a file that .*your parent's checkout/,
    /^! .*sets GIT_DIR/,
  ];
  const own = /^! Not allowed: .*\.git/;
  const stash = /^! Not allowed: denied by Bash\(git stash:\*\) \(the stash is shared/;
  const expected = [moved, moved, link, closed, closed, closed, variable, closed, stash, own, own, moved];
  assert.equal(got.length, expected.length);
  for (const [at, form] of expected.entries()) assert.match(got[at] ?? "", form);
});

test("two agents in one checkout do not write the same file: the second is told which agent has claimed it, until that agent ends", async () => {
  const [held, told] = [gate(), gate()];
  const got: string[] = [];
  await using ground = await openRepository({
    main: starts([
      { description: "first", prompt: "first" },
      { description: "second", prompt: "second" },
    ]),
    fork: async ({ directive, answers, results }) => {
      if (directive === "first") {
        if (answers === 0) return callTools([write(ground.folder.at("work/new.txt"), "of the first\n")]);
        held.open();
        await told.passed;
        return report("first");
      }
      if (answers === 0) await held.passed;
      if (answers > 0) got.push(...results.map(({ text }) => text));
      if (answers === 0) return callTools([write(ground.folder.at("work/new.txt"), "of the second\n")]);
      told.open();
      return report("second");
    },
  });
  await using session = await ground.open();
  await prompted(session, "Split it");
  assert.deepEqual(got, [
    `Not done: ${ground.work}/new.txt is being changed by task-1 (first), which works beside you, and is free when that has ended. Do the rest of your part, or report what you would have changed here.`,
  ]);
  assert.equal(readFileSync(ground.folder.at("work/new.txt"), "utf8"), "of the first\n");
});

test("with a setting, the second agent gets its own worktree at that moment and continues there", async () => {
  const [held, told] = [gate(), gate()];
  const got: string[] = [];
  await using ground = await openRepository({
    main: starts([
      { description: "first", prompt: "first" },
      { description: "second", prompt: "second" },
    ]),
    fork: async (seen) => {
      const { directive, answers, results } = seen;
      if (directive === "first") {
        if (answers === 0) return callTools([read(ground.folder.at("work/a.txt"))]);
        if (answers === 1) return callTools([edit(ground.folder.at("work/a.txt"), "one", "ONE")]);
        held.open();
        await told.passed;
        return report("first");
      }
      if (answers === 0) await held.passed;
      if (answers > 0) got.push(...results.map(({ text }) => text));
      if (answers === 0) return callTools([read(ground.folder.at("work/a.txt"))]);
      if (answers === 1) return callTools([edit(ground.folder.at("work/a.txt"), "seven", "SEVEN")]);
      if (answers === 2) return callTools([read(ground.folder.at("work/a.txt"))]);
      if (answers === 3) return callTools([edit(ground.folder.at("work/a.txt"), "seven", "SEVEN")]);
      told.open();
      return report("second");
    },
  });
  await using session = await ground.open(withRules({ onClaim: "isolate" }));
  await prompted(session, "Split it");
  assert.match(got[1] ?? "", /is being changed by task-1 \(first\).*\nYou work in a git worktree of your own:/);
  assert.equal(readFileSync(ground.folder.at("work/a.txt"), "utf8"), "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n");
  assert.deepEqual(
    (await session.merge(["task-2"])).map(({ kind }) => kind),
    ["merged"],
  );
  assert.equal(readFileSync(ground.folder.at("work/a.txt"), "utf8"), "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
});

/** A fork that resolves what it is handed: it writes both words. */
const resolving: FamilyScript["fork"] = (seen) => {
  const { answers, words } = seen;
  const file = `${copyIn(seen)}/a.txt`;
  if (answers === 0 || words.includes("have conflict markers")) return callTools([read(file)]);
  if (answers === 1) return callTools([edit(file, "one", "child")]);
  return words.includes("<<<<<<<")
    ? callTools([write(file, "parent and child\ntwo\nthree\nfour\nfive\nsix\nseven\n")])
    : report("conflicts");
};

test("conflicts are handed back to the fork that caused them, which resumes with a warm cache and resolves them", async () => {
  await using ground = await openRepository({ main: starts([isolated("conflicts")]), fork: resolving });
  await using session = await ground.open();
  await prompted(session, "Split it");
  writeFileSync(ground.folder.at("work/a.txt"), "parent\ntwo\nthree\nfour\nfive\nsix\nseven\n");
  const stopped = await session.merge(["task-1"]);
  assert.deepEqual(
    stopped.map(({ kind, conflicts }) => [kind, conflicts]),
    [["conflicts", [{ path: "a.txt", kind: "content" }]]],
  );
  const outcomes = await session.merge(["task-1"], { onConflict: "hand-back" });
  assert.deepEqual(
    outcomes.map(({ kind, files }) => [kind, files]),
    [["merged", ["a.txt"]]],
  );
  assert.equal(
    readFileSync(ground.folder.at("work/a.txt"), "utf8"),
    "parent and child\ntwo\nthree\nfour\nfive\nsix\nseven\n",
  );
});

test("with a setting, work is merged when its agent reports, and conflicts go back to the agent first", async () => {
  const edited = gate();
  await using ground = await openRepository({
    main: starts([isolated("conflicts")]),
    fork: (seen) => {
      if (seen.answers === 2 && !seen.words.includes("markers")) {
        writeFileSync(ground.folder.at("work/a.txt"), "parent\ntwo\nthree\nfour\nfive\nsix\nseven\n");
        edited.open();
      }
      return resolving(seen);
    },
  });
  await using session = await ground.open(withRules({ merge: "when-done", onConflict: "hand-back", check: "true" }));
  await prompted(session, "Split it");
  assert.match(session.tasks[0]?.result?.text ?? "", /\[merged into your checkout: a\.txt\]/);
  assert.equal(
    readFileSync(ground.folder.at("work/a.txt"), "utf8"),
    "parent and child\ntwo\nthree\nfour\nfive\nsix\nseven\n",
  );
});

test("without the sandbox, an approved command of a fork in a worktree is not confined, and the question says so", async () => {
  const questions: Question[] = [];
  await using ground = await openRepository({
    main: starts([isolated("asks")]),
    fork: working(() => ({ asks: [[bash("touch x")]] })),
  });
  const answer = async (question: Question): Promise<Answer> => {
    questions.push(question);
    return { kind: "deny" };
  };
  await using session = await ground.open({
    permissions: { policy: { ...mergeLayers([]), sandbox: "off" }, ask: answer },
  });
  await prompted(session, "Split it");
  assert.equal(questions.length, 1);
  assert.match(questions[0]?.notes.at(-1) ?? "", new RegExp(`could change ${ground.work} too$`));
});

test("if no worktree can be created, the agent does not start, and its parent is told why", async () => {
  await using ground = await openRepository({ main: starts([isolated("first")]), fork: working(() => ({})) });
  rmSync(ground.folder.at("work/.git"), { recursive: true });
  await using session = await ground.open();
  await prompted(session, "Split it");
  assert.deepEqual(endsOf(session), { first: "failed" });
  assert.match(session.tasks[0]?.result?.text ?? "", /this folder is not in a git repository, which worktrees need/);
});
