import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempDisposableSync,
  mkdtempSync,
  realpathSync,
  rmdirSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { doctorCommand } from "../src/commands/doctor.ts";
import { run } from "../src/main.ts";
import { captured } from "./captured.ts";
import { hasBwrap, uses } from "./optional.ts";

type Layers = readonly {
  readonly name: string;
  readonly active: boolean;
  readonly detail: string;
  readonly covers?: string;
  readonly wayOut?: string;
}[];

const ask = async (env: Readonly<Record<string, string>>): Promise<Layers> => {
  const io = captured({ env });
  await doctorCommand(io).parseAsync(["--json"], { from: "user" });
  return (JSON.parse(io.text()) as { layers: Layers }).layers;
};

test("every layer is listed with its state, its reason and what to do about it", uses("bwrap"), async () => {
  using folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-doctor-"));
  const layers = await ask({ HOME: folder.path, XDG_STATE_HOME: folder.path });
  assert.deepEqual(
    layers.map(({ name }) => name),
    [
      ...["runtime", "files by descriptor", "parsed commands", "read-only sandbox", "sandbox", "git", "ripgrep"],
      ...["worktrees", "state folder", "working folder", "settings", "key", "model"],
    ],
  );
  for (const { name, active, detail, wayOut } of layers) {
    assert.ok(detail.length > 0, name);
    assert.equal(wayOut === undefined, active, `${name}: a way out stands exactly where it is needed`);
  }
  assert.deepEqual(
    layers.flatMap(({ name, covers }) => (covers === undefined ? [] : [[name, covers.split(",")[0]]])),
    [
      ["files by descriptor", "every file that Read"],
      ["parsed commands", "commands that are provably read-only"],
      ["read-only sandbox", "commands that are provably read-only"],
      ["sandbox", "approved commands"],
      ["worktrees", "forks that change code in their own worktrees"],
    ],
  );
  const works = await hasBwrap();
  assert.deepEqual(
    layers.flatMap(({ name, active }) => (/cell|sandbox/.test(name) ? [[name, active]] : [])),
    [
      ["read-only sandbox", works],
      ["sandbox", works],
    ],
  );
  assert.equal(layers[0]?.active, true);
  assert.equal(layers[1]?.active, process.platform === "linux");
  const io = captured({ env: { XDG_STATE_HOME: folder.path } });
  await doctorCommand(io).parseAsync([], { from: "user" });
  assert.match(io.text(), /^on {3}runtime {13}Node \d/);
  assert.match(io.text(), /^on {3}parsed commands .*\n {25}covers commands that are provably read-only$/m);
});

test("the state folder is looked at and left alone", async () => {
  using folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-doctor-"));
  const state = async (): Promise<Layers[number] | undefined> =>
    (await ask({ XDG_STATE_HOME: folder.path })).find(({ name }) => name === "state folder");
  const path = join(folder.path, "prefork");
  assert.deepEqual(await state(), {
    name: "state folder",
    active: true,
    detail: `${path} does not exist yet and will be created with mode 0700`,
  });
  assert.equal(existsSync(path), false);
  mkdirSync(path);
  chmodSync(path, 0o777);
  assert.deepEqual(await state(), {
    name: "state folder",
    active: false,
    isBroken: true,
    detail: `${path} can be changed by others (mode 0777)`,
    wayOut: "repair its owner and mode, or set XDG_STATE_HOME",
  });
});

/** What doctor reports about settings, key, model and working folder, and its exit code. */
const setup = async (env: Readonly<Record<string, string>>, flags: readonly string[] = []) => {
  const io = captured({ env });
  const code = await run(["doctor", "--json", ...flags], io);
  const { layers } = JSON.parse(io.text()) as { layers: Layers };
  return [code, ...layers.slice(-3).map(({ name, active, detail }) => [name, active, detail])];
};

