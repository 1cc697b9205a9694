/** Running a plan gives what bash gives for the text it was made of. Limits and refusals are in run-plan.test.ts. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { utimesSync } from "node:fs";
import { test } from "node:test";
import { type CommandPlan, classify, type PlanStep, runPlan } from "@prefork/guard";
import { needs } from "@prefork/testing/optional";
import { treeOf } from "@prefork/testing/scratch";
import { cleanEnvironment } from "../../src/process/environment.ts";
import { findProgram } from "../../src/process/programs.ts";
import { corpusLines } from "../corpus.ts";
import { type Ground, ground } from "./ground.ts";

const planOf = (text: string): CommandPlan => {
  const judged = classify(text);
  assert.ok(judged.verdict === "read-only", `${text}: ${judged.reason}`);
  return judged.plan;
};

type Answer = { readonly stdout: string; readonly exitCode: number | null };

/** Runs each text that it reads, in a bash of its own: one that is started by this process costs ten times as much. */
const EACH = `while IFS= read -r -d '' text; do
  /bin/bash --noprofile --norc -c "$text" </dev/null 2>/dev/null
  printf '\\0%s\\0' "$?"
done`;

const askBash = (texts: readonly string[], { work, home }: Ground): readonly Answer[] => {
  const { stdout } = spawnSync("/bin/bash", ["--noprofile", "--norc", "-c", EACH], {
    cwd: work,
    env: { ...cleanEnvironment(), HOME: home },
    input: texts.map((text) => `${text}\0`).join(""),
    encoding: "utf8",
    maxBuffer: 100_000_000,
  });
  const fields = stdout.split("\0");
  return texts.map((_, at) => ({ stdout: fields[at * 2] ?? "", exitCode: Number(fields[at * 2 + 1]) }));
};

/** Compares what running each text's plan gives with what bash gives. */
const checkAll = async (texts: readonly string[], place: Ground): Promise<void> => {
  const given = askBash(texts, place);
  for (const [at, text] of texts.entries()) assert.deepEqual(await askPlan(text, place), given[at], text);
};

const askPlan = async (text: string, { work, home }: Ground): Promise<Answer> => {
  const { stdout, exitCode } = await runPlan(planOf(text), { cwd: work, home });
  return { stdout, exitCode };
};

const programsOf = (steps: readonly PlanStep[]): readonly string[] =>
  steps.flatMap(({ run }) => {
    if (run.kind === "cd") return [];
    return run.kind === "group" ? programsOf(run.steps) : run.commands.map(({ program }) => program);
  });

const isInstalled = (text: string): boolean =>
  programsOf(planOf(text).steps).every((program) => findProgram(program) !== undefined);

