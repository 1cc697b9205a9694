/** What coding agents run all day to read is allowed, and what is refused says what would be. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { normalizePath } from "../../src/bash/secrets.ts";
import { broadFolderProblem, classify } from "../../src/rules/index.ts";
import { corpusLines } from "../corpus.ts";

const everyday = corpusLines("allow-*.jsonl");
const hostile = corpusLines("deny-*.jsonl");

test("the everyday corpus is large, says why, and has nothing twice", () => {
  assert.ok(everyday.length >= 450, `${everyday.length} lines`);
  assert.deepEqual(
    everyday.filter(({ cmd, why }) => typeof cmd !== "string" || typeof why !== "string" || why.length < 8),
    [],
  );
  assert.equal(new Set(everyday.map(({ cmd }) => cmd)).size, everyday.length);
});

test("every command of the everyday corpus is read-only", () => {
  const refused = everyday.flatMap(({ cmd }) => {
    const judged = classify(cmd);
    return judged.verdict === "read-only" ? [] : [{ cmd, reason: judged.reason }];
  });
  assert.deepEqual(refused, []);
});

test("a plan is data: it survives JSON, and classifying again gives the same plan", () => {
  for (const { cmd } of everyday) {
    const first = classify(cmd);
    assert.deepEqual(JSON.parse(JSON.stringify(first)), classify(cmd), cmd);
  }
});

test("every refusal of the hostile corpus is one short line", () => {
  for (const { cmd } of hostile) {
    const { verdict, reason } = classify(cmd);
    assert.notEqual(verdict, "read-only", cmd);
    // Text that it quotes from the command may be longer; its own words are not.
    assert.match(reason.slice(0, 60), /^[^\n]{4,}$/, `${cmd}: ${reason}`);
  }
});

/** A refused command, what the reason must name, and the command that passes if the model follows the hint. */
const RECOVERIES: readonly (readonly [refused: string, names: RegExp, passes: string])[] = [
  ["for f in *.ts; do wc -l $f; done", /loop.*simple commands joined by/, "wc -l *.ts"],
  ["if [ -f a ]; then cat a; fi", /`if`.*simple commands joined by/, "[ -f a ] && cat a"],
  ["cat $(git ls-files)", /run it first/, "git ls-files | xargs cat"],
  ["echo $PATH", /write the value out/, "echo /usr/bin"],
  ["wc -l <<< hello", /give the text as an argument or a file/, "wc -l notes.txt"],
  ["ls &", /leave out the `&`/, "ls"],
  ["time ls", /`time`.*leave it out/, "ls"],
  ["ls > files.txt", /only redirect to \/dev\/null/, "ls > /dev/null"],
  ["FOO=1 ls", /set no variables/, "ls"],
  ["cd src | ls", /cd DIR && command/, "cd src && ls"],
  ["./run.sh", /not a program in \/bin or \/usr\/bin/, "cat ./run.sh"],
  ["sed -i s/a/b/ f", /sed -i changes files/, "sed s/a/b/ f"],
  ["sed 'w out' f", /sed -n '10,20p' FILE/, "sed -n '10,20p' f"],
  ["awk '{print > \"out\"}' f", /awk '\{print \$1\}' FILE/, "awk '{print $1}' f"],
  ["find . -name a -exec rm {} +", /rm changes files/, "find . -name a"],
  ["find . -execdir ls {} +", /pipe to xargs/, "find . | xargs ls"],
  ["find . -delete", /-delete deletes or writes files; use -print/, "find . -print"],
  ["git branch topic", /git branch --list/, "git branch --list topic"],
  ["git stash", /git stash list/, "git stash list"],
  ["git reflog topic", /git reflog show NAME/, "git reflog show topic"],
  ["git config user.name me", /git config --get KEY/, "git config --get user.name"],
  ["git clean -fd", /git clean -n/, "git clean -n"],
  ["git describe --dirty", /git describe and git status --short/, "git describe; git status --short"],
  ["git remote show origin", /git remote -v/, "git remote -v"],
  ["date -s now", /leave it out/, "date"],
  ["sort -o out in", /sort -o .*leave it out/, "sort in"],
  ["tree -o out", /tree -o .*leave it out/, "tree"],
  ["rg foo -g *.ts", /quote the pattern/, "rg foo -g '*.ts'"],
  ["ls -*", /put \.\/ before it/, "ls ./-*"],
  ["tar -xf a.tar", /tar -tf FILE/, "tar -tf a.tar"],
  ["unzip a.zip", /unzip -l FILE/, "unzip -l a.zip"],
  ["gzip data", /gzip -l FILE/, "gzip -l data"],
  ["npm install", /--version/, "npm --version"],
  ["npm ls", /jq \.scripts package\.json/, "jq .scripts package.json"],
  ["cargo tree", /cat Cargo\.toml/, "cat Cargo.toml"],
  ["make -n", /cat Makefile/, "cat Makefile"],
  ["python -c 'print(1)'", /needs approval/, "python --version"],
  ["git config --list", /git config --get user\.name/, "git config --get user.name"],
  ["git config --get-regexp alias", /'\^alias\\\.'/, "git config --get-regexp '^alias\\.'"],
  ["git log --format=mine", /--format='%h %s'/, "git log --format='%h %s'"],
  ["git apply x.patch", /git apply --stat PATCH/, "git apply --stat x.patch"],
  ["less a", /use cat FILE/, "cat a"],
  ["zgrep x a.gz", /zcat FILE \| grep TEXT/, "zcat a.gz | grep x"],
  ["ldd a.out", /readelf -d FILE \| grep NEEDED/, "readelf -d a.out | grep NEEDED"],
  ["apt list", /dpkg -l/, "dpkg -l"],
  ["vmstat 1", /vmstat 1 3/, "vmstat 1 3"],
  [
    "awk 'BEGIN { while (1) print }'",
    /for \(i = 1; i <= NF; i\+\+\)/,
    "awk '{ for (i = 1; i <= NF; i++) print $i }' f",
  ],
  ["jq 'recurse(.next)' a.json", /recurse\(\.children\[\]\?\)/, "jq 'recurse(.children[]?)' a.json"],
  [
    "jq env a.json",
    /^jq: env: it may not show the environment; a simple filter runs without approval/,
    "jq .env a.json",
  ],
  [
    "jq nonsense a.json",
    /^jq: nonsense is not a known function; a simple filter runs without approval/,
    "jq .nonsense a.json",
  ],
  ["hd -e 99999 a", /^hd accepts numbers of at most four digits; 99999 is too large$/, "hd -e 9999 a"],
  ["unexpand --tabs=99999 a", /^unexpand accepts numbers of at most four digits/, "unexpand --tabs=9999 a"],
  ["jq '[range(.n)]' a.json", /range\(0; length\)/, "jq '[range(0; length)]' a.json"],
  ["xargs -I X rm X", /xargs -I\{\} grep TEXT \{\}/, "xargs -I{} grep TEXT {}"],
  ["[[ a == b* ]]", /plain word/, "[[ a == b ]]"],
  ["[[ -f a && -f b ]]", /\[ … \] joined by && \|\|/, "[ -f a ] && [ -f b ]"],
  ["ls | (cat; pwd)", /simple commands joined by/, "ls | cat; pwd"],
  ["cat $?", /exit code/, "echo $?"],
];

