import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { change, checkAndRun, git, place, repository } from "./place.ts";
import { askTogether, HOSTILE, QUESTIONS, set } from "./repositories.ts";

/** Each repository gets every n-th command, starting at a different one, so that every command runs in some repository. */
const STRIDE = 6;

/** All in one process, because starting a process takes most of the time. */
describe("hostile repositories", () => {
  const asked = askTogether((hostile) =>
    QUESTIONS.filter((_, number) => number % STRIDE === HOSTILE.indexOf(hostile) % STRIDE),
  );
  after(async () => (await asked)[Symbol.dispose]());
  for (const hostile of HOSTILE)
    test(`a repository with ${hostile.name} starts nothing`, async () => (await asked).assertNothing(hostile));
});

test("a link on the way of -C leads to the repository that is looked at", async () => {
  using at = place();
  const hostile = repository(at.at("outside/hostile"));
  mkdirSync(join(hostile, "deep"));
  set(hostile, "core.fsmonitor", at.trap);
  const clean = repository(at.at("clean"));
  symlinkSync(join(hostile, "deep"), join(clean, "link"));
  symlinkSync(join(hostile, "deep"), at.at("start"));
  const answers = [
    ...(await checkAndRun(["git -C link/.. status", "git -C link status", "git -C link -C .. diff"], { cwd: clean })),
    ...(await checkAndRun(["git -C .. status", "git status"], { cwd: at.at("start") })),
  ];
  assert.ok(!at.sprung());
  assert.deepEqual(
    answers.filter(({ readOnly }) => readOnly).map(({ cmd }) => cmd),
    [],
  );
  const [inside] = await checkAndRun(["cd link/.. && git status -s"], { cwd: clean });
  assert.equal(inside?.exitCode, 0);
});

test("in a clean repository every question is answered, and as git answers it", async () => {
  using at = place();
  const folder = repository(at.at("repo"));
  change(folder);
  const answers = await checkAndRun(QUESTIONS, { cwd: folder });
  assert.deepEqual(
    answers.filter(({ readOnly }) => !readOnly),
    [],
  );
  const same = [
    "status -s",
    "log --oneline",
    "show HEAD:a.txt",
    "diff --cached",
    "diff",
    "blame b.txt",
    "rev-parse HEAD",
    "grep -n text",
  ];
  const asked = await checkAndRun(
    same.map((words) => `git ${words}`),
    { cwd: folder },
  );
  assert.deepEqual(
    asked.map(({ stdout }) => stdout),
    same.map((words) => git(folder, ...words.split(" "))),
  );
});

test("questions leave the repository as it was, to the byte", async () => {
  using at = place();
  const folder = repository(at.at("repo"));
  change(folder);
  const sums = (): string =>
    spawnSync("sh", ["-c", "find . -type f -exec sha256sum {} + | sort; find . | sort"], {
      cwd: folder,
      encoding: "utf8",
    }).stdout;
  const before = sums();
  await checkAndRun(QUESTIONS, { cwd: folder });
  assert.equal(sums(), before);
});
