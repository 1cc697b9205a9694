/** The foundations: installing once, running on the right runtime, counting tests correctly, and the entry of the command
 *  line. Real processes in scratch folders; npm is replaced by a small program. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempDisposableSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { leavesProcessAlone } from "./share-process.ts";

const repository = fileURLToPath(new URL("..", import.meta.url));

type End = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

/** A folder with these files; `copied` ones come from the repository. */
function makeFolder(files: Readonly<Record<string, string>>, copied: readonly string[]) {
  const folder = mkdtempDisposableSync(join(tmpdir(), "prefork-ground-"));
  for (const path of copied) cpSync(join(repository, path), join(folder.path, path), { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder.path, path)), { recursive: true });
    writeFileSync(join(folder.path, path), text);
  }
  return folder;
}

function runNode(cwd: string, parameters: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<End> {
  // A test runner refuses to run inside a test; the program chooses where compiled code goes.
  const { NODE_TEST_CONTEXT: _, NODE_COMPILE_CACHE: __, NODE_DISABLE_COMPILE_CACHE: ___, ...inherited } = process.env;
  const child = spawn(process.execPath, parameters, { cwd, env: { ...inherited, ...env } });
  const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
  child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk));
  return new Promise((done, fail) => {
    child.on("error", fail);
    child.on("close", (code) =>
      done({ code, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() }),
    );
  });
}

/** Writes what npm writes, and one character per call; `then` is additional code. */
const fakeNpm = (then = ""): string => `
const fs = require("node:fs");
fs.appendFileSync("asked.txt", "x");
fs.mkdirSync("node_modules/some-package", { recursive: true });
${then}
setTimeout(() => fs.writeFileSync("node_modules/.package-lock.json", "{}"), 300);
`;

const clone = (npm: string): Readonly<Record<string, string>> => ({
  "package.json": '{ "type": "module" }',
  "package-lock.json": '{ "packages": { "node_modules/a": {}, "node_modules/b": { "os": ["none"] } } }',
  "npm/npm-cli.cjs": npm,
  "hello.ts": 'const name: string = process.argv[2] ?? ""; console.log("hello", name); process.exitCode = 7;',
});

const start = (root: string, flags: readonly string[] = []): Promise<End> =>
  runNode(root, ["scripts/bootstrap.mjs", ...flags, "hello.ts", "you"], {
    npm_execpath: join(root, "npm/npm-cli.cjs"),
  });

const startOmittingDev = (root: string): Promise<End> => start(root, ["--omit-dev"]);

const askedTimes = (root: string): number => readFileSync(join(root, "asked.txt"), "utf8").length;

test("two first runs at once install once, and both run the script with its exit code", async () => {
  using folder = makeFolder(clone(fakeNpm()), ["scripts/bootstrap.mjs"]);
  const ends = await Promise.all([start(folder.path), start(folder.path)]);
  assert.deepEqual(
    ends.map(({ code, stdout }) => ({ code, stdout })),
    Array.from({ length: 2 }, () => ({ code: 7, stdout: "hello you\n" })),
  );
  assert.equal(askedTimes(folder.path), 1);
  assert.match(
    ends.map(({ stderr }) => stderr).join(""),
    /installing 1 packages with npm and building \(first run only\)/,
  );
});

test("a second run asks npm only after a manifest changed", async () => {
  using folder = makeFolder(clone(fakeNpm()), ["scripts/bootstrap.mjs"]);
  await start(folder.path);
  assert.deepEqual(await start(folder.path), { code: 7, stdout: "hello you\n", stderr: "" });
  assert.equal(askedTimes(folder.path), 1);
  writeFileSync(join(folder.path, "package.json"), '{ "type": "module", "version": "2.0.0" }');
  assert.match((await start(folder.path)).stderr, /changed since the last install/);
  assert.equal(askedTimes(folder.path), 2);
});

