import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { test } from "node:test";
import { scratch, treeOf } from "@prefork/testing/scratch";
import { withoutBranches } from "../../src/trust/git-config.ts";
import { configurationOf, grant, readTrust, revoke, stateFolder, trustOf } from "../../src/trust/index.ts";

const git = (cwd: string, ...args: readonly string[]): void => {
  execFileSync("git", ["-C", cwd, "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false", ...args], {
    stdio: "ignore",
    env: { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" },
  });
};

/** Says yes to a folder as it is now. */
const agree = async (state: string, folder: string): Promise<void> => {
  const shown = await configurationOf(folder);
  assert.ok(shown.ok);
  assert.deepEqual(await grant(state, folder, shown.configuration.fingerprint), { ok: true });
};

const trustedAt = async (state: string, folder: string) => {
  const trust = await trustOf(state, folder);
  assert.ok(trust.kind === "trusted", JSON.stringify(trust));
  return trust;
};

test("state is kept where the user's environment says, and a relative value is ignored", () => {
  assert.equal(stateFolder({ XDG_STATE_HOME: "/s" }, "/home/me"), "/s/prefork");
  assert.equal(stateFolder({}, "/home/me"), "/home/me/.local/state/prefork");
  assert.equal(stateFolder({ XDG_STATE_HOME: "s" }, "/home/me"), "/home/me/.local/state/prefork");
});

test("a folder is unknown, then trusted by every name it has, then unknown again", async () => {
  using place = scratch();
  place.put("repo/.prefork/settings.json", "{}");
  symlinkSync("repo", place.at("alias"));
  const [state, repo] = [place.at("state"), place.at("repo")];
  assert.deepEqual(await trustOf(state, repo), { kind: "unknown", folder: repo });
  await agree(state, place.at("alias"));
  const shown = await configurationOf(repo);
  assert.ok(shown.ok);
  for (const name of ["repo", "alias"])
    assert.deepEqual(await trustedAt(state, place.at(name)), {
      ...{ kind: "trusted", folder: repo, through: repo },
      entries: shown.configuration.entries,
    });
  const read = await readTrust(state);
  assert.deepEqual(read.ok && read.grants.map(({ folder }) => folder), [repo]);
  assert.deepEqual(await revoke(state, place.at("alias")), { ok: true });
  assert.deepEqual(await trustOf(state, repo), { kind: "unknown", folder: repo });
  assert.deepEqual(await revoke(state, repo), { ok: true }, "twice is no failure");
});

test("the store is private under every umask, and nothing is written into the workspace", async () => {
  using place = scratch();
  place.put("repo/.envrc", "export A=1");
  const before = treeOf(place.at("repo"));
  const umask = process.umask(0o000);
  try {
    await agree(place.at("deep/state"), place.at("repo"));
  } finally {
    process.umask(umask);
  }
  const [record = ""] = readdirSync(place.at("deep/state/trust"));
  const modes = Object.entries(treeOf(place.at("deep"))).map(([name, what]) => [name, what.split(" ")[0]]);
  assert.deepEqual(modes, [
    ["state/", "700"],
    ["state/drafts/", "700"],
    ["state/trust/", "700"],
    [`state/trust/${record}`, "600"],
  ]);
  assert.deepEqual(treeOf(place.at("repo")), before);
});

test("any change of executable configuration asks again and names it; other files do not", async () => {
  using place = scratch();
  const [state, repo] = [place.at("state"), place.at("repo")];
  mkdirSync(repo);
  git(repo, "init", "-q");
  place.put("repo/.claude/skills/a/SKILL.md", "one");
  place.put("repo/.git/hooks/pre-commit", "#!/bin/sh");
  await agree(state, repo);
  place.put("repo/src/main.ts", "code");
  place.put("repo/README.md", "text");
  place.put("repo/.git/hooks/new.sample", "text");
  git(repo, "config", "branch.main.remote", "origin");
  git(repo, "config", "branch.main.merge", "refs/heads/main");
  assert.equal((await trustOf(state, repo)).kind, "trusted");
  const changes: readonly (readonly [string, () => void])[] = [
    [".prefork/settings.json", () => place.put("repo/.prefork/settings.json", "{}")],
    [".prefork/agents/helper.md", () => place.put("repo/.prefork/agents/helper.md", "x")],
    [".prefork/hooks/deep/er.sh", () => place.put("repo/.prefork/hooks/deep/er.sh", "x")],
    [".claude/skills/a/SKILL.md", () => place.put("repo/.claude/skills/a/SKILL.md", "two")],
    [".claude/skills/a/SKILL.md", () => rmSync(place.at("repo/.claude/skills/a/SKILL.md"))],
    [".mcp.json", () => place.put("repo/.mcp.json", "{}")],
    [".envrc", () => place.put("repo/.envrc", "x")],
    [".git/hooks/pre-commit", () => chmodSync(place.at("repo/.git/hooks/pre-commit"), 0o755)],
    [".git/config", () => git(repo, "config", "core.fsmonitor", "./run-me")],
    [".prefork/settings.local.json", () => symlinkSync("/etc/hostname", place.at("repo/.prefork/settings.local.json"))],
    [".claude/commands", () => symlinkSync("/etc", place.at("repo/.claude/commands"))],
  ];
  for (const [name, change] of changes) {
    change();
    assert.deepEqual(await trustOf(state, repo), { kind: "changed", folder: repo, changed: [name] });
    await agree(state, repo);
    assert.equal((await trustOf(state, repo)).kind, "trusted");
  }
  rmSync(place.at("repo/.prefork"), { recursive: true });
  symlinkSync("src", place.at("repo/.prefork"));
  const swapped = await trustOf(state, repo);
  assert.ok(swapped.kind === "changed" && swapped.changed.every((path) => path.startsWith(".prefork/")));
});

test("a file that git's settings include, by whatever way, is part of what is trusted", async () => {
  using place = scratch();
  const [state, repo] = [place.at("state"), place.at("repo")];
  place.put("repo/.git/config", "[core]\n\tbare = false\n[include]\n\tpath = ../team.cfg\n");
  place.put("repo/team.cfg", '[includeIf "onbranch:main"]\npath = "more/hooks.cfg"\n');
  for (const name of ["more/hooks.cfg", "plain.cfg"]) place.put(`repo/${name}`, "[core]\nhooksPath = h\n");
  await agree(state, repo);
  const evil = "[core]\nfsmonitor = ./evil.sh\n";
  place.put("repo/plain.cfg", evil);
  assert.equal((await trustOf(state, repo)).kind, "trusted");
  place.put("repo/more/hooks.cfg", evil);
  assert.deepEqual(await trustOf(state, repo), { kind: "changed", folder: repo, changed: ["more/hooks.cfg"] });
  place.put("repo/team.cfg", evil);
  assert.deepEqual(await trustOf(state, repo), {
    ...{ kind: "changed", folder: repo },
    changed: ["more/hooks.cfg", "team.cfg"],
  });
});

test("a change to an included file asks again, however git's settings spell its path", async () => {
  using place = scratch();
  const state = place.at("state");
  const harmless = "[core]\n\tbare = false\n";
  const evil = "[core]\n\tfsmonitor = ./evil.sh\n";
  const rows: readonly (readonly [settings: string, file: string])[] = [
    ["path = ../inc.cfg ; team settings", "inc.cfg"],
    ["path = ../inc.cfg # x", "inc.cfg"],
    ['path = "../inc".cfg', "inc.cfg"],
    ['path = ../"inc".cfg', "inc.cfg"],
    ["path = \\\n../inc.cfg", "inc.cfg"],
    ["path = ../inc\\\r\n.cfg", "inc.cfg"],
    ['path = "../in\\\\c.cfg"', "in\\c.cfg"],
    ['path = "../in\\"c.cfg"', 'in"c.cfg'],
    ["PATH=../..inc.cfg", "..inc.cfg"],
    ["path = ../l.cfg", "inc.cfg"],
    ["path = ../d/inc.cfg", "e/inc.cfg"],
    ["path = ../d/../up.cfg", "deep/up.cfg"],
    ["path = ../nested.cfg", "sub/inner.cfg"],
    ["path = ../later.cfg", "later.cfg"],
    ['path = /dev/null\n[includeIf "gitdir:/nowhere/"] path = ../inc.cfg', "inc.cfg"],
    [`path = ${place.at("outside.cfg")}`, place.at("outside.cfg")],
  ];
  place.put("outside.cfg", harmless);
  for (const [at, [settings, file]] of rows.entries()) {
    const repo = `repo${at}`;
    place.put(`${repo}/.git/config`, `[include] ${settings}\n`);
    for (const name of ["inc.cfg", "in\\c.cfg", 'in"c.cfg', "..inc.cfg", "deep/up.cfg", "sub/inner.cfg", "e/inc.cfg"])
      place.put(`${repo}/${name}`, harmless);
    place.put(`${repo}/nested.cfg`, '[includeIf "onbranch:other"]\n\tpath = \\\n  "sub/inner".cfg ; x\n');
    mkdirSync(place.at(repo, "deep/er"));
    symlinkSync("inc.cfg", place.at(repo, "l.cfg"));
    symlinkSync(file.startsWith("deep") ? "deep/er" : "e", place.at(repo, "d"));
    await agree(state, place.at(repo));
    place.put(`${repo}/README.md`, "text");
    await trustedAt(state, place.at(repo));
    place.put(file.startsWith("/") ? "outside.cfg" : `${repo}/${file}`, evil);
    const changed = { kind: "changed", folder: place.at(repo), changed: [file] };
    assert.deepEqual(await trustOf(state, place.at(repo)), changed, settings);
  }
});

test("git settings behind a link are followed, and links that cannot be followed are not trusted", async () => {
  using place = scratch();
  const [state, repo] = [place.at("state"), place.at("repo")];
  place.put("repo/settings.cfg", "[core]\n\tbare = false\n");
  mkdirSync(place.at("repo/.git"));
  symlinkSync("../settings.cfg", place.at("repo/.git/config"));
  await agree(state, repo);
  place.put("repo/settings.cfg", "[core]\n\tfsmonitor = ./evil.sh\n");
  assert.deepEqual(await trustOf(state, repo), { kind: "changed", folder: repo, changed: ["settings.cfg"] });
  for (const settings of [
    '[include] path = "open',
    "[include] path = ~nobody-here/x",
    "[include]\npath = ../.git/config",
    "[include] path",
    "[include] path = ../.git",
  ]) {
    rmSync(place.at("repo/.git/config"));
    place.put("repo/.git/config", `${settings}\n`);
    assert.equal((await configurationOf(repo)).ok, false, settings);
  }
});

test("restrictions from trusted settings are kept until trust is renewed or revoked, and nothing else of them", async () => {
  using place = scratch();
  const [state, repo] = [place.at("state"), place.at("repo")];
  place.put(
    "repo/.claude/settings.json",
    '{"permissions": {"deny": ["Read(/key)"], "allow": ["Bash"]}, "env": {"TOKEN": "sk-1"}}',
  );
  place.put(
    "repo/.prefork/settings.json",
    `{ // comments are allowed
      "permissions": { "ask": [{ "rule": "Bash(make:*)", "match": ["make x"] }], "allow": ["Bash(ls)"], },
      "sandbox": { "mode": "required" },
      "forks": { "atOnce": 2, "wake": "each" },
      "mcpServers": { "a": { "command": "b" } },
    }`,
  );
  place.put("repo/.prefork/settings.local.json", "{ broken");
  await agree(state, repo);
  const kept = [
    {
      file: ".prefork/settings.json",
      text: '{"permissions":{"ask":["Bash(make:*)"]},"sandbox":{"mode":"required"},"forks":{"atOnce":2}}',
    },
    { file: ".claude/settings.json", text: '{"permissions":{"deny":["Read(/key)"]}}' },
  ];
  assert.equal((await trustedAt(state, repo)).through, repo);
  const [record = ""] = readdirSync(`${state}/trust`);
  assert.equal(statSync(`${state}/trust/${record}`).mode & 0o777, 0o600);

  const changed = [".claude/settings.json", ".prefork/settings.json"];
  for (const name of changed) rmSync(place.at(`repo/${name}`));
  assert.deepEqual(await trustOf(state, repo), { kind: "changed", folder: repo, changed, kept });
  mkdirSync(place.at("repo/.claude/agents"));
  execFileSync("mkfifo", [place.at("repo/.claude/agents/pipe.md")]);
  const refused = await trustOf(state, repo);
  assert.deepEqual(refused.kind === "refused" && refused.kept, kept, "what cannot be read lifts nothing either");
  rmSync(place.at("repo/.claude/agents"), { recursive: true });
  await agree(state, repo);
  place.put("repo/.mcp.json", "{}");
  assert.deepEqual(await trustOf(state, repo), { kind: "changed", folder: repo, changed: [".mcp.json"] });
});

test("what was shown is what is trusted: bytes that changed in between are refused", async () => {
  using place = scratch();
  place.put("repo/.mcp.json", "{}");
  const shown = await configurationOf(place.at("repo"));
  assert.ok(shown.ok);
  assert.deepEqual(Object.keys(shown.configuration.entries), [".mcp.json"]);
  writeFileSync(place.at("repo/.mcp.json"), '{"servers":{}}');
  assert.deepEqual(await grant(place.at("state"), place.at("repo"), shown.configuration.fingerprint), {
    ok: false,
    reason: "the configuration was changed since it was shown; look again",
  });
  assert.equal((await trustOf(place.at("state"), place.at("repo"))).kind, "unknown");
});

test("configuration that cannot be read whole is refused, not skipped", async () => {
  using place = scratch();
  mkdirSync(place.at("repo/.prefork/agents"), { recursive: true });
  execFileSync("mkfifo", [place.at("repo/.prefork/agents/pipe.md")]);
  const shown = await configurationOf(place.at("repo"));
  assert.match(shown.ok ? "" : shown.reason, /^\.prefork\/agents\/pipe\.md: this is a device, a pipe or a socket/);
  assert.deepEqual((await trustOf(place.at("state"), place.at("missing"))).kind, "refused");
});

test("a record that others could have written, or that is damaged, is not used", async () => {
  using place = scratch();
  const [state, repo] = [place.at("state"), place.at("repo")];
  mkdirSync(repo);
  const renew = async (): Promise<string> => {
    rmSync(state, { recursive: true, force: true });
    await agree(state, repo);
    return place.at("state/trust", readdirSync(place.at("state/trust"))[0] ?? "");
  };
  const reason = async (): Promise<string> => {
    const trust = await trustOf(state, repo);
    return trust.kind === "refused" ? trust.reason : trust.kind;
  };
  chmodSync(await renew(), 0o620);
  assert.match(await reason(), /can be changed by others \(mode 0620\)/);
  linkSync(await renew(), place.at("second-name"));
  assert.match(await reason(), /other names/);
  const record = await renew();
  const content = readFileSync(record);
  rmSync(record);
  symlinkSync(place.put("elsewhere.json", content.toString()), record);
  assert.match(await reason(), /is a link/);
  writeFileSync(await renew(), '{"version":1,');
  assert.match(await reason(), /is damaged; remove it to be asked again/);
  writeFileSync(await renew(), content.toString().replace(repo, "/another"));
  assert.match(await reason(), /is damaged/);
  await renew();
  chmodSync(state, 0o777);
  assert.match(await reason(), /state can be changed by others/);
  chmodSync(state, 0o700);
  if (process.getuid?.() === 0) {
    chownSync(await renew(), 12_345, 12_345);
    assert.match(await reason(), /belongs to another user \(12345\)/);
  }
});

test("a work tree inherits trust only when both ends agree and its configuration is the trusted one", async () => {
  using place = scratch();
  const [state, main, tree] = [place.at("state"), place.at("main"), place.at("tree")];
  mkdirSync(main);
  git(main, "init", "-q", "-b", "main");
  place.put("main/.prefork/settings.json", "{}");
  git(main, "add", ".");
  git(main, "commit", "-q", "-m", "first");
  place.put("main/.prefork/settings.local.json", "{}");
  git(main, "worktree", "add", "-q", tree, "-b", "side");
  git(main, "config", "include.path", "../team.cfg");
  place.put("main/team.cfg", "");
  assert.equal((await trustOf(state, tree)).kind, "unknown", "its repository is not trusted");
  await agree(state, main);
  assert.equal((await trustedAt(state, tree)).through, main);

  place.put("tree/.mcp.json", "{}");
  assert.deepEqual(await trustOf(state, tree), { kind: "changed", folder: tree, changed: [".mcp.json"] });
  rmSync(place.at("tree/.mcp.json"));
  place.put("tree/.prefork/settings.json", '{"hooks":{}}');
  assert.deepEqual(await trustOf(state, tree), { kind: "changed", folder: tree, changed: [".prefork/settings.json"] });
  place.put("tree/.prefork/settings.json", "{}");

  // What git keeps in one place for all of them.
  const settings = readFileSync(place.at("main/.git/config"), "utf8");
  place.put("main/.git/hooks/pre-commit", "#!/bin/sh");
  git(main, "config", "core.fsmonitor", "./evil.sh");
  assert.deepEqual(await trustOf(state, tree), {
    ...{ kind: "changed", folder: tree },
    changed: [".git/config", ".git/hooks/pre-commit"],
  });
  rmSync(place.at("main/.git/hooks/pre-commit"));
  writeFileSync(place.at("main/.git/config"), settings);
  place.put("main/team.cfg", "[core]\n\tfsmonitor = ./evil.sh\n");
  assert.deepEqual(await trustOf(state, tree), { kind: "changed", folder: tree, changed: ["team.cfg"] });
  place.put("main/team.cfg", "");

  // Hooks of the project's own, which another branch may have changed.
  git(main, "config", "core.hooksPath", ".githooks");
  for (const at of ["main", "tree"]) place.put(`${at}/.githooks/pre-commit`, "#!/bin/sh");
  await agree(state, main);
  assert.equal((await trustedAt(state, tree)).through, main);
  place.put("tree/.githooks/pre-commit", "echo evil");
  assert.deepEqual(await trustOf(state, tree), { kind: "changed", folder: tree, changed: [".githooks/pre-commit"] });
  place.put("tree/.githooks/pre-commit", "#!/bin/sh");

  const pointer = readFileSync(place.at("tree/.git"), "utf8");
  place.put("impostor/.git", pointer);
  assert.equal((await trustOf(state, place.at("impostor"))).kind, "unknown", "a claim that nobody returns");
  for (const claim of [
    "gitdir: ../main/.git",
    `gitdir: ${main}/.git/worktrees/none`,
    `${pointer}x`,
    "",
    "gitdir: /proc/self",
  ]) {
    place.put("tree/.git", claim);
    assert.equal((await trustOf(state, tree)).kind, "unknown", claim);
  }
  place.put("tree/.git", pointer);
  assert.equal((await trustOf(state, tree)).kind, "trusted");
  writeFileSync(place.at("main/.git/worktrees/tree/commondir"), place.at("impostor"));
  assert.equal((await trustOf(state, tree)).kind, "unknown");
  writeFileSync(place.at("main/.git/worktrees/tree/commondir"), "../..\n");
  writeFileSync(place.at("main/.git/worktrees/tree/gitdir"), `${place.at("elsewhere/.git")}\n`);
  assert.equal((await trustOf(state, tree)).kind, "unknown");
});

test("only lines exactly as git writes them for a branch are ignored in a repository's configuration", () => {
  const branch = '[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n';
  assert.equal(withoutBranches(`[core]\n\tbare = false\n${branch}`), withoutBranches("[core]\n\tbare = false\n"));
  const counted = [
    '[branch "x"]\n\tremote = ./program\n',
    '[branch "x"]\n\tremote = origin\n\tfsmonitor = x\n',
    '[branch "x"] [core]\n\tfsmonitor = x\n',
    '[pager]\n\tlog = a\\\n[branch "x"]\n\tmerge = refs/heads/program\n',
    "[pager]\n\tmerge = refs/heads/program\n",
    '[branch "x"]\n\tremote = origin\\\n\tmerge = refs/heads/x\n',
    '[branch "x"]\n\tmerge = refs/heads/x\n[core]\n\tremote = x\n',
  ];
  for (const text of counted) assert.notEqual(withoutBranches(text).trim(), "", text);
});

/** Pairs of configurations that git reads in two ways, though one has only more or fewer lines of branches. */
const READ_APART: readonly (readonly [string, string])[] = [
  [
    '[core]\n\tbare = false\n[branch "m"]\n\tremote = origin\n\tfsmonitor = ./x\n',
    "[core]\n\tbare = false\n\tfsmonitor = ./x\n",
  ],
  ['[core]\n[branch "m"]\n\n\thooksPath = ./h\n', "[core]\n\n\thooksPath = ./h\n"],
  ['[core]\n[branch "m"]\n# a\n\thooksPath = ./h\n', "[core]\n# a\n\thooksPath = ./h\n"],
  ['[core]\n[branch "m"]\n\trebase = true\n\thooksPath = ./h', "[core]\n\thooksPath = ./h"],
  ['[core]\n[branch "a"]\n[branch "b"]\n\tmerge = refs/heads/b\n\tpager = ./p\n', "[core]\n\tpager = ./p\n"],
  ['[core]\n[branch "m"]\n [pager]\n\tlog = ./p\n', '[core]\n [pager]\n\tlog = ./p\n[branch "m"]\n'],
  ['[core]\n\tpager = a\\\r\n[branch "m"]\n\tremote = origin\n', "[core]\n\tpager = a\\\r\n"],
];

test("configurations that git reads in two ways have two hashes", () => {
  for (const [one, other] of READ_APART) assert.notEqual(withoutBranches(one), withoutBranches(other), one);
});

test("a program that moves from a branch's section into another asks for trust again", async () => {
  using place = scratch();
  const [trusted = "", later = ""] = READ_APART[0] ?? [];
  place.put("repo/.git/config", trusted);
  const [state, repo] = [place.at("state"), place.at("repo")];
  await agree(state, repo);
  writeFileSync(place.at("repo/.git/config"), `${trusted}[branch "next"]\n\tremote = origin\n`);
  await trustedAt(state, repo);
  writeFileSync(place.at("repo/.git/config"), later);
  const { kind } = await trustOf(state, repo);
  assert.equal(kind, "changed");
});

test("a repository's configuration of any length is hashed", () => {
  const branch = `[branch "x"]\n${"\tremote = a\n".repeat(80_000)}`;
  for (const text of [`${branch}\tfsmonitor = x\n`, `${branch.repeat(3)}\tfsmonitor = x\n`])
    assert.equal(withoutBranches(text), text);
});
