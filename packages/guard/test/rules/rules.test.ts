import assert from "node:assert/strict";
import { test } from "node:test";
import { contextOf, decideBash, HOME, place, ROOT } from "@prefork/testing/policies";
import { targetOf } from "../../src/rules/arguments.ts";
import { decide } from "../../src/rules/decide.ts";
import { failingExample, matches, parseRule, prepareCall, type RuleList } from "../../src/rules/rules.ts";

const ruleOf = (text: string, list: RuleList) => {
  const read = parseRule(text, { ...place, list, origin: "test" });
  if (read.kind === "wrong") throw new Error(read.reason);
  return read.rule;
};

/** Does the rule, in this list, cover a call with this first argument? */
const covers = (text: string, list: RuleList, [tool, subject]: readonly [string, string]): boolean => {
  const key = tool === "Bash" ? "command" : tool === "Grep" || tool === "Glob" ? "path" : "file_path";
  return matches(ruleOf(text, list), prepareCall(tool, targetOf({ tool, args: { [key]: subject } }, ROOT)));
};

test("a rule of an unknown form is an error that names it", () => {
  const wrong: readonly (readonly [string, RegExp])[] = [
    ["", /is not a rule/],
    ["Bash(", /is not a rule/],
    ["Bash()", /names no command/],
    ["Bash(:*)", /names no command/],
    ["Bash(ls | wc)", /one simple command/],
    ["Bash(f() { ls; })", /one simple command/],
    ["Bash(A=1 ls)", /must not set variables/],
    ["Bash(ls > x)", /must not redirect/],
    ["Bash(npm run $X)", /plain words/],
    ["Bash(npm run te*)", /plain words/],
    ["Bash(echo 'x)", /is not a command/],
    ["Bahs", /did you mean Bash\?/],
    ["Read()", /names no path/],
    ["Read(src/**.ts)", /must be alone between slashes/],
    ["Read(a*b*c*d)", /more than 2 stars/],
    ["Read(!x)", /extended pattern/],
    ["Read(@(a|b))", /extended pattern/],
    ["Read(a/../b)", /`\.\.` after a name/],
    ["Read(/../x)", /above the root/],
    ["Read(~bob/x)", /another user's home/],
    ["Agent(x)", /only Bash, Read, Edit, Write and WebFetch/],
    ["WebFetch(example.com)", /domain:host/],
    ["WebFetch(domain:*.example.com)", /domain:host/],
    ["mcp__", /must be mcp__server/],
    ["mcp__a__b(c)", /without parentheses/],
    ["mcp__a__***", /unreadable/],
  ];
  for (const [text, reason] of wrong) {
    const read = parseRule(text, { ...place, list: "deny", origin: "test" });
    assert.ok(read.kind === "wrong", text);
    assert.match(read.reason, reason);
    assert.ok(read.reason.includes(JSON.stringify(text)), read.reason);
  }
  assert.equal(parseRule("Read(~/x)", { base: ROOT, list: "allow", origin: "" }).kind, "wrong");
  assert.equal(parseRule("Deploy", { ...place, list: "deny", origin: "", tools: ["Deploy"] }).kind, "rule");
});

test("path rules compare names, strictly to allow and forgivingly to deny", () => {
  const rows: readonly (readonly [rule: string, path: string, allow: boolean, deny: boolean])[] = [
    ["./src/**", `${ROOT}/src/a/b.ts`, true, true],
    ["./src/**", `${ROOT}/src`, true, true],
    ["./src/**", `${ROOT}/src2/a`, false, false],
    ["./src/*.ts", `${ROOT}/src/.hidden.ts`, true, true],
    ["./src/*.ts", `${ROOT}/src/a/b.ts`, false, false],
    ["src/{a,b}/*.ts", `${ROOT}/src/b/x.ts`, true, true],
    ["src/[ab].ts", `${ROOT}/src/c.ts`, false, false],
    ["./SRC/a", `${ROOT}/src/a`, false, true],
    ["./caf\u00e9", `${ROOT}/cafe\u0301`, false, true],
    ["./a", `${ROOT}/a/b/c`, false, true],
    [".env", `${ROOT}/deep/er/.env`, false, true],
    ["./.env", `${ROOT}/deep/.env`, false, false],
    ["*.key", `${ROOT}/x/y.key`, false, true],
    ["../shared/**", "/work/shared/x", true, true],
    ["../../shared/**", "/shared/x", true, true],
    ["**/x/**/y", `${ROOT}/a/x/b/c/y`, true, true],
    ["**/x/**/y", `${ROOT}/a/x/b/c/z`, false, false],
    ["/etc/**", "/etc/hosts", true, true],
    ["/src/**", `${ROOT}/src/a`, false, true],
    ["//etc/**", `${ROOT}/etc/a`, false, false],
    ["~/notes/**", `${HOME}/notes/a`, true, true],
    ["~", `${HOME}`, true, true],
    ["**", `${ROOT}/any/thing`, true, true],
    ["//**", "/any/thing", true, true],
  ];
  for (const [rule, path, allow, deny] of rows) {
    assert.equal(covers(`Read(${rule})`, "allow", ["Read", path]), allow, `allow ${rule} ${path}`);
    assert.equal(covers(`Read(${rule})`, "deny", ["Read", path]), deny, `deny ${rule} ${path}`);
  }
});

test("letters of a folder's name that look like a pattern are only letters", () => {
  const read = parseRule("Read(./a/**)", { base: "/work/[x]*", list: "allow", origin: "" });
  assert.ok(read.kind === "rule");
  const at = (path: string) => prepareCall("Read", targetOf({ tool: "Read", args: { file_path: path } }, ROOT));
  assert.equal(matches(read.rule, at("/work/[x]*/a/b")), true);
  assert.equal(matches(read.rule, at("/work/xy/a/b")), false);
});

test("a path rule applies to all tools of its kind", () => {
  const path = `${ROOT}/src/a.ts`;
  const toolsOf = (rule: string, list: RuleList) =>
    ["Read", "Grep", "Glob", "Edit", "MultiEdit", "Write"].filter((tool) => covers(rule, list, [tool, path]));
  assert.deepEqual(toolsOf("Read(./src/**)", "allow"), ["Read", "Grep", "Glob"]);
  assert.deepEqual(toolsOf("Edit(./src/**)", "allow"), ["Edit", "MultiEdit"]);
  assert.deepEqual(toolsOf("Write(./src/**)", "allow"), ["Write"]);
  assert.deepEqual(toolsOf("Read(./src/**)", "deny"), ["Read", "Grep", "Glob", "Edit", "MultiEdit"]);
  assert.deepEqual(toolsOf("Edit(./src/**)", "deny"), ["Edit", "MultiEdit", "Write"]);
  assert.deepEqual(toolsOf("Write", "ask"), ["Edit", "MultiEdit", "Write"]);
  assert.deepEqual(toolsOf("Write", "allow"), ["Write"]);
});

test("a rule for one server never allows another with the same prefix", () => {
  const calls = (rule: string, list: RuleList, name: string) =>
    matches(ruleOf(rule, list), prepareCall(name, targetOf({ tool: name, args: {} }, ROOT)));
  assert.equal(calls("mcp__git__*", "allow", "mcp__git__log"), true);
  assert.equal(calls("mcp__git", "allow", "mcp__git__log"), true);
  assert.equal(calls("mcp__git__*", "allow", "mcp__git_hub__log"), false);
  assert.equal(calls("mcp__git__*", "allow", "mcp__git__hub__log"), false);
  assert.equal(calls("mcp__git__*", "deny", "mcp__git__hub__log"), true);
  assert.equal(calls("mcp__git__log_*", "allow", "mcp__git__log_all"), true);
  assert.equal(calls("mcp__*", "deny", "mcp__x__y"), true);
});

test("a Bash rule allows its words and no others", () => {
  const rows: readonly (readonly [rule: string, command: string, allowed: boolean])[] = [
    ["git diff:*", "git diff", true],
    ["git diff:*", "git diff --stat -- a", true],
    ["git diff:*", "git difftool", false],
    ["git diff:*", "git  'diff' x", true],
    ["git diff:*", "/usr/bin/git diff", false],
    ["git diff:*", "GIT_PAGER=x git diff", false],
    ["git diff:*", "git diff > f", false],
    ["git diff:*", "git diff < f", false],
    ["git diff:*", "git diff 2>&1", true],
    ["git diff:*", "git diff > /dev/null", true],
    ["git diff:*", "git diff && git diff -w", true],
    ["git diff:*", "git diff; ls", false],
    ["git diff:*", "git diff $(ls)", false],
    ["git diff:*", "git diff `ls`", false],
    ["git diff:*", "git diff <(ls)", false],
    ["git diff:*", "sudo git diff", false],
    ["git diff:*", "git() { ls; }; git diff", false],
    ["git diff:*", "git d*", false],
    ["npm run test", "npm run test", true],
    ["npm run test", "npm run test -- x", false],
    ["npm run test *", "npm run test -- x", true],
    ["npm run test:unit", "npm run test:unit", true],
    ["npm run test:unit", "npm run test", false],
    ["git push * main", "git push origin main", true],
    ["git push * main", "git push main", false],
    ["git add '*'", "git add x", false],
    ["git add '*'", "git add '*'", true],
    ["echo 'a b'", 'echo "a b"', true],
    ["echo 'a b'", "echo a b", false],
  ];
  for (const [rule, command, allowed] of rows) {
    assert.equal(covers(`Bash(${rule})`, "allow", ["Bash", command]), allowed, `${rule}: ${command}`);
  }
});

test("a rule's examples are checked", () => {
  const check = (text: string, examples: { match?: string[]; notMatch?: string[] }, list: RuleList = "allow") =>
    failingExample(ruleOf(text, list), examples, place);
  assert.equal(check("Bash(git log:*)", { match: ["git log -1"], notMatch: ["git login"] }), undefined);
  assert.match(check("Bash(git log:*)", { match: ["git login"] }) ?? "", /should match its example "git login"/);
  assert.match(check("Bash(git log:*)", { notMatch: ["git log"] }) ?? "", /should not match its example "git log"/);
  assert.equal(check("Read(./src/**)", { match: ["src/a", `${ROOT}/src/b`], notMatch: ["lib/a"] }), undefined);
  assert.equal(check("Read(~/notes/**)", { match: ["~/notes/a"], notMatch: ["~/other"] }), undefined);
  assert.equal(check("mcp__a__*", { match: ["mcp__a__b"], notMatch: ["mcp__b__a"] }), undefined);
  assert.equal(
    check("WebFetch(domain:a.com)", { match: ["a.com", "https://a.com/x"], notMatch: ["b.com"] }),
    undefined,
  );
  assert.equal(check("Bash(rm:*)", { match: ["ls && rm x"], notMatch: ["echo rm"] }, "deny"), undefined);
});

test("next to an allowed command, no name becomes an option, and no link leads out of the workspace", () => {
  const linked = (path: string): readonly string[] => (path.startsWith(`${ROOT}/link`) ? ["/elsewhere"] : []);
  const context = contextOf({ allow: ["Bash(npm test:*)"] }, { otherNames: linked });
  const kinds = (texts: readonly string[]): readonly string[] => [
    ...new Set(texts.map((text) => decideBash(text, context).kind)),
  ];
  const asked = [
    "npm test; du *",
    "npm test; du */*/.*",
    "npm test; ls *",
    "npm test && stat [a-z]*",
    "npm test; du src/*",
  ];
  assert.deepEqual(kinds([...asked, "cd link && npm test", `cd ${ROOT}/link && npm test`]), ["ask"]);
  assert.deepEqual(kinds(["cd src && cd link && npm test"]), ["ask"]);
  assert.deepEqual(kinds(["npm test; du -sh src", "npm test; ls ./* src/*", "cd src && npm test"]), ["allow"]);
});

test("a denied file is asked about even if its name is attached to an option, or a command copies it", () => {
  const context = contextOf({ deny: ["Read(./secrets/**)"], allow: ["Bash"] });
  const commands = [
    ...[
      "sed rsecrets/key a.txt",
      "sed -n '1Rsecrets/key' a.txt",
      "sed -i '/x/wsecrets/key' a.txt",
      "sed 's/a/b/wsecrets/key' x",
    ],
    ...[
      "git worktree add ../x9",
      "git worktree add ../x9; cat ../x9/secrets/key",
      "git clone . ../x10",
      "git clone -q ./ y",
    ],
    ...[
      "docker run -v ./secrets:/x i cat /x/key",
      "docker run -v./secrets:/x i",
      "docker run --volume=./secrets/:/x i",
    ],
    ...["docker run --mount type=bind,src=./secrets,dst=/x i", "ugrep -r TEXT", "git checkout-index -a --prefix=../x/"],
  ];
  assert.deepEqual(
    commands.filter((command) => decideBash(command, context).kind === "allow"),
    [],
  );
  const everyday = [
    ...[
      "sed -i 's/foo/bar/g' src/a.ts",
      "sed -n '1,5p' a.txt",
      "git clone https://example.com/x.git",
      "git clone git@host:x y",
    ],
    ...["docker run -v ./src:/app -p 80:80 node:24", "git worktree list", "git worktree remove ../x9"],
  ];
  for (const command of everyday) assert.equal(decideBash(command, context).kind, "allow", command);
});

test("a rule that ends in a star covers no file with secrets that its own text does not name", () => {
  const kindOf = (rule: string, path: string): string =>
    decide({ tool: "Read", args: { file_path: path } }, contextOf({ allow: [rule] })).kind;
  const asked: readonly (readonly [string, string])[] = [
    ...["/home/ann/.ssh/id_rsa", "/home/ann/x/.env"].map((path) => ["Read(//home/**)", path] as const),
    ...["/etc/shadow", "/etc/ssl/private/x.key"].map((path) => ["Read(//etc/**)", path] as const),
    ...[["Read(./**)", `${ROOT}/.env`] as const, ["Read(./sub/*)", `${ROOT}/sub/id_rsa`] as const],
  ];
  for (const [rule, path] of asked) assert.equal(kindOf(rule, path), "ask", `${rule} ${path}`);
  const allowed: readonly (readonly [string, string])[] = [
    ...[["Read(//home/**)", "/home/ann/x/a.ts"] as const, ["Read(//etc/shadow)", "/etc/shadow"] as const],
    ...[["Read(~/.aws/**)", `${HOME}/.aws/config`] as const, ["Read(**/*.pem)", `${ROOT}/a/x.pem`] as const],
    ...[["Read(./**/.env)", `${ROOT}/a/.env`] as const, ["Read", `${ROOT}/.env`] as const],
  ];
  for (const [rule, path] of allowed) assert.equal(kindOf(rule, path), "allow", `${rule} ${path}`);
});

test("words after an allowed command cannot be options that make its program run or write something else", () => {
  const rules = [
    ...[
      "git fetch",
      "make build",
      "go test",
      "go build",
      "cargo test",
      "npm test",
      "npm run x",
      "tsc",
      "eslint",
      "jest",
    ],
    ...[
      "kubectl get",
      "git commit",
      "pytest",
      "gradle test",
      "mvn test",
      "git push",
      "docker build",
      "make",
      "git add",
    ],
  ];
  const context = contextOf({ allow: rules.map((words) => `Bash(${words}:*)`) });
  const asked = [
    ...[
      "git fetch --upload-pack='touch x;' .",
      "git fetch --upl=x .",
      "git fetch https://example.com/x",
      "git fetch 'ext::sh'",
    ],
    ...[
      "make build --eval='$(shell x)'",
      "make build SHELL=/tmp/x",
      "make build 'X!=touch x'",
      "make build '.SHELLFLAGS=-c x'",
    ],
    ...["make build -kkkE x", "make build -kssf x", "make build -fx", "make SHELL=x", "make 'X!=y'", "make -kf x"],
    ...["go test -exec 'sh -c id' ./...", "go test --exec x", "go build -o /home/ann/x", "go build --toolexec x"],
    ...[
      "cargo test --config 'build.rustc-wrapper=\"/tmp/x\"'",
      "npm test --script-shell=/tmp/x",
      "npm test --script_shell=x",
    ],
    ...[
      "npm test --Script-Shell=x",
      "npm test -script-shell=x",
      "npm run x -- -e 'code'",
      "npm run x -- --config=/tmp/x",
    ],
    ...["tsc --outDir /home/ann", "tsc --outdir x", "eslint --rulesdir /tmp/x", "eslint -c x.js", "jest --config x.js"],
    ...["gradle test -I /tmp/x.gradle", "gradle test -qqqI x", "mvn test -qBXf x", "mvn test -DargLine=-javaagent:x"],
    ...[
      "kubectl get --kubeconfig=./x pods",
      "kubectl get secrets -A",
      "kubectl get pods,Secret",
      "docker build -v/:/x .",
    ],
    ...["pytest -p x", "pytest -xvsp evil", "git push --exec=x", "git push --receive-pack=x origin"],
  ];
  const isAllowed = (text: string): boolean => decideBash(text, context).kind === "allow";
  assert.deepEqual(asked.filter(isAllowed), []);
  const everyday = [
    ...[
      "git fetch --all --prune",
      "git fetch origin main",
      "git push -u origin main",
      "make build -j8",
      "make build install",
    ],
    ...[
      "go test ./... -run X -v",
      "cargo test --all -p x",
      "npm test -- --watch src/a.test.ts",
      "npm run x -- --mode=prod",
    ],
    ...[
      "tsc -p tsconfig.build.json --noEmit",
      "eslint --fix src",
      "kubectl get pods -o yaml -n x",
      "docker build -t x .",
    ],
    ...[
      "pytest -q tests -k 'a and b'",
      "pytest -x -vv",
      "git commit -m 'Fix: it (all)'",
      "git commit -am x",
      "git add -p x",
    ],
    ...["make -j8 all", "gradle test --info", "mvn test -DskipITs", "jest src -t 'a b'"],
  ];
  assert.deepEqual(
    everyday.filter((text) => !isAllowed(text)),
    [],
  );
});

test("if the workspace is a home folder, hidden names of programs are asked about, and those of projects are not", () => {
  const kindOf = (path: string, around: { readonly roots: readonly string[]; readonly home: string }): string =>
    decide(
      { tool: "Write", args: { file_path: path, content: "" } },
      contextOf({}, { ...around, mode: "accept-edits" }),
    ).kind;
  const athome = { roots: ["/data/ann"], home: "/data/ann" };
  const asked = [
    ".oh-my-zsh/custom/x.zsh",
    ".nvm/nvm.sh",
    ".asdfrc",
    ".mailcap",
    ".config/mpv/scripts/x.lua",
    ".TIGRC",
  ];
  for (const name of [...asked, ".local/lib/python3.11/site-packages/x.pth"])
    assert.equal(kindOf(`/data/ann/${name}`, athome), "ask", name);
  for (const name of [".gitignore", ".eslintrc.json", ".github/workflows/ci.yml", "src/.hidden", "notes.md"])
    assert.equal(kindOf(`/data/ann/${name}`, athome), "allow", name);
  // A project in a hidden folder, and a workspace around the home folder.
  assert.equal(kindOf("/data/ann/.dotfiles/x", { roots: ["/data/ann/.dotfiles"], home: "/data/ann" }), "allow");
  assert.equal(kindOf("/data/ann/.asdfrc", { roots: ["/data"], home: "/data/ann" }), "ask");
});