test("a prompt that could start is reported with its settings, key and model, and no key is shown", async () => {
  using folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-doctor-"));
  const env = { HOME: folder.path, XDG_STATE_HOME: folder.path };
  const claude = "claude-sonnet-5: $2 per million input tokens, $10 per million output tokens";
  const noKey = "none is set, so the built-in rehearsal engine answers, without a language model";
  assert.deepEqual(await setup(env), [
    0,
    ["settings", true, "there are none, so the defaults apply"],
    ["key", false, noKey],
    ["model", true, claude],
  ]);
  mkdirSync(join(folder.path, ".prefork"));
  writeFileSync(join(folder.path, ".prefork/settings.json"), "{}");
  assert.deepEqual(await setup({ ...env, ANTHROPIC_API_KEY: "sk-secret" }, ["--model", "claude-sonet-5"]), [
    0,
    ["settings", true, `no mistakes in ${folder.path}/.prefork/settings.json`],
    ["key", true, "anthropic answers; its key is set (not tried)"],
    ["model", false, "claude-sonet-5 is not in the table of models, so its cost is unknown and budgets do not work"],
  ]);
});

test("a folder's settings for another agent are named once they are trusted", async () => {
  using folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-doctor-"));
  mkdirSync(join(folder.path, "project/.claude"), { recursive: true });
  writeFileSync(join(folder.path, "project/.claude/settings.json"), '{"permissions":{"deny":["Read(/a.txt)"]}}');
  const before = process.cwd();
  process.chdir(join(folder.path, "project"));
  try {
    const env = { HOME: folder.path, XDG_STATE_HOME: folder.path };
    const unused = "settings of this folder are not used: .claude/settings.json is not trusted (prefork trust)";
    assert.deepEqual((await setup(env))[1], ["settings", true, `there are none, so the defaults apply; ${unused}`]);
    assert.equal(await run(["trust"], captured({ env })), 0);
    const found = `no mistakes in ${folder.path}/project/.claude/settings.json`;
    assert.deepEqual((await setup(env))[1], ["settings", true, found]);
  } finally {
    process.chdir(before);
  }
});

test("broken settings, keys and addresses end doctor with exit code 1 and their place", async () => {
  using folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-doctor-"));
  const env = { HOME: folder.path, XDG_STATE_HOME: folder.path };
  mkdirSync(join(folder.path, ".prefork"));
  const settings = join(folder.path, ".prefork/settings.json");
  writeFileSync(settings, '{ "permissions": { "mode": "sometimes" } }');
  const [code, [, active, detail] = []] = (await setup(env)) as [number, readonly unknown[]];
  assert.deepEqual([code, active, String(detail).startsWith(`${settings}:1:`)], [1, false, true], String(detail));
  writeFileSync(settings, "{}");
  const keys = [
    ["'sk-a'", "it is in quotation marks"],
    ["sk-a\nsk-b", "it contains white space"],
    ["sk-ä", "it contains characters that no key has"],
  ] as const;
  for (const [key, mistake] of keys)
    assert.deepEqual((await setup({ ...env, OPENAI_API_KEY: key })).slice(0, 3), [
      1,
      ["settings", true, `no mistakes in ${settings}`],
      ["key", false, `the key for openai: ${mistake}`],
    ]);
  const [ended, , , address] = await setup({ ...env, ANTHROPIC_BASE_URL: "localhost:80" });
  const wrong = 'ANTHROPIC_BASE_URL must start with http:// or https://, not "localhost:80"';
  assert.deepEqual([ended, address], [1, ["key", false, wrong]]);
});

test("a deleted working folder is named by doctor and by every command that needs it", async () => {
  using folder = mkdtempDisposableSync(join(realpathSync(tmpdir()), "prefork-doctor-"));
  const env = { HOME: folder.path, XDG_STATE_HOME: folder.path };
  const before = process.cwd();
  const gone = mkdtempSync(join(folder.path, "gone-"));
  process.chdir(gone);
  rmdirSync(gone);
  try {
    const io = captured({ env });
    assert.equal(await run(["doctor"], io), 1);
    assert.match(io.text(), /^bad {2}working folder {6}it was deleted or moved\n {25}change to an existing folder/m);
    for (const argv of [
      ["sessions"],
      ["tasks"],
      ["explain"],
      ["worktrees"],
      ["trust"],
      ["mcp", "list"],
      ["-p", "hi"],
    ]) {
      const io = captured({ env });
      const code = await run(argv, io);
      const err = "prefork: the working folder was deleted; change to an existing folder: cd ~\n";
      assert.deepEqual([argv, code, io.text(), io.errors()], [argv, 1, "", err]);
    }
  } finally {
    process.chdir(before);
  }
});
