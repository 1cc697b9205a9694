/** Reading what somebody else wrote ends soon: no text takes longer than its length, and repositories have one budget. */

import assert from "node:assert/strict";
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { scratch } from "@prefork/testing/scratch";
import { checkSecretsHidden, gitIn, mustNotRun, repositoryWithSecrets } from "@prefork/testing/with-keys";
import { askGit } from "../../src/git/ask-git.ts";
import { ApprovalNeeded, ReadBudget } from "../../src/git/checkout.ts";
import { readRef } from "../../src/git/records.ts";
import { readRepository } from "../../src/git/repository.ts";
import { parseSettings } from "../../src/git/settings.ts";
import { GitViews } from "../../src/git/view.ts";
import { findBlockingFile } from "../../src/run/blocking-files.ts";

const LONG = 900_000;

test("regression: settings with a long run of blanks are read in one go", () => {
  const blanks = " ".repeat(LONG);
  const texts: readonly (readonly [string, string | undefined])[] = [
    [`[a]\n\tb = a${blanks}b`, `a${blanks}b`],
    [`[a]\n\tb = a${"\t \r".repeat(LONG / 3)}b # c`, `a${"\t \r".repeat(LONG / 3)}b`],
    [`[a]\n\tb = a${blanks}`, "a"],
    [`[a]\n\tb = "a${blanks}"${blanks}`, `a${blanks}`],
    [`[a]\n\tb${blanks}`, undefined],
    [`[a]${"\n".repeat(LONG)}b = c`, "c"],
    [`[a "${"x ".repeat(LONG / 2)}"]\nb = c`, "c"],
  ];
  for (const [text, value] of texts) assert.equal(parseSettings(text)?.[0]?.value, value, text.slice(0, 12));
  assert.equal(parseSettings(`[a]\n${"b".repeat(LONG)}${blanks}!`), undefined);
});

test("blanks inside make a ref invalid; trailing blanks do not", () => {
  using place = scratch();
  const number = "1".repeat(40);
  place.put("good", number + " \t\r\n".repeat(1_000));
  place.put("bad", `${number}${" ".repeat(4_000)}x`);
  assert.equal(readRef(place.at("good")), number);
  assert.throws(() => readRef(place.at("bad")), ApprovalNeeded);
});

test("regression: reflogs that are one large file by many names are a reason to ask", async () => {
  using place = repositoryWithSecrets();
  const { work } = place;
  const number = gitIn(work, "rev-parse", "HEAD");
  const line = `${number} ${number} a <a@b.c> 1 +0000\t${"x".repeat(50_000)}\n`;
  writeFileSync(join(work, ".git/logs/big"), line.repeat(310)); // 15.5 MB
  mkdirSync(join(work, ".git/logs/refs/heads/x"), { recursive: true });
  await checkSecretsHidden(place, [["git reflog show main", /Add all/]]);
  for (const at of [0, 1, 2, 3, 4]) {
    gitIn(work, "-c", "core.logAllRefUpdates=false", "update-ref", `refs/heads/x/${at}`, number);
    linkSync(join(work, ".git/logs/big"), join(work, `.git/logs/refs/heads/x/${at}`));
  }
  await checkSecretsHidden(place, ["git reflog show main", "git log -g main", "git show main@{0}"].map(mustNotRun));
});

test("reading repositories has one shared budget of bytes, names and time", () => {
  using place = repositoryWithSecrets();
  const { work } = place;
  const read = (budget: ReadBudget): unknown =>
    readRepository(work, { budget, logs: true, tracked: true })?.checkout.top;
  assert.equal(read(new ReadBudget()), work);
  for (const limits of [{ bytes: 500 }, { names: 100 }, { milliseconds: -1 }])
    assert.throws(() => read(new ReadBudget(limits)), ApprovalNeeded, JSON.stringify(limits));
  // The second repository goes beyond what the first one left.
  for (const limits of [{ bytes: 2_500 }, { names: 400 }]) {
    const budget = new ReadBudget(limits);
    assert.equal(read(budget), work);
    assert.throws(() => {
      for (let more = 0; more < 3; more += 1) read(budget);
    }, ApprovalNeeded);
  }
  // Time counts while something is read, and not in between.
  let now = 0;
  const budget = new ReadBudget({ milliseconds: 100, now: () => now });
  for (let more = 0; more < 3; more += 1) {
    assert.equal(read(budget), work);
    now += 1_000;
  }
  budget.timed(() => {
    now += 200;
  });
  assert.throws(() => read(budget), ApprovalNeeded);
});

test("other work continues while git is asked about names, and ending the plan ends the question", async () => {
  using place = repositoryWithSecrets();
  const ended = new AbortController();
  using views = new GitViews(undefined, ended.signal);
  const view = views.of(place.work, []);
  assert.ok(!("problem" in view));
  const happened: string[] = [];
  setImmediate(() => happened.push("other work"));
  const question = { view, words: ["cat-file", "--batch-check=%(objecttype)"], input: ":/Add\n" };
  const answer = await askGit(question);
  happened.push("answer");
  assert.deepEqual(answer, { text: "commit\n", complaint: "", failed: false });
  assert.deepEqual(happened, ["other work", "answer"]);
  const asked = askGit(question);
  ended.abort();
  assert.equal((await asked)?.failed, true);
});

test("an ignore file may be a link, but not to a secret", () => {
  using place = scratch();
  place.put("key", "x?SECRET");
  place.put("names", "*.o");
  mkdirSync(place.at("work/deep"), { recursive: true });
  const mayNot = (target: string): boolean => target === place.at("key");
  symlinkSync("../../names", place.at("work/deep/.rgignore"));
  assert.equal(findBlockingFile(place.at("work"), mayNot), undefined);
  symlinkSync("../../key", place.at("work/deep/.ignore"));
  assert.equal(findBlockingFile(place.at("work"), mayNot), place.at("work/deep/.ignore"));
  assert.equal(findBlockingFile(place.at("work")), undefined);
  symlinkSync("key", place.at(".gitignore"));
  assert.equal(findBlockingFile(place.at("work"), mayNot), place.at(".gitignore"));
});

test("git that is asked a question has little memory, however large an object unpacks", async () => {
  using place = repositoryWithSecrets();
  using views = new GitViews();
  const view = views.of(place.work, ["status"]);
  assert.ok(!("problem" in view));
  const answer = await askGit({ view, words: ["-c", "alias.limit=!ulimit -d", "limit"] });
  assert.deepEqual(answer, { text: "524288\n", complaint: "", failed: false });
});
