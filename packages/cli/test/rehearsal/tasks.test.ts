import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FORMS } from "../../src/rehearsal/moves.ts";
import { readTasks } from "../../src/rehearsal/tasks.ts";

/** A short description of each task: its calls or changes. */
const inShort = (prompt: string): readonly unknown[] =>
  readTasks(prompt).map(({ moves }) =>
    moves.flatMap((move): readonly unknown[] => {
      switch (move.kind) {
        case "look":
          return move.looks.map(({ name, input }) => ({
            [name]: name === "Bash" && Object.keys(input).length === 1 ? input.command : input,
          }));
        case "change":
          return [{ [move.path]: move.change }];
        default:
          return [move];
      }
    }),
  );

const search = { output_mode: "content", "-n": true };
const count = { output_mode: "count", head_limit: 2_000 };
const skipped = "--exclude-dir=.git --exclude-dir=node_modules";
const find = "-not -path '*/.git/*' -not -path '*/node_modules/*' | wc -l";

const tally = (folder: string): string =>
  `find '${folder}' -type f -not -path '*/.git/*' -not -path '*/node_modules/*' | sed 's|/[^/]*$||' | sort | uniq -c`;

const SINGLE: Readonly<Record<string, readonly unknown[]>> = {
  "find TODO in src": [{ Grep: { pattern: "TODO", path: "src", ...search } }],
  "Find all usages of `a.b(`.": [{ Grep: { pattern: "a\\.b\\(", ...search } }],
  "search src for parse": [{ Grep: { pattern: "parse", path: "src", ...search } }],
  "search for the pattern `v\\d+` in *.md": [{ Grep: { pattern: "v\\d+", glob: "*.md", ...search } }],
  "grep for /a.*b/ in the repository": [{ Grep: { pattern: "a.*b", ...search } }],
  "find `todo` case-insensitively in src": [{ Grep: { pattern: "todo", path: "src", ...search, "-i": true } }],
  "where is parseBody used in packages/wire?": [
    { Grep: { pattern: "\\bparseBody\\b", path: "packages/wire", ...search } },
  ],
  "read src/a.ts": [{ Read: { file_path: "src/a.ts" } }],
  "Read `src/a.ts` lines 3-9 and README.md": [
    { Read: { file_path: "src/a.ts", offset: 3, limit: 7 } },
    { Read: { file_path: "README.md" } },
  ],
  "show the first 5 lines of README.md": [{ Read: { file_path: "README.md", offset: 1, limit: 5 } }],
  "show the last 5 lines of README.md": [{ Bash: "tail -n 5 -- 'README.md'" }],
  "open `a file.txt`": [{ Read: { file_path: "a file.txt" } }],
  "show `git log -3 a.ts`": [{ Bash: "git log -3 a.ts" }],
  "list *.ts files in src": [{ Glob: { pattern: "**/*.ts", path: "src" } }],
  "which TypeScript files are there?": [{ Glob: { pattern: "**/*.ts" } }],
  "list src": [{ Glob: { pattern: "*", path: "src" } }],
  "which files contain `TODO` in src?": [{ Grep: { pattern: "TODO", path: "src", output_mode: "files_with_matches" } }],
  "count TODOs in src": [{ Grep: { pattern: "TODO", path: "src", ...count } }],
  "how many times is `foo` used in src?": [{ Grep: { pattern: "foo", path: "src", ...count } }],
  "count lines in src/a.ts and `it's.txt`": [{ Bash: "wc -l -- 'src/a.ts' 'it'\\''s.txt'" }],
  "count the lines of *.ts files in src": [{ Grep: { pattern: "^", glob: "*.ts", path: "src", ...count } }],
  "how many files are in docs?": [{ Bash: `find 'docs' -type f ${find}` }],
  "count markdown files": [{ Bash: `find '.' -type f -name '*.md' ${find}` }],
  "How many files are in each folder?": [{ Bash: tally(".") }],
  "count files per folder in `my docs`": [{ Bash: tally("my docs") }],
  "find duplicates of `a.b(` in src": [{ Bash: `grep -rhoE -e 'a\\.b\\(' ${skipped} -- 'src' | sort | uniq -d` }],
  "List the repeated lines of pattern `v\\d+`.": [{ Bash: `grep -rhoE -e 'v\\d+' ${skipped} -- '.' | sort | uniq -d` }],
  "Router: find TODO in src": [{ Grep: { pattern: "TODO", path: "src", ...search } }],
  "the second-hand shelf: how many files are in docs?": [{ Bash: `find 'docs' -type f ${find}` }],
  "In docs/a: replace `x` with `y` in src/a.ts": [
    { kind: "unknown", text: "In docs/a: replace `x` with `y` in src/a.ts" },
  ],
  "git status": [{ Bash: "git status --short --branch" }],
  "show the last 3 commits": [{ Bash: "git log --oneline -n 3" }],
  "what changed in src/a.ts?": [{ Bash: "git diff -- 'src/a.ts'" }],
  "who wrote lines 2-4 of src/a.ts?": [{ Bash: "git blame -L 2,4 -- 'src/a.ts'" }],
  "run `npm test -- --bail | tail -5`": [{ Bash: "npm test -- --bail | tail -5" }],
  "check that `npm test` passes": [{ Bash: "npm test" }],
  "run `sleep 9` with a timeout of 2 seconds": [{ Bash: { command: "sleep 9", timeout: 2_000 } }],
  "replace `a b` with `c` in src/a.ts": [{ "src/a.ts": { kind: "replace", old: "a b", new: "c", all: false } }],
  "In src/a.ts, replace `x` with `$&` everywhere": [
    { "src/a.ts": { kind: "replace", old: "x", new: "$&", all: true } },
  ],
  "rename oldName to newName in a.ts and b.ts": [
    { "a.ts": { kind: "replace", old: "oldName", new: "newName", all: true } },
    { "b.ts": { kind: "replace", old: "oldName", new: "newName", all: true } },
  ],
  "remove `debugger;` from a.ts": [{ "a.ts": { kind: "replace", old: "debugger;", new: "", all: false } }],
  "append `more` to notes.md": [{ "notes.md": { kind: "append", text: "more\n" } }],
  "create file notes.md with:\n```md\n# Notes\n\n1. one\n```": [
    { "notes.md": { kind: "write", text: "# Notes\n\n1. one\n", over: false } },
  ],
  "overwrite notes.md with `x`": [{ "notes.md": { kind: "write", text: "x\n", over: true } }],
  "remember to update the docs": [{ kind: "remember", items: ["update the docs"] }],
  "use 2 agents: read a.ts; read b.ts": [{ kind: "fork", items: ["read a.ts", "read b.ts"] }],
  "in parallel, in worktrees: read a.ts; read b.ts": [
    { kind: "fork", items: ["read a.ts", "read b.ts"], isolated: true },
  ],
};

