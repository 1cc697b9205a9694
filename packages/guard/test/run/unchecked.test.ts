/** What could not be checked does not count as harmless. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, realpathSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { classify, planHazard } from "@prefork/guard";
import { scratch } from "@prefork/testing/scratch";
import { checkSecretsHidden, gitIn, mustNotRun, repositoryWithSecrets, runReadOnly } from "@prefork/testing/with-keys";
import { GitViews } from "../../src/git/index.ts";
import { findBlockingFile } from "../../src/run/index.ts";

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
    assert.equal(findBlockingFile(place.work), undefined); // a search of the whole tree runs, as far as it gets
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
  place.put("plain", "no TOKEN\n");
  gitIn(place.path, "init", "-q");
  const program = `
    import { openSync, closeSync } from "node:fs";
    import { classify, planHazard, runPlan } from "${new URL("../../src/index.ts", import.meta.url).href}";
    import { findSecrets } from "${new URL("../../src/run/secret-walk.ts", import.meta.url).href}";
    const place = { cwd: process.argv[1], home: process.argv[1] };
    const search = classify("grep -rh TOKEN .").plan;
    const status = classify("git status").plan;
    const held = [];
    try { for (;;) held.push(openSync("/dev/null", "r")); } catch {}
    let answer;
    try { answer = findSecrets([process.argv[1]]).found.length; } catch (error) { answer = error.message; }
    const hazard = planHazard(status, place) !== undefined;
    const { stdout, refused } = await runPlan(search, place);
    for (const descriptor of held) closeSync(descriptor);
    const later = [findSecrets([process.argv[1]]).found.length, planHazard(status, place) !== undefined];
    console.log(JSON.stringify([answer, hazard, stdout, refused !== undefined, ...later, (await runPlan(search, place)).stdout]));
    process.exit(0);`;
  const node = [process.execPath, ...process.execArgv.filter((word) => word.startsWith("--conditions"))];
  const script = ["-c", 'ulimit -n 64; exec "$@"', "bash", ...node, "--input-type=module", "-e", program, place.path];
  const { stdout } = spawnSync("/bin/bash", script, { encoding: "utf8" });
  const unchecked = `${place.path} could not be checked (EMFILE)`;
  assert.deepEqual(JSON.parse(stdout), [unchecked, true, "", true, 2, false, "no TOKEN\n"]);
});

/** How many links lead from the first name to the target: some folders on the way, then a chain of names. */
type LinkCounts = { readonly folders: number; readonly names: number };

/** Folder `c` behind a chain of links f1 → f2 → … → c, and in it a chain k1 → k2 → … → target. Relative or absolute. */
const putSplitChain = (folder: string, { folders, names }: LinkCounts, target: string): void => {
  mkdirSync(join(folder, "c"), { recursive: true });
  const isAbsolute = target.startsWith("/");
  const step = (name: string): string => (isAbsolute ? join(folder, name) : name);
  for (let at = 1; at <= folders; at += 1)
    symlinkSync(step(at === folders ? "c" : `f${at + 1}`), join(folder, `f${at}`));
  for (let at = 1; at <= names; at += 1)
    symlinkSync(
      at === names ? target : isAbsolute ? join(folder, "c", `k${at + 1}`) : `k${at + 1}`,
      join(folder, "c", `k${at}`),
    );
};

test("a chain of links is followed to its end, however it is split between cd and the name", async () => {
  using place = repositoryWithSecrets();
  const targets = {
    relative: ["../../../../.netrc", "../../../plain.txt"],
    absolute: [place.at("home/.netrc"), place.at("home/work/plain.txt")],
  } as const;
  const cases = [
    ...[38, 40, 41].flatMap((total) => [0, 1, 37].map((folders) => ["relative", total, folders] as const)),
    ...[40, 45].map((total) => ["absolute", total, 1] as const),
  ];
  for (const [kind, total, folders] of cases) {
    const [secret, plain] = targets[kind];
    const [start, at] = [folders === 0 ? "c" : "f1", `chains/${kind}-${total}-${folders}`];
    putSplitChain(place.at("home/work", `${at}-s`), { folders, names: total - folders }, secret);
    putSplitChain(place.at("home/work", `${at}-p`), { folders, names: total - folders }, plain);
    await checkSecretsHidden(place, [
      [`cd ${at}-s/${start} && cat k1`],
      [`cd ${at}-s && head -1 < ${start}/k1`],
      [`cat ${at}-s/${start}/k1`],
    ]);
    const text = `cd ${at}-p/${start} && cat k1`;
    const { shown, isRefused } = await runReadOnly(text, place);
    const isOpened = total - folders <= 40; // by a program that stands in the folder
    assert.deepEqual([isRefused, shown.includes("plain\n")], [false, isOpened], `${at}: ${shown}`);
  }
});

