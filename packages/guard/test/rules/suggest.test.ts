import assert from "node:assert/strict";
import { test } from "node:test";
import { contextOf, decideBash, HOME, place, ROOT } from "@prefork/testing/policies";
import fc from "fast-check";
import { parseRule } from "../../src/rules/rules.ts";
import { isTooBroad, suggestRule } from "../../src/rules/suggest.ts";

const suggestFor = (command: string) =>
  suggestRule("Bash", { kind: "command", command }, { roots: [ROOT], home: HOME });

test("never a rule for an interpreter, a wrapper, deletion, a download, a redirection or more than one command", () => {
  const none =
    "node x.js|python3.12 -c x|bash x.sh|sh|env npm test|xargs npm test|timeout 5 npm test|rm x|curl x|wget x|ssh h|" +
    "sed -i x y|find . -delete|npm test > x|npm test < x|npm test; ls|npm test && ls|A=1 npm test|" +
    "npm test $X|npm test *.ts|npm test $(ls)|npx node x|uv run python x|poetry run bash|git reset --hard|npm publish|" +
    "git push -f|~/bin/x|f() { ls; }|echo 'x";
  for (const command of [...none.split("|"), "npm test | cat"]) assert.equal(suggestFor(command), undefined, command);
});

test("for a file that may contain secrets, a rule for that file alone", () => {
  const suggested = (tool: string, access: "read" | "write", ...names: readonly string[]) =>
    suggestRule(
      tool,
      { kind: "file", access, path: `/${names.join("/")}`, names },
      { roots: ["/work"], home: "/home/ann" },
    );
  assert.equal(suggested("Read", "read", "work", "app", ".env"), "Read(//work/app/.env)");
  assert.equal(suggested("Edit", "write", "work", "app", "id_rsa.bak"), "Edit(//work/app/id_rsa.bak)");
  assert.equal(suggested("Grep", "read", "home", "ann", ".ssh"), undefined);
  assert.equal(suggested("Read", "read", "elsewhere", "app", "main.ts"), "Read(//elsewhere/app/**)");
  // Nor for a folder around the home folder or the workspace, or one of the system's.
  assert.equal(suggested("Read", "read", "home", "x"), "Read(//home/x)");
  assert.equal(suggested("Glob", "read", "home"), undefined);
  assert.equal(suggested("Read", "read", "home", "bob", "x.md"), "Read(//home/bob/x.md)");
  assert.equal(suggested("Read", "read", "root", "x.md"), "Read(//root/x.md)");
  assert.equal(suggested("Read", "read", "other.md"), "Read(//other.md)");
  assert.equal(suggested("Edit", "write", "home", "notes.md"), "Edit(//home/notes.md)");
});

test("a suggestion keeps the words that name the action, and no more", () => {
  const rows: readonly (readonly [command: string, rule: string])[] = [
    ["npm run test:unit -- -x", "Bash(npm run test:unit:*)"],
    ["cargo test --all", "Bash(cargo test:*)"],
    ["cargo nextest run -p x", "Bash(cargo nextest run:*)"],
    ["make", "Bash(make)"],
    ["make -j8 all", "Bash(make -j8 all)"],
    ["make build -j8", "Bash(make build:*)"],
    ["make build CC=x", "Bash(make build CC=x)"],
    ["git fetch --upload-pack=x .", "Bash(git fetch --upload-pack=x .)"],
    ["git -C x commit -m y", "Bash(git -C x commit -m y)"],
    ["git merge feature", "Bash(git merge feature)"],
    ["tsc -p .", "Bash(tsc:*)"],
    ["uv run pytest -q", "Bash(uv run pytest -q)"],
    ["mytool 'a b'", "Bash(mytool 'a b')"],
    ["mytool '*'", "Bash(mytool '*')"],
  ];
  for (const [command, rule] of rows) assert.equal(suggestFor(command), rule, command);
});

test("for a known program, a suggestion keeps the subcommand and what it runs, and drops details", () => {
  const kept =
    "npm run x|npm run-script x|npm test|npm t|npm ls|npm outdated|pnpm run x|pnpm test|yarn run x|yarn test|cargo build|" +
    "cargo check|cargo test|cargo clippy|cargo fmt|cargo doc|cargo bench|cargo nextest run|go build|go test|go vet|" +
    "go fmt|git add|git commit|git fetch|git pull|git stash pop|git switch|docker ps|docker logs|kubectl get|" +
    "kubectl describe|kubectl logs|terraform validate|terraform fmt|make all|eslint|pytest|tsc";
  for (const words of kept.split("|")) assert.equal(suggestFor(`${words} detail`), `Bash(${words}:*)`, words);
  // What installs, what runs another program, and what takes any option that does: the command as it is.
  const whole =
    "npm ci|npm install|npm audit|pnpm add|yarn install|yarn lint|npx eslint|npx tsx|yarn dlx|go mod tidy|" +
    "git worktree add|docker compose up|docker build|docker pull|terraform plan|just all|mvn verify|" +
    "gradle check|dotnet build|poetry run pytest|uv run pytest|uv sync|pip install|bundle exec rspec|swift build|" +
    "mix compile|bazel build|git push origin";
  for (const words of whole.split("|")) assert.equal(suggestFor(`${words} detail`), `Bash(${words} detail)`, words);
});

test("a suggestion is a rule that allows the command it is made for, and not a neighbour", () => {
  const word = fc.oneof(
    fc.constantFrom(
      "npm",
      "git",
      "make",
      "test",
      "run",
      "commit",
      "add",
      "-m",
      "--x=y",
      "tool",
      "*",
      ":*",
      "a:*",
      "(",
      ")",
    ),
    fc.string({ minLength: 1, maxLength: 6 }),
  );
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 5 }), (words) => {
      const command = words.map((text) => `'${text.replaceAll("'", `'\\''`)}'`).join(" ");
      const rule = suggestFor(command);
      if (rule === undefined) return;
      const read = parseRule(rule, { ...place, list: "allow", origin: "" });
      assert.equal(read.kind, "rule", rule);
      const context = contextOf({ allow: [rule] });
      // Words that only one of the two readings takes are asked, which is the safe side.
      if (context.partsOf(command) !== undefined) assert.equal(decideBash(command, context).kind, "allow", rule);
      assert.notEqual(decideBash(`other-tool ${command}`, context).kind, "allow", rule);
      assert.notEqual(decideBash(`${command}; other-tool`, context).kind, "allow", rule);
    }),
    { numRuns: 1_000 },
  );
});

test("programs that run others are too broad, whatever their case or version", () => {
  for (const name of ["python3.11", "BASH", "sudo", "rm", "mkfs.ext4", "node"])
    assert.equal(isTooBroad(name), true, name);
  for (const name of ["jq", "mytool", "cargo"]) assert.equal(isTooBroad(name), false, name);
});
