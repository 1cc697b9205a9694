/** `prefork config`: settings shown with their files, changed one at a time, and never made invalid. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempDisposableSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { run } from "../../src/main.ts";
import { captured } from "../captured.ts";

const parsedLines = (text: string): readonly unknown[] =>
  text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as unknown);

const openHome = (more: Readonly<Record<string, string>> = {}) => {
  const folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-config-"));
  const env = { HOME: folder.path, XDG_STATE_HOME: join(folder.path, "state"), PATH: process.env.PATH ?? "", ...more };
  const file = join(folder.path, ".prefork/settings.json");
  const config = async (...argv: readonly string[]) => {
    const io = captured({ env });
    const code = await run(["config", ...argv], io);
    return { code, out: io.text(), err: io.errors() };
  };
  return { path: folder.path, env, file, config, [Symbol.dispose]: () => folder.remove() };
};

test("a setting is set, shown with its file, and removed again", async () => {
  using home = openHome();
  const { file, config } = home;
  assert.deepEqual(await config(), {
    ...{ code: 0, err: "" },
    out: "Nothing is set, so the defaults apply. To see what can be set: prefork config keys\n",
  });
  assert.equal((await config("set", "forks.maxTurns", "5")).out, `Set forks.maxTurns = 5 in ${file}.\n`);
  await config("set", "permissions.mode", "plan");
  await config("set", "permissions.deny", '["Read(./secrets/**)"]');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(
    (await config("list")).out,
    `user: ${file}\n  forks.maxTurns = 5\n  permissions.mode = "plan"\n  permissions.deny = ["Read(./secrets/**)"]\n`,
  );
  assert.equal(
    (await config("get", "forks.maxTurns")).out,
    `forks.maxTurns = 5\n  user         5  ${file}:3  (applies)\n  default      200  (does not apply)\n`,
  );
  assert.deepEqual(parsedLines((await config("get", "permissions.mode", "--json")).out), [
    { key: "permissions.mode", value: "default", layer: "default", applies: false },
    { key: "permissions.mode", value: "plan", layer: "user", file, line: 6, applies: true },
  ]);
  assert.equal((await config("unset", "forks.maxTurns")).out, `Removed forks.maxTurns from ${file}.\n`);
  assert.equal((await config("get", "forks.maxTurns")).out, "forks.maxTurns = 200\n  default      200  (applies)\n");
  assert.deepEqual(await config("get", "worktrees.check"), {
    ...{ code: 1, out: "", err: "prefork: worktrees.check is not set\n" },
  });
});

test("an invalid change is not written, and comments stay", async () => {
  using home = openHome();
  const { file, config } = home;
  mkdirSync(join(file, ".."), { mode: 0o700 });
  const before = '{\n  // few is enough\n  "forks": { "maxTurns": 7, },\n}\n';
  writeFileSync(file, before, { mode: 0o600 });
  const refused: readonly (readonly [readonly string[], string])[] = [
    [["set", "forks.maxTurns", "x"], `not changed: ${file}:3:14: forks.maxTurns: expected number, received string`],
    [["set", "forks.nope", "1"], "there is no setting forks.nope (prefork config keys lists them)"],
    [["unset", "forks.atOnce"], `forks.atOnce is not set in ${file}`],
  ];
  for (const [argv, said] of refused)
    assert.deepEqual(await config(...argv), { code: 2, out: "", err: `prefork: ${said}\n` });
  assert.equal(readFileSync(file, "utf8"), before);
  assert.equal((await config("set", "forks.atOnce", "3")).code, 0);
  assert.match(readFileSync(file, "utf8"), /\/\/ few is enough/);
  writeFileSync(file, "{ nope");
  assert.deepEqual(await config("set", "forks.atOnce", "3"), {
    ...{ code: 2, out: "" },
    err: `prefork: ${file}:1:3: not JSON: invalid symbol; fix it first: prefork config edit\n`,
  });
  for (const argv of [["list"], ["get", "forks.atOnce"]])
    assert.deepEqual(await config(...argv), {
      ...{ code: 2, out: "", err: `prefork: ${file}:1:3: not JSON: invalid symbol; fix it: prefork config edit\n` },
    });
});

test("keys that a tool server is given are not shown", async () => {
  using home = openHome();
  const { file, config } = home;
  mkdirSync(join(file, ".."), { mode: 0o700 });
  const servers = { files: { command: "files", env: { TOKEN: "secret-token" } } };
  writeFileSync(file, JSON.stringify({ mcpServers: servers }), { mode: 0o600 });
  assert.equal((await config()).out, `user: ${file}\n  mcpServers.files = "(prefork mcp)"\n`);
});

test("the environment and flags are layers of their own, and each value says whether it applies", async () => {
  using home = openHome({ PREFORK_AUTO_BACKGROUND_MS: "5", NO_COLOR: "1", VISUAL: '"my editor" -w', EDITOR: "vi" });
  const { file, config } = home;
  await config("set", "forks.autoBackgroundMs", "7");
  await config("set", "terminal.theme", "dark");
  await config("set", "permissions.allow", '["Bash(ls)"]');
  assert.equal(
    (await config("list", "--permission-mode", "plan", "--allow", "Bash(pwd)")).out,
    [
      `user: ${file}`,
      "  forks.autoBackgroundMs = 7  (another layer's value applies: prefork config get)",
      '  terminal.theme = "dark"',
      '  permissions.allow = ["Bash(ls)"]',
      "",
      "environment",
      "  forks.autoBackgroundMs = 5  ($PREFORK_AUTO_BACKGROUND_MS)",
      '  terminal.theme = "none"  ($NO_COLOR; another layer\'s value applies: prefork config get)',
      '  terminal.editor = ["my editor","-w"]  ($VISUAL)',
      "",
      "flag",
      '  permissions.mode = "plan"  (--permission-mode)',
      '  permissions.allow = ["Bash(pwd)"]  (--allow)',
      "",
    ].join("\n"),
  );
  assert.equal(
    (await config("get", "permissions.allow", "--allow", "Bash(pwd)")).out,
    `permissions.allow = ["Bash(ls)","Bash(pwd)"]\n  flag         ["Bash(pwd)"]  --allow  (applies)\n  user         ["Bash(ls)"]  ${file}:9  (applies)\n`,
  );
  assert.match((await config("list", "--all")).out, /^default\n(?: {2}.*\n)* {2}forks\.maxTurns = 200\n/);
  assert.equal(
    (await config("list", "--deny", "Bsh")).err,
    'prefork: the command line: "Bsh" names no known tool; did you mean Bash?\n',
  );
});

test("an edited file is saved only if it is valid; otherwise both texts stay", async () => {
  using home = openHome();
  const { path, file, env } = home;
  const [script, next, draft] = [
    join(path, "my editor.sh"),
    join(path, "next.json"),
    join(file, "../settings.edited.json"),
  ];
  // Ends with the code in `code`, after it has put `next.json` in place of the file.
  writeFileSync(script, `cp '${next}' "$1"; echo "$1" >> '${path}/opened'; exit "$(cat '${path}/code')"\n`);
  const edit = async (text: string, { code = 0, EDITOR = `sh "${script}"` } = {}) => {
    writeFileSync(next, text);
    writeFileSync(join(path, "code"), String(code));
    const io = captured({ env: { ...env, EDITOR } });
    const ended = await run(["config", "edit"], io);
    const files = [file, draft].map((name) => (existsSync(name) ? readFileSync(name, "utf8") : undefined));
    return { code: ended, out: io.text(), err: io.errors(), files };
  };
  const good = '{ "forks": { "atOnce": 3 } }\n';
  assert.deepEqual(await edit(good), { code: 0, out: `Saved ${file}.\n`, err: "", files: [good, undefined] });
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(await edit(good), {
    ...{ code: 0, out: `Nothing was changed in ${file}.\n`, err: "", files: [good, undefined] },
  });
  const bad = '{\n  "forks": { "atOnce": "many" }\n}\n';
  const refusal = `prefork: ${file} was not changed: ${draft}:2:14: forks.atOnce: expected number, received string; to edit your text again: prefork config edit\n`;
  assert.deepEqual(await edit(bad), { code: 2, out: "", err: refusal, files: [good, bad] });
  const again = `prefork: continuing with the text that you edited last time; to start over, delete ${draft}\n`;
  assert.deepEqual(await edit("{ nope"), {
    ...{ code: 2, out: "", files: [good, "{ nope"] },
    err: `${again}prefork: ${file} was not changed: ${draft}:1:3: not JSON: invalid symbol; to edit your text again: prefork config edit\n`,
  });
  assert.deepEqual(await edit("{}\n", { code: 3 }), {
    ...{ code: 2, out: "", files: [good, "{}\n"] },
    err: `${again}prefork: ${file} was not changed: the editor sh (from EDITOR) ended with exit code 3; your text is kept in ${draft}\n`,
  });
  const own = { terminal: { editor: ["sh", script] } };
  assert.equal((await edit(JSON.stringify(own))).out, `Saved ${file}.\n`);
  assert.equal(
    (await edit("{}\n", { EDITOR: "no-such-editor" })).out,
    `Saved ${file}.\n`,
    "the setting names the editor",
  );
  const without = await edit("{ }\n", { EDITOR: "no-such-editor" });
  assert.deepEqual([without.code, without.files], [2, ["{}\n", undefined]]);
  assert.match(without.err, /the editor no-such-editor \(from EDITOR\) cannot be started: there is no such program\n$/);
  assert.match(
    (await edit("{ }\n", { EDITOR: " " })).err,
    /^prefork: no editor is set; set one: export EDITOR=nano, or /,
  );
  assert.deepEqual([...new Set(readFileSync(join(path, "opened"), "utf8").trim().split("\n"))], [draft]);
});

test("a trusted project's settings are shown with what they may decide, and an untrusted one's are not read", async () => {
  using home = openHome();
  const { path, file, config, env } = home;
  const project = join(path, "project");
  for (const name of [".prefork", ".claude"]) mkdirSync(join(project, name), { recursive: true });
  const write = (name: string, value: object): void => writeFileSync(join(project, name), JSON.stringify(value));
  write(".prefork/settings.json", { forks: { atOnce: 20, maxTurns: 9 }, terminal: { editor: ["evil"] } });
  write(".prefork/settings.local.json", { permissions: { mode: "plan", ask: ["Edit"] } });
  write(".claude/settings.json", { permissions: { deny: ["Bash(rm:*)"] }, model: "x" });
  await config("set", "forks.atOnce", "8");
  const before = process.cwd();
  process.chdir(project);
  try {
    assert.equal((await config("list")).out, `user: ${file}\n  forks.atOnce = 8\n`);
    assert.equal(await run(["trust", "--accept-none"], captured({ env })), 0);
    const skipped = "skipped, because only your own settings and the command line may set it";
    assert.equal(
      (await config("list")).out,
      [
        `user: ${file}`,
        "  forks.atOnce = 8",
        "",
        `project: ${join(project, ".prefork/settings.json")}`,
        "  forks.atOnce = 20  (another layer's value applies: prefork config get)",
        "  forks.maxTurns = 9",
        `  terminal.editor = ["evil"]  (${skipped})`,
        "",
        `local: ${join(project, ".prefork/settings.local.json")}`,
        `  permissions.mode = "plan"  (${skipped})`,
        '  permissions.ask = ["Edit"]',
        "",
        `project: ${join(project, ".claude/settings.json")}`,
        '  permissions.deny = ["Bash(rm:*)"]',
        "",
      ].join("\n"),
    );
    write(".prefork/settings.json", { forks: { atOnce: "x" } });
    const { err } = await config("list");
    assert.equal(
      err,
      "prefork: this folder changed since you trusted it, so its settings are skipped (prefork trust)\n",
    );
  } finally {
    process.chdir(before);
  }
});

test("every key that can be set is named with what it does", async () => {
  using home = openHome();
  const { out } = await home.config("keys");
  assert.match(out, /^forks\.maxTurns\n {2}Turns of one fork\./m);
  assert.equal(JSON.parse((await home.config("keys", "--json")).out).title, "Prefork settings");
});

test("a project's settings are changed in the project, and no link leads the change elsewhere", () => {
  using folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-config-"));
  const at = (...names: readonly string[]): string => join(folder.path, ...names);
  for (const name of ["home/.prefork", "plain", "linked", "pipe/.prefork"]) mkdirSync(at(name), { recursive: true });
  writeFileSync(at("home/.prefork/settings.json"), "{}\n", { mode: 0o600 });
  symlinkSync(at("home/.prefork"), at("linked/.prefork"));
  execFileSync("mkfifo", [at("pipe/.prefork/settings.json")]);
  const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
  const set = (name: string): number | null =>
    spawnSync(
      process.execPath,
      [...process.execArgv, main, "config", "set", "--scope", "project", "forks.enabled", "false"],
      { cwd: at(name), env: { ...process.env, HOME: at("home"), XDG_STATE_HOME: at("state") }, timeout: 60_000 },
    ).status;
  assert.deepEqual([set("plain"), set("linked"), set("pipe")], [0, 2, 2]);
  assert.deepEqual(JSON.parse(readFileSync(at("plain/.prefork/settings.json"), "utf8")), { forks: { enabled: false } });
  assert.equal(readFileSync(at("home/.prefork/settings.json"), "utf8"), "{}\n");
});