test("git stands only where it was checked, whatever chain of links its -C or a cd goes through", async () => {
  using place = repositoryWithSecrets();
  putHostileRepository(place.at("home/work/evil"));
  for (const total of [40, 41])
    for (const folders of [0, 1, 39]) {
      const [start, at] = [folders === 0 ? "c" : "f1", `chains/${total}-${folders}`];
      putSplitChain(place.at("home/work", at), { folders, names: total - folders }, "../../../evil");
      for (const text of [
        `cd ${at}/${start} && git -C k1 diff`,
        `cd ${at}/${start} && git -C ./k1/ status`,
        `cd ${at} && git -C ${start} -C k1 log -p`,
        `git -C ${at}/${start}/k1 diff`,
        `cd ${at}/${start}/k1 && git diff`,
      ]) {
        const { isRefused, shown } = await runReadOnly(text, place);
        assert.equal(isRefused, true, `${text}: ${shown}`);
      }
    }
  assert.equal(existsSync(place.at("home/work/evil/PWNED")), false);
  symlinkSync("sub", place.at("home/work/linked"));
  await checkSecretsHidden(place, [
    ["git -C linked -C .. rev-parse --show-prefix", /^\n?$/],
    ["git -C . -C linked rev-parse --show-prefix", /^sub\/$/m],
    ["cd linked && git rev-parse --show-prefix", /^sub\/$/m],
    ["cd linked && git -C .aws rev-parse --show-prefix"],
    ["git -C linked log --oneline -- .", /Add all/],
    ["git -C missing status", /cannot change to 'missing'/],
    ["cd linked && cd .. && cat plain.txt", /^plain$/m],
    ["cd linked/.. && cat plain.txt", /^plain$/m],
  ]);
});

test("a path is read up to the length that the system takes, and refused beyond it", async () => {
  using place = repositoryWithSecrets();
  const work = realpathSync(place.work);
  const before = process.cwd();
  try {
    for (const total of [4_095, 4_096]) {
      const top = `t${total}`;
      const names = [top];
      // Names of at most 200 bytes, and one of the length that is left for the last folder.
      for (let left = total - `${work}/${top}/link`.length; left > 0; ) {
        const size = left > 402 ? 200 : left > 201 ? Math.floor(left / 2) - 1 : left - 1;
        names.push("d".repeat(size));
        left -= size + 1;
      }
      process.chdir(work);
      for (const name of names) {
        mkdirSync(name);
        process.chdir(name);
      }
      symlinkSync(`${"../".repeat(names.length)}../.netrc`, "link");
      writeFileSync("near", "near\n");
      const folder = names.join("/");
      assert.equal(Buffer.byteLength(`${work}/${folder}/link`), total);
      await checkSecretsHidden(place, [
        [`cat ${folder}/link`],
        [`head -1 < ${folder}/link`],
        [`find ${top} -name link | xargs cat`],
        [`find ${top} -name link -exec cat {} +`, /^$/],
        [`grep -rh secret ${folder}/link`],
        total < 4_096 ? [`cat ${folder}/near`, /^near$/m] : [`cat ${folder}/near`],
      ]);
    }
    symlinkSync("../.netrc", `${work}/${"n".repeat(255)}`);
    await checkSecretsHidden(place, [
      [`cat ${"n".repeat(255)}`],
      [`cat ${"n".repeat(256)}`, /name too long/i],
      [`awk '${"$1 == 1 { print } ".repeat(30)}{ print }' plain.txt`, /^plain$/m],
    ]);
  } finally {
    process.chdir(before);
    spawnSync("rm", ["-rf", ...readdirSync(work).filter((one) => /^t\d+$/.test(one))], { cwd: work });
  }
});