/** Installs development packages unless told to omit them, in which case it removes them, and keeps the flags. */
const npmWithLevels = fakeNpm(`
const omit = process.argv.includes("--omit=dev");
fs.appendFileSync("levels.txt", omit ? "run\\n" : "develop\\n");
fs.rmSync("node_modules/compiler", { recursive: true, force: true });
if (!omit) fs.mkdirSync("node_modules/compiler");
`);

test("npm start installs no development packages, npm test adds them, and neither removes them later", async () => {
  const manifest = (version: string) => JSON.stringify({ type: "module", version, devDependencies: { compiler: "1" } });
  const lock = { packages: { "node_modules/a": {}, "node_modules/compiler": { dev: true } } };
  const files = {
    ...clone(npmWithLevels),
    "package.json": manifest("1.0.0"),
    "package-lock.json": JSON.stringify(lock),
  };
  using folder = makeFolder(files, ["scripts/bootstrap.mjs"]);
  const change = (version: string) => writeFileSync(join(folder.path, "package.json"), manifest(version));
  const started = [await startOmittingDev(folder.path), await startOmittingDev(folder.path)];
  const tested = [await start(folder.path), await start(folder.path)];
  const startedLater = await startOmittingDev(folder.path);
  change("2.0.0");
  const startedAfterChange = await startOmittingDev(folder.path);
  const firstLine = ({ stderr }: End): string => stderr.split("\n")[0] ?? "";
  assert.deepEqual([...started, ...tested, startedLater, startedAfterChange].map(firstLine), [
    "installing 1 packages with npm (first run only)",
    "",
    "installing 2 packages with npm and building (so far only what npm start needs is installed)",
    "",
    "",
    "installing 2 packages with npm and building (package.json or package-lock.json changed since the last install)",
  ]);
  assert.equal(readFileSync(join(folder.path, "levels.txt"), "utf8"), "run\ndevelop\ndevelop\n");
});

test("npm start keeps the development packages of an npm install by hand", async () => {
  const manifest = '{ "type": "module", "devDependencies": { "compiler": "1" } }';
  const files = { ...clone(npmWithLevels), "package.json": manifest, "node_modules/compiler/index.js": "" };
  using folder = makeFolder(files, ["scripts/bootstrap.mjs"]);
  assert.equal((await startOmittingDev(folder.path)).code, 7);
  assert.equal(readFileSync(join(folder.path, "levels.txt"), "utf8"), "develop\n");
});

test("a failed install shows npm's words, runs nothing and leaves no fragment", async () => {
  using folder = makeFolder(clone(fakeNpm('console.error("E404 not found"); process.exit(1);')), [
    "scripts/bootstrap.mjs",
  ]);
  const { code, stdout, stderr } = await start(folder.path);
  assert.deepEqual({ code, stdout }, { code: 1, stdout: "" });
  assert.match(stderr, /E404 not found\nnpm install failed after [\d.]+ s; nothing was run\.\nWhat to do: /);
  assert.equal(existsSync(join(folder.path, "node_modules")), false);
});

test("the lock of a process that is gone is taken over", async () => {
  const lock = `node_modules/.prefork-install.lock/${hostname()}@4194999`; // above the highest process number
  using folder = makeFolder({ ...clone(fakeNpm()), [lock]: "" }, ["scripts/bootstrap.mjs"]);
  assert.equal((await start(folder.path)).code, 7);
  assert.equal(existsSync(join(folder.path, "node_modules/.prefork-install.lock")), false);
});

test("an install that changes the lock file says so", async () => {
  const npm = fakeNpm('fs.writeFileSync("package-lock.json", "{}");');
  using folder = makeFolder({ ...clone(npm), ".git/HEAD": "" }, ["scripts/bootstrap.mjs"]);
  assert.match((await start(folder.path)).stderr, /npm changed package-lock\.json/);
});

/** What `npm test` consists of. */
const RUNNER: readonly string[] = [
  ...["test.ts", "report.ts", "optional.ts", "share-process.ts", "temporary-folder.ts"].map(
    (name) => `scripts/${name}`,
  ),
  ...["test-bundle.ts", "serve-bundles.mjs"].map((name) => `scripts/${name}`),
  ...["tools.ts", "source.ts"].map((name) => `scripts/checks/${name}`),
];

