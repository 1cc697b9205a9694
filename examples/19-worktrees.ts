/** Five forks refactor five modules, each in its own worktree. Their work is merged one after another, with tests after each
 *  merge, and then undone. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anthropicEngine, createSession } from "@prefork/runtime";
import { callTools, type SimRequest, say, startSimulator, toolResults } from "@prefork/simulator";

const modules = ["cart", "order", "price", "stock", "user"];

// A repository with five modules and a test, and a file that was never committed.
const folder = await mkdtemp(join(tmpdir(), "prefork-example-"));
const work = join(folder, "work");
await mkdir(work);
const module = (name: string): string => `exports.get_${name} = () => "${name}";\n`;
for (const name of modules) await writeFile(join(work, `${name}.js`), module(name));
const test = `for (const name of ${JSON.stringify(modules)})
  if (!Object.values(require("./" + name)).some((get) => get() === name)) process.exit(1);\n`;
await writeFile(join(work, "test.js"), test);
const git = (...words: string[]): string =>
  execFileSync("git", ["-c", "user.name=you", "-c", "user.email=you@example.com", ...words], {
    cwd: work,
    encoding: "utf8",
  });
git("init", "-q");
git("add", "-A");
git("commit", "-q", "-m", "Five modules");
await writeFile(join(work, "notes.md"), "not committed\n");
const before = git("status", "--porcelain");

// The scripted model: a fork reads its module as its worktree has it, renames the function, and reports.
const script = (request: SimRequest) => {
  const words = JSON.stringify(request.body.messages);
  const name = /fork-directive: rename the getter of (\w+)/.exec(words)?.[1];
  const copy = /git worktree of your own: ([^\\]+)/.exec(words)?.[1];
  if (name === undefined) return say("I know the five modules.");
  const file_path = `${copy}/${name}.js`;
  const [result] = toolResults(request);
  if (result === undefined) return callTools([{ name: "Read", input: { file_path } }]);
  if (result.text.includes(`get_${name}`))
    return callTools([{ name: "Edit", input: { file_path, old_string: `get_${name}`, new_string: `${name}Of` } }]);
  return say(`Scope: ${name}\nResult: renamed\nFiles changed: ${name}.js`);
};

await using simulator = await startSimulator({ script });
{
  await using session = await createSession({
    engine: anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } }),
    cwd: work,
    state: join(folder, "state"),
    permissions: { mode: "accept-edits" },
  });
  await session.prompt("Get to know the modules.").result();

  // #region worktrees
  const forks = session.forkAll(
    modules.map((name) => ({ prompt: `rename the getter of ${name}`, label: name, isolation: "worktree" })),
  );
  await Promise.all(forks.map((fork) => fork.result()));
  assert.equal(git("status", "--porcelain"), before, "the checkout is as it was");

  const tasks = session.tasks.map(({ id }) => id);
  const outcomes = await session.merge(tasks, { check: `"${process.execPath}" test.js` });
  for (const { label, kind, files } of outcomes) console.log(label, kind, files.join(", "));
  // #endregion
  assert.deepEqual(
    outcomes.map(({ label, kind, files }) => [label, kind, files]),
    modules.map((name) => [name, "merged", [`${name}.js`]]),
  );
  for (const name of modules)
    assert.equal(await readFile(join(work, `${name}.js`), "utf8"), `exports.${name}Of = () => "${name}";\n`);

  // #region undo
  const undone = await session.undoMerge("group"); // all merges of that call, the last first
  // #endregion
  assert.deepEqual(
    undone.map(({ files }) => files),
    modules.toReversed().map((name) => [`${name}.js`]),
  );
  assert.equal(git("status", "--porcelain"), before, "and so it is again");
}
await rm(folder, { recursive: true });