test("a refusal names the form that passes, and that form does pass", () => {
  for (const [refused, names, passes] of RECOVERIES) {
    const { verdict, reason } = classify(refused);
    assert.notEqual(verdict, "read-only", refused);
    assert.match(reason, names, refused);
    assert.equal(classify(passes).verdict, "read-only", `${passes}: ${classify(passes).reason}`);
  }
});

test("a normalized path never goes above the root, and keeps a leading ..", () => {
  const rows: readonly (readonly [path: string, folded: string])[] = [
    ["/../../etc//./passwd", "/etc/passwd"],
    ["/a/../../b", "/b"],
    ["../../a/../b", "../../b"],
    ["a/../..", ".."],
    ["./a/", "a"],
    [".", ""],
  ];
  for (const [path, expected] of rows) assert.equal(normalizePath(path), expected, path);
});

test("a harmless command and its harmful twin get different verdicts", () => {
  const pairs: readonly (readonly [harmless: string, harmful: string])[] = [
    ["find . -exec sed -n 1p {} +", "find . -exec sed -i s/a/b/ {} +"],
    ["find . -name *.ts", "find . -fprint *.ts"],
    ["xargs cat", "xargs sed -n 1p"],
    ["sort ./*.txt", "sort *.txt"],
    ["rg x -- *", "rg x *"],
    ["xargs -I{} wc -l {}", "xargs -I{} {} -l"],
    ["ls $HOME", "ls $HOMES"],
    ["gzip -dc a.gz", "gzip -d a.gz"],
    ["git clean -n", "git clean -nf"],
    ["jq .include a.json", "jq 'include \"m\"; .' a.json"],
    ["grep .env notes.txt", "grep KEY .env"],
    ["grep '.e*' notes.txt", "grep .e* notes.txt"],
    ["test -f .env", "cat .env"],
    ["top -b -n 1", "top"],
    ["sed ':a;N;$!ba;s/x/y/' f", "sed ':a;ba' f"],
    ["grep -rn x --include=*.ts", "sort -* in"],
    ["(cd src && ls)", "(cd src && touch x)"],
    ["echo $?", "echo $((x))"],
    ["timeout 5 git status", "timeout 5 git fetch"],
    ['awk \'{s = s (s ? "," : "") $1} END {print s}\' f', "awk '{s = s s}' f"],
    ["awk '{for (i = NF; i > 0; i--) print $i}' f", "awk '{for (i = NF; i > 0; i++) print $i}' f"],
    ["awk '{n = split($0, a); for (i = 1; i <= n; i++) print a[i]}' f", "awk '{for (i = 1; i <= n; i++) n++}' f"],
    ["jq '.env' a.json", "jq 'env' a.json"],
    ["jq '\"-\" * 20' a.json", "jq '\"-\" * 1e9' a.json"],
    ["jq 'def f: .a; f' a.json", "jq 'def f: f; f' a.json"],
    ['jq \'gsub("x+"; "")\' a.json', 'jq \'gsub("x*"; "")\' a.json'],
    ["find . -name '*.json' | xargs jq .name", "find . -name '*.json' | xargs jq"],
    ["printf '%20s' x", "printf '%*d' 999999999 1"],
    ["seq 10 -1 1", "seq 1 0 5"],
    ["mount", "mount -a"],
    ["dpkg -l", "dpkg -i x.deb"],
    ["objdump -d a.out", "objdump -S a.out"],
    ["gunzip -c a.gz", "gunzip a.gz"],
    [
      "awk '{split($0, a); for (i = 1; i in a; i++) print a[i]}' f",
      "awk '{split($0, a); for (i = 1; i in a; i++) print a[i + 1]}' f",
    ],
    ["[[ 2 -gt 1 ]]", "[[ 'a[0]' -gt 1 ]]"],
    [
      "jq 'def a: 1; def b: 1; def c: 1; def d: 1; def e: 1; a' f",
      "jq 'def a: 1; def b: 1; def c: 1; def d: 1; def e: 1; def g: 1; a' f",
    ],
    ["git submodule status", "git submodule update"],
    ["sed 'G;G' f", "sed 'G;G;h' f"],
  ];
  for (const [harmless, harmful] of pairs) {
    assert.equal(classify(harmless).verdict, "read-only", `${harmless}: ${classify(harmless).reason}`);
    assert.notEqual(classify(harmful).verdict, "read-only", harmful);
  }
});