/** Answers that differ from one moment to the next, or that we give in another form on purpose. */
const UNSTEADY =
  /\b(rg|ps|pgrep|top|free|shuf|sleep|date|type|uptime)\b|command -V|sort -R|du -sh (\*|\.\[)|md5sum \*|xargs file|\bawk --version/;

/** What they print depends on what else runs on the machine: only how they end is compared. */
const LIVE = /\b(ss|ip|df|netstat|lsof)\b/;

/** There even that does: a file may be gone before it is looked at. They must run all the same. */
const SHARED = /\/tmp\b|find \/ /;

/** Programs that a new machine lacks have tests of their own. */
const OPTIONAL = [
  ["jq", await needs("jq")],
  ["tree", await needs("tree")],
] as const;

/** Every third command of a corpus here; all of them in the long form: npm run soak -- plans. */
const STRIDE = process.env.PREFORK_ALL_PLANS === undefined ? 3 : 1;
/** Every fifth of those with git: each takes three programs. */
const GIT_STRIDE = process.env.PREFORK_ALL_PLANS === undefined ? 5 : 1;

const joined = (isWanted: (cmd: string) => boolean): readonly string[] =>
  corpusLines("allow-joined.jsonl")
    .map(({ cmd }) => cmd)
    .filter((cmd) => !UNSTEADY.test(cmd) && isWanted(cmd) && isInstalled(cmd));

const names = (program: string, cmd: string): boolean => programsOf(planOf(cmd).steps).includes(program);

for (const [program, decided] of OPTIONAL)
  test(`commands with ${program} give what bash gives`, decided, async () => {
    using place = ground();
    const texts = joined((cmd) => names(program, cmd));
    assert.ok(texts.length > 0);
    await checkAll(texts, place);
  });

test("the joined commands of the everyday corpus give what bash gives", async () => {
  using place = ground();
  const all = joined((cmd) => !OPTIONAL.some(([program]) => names(program, cmd)));
  assert.ok(all.length >= 100, `${all.length} commands`);
  const texts = all.filter((_, at) => at % STRIDE === 0);
  const given = askBash(texts, place);
  for (const [at, text] of texts.entries()) {
    const { stdout, exitCode, refused = "" } = await runPlan(planOf(text), { cwd: place.work, home: place.home });
    // Bash hands a file's name over as an option there; we do not.
    if (refused.includes("-weird-name")) continue;
    if (SHARED.test(text)) assert.equal(refused, "", text);
    else if (LIVE.test(text)) assert.deepEqual([exitCode, refused], [given[at]?.exitCode, ""], text);
    else assert.deepEqual({ stdout, exitCode }, given[at], text);
  }
});

const NAMES: readonly string[] = [
  ...["ls", "ls -a", "ls -d */", "ls -d .*", "ls -d */ */*", "ls *.md", "ls src/*.ts", "ls packages/*/package.json"],
  ...["ls file?.txt", "ls [a-b].txt", "ls [!a].txt", "ls [^ab]*.txt", "ls my-*.txt", "ls *-*-?.txt", "ls -d linked/*"],
  ...["ls nothing*", "ls nothing* 2>/dev/null", "echo nothing*", "echo src/nothing/*", "ls link*", "echo dangling*"],
  ...["ls star\\*.txt", "cat 'star*.txt'", "echo *'*'*", "ls star*"],
  ...["cat 'My Documents'/*.txt", 'cat "My Documents/letter.txt"', "cat My\\ Documents/letter.txt", "ls My*"],
  ...[
    "cat 'quo\"te.txt'",
    'cat "quo\\"te.txt"',
    'cat quo\\"te.txt',
    "cat quo*",
    "ls 'it'\\''s here'",
    'ls "it\'s here"',
  ],
  ...["cat $'tab\\tname.txt'", "cat tab*", "cat 'two\nlines.txt'", "cat two*", "cat $'two\\nlines.txt'"],
  ...["cat ./-weird-name", "cat -- -weird-name", "cat back\\\\slash.txt", "cat 'back\\slash.txt'", "ls back*"],
  ...[
    "cat über.txt",
    "cat 日*.txt",
    "ls docs/ü*",
    "wc -m über.txt",
    "ls {a,b}.txt",
    "ls file{1..2}.txt",
    "echo {3..1}",
  ],
  ...["echo a{,b}c", "ls src/{api,web}/*", "echo {a,b}*.txt", "echo x{1,2}{3,4}", "echo '{a,b}'", "echo HEAD@{0}"],
  ...["echo ~", "ls ~", "ls ~/projects", "cat ~/.bashrc", "ls $HOME", 'ls "$HOME"/p*', "echo '~'", "ls -d ~/.*"],
  ...[
    "echo ''",
    "echo '' ''",
    "printf '%s|' a '' b",
    "printf '%s\\n' *.csv",
    "printf 'a\\tb\\n'",
    "echo -n x",
    "echo -e 'a\\tb'",
  ],
];

test("names, patterns, braces and quotes give what bash gives", async () => {
  using place = ground();
  await checkAll(NAMES, place);
  // The one difference: a name that would be taken for an option is handed over with ./ before it.
  assert.deepEqual(await askPlan("ls *weird*", place), { stdout: "./-weird-name\n", exitCode: 0 });
});

const FLOWS: readonly string[] = [
  ...["true && echo a", "false && echo a", "false || echo a", "true || echo a", "false; echo a", "true; false"],
  ...["false && echo a || echo b", "true && false || echo b", "true || echo a && echo b", "false || false || echo c"],
  ...["! true", "! false", "! true || echo a", "! false && echo a", "! ls missing 2>/dev/null && echo none"],
  ...[
    "grep -q foo notes.txt && echo yes || echo no",
    "grep nowhere notes.txt; echo after",
    "ls missing",
    "cat missing",
  ],
  ...["cat missing | wc -l", "ls missing 2>&1 | wc -l", "ls missing |& wc -l", "ls missing &>/dev/null; echo $?"],
  ...["ls missing a.txt 2>/dev/null", "ls missing a.txt >/dev/null 2>&1; echo $?", "ls a.txt missing 2>&1 >/dev/null"],
  ...[
    "cat < a.txt",
    "cat < missing",
    "wc -l < a.txt",
    "sort < a.txt | head -1",
    "cat </dev/null",
    "echo x >&2",
    "echo x 1>&2",
  ],
  ...["cat a.txt >/dev/null | wc -c", "cat a.txt 2>/dev/null | wc -c", "head -1 a.txt b.txt"],
  ...[
    "cd src && pwd",
    "cd src; pwd",
    "cd linked && pwd",
    "cd linked && pwd -P",
    "cd src/.. && pwd",
    "cd linked/.. && pwd",
  ],
  ...["cd missing; pwd", "cd missing && pwd", "cd missing || pwd", "cd missing 2>/dev/null || echo none; echo $?"],
  ...["cd ~ && pwd", "cd $HOME/projects; pwd", "cd 'My Documents' && ls", "cd src && ls *.ts && cd .. && ls *.md"],
  ...[
    "(cd src && pwd); pwd",
    "{ cd src; pwd; }; pwd",
    "(false); echo $?",
    "(cd missing) || echo none",
    "( (cd src; pwd); pwd )",
  ],
  ...[
    "false; echo $?",
    "true; echo $?",
    "! true; echo $?",
    "false || echo $?",
    'cat missing; echo "exit: $?"',
    "echo $? $?",
  ],
  ...["ls | head -1 | wc -l", "seq 100000 | head -1", "seq 5 | tac | paste -sd+ -"],
  ...[
    "git status --short",
    "git log --oneline",
    "git diff",
    "git diff --cached",
    "git show HEAD:a.txt",
    "git stash list",
  ],
  ...[
    "git log -1 --format=%s -- src",
    "git -C src status -s",
    "cd src && git ls-files",
    "git show nothing",
    "git grep -n foo",
  ],
  ...["git diff --quiet; echo $?", "git rev-parse --verify -q nothing; echo $?", "git ls-files '*.ts' | xargs wc -l"],
  ...[
    "[[ -f a.txt ]] && echo yes",
    "[[ ! -f a.txt ]] || echo yes",
    "[[ a == a ]] && echo same",
    "[[ a.txt -ot missing ]]; echo $?",
  ],
  ...[
    "test a = b; echo $?",
    "[ -d src -a -f a.txt ]; echo $?",
    "[ 3 -gt 12 ]; echo $?",
    "[ -f a.txt ] && [ -f b.txt ] && echo both",
  ],
  ...[
    "find . -name '*.ts' -not -path './.git/*' | sort",
    "find src -name *.tsx",
    "find . -maxdepth 1 -name *.csv 2>&1 | wc -l",
  ],
  ...["find src -type f -exec wc -l {} + | tail -1", "find src -name '*.ts' -exec grep -l foo {} \\; | sort"],
  ...[
    "ls *.csv | xargs -I{} head -n 1 {}",
    "ls *.csv | xargs -n1 basename",
    "echo a b | xargs",
    "find a.txt -print0 | xargs -0 cat",
  ],
  ...[
    "# only a comment before\nls a.txt",
    "ls a.txt # after",
    "ls a.txt \\\n b.txt",
    "ls a.txt &&\nls b.txt",
    "ls a.txt\n\nls b.txt\n",
  ],
  ...[
    "LC_ALL=C sort notes.txt",
    "TZ=UTC ls -l --time-style=+%H a.txt",
    "zcat data.gz",
    "gzip -dc data.gz | wc -l",
    "pwd",
    "pwd -P",
  ],
];

test("pipes, conditions, redirections, folders and failures give what bash gives", async () => {
  using place = ground();
  assert.ok(FLOWS.length >= 80, `${FLOWS.length} commands`);
  await checkAll(FLOWS, place);
});

/** Git likes to note in its index that a file was touched but is the same; that would be a write. */
test("git changes not one byte of the repository, not even when files were touched", async () => {
  using place = ground();
  const texts = corpusLines("allow-git.jsonl").flatMap(({ cmd }, at) => (at % GIT_STRIDE === 0 ? [cmd] : []));
  const before = treeOf(place.work);
  for (const [index, text] of texts.entries()) {
    const touched = new Date(Date.UTC(2024, 5, 1, 0, 0, index));
    utimesSync(place.at("work", "src/index.ts"), touched, touched);
    await askPlan(text, place);
  }
  assert.deepEqual(treeOf(place.work), before);
});
