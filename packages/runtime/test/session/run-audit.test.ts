/** What the audit of a memory run detects, restores and reports, for any file name and any call. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { test } from "node:test";
import { memoryOnly } from "@prefork/guard";
import { type Scratch, scratch, treeOf } from "@prefork/testing/scratch";
import type { JsonObject } from "@prefork/wire";
import { RunAudit } from "../../src/children/run-audit.ts";
import type { EventBody, RuntimeEvent } from "../../src/events.ts";
import { builtInTools, createRegistry } from "../../src/tools/index.ts";

const onLinux = { skip: process.platform === "linux" ? false : "names are bytes on Linux alone" };

type AuditedCall = {
  readonly tool: string;
  readonly args?: JsonObject;
  readonly hasReadOnlySandbox?: boolean;
  readonly maxFiles?: number;
};

/** What the audit of a run says of changes that are made while a call of it goes on. */
const auditOf = async (place: Scratch, call: AuditedCall, change: () => void) => {
  const { tool, args = {}, hasReadOnlySandbox = false, maxFiles = 10_000 } = call;
  const memory = memoryOnly(place.at("work/memory")).memory;
  assert.ok(memory);
  let follower: (event: RuntimeEvent) => void = () => {};
  const tell = (body: EventBody): void =>
    follower({ session: "s", ...body, seq: 0, at: 0, level: "info", agent: "task-1" });
  const audit = await RunAudit.begin({
    ...{
      memory,
      roots: [place.at("work")],
      cwd: place.at("work"),
      agent: "task-1",
      ignoredFolders: [],
      othersRun: false,
    },
    ...{ keep: place.at("kept"), maxFiles },
    hasReadOnlySandbox: async () => hasReadOnlySandbox,
    follow: (one) => {
      follower = one;
      return { [Symbol.dispose]: () => {} };
    },
  });
  assert.ok(audit instanceof RunAudit);
  await using held = audit;
  const touches = createRegistry(builtInTools).touches({ name: tool, input: JSON.stringify(args) });
  tell({ type: "call_proposed", callId: "1", tool, args, ...(touches ? { touches } : {}) });
  tell({ type: "call_started", callId: "1", tool, reason: "allowed", ...(tool === "Bash" ? { asPlan: true } : {}) });
  change();
  return await held.end();
};

const command = { tool: "Bash", args: { command: "ls" } };

