/** What could not be checked does not count as harmless. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { scratch } from "@prefork/testing/scratch";
import { checkSecretsHidden, gitIn, repositoryWithSecrets, runReadOnly } from "@prefork/testing/with-keys";
import { GitViews } from "../../src/git/index.ts";

/** A link so deep that its absolute path is too long for the system, while a program can open its relative one. */
const putDeepLink = (folder: string, target: string): string => {
  const depth = 20;
  const names = Array.from({ length: depth }, (_, at) => "d".repeat(at === 0 ? 250 : 200));
  const before = process.cwd();
  process.chdir(folder);
  for (const name of names) {
    mkdirSync(name);
    process.chdir(name);
  }
  symlinkSync(`${"../".repeat(depth)}${target}`, "link");
  process.chdir(before);
  return [...names, "link"].join("/");
};

test("a link whose absolute path is too long to look up is not read", async () => {
  using place = repositoryWithSecrets();
  const name = putDeepLink(place.work, "../.netrc");
  try {
    assert.equal(spawnSync("cat", [name], { cwd: place.work, encoding: "utf8" }).status, 0); // a program can open it
    const read = await runReadOnly(`cat ${name}`, place);
    assert.deepEqual(
      [read.isRefused, read.shown.includes("secret"), /could not be checked \(ENAMETOOLONG\)/.test(read.shown)],
      [true, false, true],
    );
    await checkSecretsHidden(place, [
      [`head -1 < ${name}`],
      [`sort ${name}`],
      [`diff plain.txt ${name}`],
      ["find . -name link | xargs cat"],
      [`cat ${name.slice(0, -5)}/*`],
      [`grep -r secret ${name}`],
      ["grep -rh plain sub plain.txt", /plain/],
    ]);
  } finally {
    spawnSync("rm", ["-rf", ...readdirSync(place.work).filter((one) => /^d+$/.test(one))], { cwd: place.work });
  }
});

/** The kernel follows at most 40 links for one name, counted from where a program stands. */
const putChain = (folder: string, target: string): void => {
  for (let at = 1; at < 40; at += 1) symlinkSync(`k${at + 1}`, `${folder}/k${at}`);
  symlinkSync(target, `${folder}/k40`);
};

/** A repository whose settings run a program. */
const putHostileRepository = (folder: string): void => {
  mkdirSync(folder, { recursive: true });
  gitIn(folder, "init", "-q");
  writeFileSync(`${folder}/f.txt`, "one\n");
  gitIn(folder, "add", "f.txt");
  gitIn(folder, "config", "filter.x.clean", "touch PWNED; cat");
  writeFileSync(`${folder}/.gitattributes`, "* filter=x\n");
  writeFileSync(`${folder}/f.txt`, "two\n");
};

test("as many links as the kernel follows lead neither to secrets nor into another repository", async () => {
  using place = repositoryWithSecrets();
  for (const name of ["file", "home", "git"]) mkdirSync(`${place.work}/links/${name}`, { recursive: true });
  symlinkSync("links", `${place.work}/ld`);
  putChain(`${place.work}/links/file`, "../../../.netrc");
  putChain(`${place.work}/links/home`, "../../..");
  putHostileRepository(`${place.work}/evil`);
  putChain(`${place.work}/links/git`, "../../evil");
  const opened = spawnSync("cat", ["k1"], { cwd: `${place.work}/links/file`, encoding: "utf8" });
  assert.match(opened.stdout, /the secret/); // a program that stands there can open it
  await checkSecretsHidden(place, [
    ["cd ld/file && cat k1"],
    ["cd ld/file && head -1 < k1"],
    ["cd ld/file && find . -name k1 | xargs cat"],
    ["cd ld/home && grep -r secret k1"],
    ["cd ld/home && find k1/ -type f -exec cat {} +"],
    ["cd ld/git && git -C k1 diff"],
    ["cd ld/git && git -C ./k1/ status"],
    ["cd ld/git && git -C k1 -C . log -1 -p"],
    ["cd ld/git && cat k1/f.txt", /two/],
  ]);
  assert.equal(existsSync(`${place.work}/evil/PWNED`), false);
});

test("a link through /proc, which means something else to every process, is not followed", async (t) => {
  if (!existsSync("/proc/self/cwd")) return t.skip("no /proc on this system");
  using place = repositoryWithSecrets();
  const at = (name: string): string => `${place.work}/inner/${name}`;
  putHostileRepository(at("evil"));
  const links = { a: "../../.netrc", h: "../..", p: "../plain.txt", far: "near", near: "/proc/thread-self/cwd/a" };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, at(name));
  for (const name of ["a", "h", "p", "evil"]) symlinkSync(`/proc/self/cwd/${name}`, at(`l${name}`));
  symlinkSync("/dev/stdin", at("input"));
  await checkSecretsHidden(place, [
    ["cd inner && cat la"],
    ["cd inner && cat far"],
    ["cd inner && head -1 < la"],
    ["cd inner && find . -name la | xargs cat"],
    ["cd inner && grep -r secret lh"],
    ["cd inner && cat lh/*"],
    ["cd inner && find lh/ -name .netrc -exec cat {} +"],
    ["cd inner && git -C levil diff"],
    ["cd inner && git -C levil status --short"],
    ["cd inner/lh && cat .netrc"],
    ["cd inner/levil && git status"],
    ["cd inner && cat input"],
    ["cd inner && cat p", /plain/],
    ["cat /proc/version /dev/null", /version/i],
  ]);
  assert.equal(existsSync(at("evil/PWNED")), false);
});

test("git outside of a repository finds none, wherever its words lead it", async () => {
  using place = scratch();
  putHostileRepository(place.at("evil"));
  const run = (words: readonly string[], variables: Readonly<Record<string, string>>) =>
    spawnSync("git", words, { cwd: place.path, env: { ...process.env, ...variables }, encoding: "utf8" });
  using views = new GitViews();
  const view = views.of(place.path, ["status"]);
  assert.ok(!("problem" in view));
  assert.equal(run(["-C", "evil", "status"], view.variables()).status, 128);
  assert.equal(existsSync(place.at("evil/PWNED")), false);
});

test("a walk that lacks file descriptors fails, and takes no folder for empty", () => {
  using place = scratch();
  place.put("sub/.env", "TOKEN=x\n");
  const program = `
    import { openSync, closeSync } from "node:fs";
    import { findSecrets } from "${new URL("../../src/run/secret-walk.ts", import.meta.url).href}";
    const held = [];
    try { for (;;) held.push(openSync("/dev/null", "r")); } catch {}
    let answer;
    try { answer = findSecrets([process.argv[1]]).found.length; } catch (error) { answer = error.message; }
    for (const descriptor of held) closeSync(descriptor);
    console.log(JSON.stringify([answer, findSecrets([process.argv[1]]).found.length]));`;
  const node = [process.execPath, ...process.execArgv.filter((word) => word.startsWith("--conditions"))];
  const script = ["-c", 'ulimit -n 64; exec "$@"', "bash", ...node, "--input-type=module", "-e", program, place.path];
  const { stdout } = spawnSync("/bin/bash", script, { encoding: "utf8" });
  assert.deepEqual(JSON.parse(stdout), [`${place.path} could not be checked (EMFILE)`, 1]);
});
