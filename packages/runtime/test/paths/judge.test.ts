import assert from "node:assert/strict";
import { test } from "node:test";
import { isPseudoPath, judgeInside, judgePath, protectedName } from "../../src/paths/index.ts";

const refusals: readonly (readonly [unknown, RegExp])[] = [
  [undefined, /must be a text/],
  [7, /must be a text/],
  [["/a"], /must be a text/],
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
  ["/m/../x", /"\.\." is refused/],
  ["/m/sub/..", /"\.\." is refused/],
  ["/..", /"\.\." is refused/],
  ["/m/\uff0e\uff0e/x", /another writing/],
  ["/m/\u2025/x", /another writing/],
  ["/m/..\uff0fx", /another writing/],
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

test("an absolute path is its names; what means nothing is left out, and nothing else is touched", () => {
  assert.deepEqual(judgePath("/m//sub/./note.md"), {
    ok: true,
    path: "/m/sub/note.md",
    parts: ["m", "sub", "note.md"],
  });
  for (const name of ["$postId.tsx", "a~", "...", "..a", "50%.txt", "naïve café.md", "日本語", " x ", "[id].ts", "a:b"])
    assert.deepEqual(judgePath(`/m/${name}`), { ok: true, path: `/m/${name}`, parts: ["m", name] });
});

test("inside is decided by whole names: siblings that start alike and other unicode forms are outside", () => {
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

test("pseudo-files are known by where they stand, also when a path climbs to them", () => {
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

test("protected names are known in any case, at any depth, and in the writings that file systems fold", () => {
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
  ];
  for (const path of protectedPaths) assert.match(protectedName(path.split("/")) ?? "", / is protected: /, path);
  const ordinary = [
    "CLAUDE.md",
    "AGENTS.md",
    ".claude/CLAUDE.md",
    ".gitignore",
    ".gitattributes",
    ".github/workflows/ci.yml",
    ".vscode/extensions.json",
    "src/git/config.ts",
    "constructor",
    "toString/x",
    ".config/app.json",
  ];
  for (const path of ordinary) assert.equal(protectedName(path.split("/")), undefined, path);
});