/** Declares a dependency as a package's tests do; written so that this file itself declares none. */
const RIPGREP = JSON.stringify("@vscode/ripgrep");
const DECLARING = `
import { test } from "node:test";
const isThere = process.env.ABSENT === undefined;
const hidden = process.env.PREFORK_HIDE_PROGRAMS;
const again = hidden === ${RIPGREP} ? { only: true } : {};
const needs = (name) => ({ skip: isThere && hidden !== name ? false : "needs " + name + ": it is not there", ...again });
const uses = () => again;
test("depends on nothing", () => {});
test("searches with it", needs(${RIPGREP}), () => {});
test("searches either way", uses(${RIPGREP}), () => {
  if (hidden !== undefined && hidden === process.env.BROKEN_WITHOUT) throw new Error("broken without " + hidden);
});
`;

test("tests that depend on an optional program run with it and with it hidden, and are listed", async () => {
  const program = `node_modules/@vscode/ripgrep-${process.platform}-${process.arch}/bin/rg`;
  const files = { "package.json": '{ "type": "module" }', "packages/a/test/a.test.ts": DECLARING };
  using folder = makeFolder({ ...files, [program]: "" }, RUNNER);
  const listed = ({ stdout }: End): readonly string[] => {
    const from = stdout.slice(stdout.indexOf("  @vscode/ripgrep: ")).split("\n");
    return [...from.slice(0, from.indexOf("")), from.at(-2) ?? ""];
  };
  const at = "packages/a/test/a.test.ts: searches";
  const both = await runNode(folder.path, ["scripts/test.ts"]);
  assert.deepEqual(listed(both), [
    `  @vscode/ripgrep: ${program}; decided 2 tests`,
    `    ran because it is there: ${at} with it`,
    `    ran with it and without: ${at} either way`,
    "4 passed, 0 failed",
  ]);
  const broken = await runNode(folder.path, ["scripts/test.ts"], { BROKEN_WITHOUT: "@vscode/ripgrep" });
  assert.equal(broken.code, 1);
  assert.match(broken.stdout, /✖ packages\/a\/test\/a\.test\.ts without @vscode\/ripgrep: searches either way/);
  rmSync(join(folder.path, program));
  assert.deepEqual(listed(await runNode(folder.path, ["scripts/test.ts"], { ABSENT: "yes" })), [
    "  @vscode/ripgrep: not found; decided 1 test",
    `    skipped without it: ${at} with it`,
    "2 passed, 0 failed, 1 skipped",
  ]);
});

test("the runner counts tests and examples, explains failures and lists what it skipped", async () => {
  const files = {
    "package.json": '{ "type": "module" }',
    "packages/a/test/mixed.test.ts": [
      'import assert from "node:assert/strict";',
      'import { describe, test } from "node:test";',
      'describe("group", () => {',
      '  test("good", () => {});',
      '  test("bad", () => assert.equal(1, 2));',
      '  test("absent", { skip: "needs a moon" }, () => {});',
      "});",
    ].join("\n"),
    "packages/a/test/empty.test.ts": "export const nothing = 1;\n",
    "examples/01-good.ts": 'console.log("fine");\n',
    "examples/02-bad.ts": 'console.log("before the end"); process.exitCode = 3;\n',
  };
  using folder = makeFolder(files, RUNNER);
  symlinkSync(join(repository, "node_modules"), join(folder.path, "node_modules"));
  const all = await runNode(folder.path, ["scripts/test.ts"]);
  assert.equal(all.code, 1);
  assert.equal(all.stdout.trimEnd().split("\n").at(-1), "2 passed, 3 failed, 1 skipped");
  for (const part of [
    "– packages/a/test/mixed.test.ts: group › absent (needs a moon)",
    "✖ packages/a/test/mixed.test.ts: group › bad\n    AssertionError",
    "✖ packages/a/test/empty.test.ts: runs to its end\n    this file ended without a single test",
    "✖ examples/02-bad.ts: runs to its end\n    the program ended with exit code 3",
    "examples/02-bad.ts printed:\n    before the end",
  ])
    assert.ok(all.stdout.includes(part), `${part} is not in:\n${all.stdout}`);
  assert.match(all.stdout, / {4}at TestContext\.<anonymous> \(file:.*\/packages\/a\/test\/mixed\.test\.ts:5:\d+\)/);
  assert.equal(all.stdout.includes("cannot be bundled"), false);
  const good = await runNode(folder.path, ["scripts/test.ts", "examples/01"]);
  assert.deepEqual([good.code, good.stdout.trimEnd().split("\n").at(-1)], [0, "1 passed, 0 failed"]);
  const none = await runNode(folder.path, ["scripts/test.ts", "nowhere"]);
  assert.deepEqual([none.code, none.stdout.trimEnd().split("\n").at(-1)], [1, "0 passed, 0 failed"]);
});

