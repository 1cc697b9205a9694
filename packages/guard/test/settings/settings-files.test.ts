import assert from "node:assert/strict";
import { chmod, chown, lchown, mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loadSettings, type SettingsLocations } from "../../src/settings/settings-files.ts";
import { configurationOf } from "../../src/trust/index.ts";

type Texts = { readonly user?: string; readonly project?: string; readonly local?: string };

/** A home and a project on the disk with these settings. */
const places = async (texts: Texts): Promise<SettingsLocations & AsyncDisposable> => {
  const folder = await mkdtemp(join(tmpdir(), "prefork-settings-"));
  const [home, project] = [join(folder, "home"), join(folder, "project")];
  for (const base of [home, project]) await mkdir(join(base, ".prefork"), { recursive: true });
  const write = async (path: string, text: string | undefined): Promise<void> => {
    if (text !== undefined) await writeFile(path, text);
  };
  await write(join(home, ".prefork/settings.json"), texts.user);
  await write(join(project, ".prefork/settings.json"), texts.project);
  await write(join(project, ".prefork/settings.local.json"), texts.local);
  const dispose = () => rm(folder, { recursive: true });
  return { home, project, trusted: true, [Symbol.asyncDispose]: dispose };
};

const policyAt = async (where: SettingsLocations) => {
  const loaded = await loadSettings(where);
  assert.ok(loaded.kind === "policy", JSON.stringify(loaded));
  return loaded.policy;
};

const textsOf = (rules: readonly { readonly text: string }[]): readonly string[] => rules.map(({ text }) => text);

test("without any settings file there are no rules, and the mode is the default", async () => {
  await using where = await places({});
  assert.deepEqual(await policyAt(where), {
    allow: [],
    ask: [],
    deny: [],
    mode: "default",
    directories: [],
    readOnlyPrograms: [],
    sandbox: "auto",
    forks: {},
    worktrees: {},
    notices: [],
  });
});

test("all layers can tighten; only the user's file and the command line can allow", async () => {
  await using where = await places({
    user: '{"permissions": {"allow": ["Bash(ls)"], "deny": ["Bash(a)"]}}',
    project: '{"permissions": {"allow": ["Bash"], "deny": ["Bash(b)"]}, "sandbox": {"mode": "required"}}',
    local: '{"permissions": {"ask": ["Bash(c)"]}}',
  });
  const policy = await policyAt({ ...where, flags: { allow: ["Edit"], deny: ["Bash(d)"], mode: "plan" } });
  assert.deepEqual(textsOf(policy.allow), ["Bash(ls)", "Edit"]);
  assert.deepEqual(textsOf(policy.ask), ["Bash(c)"]);
  assert.deepEqual(textsOf(policy.deny), ["Bash(a)", "Bash(b)", "Bash(d)"]);
  assert.equal(policy.mode, "plan");
  assert.equal(policy.sandbox, "required");
  assert.equal(policy.notices.length, 1);
});

test("the terminal's settings come only from the user's file; a project's are skipped by name", async () => {
  const defaults = { theme: "auto", keys: "default", notify: "off", mouse: false, screenReader: false };
  await using bare = await places({});
  const without = await loadSettings(bare);
  assert.deepEqual(without.kind === "policy" && without.terminal, defaults);
  await using where = await places({
    user: '{"terminal": {"theme": "light", "editor": ["code", "--wait"], "statusCommand": "git branch --show-current"}}',
    project: '{"terminal": {"theme": "dark", "statusCommand": ["/bin/evil"]}}',
    local: '{"terminal": {"editor": ["evil"], "mouse": true}}',
  });
  const loaded = await loadSettings(where);
  assert.ok(loaded.kind === "policy");
  assert.deepEqual(loaded.terminal, {
    ...defaults,
    theme: "light",
    editor: ["code", "--wait"],
    statusCommand: "git branch --show-current",
  });
  const ignored = (file: string, field: string): string =>
    `${join(where.project, ".prefork", file)}: terminal.${field}: skipped, because only your own settings and the command line may set it`;
  assert.deepEqual(loaded.policy.notices, [
    ignored("settings.json", "theme"),
    ignored("settings.json", "statusCommand"),
    ignored("settings.local.json", "mouse"),
    ignored("settings.local.json", "editor"),
  ]);
});

