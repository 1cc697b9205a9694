import assert from "node:assert/strict";
import { test } from "node:test";
import type { ToolCall } from "../../src/guard/call.ts";
import { decide } from "../../src/guard/decide.ts";
import { readOnly } from "../../src/guard/filters.ts";
import { mergeLayers } from "../../src/guard/policy.ts";
import { contextOf, decideBash, layerOf, ROOT } from "./policies.ts";

const file = (tool: string, path: string): ToolCall => ({ tool, args: { file_path: path } });

test("a read-only command carries the plan that is run in its place", () => {
  const decision = decideBash("git log -1 && ls", contextOf({ allow: ["Bash(ls)"] }));
  assert.ok(decision.kind === "allow");
  assert.equal(decision.plan?.steps.length, 2);
  assert.equal(decideBash("npm test", contextOf({ allow: ["Bash(npm test)"] })).kind, "allow");
});

test("with nobody to ask, the denial names the missing rule", () => {
  const context = contextOf({ ask: ["Bash(make:*)"] }, { asks: "nobody" });
  const reasonOf = (call: ToolCall) => decide(call, context).reason;
  assert.match(
    reasonOf({ tool: "Bash", args: { command: "npm run build" } }),
    /; there is nobody to ask, and the rule Bash\(npm run build:\*\) would allow it$/,
  );
  assert.match(
    reasonOf(file("Write", `${ROOT}/src/a`)),
    /the rule Write\(\/\/work\/project\/src\/\*\*\) would allow it/,
  );
  assert.match(reasonOf(file("Write", `${ROOT}/.git/config`)), /no rule can allow it/);
  assert.match(
    reasonOf({ tool: "Bash", args: { command: "make" } }),
    /Bash\(make:\*\).* says to ask.*no rule can allow it/,
  );
});

test("a question says what is dangerous and offers no rule for it", () => {
  const decision = decideBash("git push --force && rm -rf ~/x", contextOf());
  assert.ok(decision.kind === "ask");
  assert.deepEqual(decision.notes, [
    "force push: replaces history that others may have",
    "deletes recursively outside the project",
  ]);
  assert.equal(decision.rule, undefined);
});

test("rules hold for every name of a file, links followed", () => {
  const otherNames = (path: string) => (path === `${ROOT}/link/key` ? [`${ROOT}/secrets/key`] : []);
  const call = file("Read", `${ROOT}/link/key`);
  assert.equal(decide(call, contextOf({ deny: ["Read(./secrets/**)"] }, { otherNames })).kind, "deny");
  assert.equal(decide(call, contextOf({}, { otherNames })).kind, "allow");
  const away = { otherNames: () => ["/etc/passwd"] };
  assert.equal(decide(file("Read", `${ROOT}/a`), contextOf({}, away)).kind, "ask");
  assert.equal(decide(file("Edit", `${ROOT}/a`), contextOf({}, { ...away, mode: "accept-edits" })).kind, "ask");
  assert.equal(decide(file("Edit", `${ROOT}/a`), contextOf({ allow: ["Edit(./**)"] }, away)).kind, "ask");
  const hook = { otherNames: () => [`${ROOT}/.git/hooks/x`], mode: "accept-edits" } as const;
  assert.equal(decide(file("Edit", `${ROOT}/a`), contextOf({}, hook)).kind, "ask");
});

test("files that may hold keys are asked about under every name, also for writing, and a rule may allow them", () => {
  for (const name of [".env~", "deploy/id_rsa.bak", ".git/config", "#.env#", "tls/server.pem.old"]) {
    assert.equal(decide(file("Read", `${ROOT}/${name}`), contextOf()).kind, "ask", name);
    assert.equal(decide(file("Write", `${ROOT}/${name}`), contextOf({}, { mode: "accept-edits" })).kind, "ask", name);
  }
  const led = { otherNames: () => [`${ROOT}/.env`] };
  assert.equal(decide(file("Read", `${ROOT}/notes.txt`), contextOf({}, led)).kind, "ask");
  assert.equal(decide(file("Read", `${ROOT}/.env.example`), contextOf()).kind, "allow");
  assert.equal(decide(file("Write", `${ROOT}/.env`), contextOf({ allow: ["Write(./.env)"] })).kind, "allow");
});

test("protected names are asked in every mode that writes, and no rule changes that", () => {
  const rules = { allow: ["Bash", "Edit", "Write", "Write(./**)", "Edit(./.git/**)"] };
  for (const mode of ["default", "accept-edits", "bubble", "bypass"] as const) {
    const context = contextOf(rules, { mode });
    assert.equal(decide(file("Write", `${ROOT}/.git/hooks/pre-commit`), context).kind, "ask", mode);
    assert.equal(decide(file("Edit", `${ROOT}/pkg/.PREFORK/settings.json`), context).kind, "ask", mode);
    assert.equal(decideBash("cp x .git/hooks/pre-commit", context).kind, "ask", mode);
    assert.equal(decideBash("echo x > ~/.bashrc", context).kind, "ask", mode);
    assert.equal(decideBash("cd .git && cp ../x config", context).kind, "ask", mode);
  }
  assert.equal(decide(file("Write", `${ROOT}/.git/config`), contextOf(rules, { mode: "plan" })).kind, "deny");
});