const COPY = "/home/ann/.local/state/prefork/worktrees/0123456789abcdef/trees/task";

test("a walk may start in a project below a home folder, and not where programs keep user data", () => {
  const walks = (folder: string): readonly string[] => [
    `grep -rn x ${folder}`,
    `rg x ${folder}`,
    `find ${folder} -name '*.ts' -exec grep -l x {} +`,
    `cd ${folder} && grep -rn x .`,
    `cd ${folder} && rg x`,
  ];
  const projects = [
    "/home/ann/project",
    "/home/ann/project/src",
    "/Users/ann/code/.github",
    "/root/project",
    "~/project",
    COPY,
  ];
  const kept = [
    "/home/ann/.config",
    "/Users/ann/.local/share/app",
    "/Users/ann/Library/x",
    "/root/.cache",
    "/root/.local/state/prefork/worktrees/a/trees",
    "~/.config/x",
  ];
  const broad = [
    "/",
    "/home",
    "/home/ann",
    "/root",
    "/etc/sudoers.d",
    "/etc/cron.d",
    "/etc/crontabs",
    "/etc/cron",
    "~",
  ];
  const passed = [...projects, ...kept, ...broad].flatMap(walks).filter((cmd) => classify(cmd).verdict === "read-only");
  assert.deepEqual(passed, projects.flatMap(walks));
  const refused = [...projects, ...kept, ...broad].filter((folder) => broadFolderProblem(folder) !== undefined);
  assert.deepEqual(refused, [...kept, ...broad]);
});
