/** What the audit of a memory run sees, puts back and says, for whatever names and by whichever call. */

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import type { JsonObject } from "@prefork/wire";
import type { EventBody, RuntimeEvent } from "../../src/events.ts";
import { memoryOnly } from "../../src/guard/index.ts";
import { RunAudit } from "../../src/session/run-audit.ts";
import { type Scratch, scratch } from "../scratch.ts";

const onLinux = { skip: process.platform === "linux" ? false : "names are bytes on Linux alone" };

type AuditedCall = { readonly tool: string; readonly args?: JsonObject; readonly hasCell?: boolean };

/** What the audit of a run says of changes that are made while a call of it goes on. */
const auditOf = async (place: Scratch, { tool, args = {}, hasCell = false }: AuditedCall, change: () => void) => {
  const memory = memoryOnly(place.at("work/memory")).memory;
  assert.ok(memory);
  let follower: (event: RuntimeEvent) => void = () => {};
  const tell = (body: EventBody): void => follower({ ...body, seq: 0, level: "info", agent: "task-1" });
  const audit = await RunAudit.begin({
    ...{ memory, roots: [place.at("work")], cwd: place.at("work"), agent: "task-1", ours: [], othersRun: false },
    keep: place.at("kept"),
    hasCell: async () => hasCell,
    follow: (one) => {
      follower = one;
      return { [Symbol.dispose]: () => {} };
    },
  });
  assert.ok(audit instanceof RunAudit);
  await using held = audit;
  tell({ type: "call_proposed", callId: "1", tool, args });
  tell({ type: "call_started", callId: "1", tool, reason: "allowed" });
  change();
  return await held.end();
};

const command = { tool: "Bash", args: { command: "ls" } };

test("names that are no text, and the longest ones, are put back, each with its own copy", onLinux, async () => {
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
});

test("what makes git run something later is watched below .git, what git keeps for itself is not", async () => {
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

test("where commands have a cell, calls that do not run in it are still held to what changed", async () => {
  const calls: readonly (readonly [AuditedCall, boolean])[] = [
    [{ tool: "HostTool", hasCell: true }, true],
    [{ tool: "McpCall", hasCell: true }, true],
    [{ tool: "Bash", args: { command: "ls | awk '{print}'" }, hasCell: true }, true],
    [{ tool: "Bash", args: { command: "make" }, hasCell: true }, true],
    [{ tool: "Bash", args: { command: "cat a.txt" }, hasCell: true }, false],
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