test("nothing is read from an untrusted folder", async () => {
  await using where = await places({ project: "{ broken", local: "{ broken" });
  assert.deepEqual(textsOf((await policyAt({ ...where, trusted: false })).deny), []);
  assert.equal((await loadSettings(where)).kind, "broken", "trusted, the same files are read");
});

test("restrictions that a folder set while it was trusted replace its files, and allow nothing", async () => {
  await using where = await places({ project: '{"permissions": {"deny": ["Bash(new)"]}}' });
  const kept = [
    {
      file: ".prefork/settings.json",
      text: '{"permissions": {"deny": ["Bash(old)"], "allow": ["Bash"]}, "sandbox": {"mode": "required"}, "forks": {"atOnce": 2}}',
    },
    { file: ".claude/settings.json", text: '{"permissions": {"ask": ["Read(/x)"]}}' },
    { file: ".prefork/settings.local.json", text: '{"permissions": {"deny": ["Nope("]}}' },
    { file: "elsewhere.json", text: '{"permissions": {"deny": ["Edit"]}}' },
  ];
  const { allow, ask, deny, sandbox, forks, notices } = await policyAt({ ...where, trusted: false, kept });
  assert.deepEqual([textsOf(allow), textsOf(ask), textsOf(deny)], [[], ["Read(/x)"], ["Bash(old)"]]);
  assert.equal(deny[0]?.origin, `${join(where.project, ".prefork/settings.json")} as you trusted it`);
  assert.deepEqual({ sandbox, forks, notices }, { sandbox: "required", forks: { atOnce: 2 }, notices: [] });
  assert.deepEqual(textsOf((await policyAt({ ...where, kept })).deny), ["Bash(new)"], "trusted, the files count");
});

test("a project's settings that anybody may write apply as they were trusted, and not after they change", async () => {
  const text = '{"permissions": {"deny": ["Bash(a)"]}}';
  await using where = await places({ project: text });
  const file = join(where.project, ".prefork/settings.json");
  await chmod(file, 0o666);
  await chmod(join(where.project, ".prefork"), 0o777);
  const configuration = await configurationOf(where.project);
  assert.ok(configuration.ok);
  const { entries } = configuration.configuration;
  assert.deepEqual(textsOf((await policyAt({ ...where, entries })).deny), ["Bash(a)"]);

  const message =
    "cannot be read: it was changed while prefork started; look at it, then trust the folder again (prefork trust)";
  const refused = { kind: "broken", problems: [{ name: file, line: 1, column: 1, path: "", message }] };
  await writeFile(file, '{"permissions": {"deny": ["Bash(b)"]}}');
  assert.deepEqual(await loadSettings({ ...where, entries }), refused);
  await rm(file);
  assert.deepEqual(await loadSettings({ ...where, entries }), refused);
  await writeFile(file, text);
  await writeFile(join(where.project, ".prefork/settings.local.json"), "{}");
  assert.equal((await loadSettings({ ...where, entries })).kind, "broken", "a file that nobody agreed to");
});

test("broken files, unreadable files and broken flags are all reported, and give no policy", async () => {
  await using where = await places({ user: "{", project: '{"permissions": {"deny": ["Bsh"]}}' });
  const loaded = await loadSettings({ ...where, flags: { allow: ["Nope("] } });
  assert.ok(loaded.kind === "broken");
  assert.deepEqual(
    loaded.problems.map(({ name, path }) => [name, path]),
    [
      [join(where.home, ".prefork/settings.json"), ""],
      [join(where.project, ".prefork/settings.json"), "permissions.deny[0]"],
      ["the command line", ""],
    ],
  );
  const user = join(where.home, ".prefork/settings.json");
  await rm(user);
  await mkdir(user);
  const unreadable = await loadSettings(where);
  assert.equal(unreadable.kind === "broken" && unreadable.problems[0]?.message, "cannot be read: EISDIR");
});