test("a sentence becomes the calls that it asks for", () => {
  assert.deepEqual(
    Object.fromEntries(Object.keys(SINGLE).map((prompt) => [prompt, inShort(prompt)])),
    Object.fromEntries(Object.entries(SINGLE).map(([prompt, calls]) => [prompt, [calls]])),
  );
});

test("every form that the engine offers is one that it follows", () => {
  const given = FORMS.flatMap((form) => form.split(" · ")).map((form) =>
    form.replace("(a fenced text)", "\n```\ntext\n```").replace("(a list of tasks)", "\n- read a.ts\n- read b.ts"),
  );
  const notFollowed = given.filter((form) =>
    readTasks(form).some(({ moves }) => moves.some(({ kind }) => kind === "unknown")),
  );
  assert.deepEqual(notFollowed, []);
});

test("every item of a list is a task, with the fence and the list below it", () => {
  const prompt = `Please do this:

1. Read \`a.ts\` and find X in src
2. Create notes.md with:
   \`\`\`
   - not an item
     further in
   \`\`\`
3) in parallel:
   - count lines in a.ts
   - run \`ls\`
* [ ] git status

Thanks a lot!`;
  assert.deepEqual(inShort(prompt), [
    [{ Read: { file_path: "a.ts" } }, { Grep: { pattern: "X", path: "src", ...search } }],
    [{ "notes.md": { kind: "write", text: "- not an item\n  further in\n", over: false } }],
    [{ kind: "fork", items: ["count lines in a.ts", "run `ls`"] }],
    [{ Bash: "git status --short --branch" }],
  ]);
});

test("without a list every sentence is a task", () => {
  assert.deepEqual(inShort("Read a.ts and count lines in b.ts. Then run `git log -1`, and remember to rest."), [
    [{ Read: { file_path: "a.ts" } }],
    [{ Bash: "wc -l -- 'b.ts'" }],
    [{ Bash: "git log -1" }],
    [{ kind: "remember", items: ["rest"] }],
  ]);
});

test("what a prompt forbids or only asks about is not done", () => {
  const prompts = [
    "Do not run `rm -rf build`",
    "Explain what `git push` does",
    "don't replace `a` with `b` in a.ts",
    "`nonsense` is nice",
  ];
  assert.deepEqual(
    prompts.map((prompt) => inShort(prompt)),
    prompts.map((text) => [[{ kind: "unknown", text }]]),
  );
});

test("any text is read, and at most a hundred tasks are followed", () => {
  const parts = [
    "find ",
    "`",
    "```\n",
    "in ",
    "a.ts ",
    "\n1. ",
    "; ",
    '"',
    "'",
    "\uE0000\uE001",
    "replace `a` with ",
    "in parallel: ",
  ];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 40 }), (chosen) => {
      assert.ok(Array.isArray(readTasks(chosen.join(""))));
    }),
  );
  const titles = readTasks(
    Array.from({ length: 130 }, (_, index) => `${index + 1}. read f${index + 1}.ts`).join("\n"),
  ).map(({ title }) => title);
  assert.deepEqual(
    [titles.length, titles[0], titles[99], titles[100]],
    [101, "read f1.ts", "read f100.ts", "30 more tasks: a rehearsal follows at most 100"],
  );
});
