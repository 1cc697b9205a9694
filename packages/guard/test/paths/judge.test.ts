import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  globMatcher,
  globProblem,
  isPseudoPath,
  isSecret,
  judgeInside,
  judgePath,
  protectedInRepository,
  protectedName,
} from "../../src/paths/index.ts";

const refusals: readonly (readonly [unknown, RegExp])[] = [
  [undefined, /must be a string/],
  [7, /must be a string/],
  [["/a"], /must be a string/],
  ["", /is empty/],
  ["a/b", /is relative/],
  ["./a", /is relative/],
  [" /a", /is relative/],
  ["~/notes.md", /~ is not expanded/],
  ["~root/x", /~ is not expanded/],
  ["/m/~/x", /~ is not expanded/],
  ["$HOME/x", /variables are not expanded/],
  ["/m/$HOME/x", /variables are not expanded/],
  ["/m/$\u007bHOME}/x", /substitutions are not expanded/],
  ["/m/$(id)", /substitutions are not expanded/],
  ["/m/`id`", /substitutions are not expanded/],
  ["file:///m/x", /a URL or a drive/],
  ["https://host/m", /a URL or a drive/],
  ["C:/m/x", /a URL or a drive/],
  ["/m/%2e%2e/x", /percent codes/],
  ["/m%2Fx", /percent codes/],
  ["/m\\..\\x", /backslash/],
  ["/m/a\0b", /NUL/],
  ["/m/a\nb", /control characters/],
  ["/m/a\u007fb", /control characters/],
  ["/m/a\u0085b", /control characters/],
  ["/m/\u202egpj.exe", /control characters/],
  ["/m/\ud800x", /control characters/],
  ["/m/\uff0e\uff0e/x", /when it is normalized/],
  ["/m/\u2025/x", /when it is normalized/],
  ["/m/..\uff0fx", /when it is normalized/],
  [`/m/${"n".repeat(256)}`, /longer than 255/],
  [`/m/${"é".repeat(128)}`, /longer than 255/],
  [`/${"n/".repeat(2_100)}x`, /longer than 4096/],
];

for (const [text, reason] of refusals) {
  test(`refused as a path: ${JSON.stringify(text)?.slice(0, 60)}`, () => {
    const judged = judgePath(text);
    assert.equal(judged.ok, false);
    assert.match(judged.ok ? "" : judged.reason, reason);
  });
}

test("`..` is resolved by name, and a dollar sign is a letter unless a whole name looks like a variable", () => {
  const pathOf = (text: string): string => {
    const judged = judgePath(text);
    return judged.ok ? judged.path : judged.reason;
  };
  assert.deepEqual(["/m/a/../b", "/m/../x", "/m/sub/..", "/../..", "/m/./a//../b/"].map(pathOf), [
    ...["/m/b", "/x", "/m", "/", "/m/b"],
  ]);
  const dollars = ["/m/$postId.tsx", "/m/price$USD.md", "/m/$ID.md", "/m/a$", "/m/$1"];
  assert.deepEqual(dollars.map(pathOf), dollars);
  assert.deepEqual(judgeInside(["/m"], "/m/a/../../n/x"), { ok: false, reason: "the path is outside /m" });
});

test("an absolute path is split into its names; `.` and doubled slashes are dropped, and nothing else changes", () => {
  assert.deepEqual(judgePath("/m//sub/./note.md"), {
    ok: true,
    path: "/m/sub/note.md",
    parts: ["m", "sub", "note.md"],
  });
  for (const name of ["$postId.tsx", "a~", "...", "..a", "50%.txt", "naïve café.md", "日本語", " x ", "[id].ts", "a:b"])
    assert.deepEqual(judgePath(`/m/${name}`), { ok: true, path: `/m/${name}`, parts: ["m", name] });
});

test("being inside is decided by whole names: siblings with the same prefix and other Unicode forms are outside", () => {
  assert.deepEqual(judgeInside(["/m/mem"], "/m/mem/a/b"), { ok: true, below: ["a", "b"] });
  assert.deepEqual(judgeInside(["/real/mem", "/m/mem"], "/m/mem/a"), { ok: true, below: ["a"] });
  assert.deepEqual(judgeInside(["/m/mem"], "/m/mem"), { ok: true, below: [] });
  const outside = { ok: false, reason: "the path is outside /m/mem" };
  for (const path of ["/m/memory/a", "/m/mem2", "/m/me", "/m", "/", "/M/mem/a", "/m/mem.bak/a"])
    assert.deepEqual(judgeInside(["/m/mem"], path), outside);
  const composed = "/m/m\u00e9m";
  assert.equal(judgeInside([composed], `${composed}/a`).ok, true);
  assert.equal(judgeInside([composed], "/m/me\u0301m/a").ok, false);
});

