import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { disabledPrograms } from "../src/repository.ts";
import { type Files, type Ground, openGround } from "./ground.ts";
import { assertLife, type State } from "./laws.ts";

const HOOKS = [
  "post-checkout",
  "pre-commit",
  "post-commit",
  "post-index-change",
  "reference-transaction",
  "post-merge",
  "pre-auto-gc",
  "fsmonitor-watchman",
];

/** Committed attributes for all files; their programs are configured only afterwards, as after a clone. */
const withAttributes =
  (attributes: string, settings: (ground: Ground) => Readonly<Record<string, string>>) =>
  (ground: Ground): void => {
    const { put, git } = ground;
    put(".gitattributes", attributes);
    git("add", "-A");
    git("commit", "-qm", "attributes");
    for (const [key, value] of Object.entries(settings(ground))) git("config", key, value);
    put("a.txt", "changed\n");
    put("untracked", "u\n");
  };

/** The test's own git must not run them either. */
const quiet: Pick<State, "copyHolds" | "mergedHolds"> = {
  copyHolds: ({ path }) => assert.equal(readFileSync(join(path, "a.txt"), "utf8"), "changed\n"),
  mergedHolds: ({ path }) => assert.equal(readFileSync(join(path, "b"), "utf8"), "b of the task\n"),
};

const states: readonly State[] = [
  {
    name: "filters that clean and smudge",
    prepare: withAttributes("* filter=evil\n", ({ touch }) => ({
      "filter.evil.clean": `${touch} cat`,
      "filter.evil.smudge": `${touch} cat`,
      "filter.evil.required": "true",
    })),
    spring: ["add", "-A"],
    ...quiet,
  },
  {
    name: "a filter process",
    prepare: withAttributes("* filter=evil\n", ({ touch }) => ({
      "filter.evil.process": `${touch} cat`,
      "filter.evil.required": "true",
    })),
    spring: ["add", "-A"],
    ...quiet,
  },
  {
    name: "a filter whose name is not ASCII",
    prepare: withAttributes("* filter=évil\u2028\n", ({ touch }) => ({
      "filter.évil\u2028.clean": `${touch} cat`,
      "filter.évil\u2028.smudge": `${touch} cat`,
      "filter.évil\u2028.required": "true",
    })),
    spring: ["add", "-A"],
    ...quiet,
  },
  {
    name: "a filter with dots and blanks in its name, from an included file",
    prepare: (ground) => {
      withAttributes("* filter=e.v.i.l\n", () => ({ "include.path": "evil" }))(ground);
      ground.put(".git/evil", `[filter "e.v.i.l"]\n\tclean = ${ground.touch.replace(";", "")}\n`);
    },
    spring: ["add", "-A"],
    ...quiet,
  },
  {
    name: "hooks, in the usual folder and elsewhere",
    prepare: (ground) => {
      mkdirSync(ground.at("hooks"));
      for (const hook of HOOKS) ground.put(`.git/hooks/${hook}`, `#!/bin/sh\n${ground.touch}\n`, 0o755);
      ground.git("config", "core.hooksPath", "/dev/null"); // for the test's git
      ground.put("a.txt", "changed\n");
      ground.git("config", "--unset", "core.hooksPath");
    },
    spring: ["commit", "-qam", "two"],
    ...quiet,
  },
  {
    name: "a file system monitor",
    prepare: (ground) => {
      ground.put("a.txt", "changed\n");
      ground.put("monitor", `#!/bin/sh\n${ground.touch}\n`, 0o755);
      ground.git("config", "core.fsmonitor", "./monitor");
    },
    spring: ["status"],
    ...quiet,
  },
  {
    name: "programs that show and compare files",
    prepare: withAttributes("* diff=evil\n", ({ touch }) => ({
      "diff.evil.textconv": touch,
      "diff.evil.command": touch,
      "diff.external": touch,
      "core.pager": touch,
      "core.editor": touch,
      "core.sshCommand": touch,
      "core.askPass": touch,
      "core.alternateRefsCommand": touch,
      "gpg.program": touch,
      "commit.gpgSign": "true",
      "credential.helper": `!${touch}`,
    })),
    spring: ["diff"],
    ...quiet,
  },
];

for (const state of states) test(`nothing that a repository names is run: ${state.name}`, () => assertLife(state));

test("a filter whose name is not text cannot be switched off, so no worktree is created", async () => {
  using ground = openGround();
  const { git, put, touch, canary, path } = ground;
  writeFileSync(join(path, ".gitattributes"), Buffer.from("* filter=\xe9vil\n", "latin1"));
  put("b", "b\n");
  git("add", "-A");
  git("commit", "-qm", "one");
  const settings = `[filter "\xe9vil"]\n\tclean = "${touch} cat"\n\tsmudge = "${touch} cat"\n`;
  appendFileSync(join(path, ".git/config"), Buffer.from(settings, "latin1"));
  put("b", "changed\n");
  await assert.rejects(
    async () => {
      const worktrees = await ground.open();
      await worktrees.create({ task: "t", label: "", snapshot: await worktrees.snapshot() });
    },
    { reason: "not-ready", message: /filter\.\ufffdvil\.clean, which cannot be switched off by name/ },
  );
  assert.equal(existsSync(canary), false);
});