test("no way through a process's own view of the system is followed", async (t) => {
  if (!existsSync("/proc/self/cwd")) return t.skip("no /proc on this system");
  using place = repositoryWithSecrets();
  const inner = place.at("home/work/inner");
  putHostileRepository(join(inner, "evil"));
  symlinkSync("../../.netrc", join(inner, "a"));
  const up = "../".repeat(inner.split("/").length);
  const roots: Readonly<Record<string, string>> = {
    cwd: "/proc/self/cwd",
    thread: "/proc/thread-self/cwd",
    parent: `/proc/${process.pid}/cwd`,
    task: "/proc/self/task/../cwd",
    root: `/proc/self/root${inner}`,
    relative: `${up}proc/self/cwd`,
    self: "/proc/self",
    "dev-fd": "/dev/fd",
    "self-fd": "/proc/self/fd",
    nested: "cwd",
  };
  for (const [name, target] of Object.entries(roots)) symlinkSync(target, join(inner, name));
  for (const name of ["0", "3"]) {
    symlinkSync(`/proc/self/fd/${name}`, join(inner, `self-${name}`));
    symlinkSync(`/dev/fd/${name}`, join(inner, `dev-${name}`));
  }
  const through = ["cwd", "thread", "parent", "task", "root", "relative", "self/cwd", "nested"];
  await checkSecretsHidden(place, [
    ...through.flatMap((name) => [
      mustNotRun(`cd inner && cat ${name}/a`),
      mustNotRun(`cd inner && head -1 < ${name}/a`),
      mustNotRun(`cd inner && ls -d ${name}/a | xargs cat`),
      mustNotRun(`cd inner && grep -r secret ${name}/..`),
      mustNotRun(`cd inner && grep -r secret ${name}/../..`),
      mustNotRun(`cd inner && git -C ${name}/evil diff`),
      mustNotRun(`cd inner/${name} && git -C evil diff`),
      mustNotRun(`cd inner/${name} && cat a`),
      mustNotRun(`cat inner/${name}/a`),
    ]),
    ...["self-0", "self-3", "dev-0", "dev-3", "dev-fd/3", "self-fd/3"].map((name) => mustNotRun(`cat inner/${name}`)),
    ["find inner -exec cat {} +", /two/],
    ["grep -rh two inner", /two/],
    ["cat inner/evil/f.txt < /dev/null", /two/],
  ]);
  assert.equal(existsSync(join(inner, "evil/PWNED")), false);
});

test("a link whose target is not valid text is not read", async () => {
  using place = repositoryWithSecrets();
  const folder = Buffer.concat([Buffer.from(`${place.work}/caf`), Buffer.from([0xe9])]);
  const target = Buffer.concat([Buffer.from("caf"), Buffer.from([0xe9]), Buffer.from("/.env")]);
  try {
    mkdirSync(folder);
    writeFileSync(Buffer.concat([folder, Buffer.from("/.env")]), "the secret\n");
    symlinkSync(target, `${place.work}/notes`);
  } catch {
    return; // a file system that takes no such name
  }
  await checkSecretsHidden(place, [["cat notes"], ["head -1 < notes"], ["find . -name notes | xargs cat"]]);
});

test("git gets no repository whose parts lead each process elsewhere", async (t) => {
  if (!existsSync("/proc/self/cwd")) return t.skip("no /proc on this system");
  using place = scratch();
  putHostileRepository(place.at("evil"));
  const cwd = "/proc/self/cwd";
  const forms: Readonly<Record<string, (repo: string) => void>> = {
    "a link": (repo) => symlinkSync(`${cwd}/gitd`, `${repo}/.git`),
    "a link to a link": (repo) => {
      symlinkSync(`${cwd}/gitd`, `${repo}/other`);
      symlinkSync("other", `${repo}/.git`);
    },
    "a file": (repo) => writeFileSync(`${repo}/.git`, `gitdir: ${cwd}/gitd\n`),
    "a shared folder": (repo) => {
      renameSync(`${repo}/gitd`, `${repo}/.git`);
      writeFileSync(`${repo}/.git/commondir`, `${cwd}/../evil/.git\n`);
    },
    objects: (repo) => {
      renameSync(`${repo}/gitd`, `${repo}/.git`);
      renameSync(`${repo}/.git/objects`, `${repo}/objects`);
      symlinkSync(`${cwd}/objects`, `${repo}/.git/objects`);
    },
    alternates: (repo) => {
      renameSync(`${repo}/gitd`, `${repo}/.git`);
      writeFileSync(`${repo}/.git/objects/info/alternates`, `${cwd}/../evil/.git/objects\n`);
    },
  };
  for (const [name, form] of Object.entries(forms)) {
    const repo = place.at(`repo ${name}`);
    mkdirSync(repo);
    gitIn(repo, "init", "-q");
    renameSync(`${repo}/.git`, `${repo}/gitd`);
    form(repo);
    const answers = ["git status", "git diff", `git -C '${repo}' log`].map((text) => {
      const judged = classify(text);
      return judged.verdict === "read-only" ? planHazard(judged.plan, { cwd: repo, home: place.path }) : "";
    });
    assert.deepEqual(
      answers.map((answer) => answer === undefined),
      [false, false, false],
      name,
    );
  }
});