test(
  "files with non-UTF-8 names or the longest names are restored, each with its own saved copy",
  onLinux,
  async () => {
    using place = scratch();
    mkdirSync(place.at("work/memory"), { recursive: true });
    const named = (name: string): Buffer => Buffer.from(`${place.at("work")}/${name}`, "latin1");
    const names = ["bad\xff", "bad\xfe", "L".repeat(255), "nl\nname"].map(named);
    for (const name of names) writeFileSync(name, "old");
    const { breach = "", event } = await auditOf(place, command, () => {
      for (const [at, name] of [...names, named("new\xff"), named("N".repeat(255))].entries())
        writeFileSync(name, `${at}`);
    });
    assert.deepEqual(
      names.map((name) => readFileSync(name, "utf8")),
      Array(4).fill("old"),
    );
    assert.equal(readdirSync(place.at("work")).length, 1 + names.length);
    const files = event?.files ?? [];
    assert.deepEqual(
      files.map(({ reverted }) => reverted),
      Array(6).fill(true),
    );
    assert.deepEqual(files.map(({ copy = "" }) => readFileSync(copy, "utf8")).sort(), ["0", "1", "2", "3", "4", "5"]);
    assert.equal(breach.split("\n").length, 1);
    assert.match(breach, /changed \S+\/nl\\nname \(put back/);
  },
);

test("files below .git that make git run programs are watched, and git's own bookkeeping is not", async () => {
  using place = scratch();
  mkdirSync(place.at("work/memory"), { recursive: true });
  const watched = [
    ...["config", "hooks/pre-commit", "info/attributes", "commondir", "config.worktree"],
    ...["modules/s/config", "modules/s/hooks/post-checkout", "modules/libs/deep/config", "modules/s/modules/t/config"],
    ...["modules/logs/config", "modules/libs/objects/config", "worktrees/w/config.worktree", "worktrees/w/commondir"],
    ...["rebase-merge/git-rebase-todo", "modules/s/info/attributes"],
  ];
  const upkeep = [
    ...["index", "HEAD", "ORIG_HEAD", "logs/HEAD", "refs/heads/x", "objects/aa/bb", "COMMIT_EDITMSG", "packed-refs"],
    ...["modules/s/index", "modules/s/objects/aa/bb", "modules/s/logs/HEAD", "worktrees/w/HEAD", "worktrees/w/index"],
    "rebase-merge/done",
  ];
  for (const name of [...watched, ...upkeep]) place.put(`work/.git/${name}`, "old");
  const { event } = await auditOf(place, command, () => {
    for (const name of [...watched, ...upkeep]) writeFileSync(place.at("work/.git", name), "new bytes");
  });
  assert.deepEqual(
    event?.files.map(({ path, reverted }) => [path.slice(place.at("work/.git/").length), reverted]).sort(),
    watched.map((name) => [name, true]).sort(),
  );
  for (const name of upkeep) assert.equal(readFileSync(place.at("work/.git", name), "utf8"), "new bytes", name);
});

test("if commands have a read-only sandbox, calls that run outside it are still audited", async () => {
  const calls: readonly (readonly [AuditedCall, boolean])[] = [
    [{ tool: "HostTool", hasReadOnlySandbox: true }, true],
    [{ tool: "McpCall", hasReadOnlySandbox: true }, true],
    [{ tool: "Bash", args: { command: "ls | awk '{print}'" }, hasReadOnlySandbox: true }, true],
    [{ tool: "Bash", args: { command: "make" }, hasReadOnlySandbox: true }, true],
    [{ tool: "Bash", args: { command: "cat a.txt" }, hasReadOnlySandbox: true }, false],
    [{ tool: "Bash", args: { command: "cat a.txt" } }, true],
  ];
  for (const [call, isHeld] of calls) {
    using place = scratch();
    mkdirSync(place.at("work/memory"), { recursive: true });
    const { breach, notes } = await auditOf(place, call, () => place.put("work/made", "by the run"));
    assert.deepEqual([breach !== undefined, notes.length === 0], [isHeld, isHeld], JSON.stringify(call));
    assert.equal(existsSync(place.at("work/made")), !isHeld);
  }
});

test("a run that creates more files than can be compared fails, and what was recorded is restored", async () => {
  const flood = (place: Scratch): void => {
    for (let at = 0; at < 50; at += 1) place.put(`work/many/${at}`, "new");
    for (let at = 0; at < 50; at += 1) place.put(`work/src/${at}`, "new");
    writeFileSync(place.at("work/zz-last"), "evil");
    rmSync(place.at("work/src/gone"));
    place.put("work/.hidden", "looked for by name");
  };
  const ground = (): Scratch => {
    const place = scratch();
    mkdirSync(place.at("work/memory"), { recursive: true });
    place.put("work/zz-last", "good");
    place.put("work/src/gone", "good");
    return place;
  };
  const atOnce = { ...command, maxFiles: 10 };
  using place = ground();
  const { breach = "", event, notes } = await auditOf(place, atOnce, () => flood(place));
  assert.match(breach, /; whether it changed anything else outside \S+ is not known: .* has over 20 files now$/);
  assert.deepEqual(notes, []);
  assert.deepEqual(
    ["zz-last", "src/gone"].map((name) => readFileSync(place.at("work", name), "utf8")),
    ["good", "good"],
  );
  assert.equal(existsSync(place.at("work/.hidden")), false);
  assert.deepEqual(
    event?.files.filter(({ reverted, change }) => !reverted && change !== "created"),
    [],
  );
  using kept = ground();
  const inSandbox = await auditOf(kept, { ...atOnce, args: { command: "cat a" }, hasReadOnlySandbox: true }, () =>
    flood(kept),
  );
  assert.deepEqual([inSandbox.breach, inSandbox.notes.length], [undefined, 2], "where no call could have done it");
});

/** Without the rights of root, which no mode keeps out; the files become those of the same user. */
const withoutRoot = async (place: Scratch, act: () => Promise<void>): Promise<void> => {
  if (process.geteuid?.() !== 0) return act();
  const nobody = 65_534;
  for (const path of [".", ...readdirSync(place.path, { recursive: true, encoding: "utf8" })])
    lchownSync(place.at(path), nobody, nobody);
  process.setegid?.(nobody);
  process.seteuid?.(nobody);
  try {
    await act();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(0);
  }
};

test(
  "permissions that a run removes from files and folders are restored together with their content",
  onLinux,
  async () => {
    const changes: Readonly<Record<string, (work: string) => void>> = {
      "a file that nobody may read": (work) => {
        writeFileSync(`${work}/plain`, "evil");
        chmodSync(`${work}/plain`, 0o200);
      },
      "a file without any right": (work) => chmodSync(`${work}/plain`, 0),
      "a file that is not written to": (work) => {
        writeFileSync(`${work}/plain`, "evil");
        chmodSync(`${work}/plain`, 0o444);
      },
      "a folder without any right": (work) => {
        writeFileSync(`${work}/dir/x`, "evil");
        writeFileSync(`${work}/dir/y`, "new");
        chmodSync(`${work}/dir`, 0);
      },
      "a folder that is not written in": (work) => {
        rmSync(`${work}/dir/x`);
        writeFileSync(`${work}/dir/y`, "new");
        chmodSync(`${work}/dir`, 0o555);
      },
      "a folder that is not entered": (work) => {
        writeFileSync(`${work}/dir/deep/z`, "evil");
        chmodSync(`${work}/dir/deep/z`, 0o100);
        chmodSync(`${work}/dir/deep`, 0o600);
        chmodSync(`${work}/dir`, 0o300);
      },
      "a new folder": (work) => {
        mkdirSync(`${work}/made/inside`, { recursive: true });
        writeFileSync(`${work}/made/inside/file`, "new", { mode: 0 });
        chmodSync(`${work}/made/inside`, 0);
        chmodSync(`${work}/made`, 0);
      },
      "a file that could be read by its owner alone": (work) => {
        chmodSync(`${work}/closed`, 0o600);
        writeFileSync(`${work}/closed`, "evil");
        chmodSync(`${work}/closed`, 0);
      },
      "a pipe": (work) => chmodSync(`${work}/pipe`, 0),
      "the folder of the project": (work) => {
        writeFileSync(`${work}/plain`, "evil");
        chmodSync(work, 0);
      },
      "the rights of the project alone": (work) => chmodSync(work, 0o777),
    };
    for (const [what, change] of Object.entries(changes)) {
      using place = scratch();
      mkdirSync(place.at("work/memory"), { recursive: true });
      for (const name of ["plain", "dir/x", "dir/deep/z", "closed"]) place.put(`work/${name}`, "old");
      chmodSync(place.at("work/closed"), 0o400);
      execFileSync("mkfifo", [place.at("work/pipe")]);
      await withoutRoot(place, async () => {
        const before = [lstatSync(place.at("work")).mode, treeOf(place.at("work"))];
        const { breach, event } = await auditOf(place, command, () => change(place.at("work")));
        assert.deepEqual([lstatSync(place.at("work")).mode, treeOf(place.at("work"))], before, what);
        assert.deepEqual([breach !== undefined, event?.files.every(({ reverted }) => reverted)], [true, true], what);
      });
    }
  },
);

test("permissions that somebody else removed are reported and left unchanged", onLinux, async () => {
  using place = scratch();
  mkdirSync(place.at("work/memory"), { recursive: true });
  place.put("work/dir/x", "old");
  await withoutRoot(place, async () => {
    const inSandbox = { tool: "Bash", args: { command: "cat a" }, hasReadOnlySandbox: true };
    const { breach, notes } = await auditOf(place, inSandbox, () => chmodSync(place.at("work/dir"), 0));
    assert.deepEqual([breach, notes.length, lstatSync(place.at("work/dir")).mode & 0o777], [undefined, 1, 0]);
    assert.match(notes[0] ?? "", /: changed \S+\/work\/dir$/);
    chmodSync(place.at("work/dir"), 0o755);
  });
});
