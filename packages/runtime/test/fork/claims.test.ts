import assert from "node:assert/strict";
import { existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { anyCharacter } from "@prefork/testing/any-character";
import { scratch } from "@prefork/testing/scratch";
import fc from "fast-check";
import { checkReport, type ReportCheck, readEditedFiles } from "../../src/children/check-report.ts";
import { readReport } from "../../src/children/report.ts";
import type { JournalEntry } from "../../src/journal/index.ts";
import type { Report } from "../../src/ports.ts";
import { builtInTools, createRegistry } from "../../src/tools/index.ts";
import { type Ground, repository } from "../context/repository.ts";

const reportOf = (filesChanged: readonly string[], more: Partial<Report> = {}): Report => ({
  ...{ scope: "the part", result: "done", keyFiles: [], issues: "none" },
  filesChanged,
  ...more,
});

/** A repository with a few files in its first commit, and a way to change them. */
const ground = (): Ground & { readonly write: (name: string, text?: string) => string } => {
  const base = repository();
  const write = (name: string, text = "new\n"): string => base.put(join("repo", name), text);
  write(".gitignore", "dist/\n*.log\n");
  for (const name of ["src/a.ts", "src/b.ts", "src/deep/c.ts", "Makefile"]) write(name, "old\n");
  base.git("add", ".");
  base.git("commit", "-q", "-m", "first");
  return { ...base, write };
};

const notesOf = (
  { repo }: Ground,
  filesChanged: readonly string[],
  over: Partial<ReportCheck> = {},
): Promise<readonly string[]> => checkReport({ report: reportOf(filesChanged), edited: [], cwd: repo, ...over });

const unfounded = (name: string): string => `says it changed ${name}, but git and its calls show no change of it`;
const untold = (name: string): string =>
  `says it changed ${name}, but its Write and Edit calls show no change of it, and git cannot tell`;

test("a truthful report gets no note, however the work was done", async () => {
  using g = ground();
  const edited = [g.write("src/a.ts"), g.write("src/new.ts")];
  g.write("made/by/a/command.ts");
  rmSync(join(g.repo, "src/b.ts"));
  g.git("mv", "src/deep/c.ts", "src/deep/d.ts");
  const names = ["src/a.ts", "src/new.ts", "made/by/a/command.ts", "src/b.ts", "src/deep/c.ts", "src/deep/d.ts"];
  assert.deepEqual(await notesOf(g, names, { edited }), []);
});

test("a reported file that neither git nor a call shows as changed is noted, and so is an unreported change", async () => {
  using g = ground();
  const edited = [g.write("src/a.ts"), g.write("src/b.ts")];
  assert.deepEqual(await notesOf(g, ["src/a.ts", "src/deep/c.ts", "never/there.ts"], { edited }), [
    unfounded("src/deep/c.ts"),
    unfounded("never/there.ts"),
    "changed src/b.ts and did not say so",
  ]);
});

test("changes that others made at the same time are not attributed to the report", async () => {
  using g = ground();
  g.write("src/b.ts");
  assert.deepEqual(await notesOf(g, []), []);
});

test("a named commit must exist, and the files it changed count as changed", async () => {
  using g = ground();
  g.write("src/a.ts");
  g.git("commit", "-q", "-a", "-m", "second");
  const hash = g.git("rev-parse", "HEAD").trim();
  const tree = g.git("rev-parse", "HEAD^{tree}").trim();
  const noted = async (words: string): Promise<readonly string[]> => {
    const read = readReport(`Scope: x\nResult: done\nKey files: none\nFiles changed: ${words}\nIssues: none`);
    assert.equal(read.kind, "report");
    return read.kind === "report" ? notesOf(g, [], { report: read.report, text: read.text }) : [];
  };
  assert.deepEqual(await noted(`src/a.ts (commit ${hash})`), []);
  assert.deepEqual(await noted(`src/a.ts, commit ${hash.slice(0, 9)}`), []);
  assert.deepEqual(await noted(`src/a.ts (${hash.slice(0, 12)})`), []);
  assert.deepEqual(await noted("src/a.ts (commit 1badc0de)"), [
    unfounded("src/a.ts"),
    "names commit 1badc0de, which is not there",
  ]);
  assert.deepEqual(await noted(`src/b.ts (commit ${hash})`), [unfounded("src/b.ts")]);
  assert.deepEqual(await noted(`none (commit ${tree})`), [`names commit ${tree}, which is not there`]);
});

test("commit hashes are found after the word commit, several at once, and not in other words", async () => {
  using g = ground();
  const said = async (result: string): Promise<readonly string[]> =>
    (await notesOf(g, [], { report: reportOf([], { result }) })).map((note) => note.split(" ")[2] ?? "");
  assert.deepEqual(await said("Committed as `1badc0de`, and commits: 2badc0d, 3badc0de and 4badc0de."), [
    "1badc0de,",
    "2badc0d,",
    "3badc0de,",
    "4badc0de,",
  ]);
  assert.deepEqual(await said("The commit is 1badc0de, commit hash 2badc0d; commit id 3badc0de, commit sha 4badc0de"), [
    "1badc0de,",
    "2badc0d,",
    "3badc0de,",
    "4badc0de,",
  ]);
  assert.deepEqual(await said("I will commit later; the id is 1badc0de. commit 1234567 rows. committed effaced"), []);
});

test("paths are resolved from the working folder, in every notation", async () => {
  using g = ground();
  const edited = [g.write("src/deep/c.ts")];
  const here = { cwd: join(g.repo, "src"), edited };
  const ways = [
    ...["deep/c.ts", "./deep/c.ts", "../src/deep/c.ts", "deep/../deep/c.ts", join(g.repo, "src/deep/c.ts")],
    ...["`deep/c.ts`", "**deep/c.ts**", "deep/c.ts:12-30", "[deep/c.ts](deep/c.ts)", "deep/c.ts.", "1. deep/c.ts"],
    ...["src/deep/c.ts", "c.ts", "deep/", "deep", "deep/*.ts", "deep/**", "{deep,other}/c.ts", "M deep/c.ts", ".", "/"],
  ];
  for (const way of ways) assert.deepEqual(await notesOf(g, [way], here), [], way);
  const others = ["deep/d.ts", "../deep/c.ts", join(g.repo, "deep/c.ts"), "eep/c.ts", "deep/c.tsx"];
  for (const way of others)
    assert.deepEqual(await notesOf(g, [way], here), [unfounded(way), "changed deep/c.ts and did not say so"], way);
});

test("a folder that is named through a link counts as the link's target", async () => {
  using g = ground();
  const link = g.at("link");
  symlinkSync(g.repo, link);
  const edited = [g.write("src/a.ts")];
  assert.deepEqual(await notesOf(g, [join(link, "src/a.ts")], { edited, cwd: link }), []);
  assert.deepEqual(await notesOf(g, ["src/b.ts"], { edited: [join(link, "src/a.ts")], cwd: link }), [
    unfounded("src/b.ts"),
    "changed src/a.ts and did not say so",
  ]);
});

test("names that git or a shell could misread are treated as names", async () => {
  using g = ground();
  const names = ["my notes.txt", "-n.ts", ":(top)x.ts", "ü/ß.ts", 'q"uote.ts', "app/[id]/page.ts", "$(touch x).ts"];
  for (const name of names) {
    assert.deepEqual(await notesOf(g, [name]), [unfounded(name)], name);
    g.write(name);
    assert.deepEqual(await notesOf(g, [name]), [], name);
  }
});

test("words that are not file names are not claims", async () => {
  using g = ground();
  const words = [
    ...[
      "none",
      "None.",
      "No files were changed",
      "nothing to commit",
      "n/a",
      "unchanged",
      "see above",
      "not applicable",
    ],
    ...["I only read the code", "tests and/or docs", "x".repeat(5_000), "a\0b.ts"],
  ];
  assert.deepEqual(await notesOf(g, words), []);
  assert.deepEqual(await notesOf(g, ["Makefile", "Dockerfile"]), [unfounded("Makefile"), unfounded("Dockerfile")]);
});

test("a report need not name a file that was created and removed again, but must name a deleted file", async () => {
  using g = ground();
  const edited = [g.write("tmp.ts"), g.write("src/a.ts")];
  for (const path of edited) rmSync(path);
  assert.deepEqual(await notesOf(g, [], { edited }), ["changed src/a.ts and did not say so"]);
});

test("outside a repository only the calls count, and the note says so", async () => {
  using place = scratch();
  const edited = [place.put("a.ts"), place.put("b.ts")];
  const report = reportOf(["a.ts", "c.ts"], { result: "commit 1badc0de" });
  assert.deepEqual(await checkReport({ report, edited, cwd: place.path }), [
    untold("c.ts"),
    "changed b.ts and did not say so",
  ]);
});

test("if git cannot decide, nothing is called untrue: ignored files, other repositories, other folders", async () => {
  using g = ground();
  g.write("dist/out.js");
  g.write("run.log");
  mkdirSync(join(g.repo, "inner"));
  g.git("-C", "inner", "init", "-q");
  g.write("inner/x.ts");
  const names = ["dist/out.js", "run.log", "inner/x.ts", ".git/config", "../elsewhere.ts", "/etc/hosts"];
  assert.deepEqual(await notesOf(g, names), names.map(untold));
});

test("a repository that configures programs for git is not inspected, and no program is started", async () => {
  using g = ground();
  const marker = g.at("started");
  for (const key of ["core.fsmonitor", "filter.x.clean", "diff.external"]) {
    g.git("config", key, `touch ${marker}; cat`);
    g.write(".gitattributes", "* filter=x\n");
    g.write("src/a.ts", `${key}\n`);
    assert.deepEqual(await notesOf(g, ["src/a.ts"]), [untold("src/a.ts")], key);
    g.git("config", "--unset", key);
  }
  assert.equal(existsSync(marker), false);
  g.git("config", "alias.status", `!touch ${marker}`);
  g.git("config", "core.hooksPath", g.repo);
  assert.deepEqual(await notesOf(g, ["src/a.ts", "src/b.ts"]), [unfounded("src/b.ts")]);
  assert.equal(existsSync(marker), false);
});

test("the caller may pass the git status, and then git's own status does not count", async () => {
  using g = ground();
  g.write("src/b.ts");
  const gitStatus = [join(g.repo, "src/a.ts")];
  assert.deepEqual(await notesOf(g, ["src/a.ts", "src/b.ts"], { gitStatus }), [unfounded("src/b.ts")]);
});

test("an interrupted check, and a check of a missing folder, still report what the calls show", async () => {
  using g = ground();
  const edited = [g.write("src/a.ts")];
  const notes = [untold("src/b.ts"), "changed src/a.ts and did not say so"];
  assert.deepEqual(await notesOf(g, ["src/b.ts"], { edited, signal: AbortSignal.abort() }), notes);
  assert.deepEqual(await notesOf(g, ["b.ts"], { edited: ["/nowhere/a.ts"], cwd: "/nowhere" }), [
    untold("b.ts"),
    "changed a.ts and did not say so",
  ]);
});

test("a git that hangs or prints endlessly does not block the check", async () => {
  using g = ground();
  const instead = (...argv: readonly string[]) => ({ readOnlySandbox: { enter: () => argv, scratch: "/dev/shm" } });
  const ending = new AbortController();
  const waiting = notesOf(g, ["src/b.ts"], { ...instead("/bin/sleep", "300"), signal: ending.signal });
  setImmediate(() => ending.abort());
  assert.deepEqual(await waiting, [untold("src/b.ts")]);
  assert.deepEqual(await notesOf(g, ["src/b.ts"], instead("/usr/bin/yes")), [untold("src/b.ts")]);
});

test("git runs inside the read-only sandbox if there is one", async () => {
  using g = ground();
  const entered: string[] = [];
  const enter = (argv: readonly string[], cwd: string): readonly string[] => {
    entered.push(`${argv[1] === "--literal-pathspecs" ? argv[2] : argv[1]} in ${cwd}`);
    return argv;
  };
  const report = reportOf(["src/b.ts"], { result: `commit ${g.git("rev-parse", "HEAD").trim()}` });
  assert.deepEqual(await notesOf(g, [], { report, readOnlySandbox: { enter, scratch: "/dev/shm" } }), []);
  assert.deepEqual(
    entered,
    ["rev-parse", "status", "cat-file", "diff-tree"].map((word) => `${word} in ${g.repo}`),
  );
});

test("there are only a few notes, each one short line, however much was claimed", async () => {
  using g = ground();
  const names = Array.from({ length: 120 }, (_, at) => `made-up/${at}.ts`);
  const notes = await notesOf(g, names);
  assert.deepEqual(notes, [
    ...names.slice(0, 10).map(unfounded),
    "and 90 more of this kind",
    "names 20 more changed files than were checked",
  ]);
  const lastOf = async (count: number) => (await notesOf(g, names.slice(0, count))).at(-1);
  assert.equal(await lastOf(100), "and 90 more of this kind");
  assert.equal(await lastOf(101), "names 1 more changed files than were checked");
  assert.deepEqual(await notesOf(g, [`a\n\u2028b/${"x".repeat(400)}.ts`]), [unfounded(`a b/${"x".repeat(195)}…`)]);
});

test("a check ends and returns lines for any report", async () => {
  using g = ground();
  const text = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 300 }),
    fc.constantFrom(
      "/",
      "~",
      "..",
      "",
      "\0",
      "*",
      "`",
      "/".repeat(900),
      "../".repeat(300),
      "x".repeat(300),
      "a/".repeat(500),
    ),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(text, { maxLength: 5 }), fc.array(text, { maxLength: 3 }), async (names, edited) => {
      const notes = await notesOf(g, names, { edited, text: names.join(" commit ") });
      for (const note of notes) assert.match(note, /^(?:says|changed|names) [^\n]*$/);
    }),
    { numRuns: 25 },
  );
});