test("pseudo-files are recognized by their path, also if the path uses `..` to get there", () => {
  for (const path of [
    "/proc/self/environ",
    "/proc",
    "/dev/sda",
    "//proc/1/mem",
    "/a/../dev/zero",
    "../../proc/self/fd/0",
  ])
    assert.equal(isPseudoPath(path), true, path);
  for (const path of ["/home/dev/x", "proc/x", "/dev/null", "/dev/shm/x", "./dev/server.ts", "/processes"])
    assert.equal(isPseudoPath(path), false, path);
});

/** Files that make common tools run something; each is a relative of a better-known one. */
const RUN_LATER: readonly string[] = [
  ...["lefthook.yaml", "lefthook-local.yml", ".lefthook.toml", "pnpmfile.js", ".bundle/config", ".pdbrc", ".lvimrc"],
  ...[".yarn/releases/yarn.cjs", ".yarn/plugins/x.cjs", ".mvn/extensions.xml", ".mvn/wrapper/maven-wrapper.properties"],
  ...[".config/emacs/init.el", ".config/nushell/env.nu", ".wezterm.lua", ".forward", "crush.json", ".crush.json"],
  ...[".factory/mcp.json", ".continue/config.yaml", ".continue/mcpServers/x.yaml", ".windsurf/hooks.json"],
  ...[".mise.local.toml", "mise.local.toml", ".mise/config.toml", "mise/config.toml", ".rtx.toml", "prek.toml"],
  ...["app.code-workspace", ".theia/tasks.json", ".helix/languages.toml", ".ghci", ".iex.exs", ".aider.conf.yml"],
  ...[".kilocode/mcp.json", ".amazonq/cli-agents/x.json", ".junie/mcp/mcp.json", ".trae/mcp.json", ".bashrc.d/x"],
  ...[".copilot/mcp-config.json", ".github/hooks/x.json", ".clinerules/hooks/x", ".ipython/profile_default/startup/x"],
  ...[".local/bin/git", ".local/share/applications/x.desktop", ".config/Code/User/tasks.json", ".config/sway/config"],
  ...[".gradle/init.d/x.gradle", ".m2/settings.xml", "Library/LaunchAgents/x.plist", ".config/powershell/profile.ps1"],
  ...["sessions/x/journal.jsonl", "worktrees/x/trees/y", "drafts/x"].map((name) => `.local/state/prefork/${name}`),
];

test("protected names are recognized in upper and lower case, at any depth, and in forms that file systems treat as equal", () => {
  const protectedPaths = [
    ".git",
    ".git/config",
    ".GIT/hooks/pre-commit",
    ".Git/config",
    "sub/module/.git",
    ".g\u200cit/config",
    "git~1/config",
    ".git./config",
    ".git ",
    ".git::$INDEX_ALLOCATION/config",
    ".prefork/settings.json",
    ".prefork/settings.local.json",
    ".prefork/agents/x.md",
    ".claude/settings.json",
    ".claude/hooks/x.sh",
    ".mcp.json",
    ".MCP.json",
    ".envrc",
    ".bashrc",
    "home/.zshrc",
    ".profile",
    ".vscode/tasks.json",
    ".vscode/Tasks.JSON",
    ".idea/workspace.xml",
    ".husky/pre-commit",
    ".githooks/pre-push",
    ".cursor/mcp.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".claude/agents/x.md",
    ".claude.json",
    ".vscode/mcp.json",
    ".pre-commit-config.yaml",
    ".npmrc",
    "packages/a/.yarnrc.yml",
    ".pnpmfile.cjs",
    ".gitattributes",
    ".gitmodules",
    ".gitconfig",
    ".vimrc",
    ".exrc",
    ".tmux.conf",
    ".Rprofile",
    ".rprofile",
    ".pam_environment",
    ".config/autostart/x.desktop",
    ".config/systemd/user/x.service",
    ".config/nvim/init.lua",
    ".Config/Git/config",
    ".ssh/authorized_keys",
    ".gnupg/gpg.conf",
    ".aws/config",
    ".local/state/prefork/trust/x",
    ".LOCAL/State/prefork/TRUST",
  ];
  for (const path of [...protectedPaths, ...RUN_LATER])
    assert.match(protectedName(path.split("/")) ?? "", / is protected: /, path);
  const ordinary = [
    "CLAUDE.md",
    "AGENTS.md",
    ".claude/CLAUDE.md",
    ".gitignore",
    ".git-blame-ignore-revs",
    ".editorconfig",
    ".cursor/rules/style.mdc",
    ".local/state/prefork/memory/notes.md",
    ".local/state/prefork",
    "HEAD",
    "hooks/useState.ts",
    "config",
    "npmrc",
    ".github/workflows/ci.yml",
    ".vscode/extensions.json",
    "src/git/config.ts",
    "constructor",
    "toString/x",
    ".config/app.json",
    ".gradle/buildOutputCleanup/cache.properties",
    "library/index.ts",
    "mise/tasks.md",
    ".code-workspace",
  ];
  for (const path of ordinary) assert.equal(protectedName(path.split("/")), undefined, path);
});