test("a test run whose files cannot be bundled runs the sources, and the faulty file alone fails", async () => {
  const files = {
    "package.json": '{ "type": "module" }',
    "packages/a/test/broken.test.ts": 'import { absent } from "./nowhere.ts";\nabsent();\n',
    "packages/a/test/good.test.ts": 'import { test } from "node:test";\ntest("good", () => {});\n',
  };
  using folder = makeFolder(files, RUNNER);
  symlinkSync(join(repository, "node_modules"), join(folder.path, "node_modules"));
  const { code, stdout } = await runNode(folder.path, ["scripts/test.ts"]);
  assert.deepEqual([code, stdout.trimEnd().split("\n").at(-1)], [1, "1 passed, 1 failed"]);
  assert.match(
    stdout,
    /^running the sources, which is slower, because they cannot be bundled: .*Could not resolve "\.\/nowhere\.ts"/m,
  );
});

test("an error that nobody awaits fails its file, and is shown", async () => {
  const files = {
    "package.json": '{ "type": "module" }',
    "packages/a/test/stray.test.ts": [
      'import { test } from "node:test";',
      'import { setTimeout as after } from "node:timers/promises";',
      'test("leaves a promise behind", async () => {',
      '  void after(1).then(() => Promise.reject(new Error("nobody awaited this")));',
      "  await after(20);",
      "});",
    ].join("\n"),
  };
  using folder = makeFolder(files, RUNNER);
  symlinkSync(join(repository, "node_modules"), join(folder.path, "node_modules"));
  const { code, stdout } = await runNode(folder.path, ["scripts/test.ts"]);
  assert.equal(code, 1, stdout);
  assert.match(stdout, /✖ packages\/a\/test\/stray\.test\.ts/);
  assert.match(stdout, /nobody awaited this/);
});

test("files that leave the process as it is share one, and each failure is that of its file", async () => {
  const named = (body: string): string =>
    `import { test } from "node:test";\ntest("in process " + process.pid, () => {});\n${body}`;
  const files = {
    "package.json": '{ "type": "module" }',
    "packages/a/test/bad.test.ts": named('test("bad", () => { throw new Error("fails alone"); });'),
    "packages/a/test/changes.test.ts": named('process.env.ANY = "changed";'),
    "packages/a/test/changes-by-others.test.ts": `import "./changing.ts";\n${named("")}`,
    "packages/a/test/changing.ts": 'process.chdir("/");\n',
    "packages/a/test/good.test.ts": named(""),
    "packages/b/test/good.test.ts": named(""),
  };
  using folder = makeFolder(files, RUNNER);
  symlinkSync(join(repository, "node_modules"), join(folder.path, "node_modules"));
  const { stdout } = await runNode(folder.path, ["scripts/test.ts"]);
  assert.equal(stdout.trimEnd().split("\n").at(-1), "5 passed, 1 failed", stdout);
  assert.match(stdout, /✖ packages\/a\/test\/bad\.test\.ts: bad\n {4}Error: fails alone/);
  const processOf = new Map(
    [...stdout.matchAll(/^(\S+\.test\.ts)\n {2}✔ in process (\d+)/gm)].map(([, path = "", pid = ""]) => [path, pid]),
  );
  assert.equal(processOf.get("packages/a/test/bad.test.ts"), processOf.get("packages/a/test/good.test.ts"));
  assert.deepEqual([processOf.size, new Set(processOf.values()).size], [5, 4]);
});

