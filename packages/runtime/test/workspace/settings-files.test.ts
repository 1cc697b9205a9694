import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loadSettings, type SettingsPlaces } from "../../src/workspace/settings-files.ts";

type Texts = { readonly user?: string; readonly project?: string; readonly local?: string };

/** A home and a project on the disk with these settings. */
const places = async (texts: Texts): Promise<SettingsPlaces & AsyncDisposable> => {
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

const policyAt = async (where: SettingsPlaces) => {
  const loaded = await loadSettings(where);
  assert.ok(loaded.kind === "policy", JSON.stringify(loaded));
  return loaded.policy;
};

const textsOf = (rules: readonly { readonly text: string }[]): readonly string[] => rules.map(({ text }) => text);

test("without any file there are no rules and the default mode", async () => {
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

test("all layers tighten, the user's file and the command line alone allow", async () => {
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

test("of a folder that is not trusted nothing is read", async () => {
  await using where = await places({ project: "{ broken", local: "{ broken" });
  assert.deepEqual(textsOf((await policyAt({ ...where, trusted: false })).deny), []);
  assert.equal((await loadSettings(where)).kind, "broken", "trusted, the same files are read");
});

test("broken files, files that cannot be read and broken flags are all told, and give no policy", async () => {
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