const call = (id: string, name: string, input: unknown): JournalEntry => ({
  kind: "message",
  message: { role: "assistant", content: [{ type: "tool_use", id, name, input: JSON.stringify(input) }] },
});
const ended = (callId: string, isError = false): JournalEntry => ({
  kind: "call_ended",
  callId,
  ms: 1,
  result: { type: "tool_result", toolUseId: callId, content: [], ...(isError ? { isError } : {}) },
});
const opened: JournalEntry = {
  ...{ kind: "opened", id: "s", cwd: "/work/place", model: "m", protocol: "anthropic", product: "prefork" },
};

const { touches } = createRegistry(builtInTools);

test("a journal shows which files its own calls changed: only successful calls, each file once", () => {
  const entries: readonly JournalEntry[] = [
    opened,
    call("1", "Write", { file_path: "/work/place/a.ts", content: "" }),
    { kind: "call_started", callId: "1", name: "Write", readOnly: false },
    ended("1"),
    call("2", "Edit", { file_path: "b.ts" }),
    ended("2"),
    call("3", "Edit", { file_path: "/work/place/refused.ts" }),
    ended("3", true),
    call("4", "Read", { file_path: "/work/place/read.ts" }),
    ended("4"),
    call("5", "Edit", { file_path: "/work/place/./a.ts" }),
    ended("5"),
    call("6", "Write", { file_path: "/work/place/interrupted.ts" }),
    call("7", "Write", { file_path: 7 }),
    ended("7"),
    call("3", "Bash", { command: "true" }), // an id that was used before
    ended("3"),
    ended("not-asked-here"),
  ];
  assert.deepEqual(readEditedFiles(entries, touches), ["/work/place/a.ts", "/work/place/b.ts"]);
});

test("calls of one message are distinguished, and input that is not JSON changes nothing", () => {
  const message: JournalEntry = {
    kind: "message",
    message: {
      role: "assistant",
      content: [
        { type: "text", text: "both at once" },
        { type: "tool_use", id: "1", name: "Write", input: '{"file_path":"/a","content":"x"}' },
        { type: "tool_use", id: "2", name: "Write", input: '{"file_path":"/b"' },
        { type: "tool_use", id: "3", name: "Edit", input: "null" },
        { type: "tool_use", id: "4", name: "Edit", input: '{"file_path":"/c"}' },
      ],
    },
  };
  assert.deepEqual(readEditedFiles([opened, message, ended("4"), ended("3"), ended("2"), ended("1")], touches), [
    "/c",
    "/a",
  ]);
});