test("when a shared process fails as a whole, each file runs alone and shows whose fault it was", async () => {
  const good = 'import { test } from "node:test";\ntest("good", () => {});\n';
  const stray = [
    'import { test } from "node:test";',
    'import { setTimeout as pass } from "node:timers/promises";',
    'test("leaves a promise behind", async () => {',
    '  void pass(1).then(() => Promise.reject(new Error("nobody awaited this")));',
    "  await pass(20);",
    "});",
  ].join("\n");
  const faulty = { empty: "export const nothing = 1;\n", stray, throws: "throw new Error();\n" };
  const files = Object.entries(faulty).flatMap(([name, text]) => [
    [`packages/${name}/test/a.test.ts`, good],
    [`packages/${name}/test/b.test.ts`, text],
    [`packages/${name}/test/c.test.ts`, good],
  ]);
  using folder = makeFolder({ "package.json": '{ "type": "module" }', ...Object.fromEntries(files) }, RUNNER);
  symlinkSync(join(repository, "node_modules"), join(folder.path, "node_modules"));
  const { stdout } = await runNode(folder.path, ["scripts/test.ts"]);
  const failed = stdout.split("\n").filter((line) => line.startsWith("✖"));
  assert.deepEqual(
    [...failed.sort(), stdout.trimEnd().split("\n").at(-1)],
    [
      "✖ packages/empty/test/b.test.ts: runs to its end",
      "✖ packages/stray/test/b.test.ts: runs to its end",
      "✖ packages/throws/test/b.test.ts: runs to its end",
      "7 passed, 3 failed",
    ],
    stdout,
  );
});

test("a file shares its process only as long as it mentions nothing that belongs to all of it", () => {
  const alone = [
    'process.env.HOME = "/x";',
    'process.env["HOME"] ??= "/x";',
    "delete process.env.HOME;",
    "Object.assign(process.env, more);",
    "process.chdir(folder);",
    "process.umask(0);",
    'process.on("SIGTERM", stop);',
    "process.exitCode = 1;",
    "const { exit } = process;",
    'process["exit"](1);',
    "watch(process);",
    'import { exit } from "node:process";',
    "globalThis.fetch = other;",
    'import { after, test } from "node:test";',
    'import { mock } from "node:test";',
    "process.cpuUsage();",
    'import { spawn } from "node:child_process";',
  ];
  const together = [
    "const { HOME } = process.env;",
    "if (process.env.HOME === undefined) return;",
    "spawn(process.execPath, [...process.execArgv], { env: { ...process.env } });",
    'import { test } from "node:test";\nconst after = 1;',
    'new URL("writer-process.ts", import.meta.url);',
    "// starts a process of its own",
  ];
  assert.deepEqual(
    [...alone, ...together].filter((text) => leavesProcessAlone(text)),
    together,
  );
});

test("a bundled program knows its own place, and whether it was the one started", async () => {
  const files = {
    "package.json": '{ "type": "module" }',
    "packages/a/src/program.ts": 'export const name = "program"; if (import.meta.main) console.log(import.meta.url);\n',
    "packages/a/test/start.test.ts": [
      'import assert from "node:assert/strict";',
      'import { spawnSync } from "node:child_process";',
      'import { test } from "node:test";',
      'import { name } from "../src/program.ts";',
      'test("starts it", () => {',
      '  const program = new URL("../src/program.ts", import.meta.url);',
      "  const { stdout } = spawnSync(process.execPath, [...process.execArgv, program.pathname], { encoding: 'utf8' });",
      "  assert.deepEqual([name, stdout.trim()], ['program', program.href]);",
      "});",
    ].join("\n"),
  };
  using folder = makeFolder(files, RUNNER);
  symlinkSync(join(repository, "node_modules"), join(folder.path, "node_modules"));
  const { stdout } = await runNode(folder.path, ["scripts/test.ts"]);
  assert.equal(stdout.trimEnd().split("\n").at(-1), "1 passed, 0 failed", stdout);
  assert.equal(stdout.includes("cannot be bundled"), false);
});

