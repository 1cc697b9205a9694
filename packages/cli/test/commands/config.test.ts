/** `prefork config`: settings shown with their files, changed one at a time, and never made invalid. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
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

const openHome = () => {
  const folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-config-"));
  const env = { HOME: folder.path, XDG_STATE_HOME: join(folder.path, "state") };
  const file = join(folder.path, ".prefork/settings.json");
  const config = async (...argv: readonly string[]) => {
    const io = captured({ env });
    const code = await run(["config", ...argv], io);
    return { code, out: io.text(), err: io.errors() };
  };
  return { file, config, [Symbol.dispose]: () => folder.remove() };
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
    `${file}\n  forks.maxTurns = 5\n  permissions.mode = "plan"\n  permissions.deny = ["Read(./secrets/**)"]\n`,
  );
  assert.equal((await config("get", "forks")).out, `${file}\n  forks.maxTurns = 5\n`);
  assert.equal(
    (await config("get", "permissions.mode", "--json")).out,
    `${JSON.stringify({ key: "permissions.mode", value: "plan", file })}\n`,
  );
  assert.equal((await config("unset", "forks.maxTurns")).out, `Removed forks.maxTurns from ${file}.\n`);
  assert.deepEqual(await config("get", "forks.maxTurns"), {
    ...{ code: 1, out: "", err: "prefork: forks.maxTurns is not set\n" },
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
    err: `prefork: ${file} is not valid JSON; fix it first (prefork doctor shows where)\n`,
  });
});

test("keys that a tool server is given are not shown", async () => {
  using home = openHome();
  const { file, config } = home;
  mkdirSync(join(file, ".."), { mode: 0o700 });
  const servers = { files: { command: "files", env: { TOKEN: "secret-token" } } };
  writeFileSync(file, JSON.stringify({ mcpServers: servers }), { mode: 0o600 });
  assert.equal((await config()).out, `${file}\n  mcpServers.files = "(prefork mcp)"\n`);
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