test("a project's settings are not read through a link; the user's own may be one", async () => {
  await using where = await places({});
  const target = join(where.home, "elsewhere.json");
  await writeFile(target, '{"permissions": {"deny": ["Bash(a)"]}}');
  await symlink(target, join(where.home, ".prefork/settings.json"));
  assert.deepEqual(textsOf((await policyAt(where)).deny), ["Bash(a)"]);
  const linked = join(where.project, ".prefork/settings.json");
  await symlink(target, linked);
  assert.deepEqual(await loadSettings(where), {
    kind: "broken",
    problems: [
      {
        ...{ name: linked, line: 1, column: 1, path: "" },
        message: "cannot be read: this is a link, and links are not followed",
      },
    ],
  });
});

type Change = (where: { readonly home: string; readonly project: string }) => Promise<unknown>;

const isRoot = process.getuid?.() === 0;

/** Files that somebody else could have written, each with its message. */
const TAMPERED: Readonly<Record<string, readonly [Change, string]>> = {
  "a file that all may write": [
    ({ home }) => chmod(join(home, ".prefork/settings.json"), 0o666),
    "HOME/.prefork/settings.json can be changed by others (mode 0666)",
  ],
  "a folder that all may write": [
    ({ home }) => chmod(join(home, ".prefork"), 0o777),
    "HOME/.prefork can be changed by others (mode 0777)",
  ],
  "a home that all may write": [({ home }) => chmod(home, 0o757), "HOME can be changed by others (mode 0757)"],
  "a link to a file that all may write": [
    async ({ home, project }) => {
      await rename(join(home, ".prefork/settings.json"), join(project, "mine.json"));
      await chmod(join(project, "mine.json"), 0o646);
      await symlink("../../project/mine.json", join(home, ".prefork/settings.json"));
    },
    "PROJECT/mine.json can be changed by others (mode 0646)",
  ],
  "a link through a folder that all may write": [
    async ({ home, project }) => {
      await mkdir(join(project, "open/inner"), { recursive: true });
      await chmod(join(project, "open"), 0o777);
      await rename(join(home, ".prefork/settings.json"), join(project, "open/inner/settings.json"));
      await rm(join(home, ".prefork"), { recursive: true });
      await symlink(join(project, "open/inner"), join(home, ".prefork"));
    },
    "PROJECT/open can be changed by others (mode 0777)",
  ],
  ...(isRoot
    ? {
        "a file of the superuser's group": [
          ({ home }) => chmod(join(home, ".prefork/settings.json"), 0o664),
          "HOME/.prefork/settings.json can be changed by others (mode 0664)",
        ],
        "a file of somebody else": [
          ({ home }) => chown(join(home, ".prefork/settings.json"), 12_345, 0),
          "HOME/.prefork/settings.json belongs to another user (12345)",
        ],
        "a link of somebody else in an open folder": [
          async ({ home, project }) => {
            await mkdir(join(project, "shared"));
            await chmod(join(project, "shared"), 0o1777);
            await symlink(join(home, ".prefork/real.json"), join(project, "shared/link.json"));
            await rename(join(home, ".prefork/settings.json"), join(home, ".prefork/real.json"));
            await lchown(join(project, "shared/link.json"), 12_345, 0);
            await symlink(join(project, "shared/link.json"), join(home, ".prefork/settings.json"));
          },
          "PROJECT/shared/link.json belongs to another user (12345)",
        ],
      }
    : {}),
};

test("a folder that others can write to is no problem without settings", async () => {
  await using where = await places({});
  await chmod(join(where.home, ".prefork"), 0o777);
  assert.equal((await policyAt(where)).mode, "default");
});

test("settings that somebody else could have written are refused by name, and apply once they are yours", async () => {
  for (const [what, [tamper, risk]] of Object.entries(TAMPERED)) {
    await using where = await places({ user: '{"permissions": {"mode": "plan"}}' });
    assert.equal((await policyAt({ ...where, trusted: false })).mode, "plan");
    await tamper(where);
    const loaded = await loadSettings({ ...where, trusted: false });
    const said = risk
      .replace("HOME/.prefork/settings.json", "it")
      .replace("HOME", where.home)
      .replace("PROJECT", where.project);
    const message = `is not used: ${said}; make it yours alone (chown, chmod go-w), or move it away`;
    assert.deepEqual(
      [what, loaded],
      [
        what,
        {
          kind: "broken",
          problems: [{ name: join(where.home, ".prefork/settings.json"), line: 1, column: 1, path: "", message }],
        },
      ],
    );
  }
});