const entryPoint = "packages/cli/bin/prefork.js";
const cliManifest = { "packages/cli/package.json": '{ "type": "module", "version": "1.2.3" }' };

test("the entry point answers --version alone, and says what is missing", async () => {
  using folder = makeFolder(cliManifest, [entryPoint]);
  for (const word of ["--version", "-v", "version"])
    assert.deepEqual(await runNode(folder.path, [entryPoint, word]), { code: 0, stdout: "1.2.3\n", stderr: "" });
  const empty = await runNode(folder.path, [entryPoint, "demo"]);
  mkdirSync(join(folder.path, "packages/cli/src"));
  writeFileSync(join(folder.path, "packages/cli/src/main.ts"), "");
  const notInstalled = await runNode(folder.path, [entryPoint, "demo"]);
  const refused = (line: string): End => ({ code: 2, stdout: "", stderr: `prefork: ${line}\n` });
  assert.deepEqual(
    [empty, notInstalled],
    [
      refused("the installation is incomplete: neither the bundle nor the sources exist"),
      refused(`nothing is installed in ${folder.path}/: run npm install there`),
    ],
  );
});

test("in a clone without a build the entry point becomes the sources on the pinned Node, so ending it ends them", async () => {
  const files = {
    ...cliManifest,
    "packages/cli/src/main.ts":
      'import { kind } from "other"; console.log(kind, process.argv.slice(2), process.ppid); process.exitCode = 6;',
    "node_modules/other/package.json": '{ "exports": { "prefork-source": "./src.js", "default": "./dist.js" } }',
    "node_modules/other/src.js": 'exports.kind = "source";',
    "node_modules/prefork/package.json": "{}",
  };
  using folder = makeFolder(files, [entryPoint]);
  const pinned = join(folder.path, "node_modules", `node-${process.platform}-${process.arch}`, "bin/node");
  mkdirSync(dirname(pinned), { recursive: true });
  writeFileSync(pinned, `#!/bin/sh\necho "pinned" >&2\nexec "${process.execPath}" "$@"\n`, { mode: 0o755 });
  const end = await runNode(folder.path, [entryPoint, "cost", "--json"]);
  assert.deepEqual(end, { code: 6, stdout: `source [ 'cost', '--json' ] ${process.pid}\n`, stderr: "pinned\n" });
});

test("the entry point passes arguments and exit code to the built program", async () => {
  const files = {
    ...cliManifest,
    "packages/cli/dist/main.js": 'export const main = async (argv) => { console.log(argv.join("+")); return 5; };',
  };
  using folder = makeFolder(files, [entryPoint]);
  const end = await runNode(folder.path, [entryPoint, "cost", "--json"]);
  assert.deepEqual(end, { code: 5, stdout: "cost+--json\n", stderr: "" });
});

test("compiled code is kept in a folder of the user's own, and in no folder that others can write to", async () => {
  const files = {
    ...cliManifest,
    "packages/cli/dist/main.js":
      'import { getCompileCacheDir } from "node:module"; export const main = async () => { console.log(getCompileCacheDir()); return 0; };',
  };
  using folder = makeFolder(files, [entryPoint]);
  const kept = join(folder.path, "cache/prefork/compiled");
  const run = async (): Promise<string> =>
    (await runNode(folder.path, [entryPoint, "demo"], { XDG_CACHE_HOME: join(folder.path, "cache") })).stdout;
  const first = await run();
  assert.deepEqual([dirname(first), statSync(kept).mode & 0o777], [kept, 0o700]);
  chmodSync(kept, 0o770);
  assert.equal(await run(), "undefined\n");
});