for (const name of ["evil", "évil"])
  test(`a merge driver of the repository is not run, and what it would have merged is a conflict: ${name}`, async () => {
    using ground = openGround();
    const { git, put, touch, canary } = ground;
    put(".gitattributes", `* merge=${name}\n`);
    put("b", "1\n2\n3\n");
    git("add", "-A");
    git("commit", "-qm", "one");
    git("config", `merge.${name}.driver`, `${touch} true`);
    git("config", "merge.default", name);
    const worktrees = await ground.open();
    const created = await worktrees.create({ task: "t", label: "", snapshot: await worktrees.snapshot() });
    ground.copy(created).put("b", "1\n2\nthree\n");
    await worktrees.finish("t", { message: "m\n", end: "reported" });
    put("b", "one\n2\n3\n");
    const [outcome] = await worktrees.merge(["t"]);
    assert.equal(outcome?.kind, "conflicts");
    assert.equal((await worktrees.merge(["t"], { onConflict: "theirs" }))[0]?.kind, "merged");
    assert.equal(existsSync(canary), false);
  });

/** Each setting applies in a worktree and nowhere else. */
const CONDITIONS: readonly string[] = ["gitdir:**/worktrees/**", "gitdir/i:**/WORKTREES/**", "onbranch:prefork/**"];

for (const condition of CONDITIONS)
  test(`a program that the settings name for copies alone is not run: ${condition}`, async () => {
    using ground = openGround();
    const { git, put, touch, canary } = ground;
    put(".gitattributes", "* filter=evil merge=evil\n");
    put("b", "1\n2\n3\n");
    git("add", "-A");
    git("commit", "-qm", "one");
    const program = JSON.stringify(`${touch} cat`);
    put(".git/between", "[include]\n\tpath = evil\n");
    put(
      ".git/evil",
      `[filter "evil"]\n\tsmudge = ${program}\n\tclean = ${program}\n[merge "evil"]\n\tdriver = ${program}\n`,
    );
    git("config", `includeIf.${condition}.path`, "between");
    const worktrees = await ground.open();
    const created = await worktrees.create({ task: "t", label: "", snapshot: await worktrees.snapshot() });
    ground.copy(created).put("b", "1\n2\nthree\n");
    assert.match((await worktrees.diff("t")).toString(), /three/);
    await worktrees.finish("t", { message: "m\n", end: "reported" });
    put("b", "one\n2\n3\n");
    await worktrees.merge(["t"]);
    assert.equal(existsSync(canary), false);
  });

test("hooks that settings name are switched off by name, for gits that know such hooks", () => {
  const settings = { "hook.a.b.command": "./run", "hook.a.b.event": "post-checkout", "hook.e\u2028.command": "./run" };
  assert.deepEqual(disabledPrograms(settings), { "hook.a.b.enabled": "false", "hook.e\u2028.enabled": "false" });
});

/** What a task might do to the repository's settings while it works. */
const settingsOfTasks: readonly (readonly [string, (copy: Files, touch: string) => void])[] = [
  ["in the repository", ({ git }, touch) => git("config", "filter.evil.clean", `${touch} cat`)],
  [
    "for its own checkout",
    ({ git }, touch) => {
      git("config", "extensions.worktreeConfig", "true");
      git("config", "--worktree", "filter.evil.clean", `${touch} cat`);
      git("config", "--worktree", "core.fsmonitor", touch);
    },
  ],
];

for (const [where, set] of settingsOfTasks)
  test(`a filter that a task sets ${where} while it works is not run when its work is kept`, async () => {
    using ground = openGround();
    ground.put("b", "b\n");
    ground.git("add", "-A");
    ground.git("commit", "-qm", "one");
    const worktrees = await ground.open();
    const created = await worktrees.create({ task: "t", label: "", snapshot: await worktrees.snapshot() });
    const copy = ground.copy(created);
    copy.put(".gitattributes", "* filter=evil\n");
    copy.put("b", "changed\n");
    set(copy, ground.touch);
    const work = await worktrees.finish("t", { message: "m\n", end: "reported" });
    assert.deepEqual(work.files, [".gitattributes", "b"]);
    assert.equal((await worktrees.merge(["t"]))[0]?.kind, "merged");
    assert.deepEqual(await worktrees.prune(), [{ task: "t", kind: "removed" }]);
    assert.equal(existsSync(ground.canary), false);
  });