test("in a folder that git treats as a repository, files that git acts on are protected; so are files that would make it one", () => {
  const isProtected = (name: string, ...found: readonly string[]): boolean =>
    protectedInRepository(name, found) !== undefined;
  for (const name of ["HEAD", "config", "Config", "hooks", "info", "objects", "refs", "commondir", "config.worktree"])
    assert.equal(isProtected(name, "HEAD", "objects", "refs"), true, name);
  assert.equal(isProtected("README.md", "HEAD", "objects", "refs"), false);
  assert.equal(isProtected("HEAD", "objects", "refs"), true);
  assert.equal(isProtected("refs", "HEAD", "objects"), true);
  assert.equal(isProtected("commondir", "HEAD"), true);
  assert.equal(isProtected("HEAD", "commondir"), true);
  assert.equal(isProtected("config", "objects", "refs"), false);
  assert.equal(isProtected("hooks", "HEAD", "objects"), false);
  assert.equal(isProtected("HEAD"), false);
});

test("each name in the documentation's table is protected, and each name it calls ordinary is not", () => {
  const page = readFileSync(new URL("../../../../docs/permissions.md", import.meta.url), "utf8");
  const section = page.slice(page.indexOf("### Protected names"), page.indexOf("### Trying paths"));
  const codesIn = (text: string): readonly string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
  const ordinary = section.split("\n").filter((line) => line.endsWith("are ordinary files."));
  assert.equal(ordinary.length, 1);
  for (const name of ordinary.flatMap(codesIn)) assert.equal(protectedName(name.split("/")), undefined, name);
  const rows = section.split("\n").filter((line) => /^\| [a-z]/.test(line) && !line.startsWith("| what"));
  assert.equal(rows.length, 7);
  const pathsIn = (row: string): readonly string[] => {
    const [whole = "", some = ""] = (row.split("|")[2] ?? "").split(/;(?= (?:settings,|`tasks))/);
    if (some === "") return codesIn(whole);
    const [files, folders] = some.startsWith(" settings") ? [["agents"], codesIn(some)] : [codesIn(some), [".vscode"]];
    const names = files.filter((name) => name !== ".vscode");
    return [...codesIn(whole), ...folders.flatMap((folder) => names.map((name) => `${folder}/${name}`))];
  };
  for (const path of rows.flatMap(pathsIn)) assert.match(protectedName(path.split("/")) ?? "", / is protected: /, path);
});

const SECRET: readonly string[] = [
  ...[
    ".env",
    ".ENV",
    ".env~",
    ".env.bak",
    ".env.local",
    ".env.local.old",
    "#.env#",
    ".#.env",
    ".env.swp",
    ".env_backup",
  ],
  ...[
    ".env-old",
    ".env.1",
    ".env.2024-01-01",
    ".env (1)",
    "Copy of .env",
    ".env copy",
    ".env ",
    "prod.env",
    ".envrc.bak",
  ],
  ...["id_rsa", "id_rsa.bak", "id_rsa~", ".id_rsa.swp", "id_ed25519_sk", "deploy_rsa", "server.pem.old", "server.key~"],
  ...["#server.pem#", "x.p12.orig", ".git/config", "a/.git/config", ".git/modules/sub/config", "x.git/config"],
  ...["~/.gitconfig", "~/.gitconfig.bak", "~/.config/git/config", "~/.git-credentials", "~/.claude/.credentials.json"],
  ...["~/.claude.json.backup", "~/.codex/auth.json", "~/.codex/auth.json.bak", "~/.gemini/oauth_creds.json"],
  ...["~/.qwen/oauth_creds.json", "~/.local/share/opencode/auth.json", "~/.copilot/config.json", ".aider.conf.yml"],
  ...["~/.config/github-copilot/apps.json", "~/.config/cursor/auth.json", "~/.continue/config.yaml", "~/.config/hub"],
  ...[".npmrc.old", "~/.docker/config.json", "~/.kube/config", "~/.my.cnf.bak", "~/.config/gcloud", "~/.config/op"],
  ...["terraform.tfstate.backup", "x.auto.tfvars.json", "~/.vault-token", "~/.bash_history", "~/.psql_history"],
  ...["/etc/shadow", "/etc/shadow-", "/etc/shadow.bak", "credentials", "credentials.bak", "credentials (copy).json"],
  ...[
    "prod-secrets.old.yml",
    "service-account-prod.json",
    "client_secret_1.json",
    "HEAD:.env",
    "HEAD:a/.env.production",
  ],
  // Copies of the folders, and of files that are secret only in their folder.
  ...[".kube.bak/config", ".ssh.bak/id_work", ".ssh~/id_work", ".aws_old/config", "Copy of .ssh/x", "backup_.aws/x"],
  ...[".config.bak/gh/hosts.yml", ".config/gh.old/hosts.yml", ".config/gh (1)/hosts.yml", "etc.bak/shadow", ".ssh2/x"],
  ...[".git.bak/config", "x.git.old/config~", ".git/config.lock", ".git/.config.swp", ".git/#config#", ".ssh.tar.gz"],
  ...[".codex.bak/auth.json", ".codex/.auth.json.swp", ".codex/backup_auth.json", "server.pem\u00a0", "server.pem\r"],
  ...[
    ".env2",
    ".envbackup",
    ".envbak.2",
    "id_rsa2",
    ".netrcold",
    ".secrets",
    ".secrets.bak",
    ".secrets/token",
    ".secret",
  ],
  // Settings of other agents that contain secrets.
  ...["~/.claude/settings.json", "/root/.claude/settings.json", "/home/ann/.claude/settings.local.json"],
  ...["/Users/ann/.claude/settings.json.bak", "/var/home/ann/.gemini/settings.json", "~/.prefork/settings.json"],
  ...["~/.cursor/mcp.json", "~/.mcp.json", "~/.config/opencode/opencode.json", "~/.grok/user-settings.json"],
  ...[
    "~/.modal.toml",
    "~/.supabase/access-token",
    "~/.config/containers/auth.json",
    "~/.authinfo.gpg",
    "~/.argocd/config",
  ],
  ...["~/.mcp-auth/x/tokens.json", "~/.local/share/kwalletd/kdewallet.kwl", "~/.openai/api_key", "~/.bundle/config"],
  ...["wp-config.php", "local.settings.json", "sa-key.json", "token.json", ".token", "cookies.txt", "password.txt"],
  ...[
    "~/.local/state/prefork/sessions/x/journal.jsonl",
    "~/.local/state/prefork/sessions/x/rewind-files/copies/071f6d",
    "~/.local/state/prefork/sessions/x/rewind-files/git/objects/ab/cd",
    "~/.claude/projects/p/x.jsonl",
    "~/.codex/sessions/2025/x.jsonl",
  ],
  ...["~/.config/Claude/claude_desktop_config.json", "~/.codeium/windsurf/mcp_config.json", "~/.pi/agent/models.json"],
];

const NOT_SECRET: readonly string[] = [
  ...[
    ".env.example",
    ".env.sample",
    ".env.template",
    ".env.dist",
    ".env.local.example",
    ".env.example.bak",
    "example.env",
  ],
  ...["id_rsa.pub", ".ssh/id_rsa.pub", "server.crt", "credentials.ts", "secrets.py", "src/secrets", "src/secret.rs"],
  ...["service_account.go", "serviceaccount_controller.go", ".environment", ".envoy", "env.d.ts", ".gitignore"],
  ...[".git/HEAD", ".git/hooks/x", "config", "src/config", "locales/en/auth.json", "shadow.css", "tokens.json"],
  ...[
    ".claude/settings.json",
    "/home/ann/project/.claude/settings.json",
    "/work/p/.prefork/settings.json",
    ".mcp.json",
  ],
  ...[".cursor/mcp.json", "/home/ann/project/.mcp.json", "opencode.json", ".gemini/settings.json", "crush.json"],
  ...[".aws-sam/build/x.yaml", ".azure-pipelines/ci.yml", ".azure-pipelines.yml", ".docker-compose.yml", "Cargo.lock"],
  ...[
    ".secrets.baseline",
    ".secretlintrc.json",
    "src/git/config.ts",
    "git-tools/config.yml",
    "old/config",
    ".envelope",
  ],
  ...["huggingface/token.py", "run-tests/secrets", "test_rsa_keys.json", ".config/gh-dash/config.yml", "flake.lock"],
  ...["wp-config-sample.php", "token.ts", "tokens.json", "forgot-password.json", "~/.claude/CLAUDE.md", "sa-keys.md"],
  ...["~/.local/state/prefork/sessions/x/outputs/y.txt", ".claude/projects/p/x.md", "src/api-key/index.ts"],
  ...["key.ts", "monkey", "pem.go", "src/history", "docker/config.json", ".vscode/settings.json", "crypto/rsa"],
];

test("names of secrets and their copies are distinguished from names that only look similar", () => {
  assert.deepEqual(
    SECRET.filter((name) => !isSecret(name)),
    [],
  );
  assert.deepEqual(NOT_SECRET.filter(isSecret), []);
});

const PATHS =
  "a.ts b.ts c.ts app.ts src src/app.ts src/app.test.ts src/deep/er/x.py src/deep/y.ts docs/a.md docs/in/b.md .gitignore .github/workflows/ci.yml test/a.ts x/test/b/c.ts types.d.ts [id].tsx i.tsx app/[id]/page.tsx app/(shop)/page.tsx v1 v4 page-1.md page-10.md *.ts {a} {a,b [a a,b +page.svelte $x^.ts a+b.ts ab axxb one-two-three lib.min.js ünï.ts".split(
    " ",
  );

const GLOBS: readonly (readonly [string, string])[] = [
  [
    "*",
    "a.ts b.ts c.ts app.ts src .gitignore types.d.ts [id].tsx i.tsx v1 v4 page-1.md page-10.md *.ts {a} {a,b [a a,b +page.svelte $x^.ts a+b.ts ab axxb one-two-three lib.min.js ünï.ts",
  ],
  [
    "**",
    "a.ts b.ts c.ts app.ts src src/app.ts src/app.test.ts src/deep/er/x.py src/deep/y.ts docs/a.md docs/in/b.md .gitignore .github/workflows/ci.yml test/a.ts x/test/b/c.ts types.d.ts [id].tsx i.tsx app/[id]/page.tsx app/(shop)/page.tsx v1 v4 page-1.md page-10.md *.ts {a} {a,b [a a,b +page.svelte $x^.ts a+b.ts ab axxb one-two-three lib.min.js ünï.ts",
  ],
  ["*.ts", "a.ts b.ts c.ts app.ts types.d.ts *.ts $x^.ts a+b.ts ünï.ts"],
  ["*.{ts,tsx}", "a.ts b.ts c.ts app.ts types.d.ts [id].tsx i.tsx *.ts $x^.ts a+b.ts ünï.ts"],
  [
    "**/*.ts",
    "a.ts b.ts c.ts app.ts src/app.ts src/app.test.ts src/deep/y.ts test/a.ts x/test/b/c.ts types.d.ts *.ts $x^.ts a+b.ts ünï.ts",
  ],
  ["src/*.ts", "src/app.ts src/app.test.ts"],
  ["src/**", "src src/app.ts src/app.test.ts src/deep/er/x.py src/deep/y.ts"],
  ["src/**/*.ts", "src/app.ts src/app.test.ts src/deep/y.ts"],
  ["src/**/*.{ts,py}", "src/app.ts src/app.test.ts src/deep/er/x.py src/deep/y.ts"],
  ["**/test/**", "test/a.ts x/test/b/c.ts"],
  ["*/*.ts", "src/app.ts src/app.test.ts test/a.ts"],
  ["**/*.test.*", "src/app.test.ts"],
  ["src/*/", ""],
  ["?pp.ts", "app.ts"],
  ["src/app.ts", "src/app.ts"],
  ["{src,docs}/**/*.md", "docs/a.md docs/in/b.md"],
  ["**/{a,b}.ts", "a.ts b.ts test/a.ts"],
  ["*.d.ts", "types.d.ts"],
  ["a*", "a.ts app.ts a,b a+b.ts ab axxb"],
  ["*a*", "a.ts app.ts page-1.md page-10.md {a} {a,b [a a,b +page.svelte a+b.ts ab axxb"],
  ["**/.*", ".gitignore"],
  ["**/.*/**", ".github/workflows/ci.yml"],
  [".github/**/*.yml", ".github/workflows/ci.yml"],
  ["[ab].ts", "a.ts b.ts"],
  ["[a-c]*.ts", "a.ts b.ts c.ts app.ts a+b.ts"],
  ["[id].tsx", "[id].tsx i.tsx"],
  ["**/[id]/*", "app/[id]/page.tsx"],
  [
    "[!.]*",
    "a.ts b.ts c.ts app.ts src types.d.ts [id].tsx i.tsx v1 v4 page-1.md page-10.md *.ts {a} {a,b [a a,b +page.svelte $x^.ts a+b.ts ab axxb one-two-three lib.min.js ünï.ts",
  ],
  ["src/{deep/er,other}/*.py", "src/deep/er/x.py"],
  ["{a..c}.ts", "a.ts b.ts c.ts"],
  ["v{1..3}", "v1"],
  ["page-?.md", "page-1.md"],
  [
    "**/*",
    "a.ts b.ts c.ts app.ts src src/app.ts src/app.test.ts src/deep/er/x.py src/deep/y.ts docs/a.md docs/in/b.md .gitignore .github/workflows/ci.yml test/a.ts x/test/b/c.ts types.d.ts [id].tsx i.tsx app/[id]/page.tsx app/(shop)/page.tsx v1 v4 page-1.md page-10.md *.ts {a} {a,b [a a,b +page.svelte $x^.ts a+b.ts ab axxb one-two-three lib.min.js ünï.ts",
  ],
  [
    "***",
    "a.ts b.ts c.ts app.ts src .gitignore types.d.ts [id].tsx i.tsx v1 v4 page-1.md page-10.md *.ts {a} {a,b [a a,b +page.svelte $x^.ts a+b.ts ab axxb one-two-three lib.min.js ünï.ts",
  ],
  ["src**", "src"],
  ["**b", "{a,b a,b ab axxb"],
  ["a**b", "a,b ab axxb"],
  ["\\*.ts", "*.ts"],
  ["{a}", "{a}"],
  ["{a,b", "{a,b"],
  ["[a", "[a"],
  ["a,b", "a,b"],
  ["(a|b).ts", "a.ts b.ts"],
  ["app/(shop)/*.tsx", "app/(shop)/page.tsx"],
  ["+page.svelte", "+page.svelte"],
  ["$x^.ts", "$x^.ts"],
  ["a+b.ts", "a+b.ts"],
  ["*.", ""],
  ["src/../x", ""],
  ["{,src/}*.ts", "a.ts b.ts c.ts app.ts src/app.ts src/app.test.ts types.d.ts *.ts $x^.ts a+b.ts ünï.ts"],
  [
    "**/{*.ts,*.md}",
    "a.ts b.ts c.ts app.ts src/app.ts src/app.test.ts src/deep/y.ts docs/a.md docs/in/b.md test/a.ts x/test/b/c.ts types.d.ts page-1.md page-10.md *.ts $x^.ts a+b.ts ünï.ts",
  ],
  ["*-*-*", "one-two-three"],
  ["*.min.{js,css}", "lib.min.js"],
];

test("globs match what they match in other programs", () => {
  for (const [glob, matching] of GLOBS) assert.equal(PATHS.filter(globMatcher(glob)).join(" "), matching, glob);
});

test("a glob that excludes a folder excludes everything below it", () => {
  const matches = globMatcher("src/de*", { orBelow: true });
  assert.deepEqual(PATHS.filter(matches), ["src/deep/er/x.py", "src/deep/y.ts"]);
});

test("a glob takes time in proportion to the path, whatever it repeats", () => {
  const globs = [
    "*a".repeat(400),
    "*?".repeat(400),
    "{a,a}{a,a}*".repeat(80),
    "**/*a/".repeat(100),
    "{a*,".repeat(20) + "}".repeat(20),
  ];
  for (const glob of globs) {
    const matches = globMatcher(`${glob}Z`);
    assert.deepEqual([matches("a".repeat(4_000)), matches("a/".repeat(2_000))], [false, false], glob);
  }
});

test("a glob that is very long or deep is refused", () => {
  assert.deepEqual(
    [
      "{a,".repeat(8_000) + "}".repeat(8_000),
      "{a,".repeat(21) + "}".repeat(21),
      "{1..50}{51..101}",
      "v{1..100}.ts",
    ].map(globProblem),
    [
      "is longer than 1000 characters",
      "has braces more than 20 deep",
      "has ranges of more than 100 numbers",
      undefined,
    ],
  );
});
