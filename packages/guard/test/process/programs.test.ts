/** Programs come from system folders, and ripgrep from our own package while nobody has replaced it. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, renameSync, symlinkSync, unlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { test } from "node:test";
import { classify, openReadOnlySandbox, type ReadOnlySandbox, runPlan } from "@prefork/guard";
import { needs } from "@prefork/testing/optional";
import { scratch } from "@prefork/testing/scratch";
import {
  findProgram,
  findRipgrep,
  PinnedProgram,
  pinnedRipgrep,
  SYSTEM_FOLDERS,
  searchPath,
  whyMissing,
} from "../../src/process/programs.ts";

const withRipgrep = await needs("@vscode/ripgrep");
const withBwrap = await needs("bwrap");
const inSandbox = withRipgrep.skip === false ? withBwrap : withRipgrep;

/** Hides these programs in addition to those already hidden. */
const hiding = (names: string): Disposable => {
  const before = process.env.PREFORK_HIDE_PROGRAMS;
  process.env.PREFORK_HIDE_PROGRAMS = `${before ?? ""} ${names}`;
  return {
    [Symbol.dispose]: () => {
      if (before === undefined) delete process.env.PREFORK_HIDE_PROGRAMS;
      else process.env.PREFORK_HIDE_PROGRAMS = before;
    },
  };
};

test("the installed copy of ripgrep is the pinned one", () => {
  const located = (): string | undefined => {
    try {
      const wrapper = createRequire(import.meta.url).resolve("@vscode/ripgrep");
      return createRequire(wrapper).resolve(`@vscode/ripgrep-${process.platform}-${process.arch}/bin/rg`);
    } catch {
      return undefined;
    }
  };
  assert.equal(pinnedRipgrep(), located());
});

test("a program whose bytes or mode changed is no longer found, and is found again once it is restored", () => {
  using place = scratch();
  const [good, bad] = ["#!/bin/sh\necho good\n", "#!/bin/sh\necho bad!\n"];
  const path = place.put("rg", good);
  const program = new PinnedProgram(() => path, createHash("sha256").update(good).digest("hex"));
  assert.equal(program.path(), undefined, "not executable");
  chmodSync(path, 0o755);
  assert.equal(program.path(), path);
  place.put("rg", bad);
  assert.equal(program.path(), undefined, "written over");
  place.put("rg", good);
  assert.equal(program.path(), path);
  chmodSync(place.put("other", bad), 0o755);
  renameSync(place.at("other"), path);
  assert.equal(program.path(), undefined, "another file in its place");
  unlinkSync(path);
  symlinkSync("/bin/echo", path);
  assert.equal(program.path(), undefined, "a link in its place");
  unlinkSync(path);
  assert.equal(program.path(), undefined, "gone");
  assert.equal(new PinnedProgram(() => place.put("a", good), undefined).path(), undefined, "no such platform");
});

test("a hidden program is treated as not installed, and the message says why", () => {
  assert.equal(findProgram("sh") !== undefined, true);
  using _ = hiding("sh,rg @vscode/ripgrep");
  assert.deepEqual([findProgram("sh"), findProgram("rg"), findRipgrep()], [undefined, undefined, undefined]);
  assert.equal(whyMissing("sh"), "hidden by PREFORK_HIDE_PROGRAMS");
  assert.equal(whyMissing("no-such-program"), "not installed");
});

const run = async (text: string, cwd: string, readOnlySandbox?: ReadOnlySandbox): Promise<readonly unknown[]> => {
  const judged = classify(text);
  assert.ok(judged.verdict === "read-only", text);
  const { stdout, exitCode, refused } = await runPlan(judged.plan, {
    cwd,
    home: cwd,
    ...(readOnlySandbox ? { readOnlySandbox } : {}),
  });
  return [stdout, exitCode, refused];
};

const WITH_RIPGREP: readonly string[] = [
  ...[
    "rg needle a.txt",
    "timeout 5 rg needle a.txt",
    "find a.txt -print0 | xargs -0 rg needle",
    "rg needle a.txt | cat",
  ],
  ...["find . -name a.txt -exec rg needle {} +"],
];

test("rg in a read-only command is our own copy if the system has none", withRipgrep, async () => {
  using place = scratch();
  place.put("a.txt", "a needle\nhay\n");
  using _ = hiding("rg");
  assert.equal(findProgram("rg"), pinnedRipgrep());
  for (const text of WITH_RIPGREP) assert.deepEqual(await run(text, place.path), ["a needle\n", 0, undefined], text);
  using __ = hiding("@vscode/ripgrep");
  const missing = "rg: not found in system folders";
  assert.deepEqual(await run("rg needle a.txt", place.path), ["", 127, missing]);
});

test("our own copy is also available in the read-only sandbox", inSandbox, async () => {
  using place = scratch();
  place.put("a.txt", "a needle\nhay\n");
  using _ = hiding("rg");
  const opened = await openReadOnlySandbox({ mode: "required", home: place.path });
  assert.ok(opened.kind === "on");
  for (const text of WITH_RIPGREP)
    assert.deepEqual(await run(text, place.path, opened.sandbox), ["a needle\n", 0, undefined], text);
});

test("the folder of our own copy is searched last, for commands that name rg, and not for others", withRipgrep, () => {
  using _ = hiding("rg");
  const system = SYSTEM_FOLDERS.join(":");
  assert.equal(searchPath(), system);
  assert.equal(searchPath(["git", "log"]), system);
  assert.equal(searchPath(["xargs", "rg"]), `${system}:${dirname(pinnedRipgrep() ?? "")}`);
});

test("our own copy runs, and is the version that the guard's table was written for", withRipgrep, () => {
  const version = execFileSync(pinnedRipgrep() ?? "", ["--version"], { encoding: "utf8" });
  assert.match(version, /^ripgrep 15\.0\.0 /);
});