test("a filter stands above ask and allow rules, and below deny rules", () => {
  const context = contextOf({ allow: ["Edit"], ask: ["Write"], deny: ["Read(./x)"] }, { filter: readOnly });
  assert.match(decide(file("Edit", `${ROOT}/a`), context).reason, /read-only run/);
  assert.equal(decide(file("Write", `${ROOT}/a`), context).kind, "deny");
  assert.match(decide(file("Read", `${ROOT}/x`), context).reason, /denied by Read\(\.\/x\)/);
  assert.equal(decide(file("Read", `${ROOT}/a`), context).kind, "allow");
});

test("arguments that are wrapped, doubled or no absolute path are refused with a way out", () => {
  const context = contextOf({ allow: ["Write", "Bash"] });
  const wrong: readonly ToolCall[] = [
    { tool: "Write", args: { input: { file_path: `${ROOT}/a` } } },
    { tool: "Write", args: { file_path: `${ROOT}/a`, path: "/etc/x" } },
    file("Write", "a.txt"),
    file("Read", "~/x"),
    { tool: "Bash", args: { command: ["ls"] } },
    { tool: "McpCall", args: { server: "a b", tool: "c" } },
    { tool: "WebFetch", args: { url: "file:///etc/passwd" } },
    { tool: "WebFetch", args: { url: "https://a@b.com/" } },
  ];
  for (const call of wrong) assert.equal(decide(call, context).kind, "deny", JSON.stringify(call));
});

test("a path with steps back is judged as the place it leads to", () => {
  const kinds = [`${ROOT}/src/../a.ts`, `${ROOT}/src/../../x`, `${ROOT}/src/../.env`, `${ROOT}/../../etc/passwd`];
  assert.deepEqual(
    kinds.map((path) => decide(file("Read", path), contextOf()).kind),
    ["allow", "ask", "ask", "ask"],
  );
  const denied = contextOf({ deny: ["Read(./secrets/**)"] }, { mode: "bypass" });
  assert.equal(decide(file("Read", `${ROOT}/src/../secrets/key`), denied).kind, "deny");
  assert.equal(decide(file("Edit", `${ROOT}/src/../.git/config`), contextOf({ allow: ["Edit"] })).kind, "ask");
});

test("programs that the user declared read-only run unasked, also in plan mode, only as declared", () => {
  const own = { readOnlyPrograms: [{ name: "mytool" }, { name: "deploy", args: ["status"] }] };
  const policy = mergeLayers([{ ...layerOf({}), ...own }]);
  for (const mode of ["default", "plan"] as const) {
    const context = contextOf({}, { policy, mode });
    assert.equal(decideBash("mytool --all | head -3", context).kind, "allow");
    assert.equal(decideBash("deploy status --all", context).kind, "allow");
    assert.notEqual(decideBash("deploy now", context).kind, "allow");
    assert.notEqual(decideBash("deploy status && deploy now", context).kind, "allow");
    assert.notEqual(decideBash("deploy 'status'x", context).kind, "allow");
  }
});

test("a compound command runs only if both readings of it agree", () => {
  const context = contextOf({ allow: ["Bash(npm test:*)"] });
  assert.equal(decideBash("npm test && ls", context).kind, "allow");
  for (const partsOf of [
    () => undefined,
    () => ["npm test"],
    () => ["npm test", "rm x"],
    () => ["npm test", "ls; rm x"],
  ]) {
    assert.equal(decideBash("npm test && ls", { ...context, partsOf }).kind, "ask");
  }
  assert.equal(decideBash("npm test 'x", context).kind, "ask", "nobody can read it");
});

test("going elsewhere before an allowed command is asked", () => {
  const context = contextOf({ allow: ["Bash(npm test:*)"] });
  assert.equal(decideBash("cd packages/a && npm test", context).kind, "allow");
  assert.equal(decideBash(`cd ${ROOT}/packages && npm test`, context).kind, "allow");
  for (const folder of ["/tmp", "..", "a/../..", "~", "/work/project2"]) {
    assert.equal(decideBash(`cd ${folder} && npm test`, context).kind, "ask", folder);
  }
});

test("a denied file is denied to commands that name it, and asked where they might come to it", () => {
  const context = contextOf({
    deny: ["Read(./secrets/**)", "Read(~/private/**)", "Edit(./locked/**)"],
    allow: ["Bash"],
  });
  const rows: readonly (readonly [command: string, answer: string])[] = [
    ["cat secrets/key", "deny"],
    ["cat ./a/../secrets/key", "deny"],
    [`cat ${ROOT}/secrets/key`, "deny"],
    ["git show HEAD:secrets/key", "deny"],
    ["grep x --file=secrets/key", "deny"],
    ["wc -l < secrets/key", "deny"],
    ["npm run x secrets/key", "deny"],
    ["cd secrets; cat key", "deny"],
    ["git -C secrets show key", "deny"],
    ["cat SECRETS/key", "deny"],
    ["cat ~/private/key", "deny"],
    ["cat sec*/key", "ask"],
    ["cat $X/key", "ask"],
    ["grep -rn x .", "ask"],
    ["rg x", "ask"],
    ["rg -n x src lib", "allow"],
    ["cat src/secrets.ts", "allow"],
    ["ls -la", "allow"],
    ["cat locked/a", "allow"],
    ["sed -i s/a/b/ locked/a", "deny"],
    ["echo x > locked/a", "deny"],
  ];
  for (const [command, answer] of rows) assert.equal(decideBash(command, context).kind, answer, command);
});
