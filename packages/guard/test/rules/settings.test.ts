import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { HOME, place, ROOT } from "@prefork/testing/policies";
import { targetOf } from "../../src/rules/arguments.ts";
import { parseClaudeSettings } from "../../src/rules/claude-settings.ts";
import { type Layer, type LayerSettings, mergeLayers } from "../../src/rules/policy.ts";
import { matches, prepareCall } from "../../src/rules/rules.ts";
import { describeProblem, parseSettings, settingsOfFlags } from "../../src/rules/settings.ts";
import { settingsJsonSchema } from "../../src/rules/settings-file.ts";

const read = (text: string, layer: Layer = "user") => parseSettings(text, { ...place, name: "s.json", layer });
const errorsOf = (text: string, layer: Layer = "user"): readonly string[] => {
  const parsed = read(text, layer);
  return parsed.kind === "broken" ? parsed.problems.map(describeProblem) : [];
};

test("the published JSON Schema is the one the shape gives", () => {
  const published = readFileSync(new URL("../../schema/settings.schema.json", import.meta.url), "utf8");
  assert.equal(
    published,
    settingsJsonSchema(),
    "write it anew: node --conditions=prefork-source packages/runtime/test/guard/write-schema.ts",
  );
});

test("a broken file names file, line, column and field", () => {
  const rows: readonly (readonly [text: string, error: string])[] = [
    ["", "s.json:1:1: not JSON: value expected"],
    ['{\n  "permissions": {\n    "deny": ["Bash"\n', "s.json:4:1: not JSON: close bracket expected"],
    ['{\n  "permissions": oops\n}', "s.json:2:18: not JSON: invalid symbol"],
    ["[]", "s.json:1:1: expected object, received array"],
    ['{\n  "permission": {}\n}', "s.json:2:3: permission: unknown field; did you mean permissions?"],
    ['{"permissions": {"allow": "Bash"}}', "s.json:1:18: permissions.allow: expected array, received string"],
    [
      '{"permissions": {"allow": [7]}}',
      "s.json:1:28: permissions.allow[0]: must be a rule's text, or {rule, match, notMatch}",
    ],
    ['{"permissions": {"deny": [{}]}}', "s.json:1:27: permissions.deny[0].rule: missing"],
    [
      '{"permissions": {"deny": [{"rule": "Bash", "notmatch": []}]}}',
      "s.json:1:44: permissions.deny[0].notmatch: unknown field; did you mean notMatch?",
    ],
    [
      '{"permissions": {\n"deny": ["Bash(a", "Read(b)"]}}',
      's.json:2:10: permissions.deny[0]: "Bash(a" is not a rule; write Tool or Tool(pattern)',
    ],
    ['{"permissions": {"deny": ["Bash"], "deny": []}}', "s.json:1:36: permissions.deny: occurs here twice"],
    ['{"__proto__": {"permissions": {}}}', "s.json:1:2: __proto__: unknown field"],
    ['{"sandbox": {"mode": "on"}}', 's.json:1:14: sandbox.mode: must be one of "off", "auto", "required"'],
    [
      '{"terminal": {"theme": "blue"}}',
      's.json:1:15: terminal.theme: must be one of "auto", "dark", "light", "system", "colour-blind", "none"',
    ],
    [
      '{"terminal": {"statusCommand": 7}}',
      's.json:1:15: terminal.statusCommand: must be a text, or a list of a program and its arguments: ["my-status", "--short"]',
    ],
    [
      '{"terminal": {"editor": "vim"}}',
      's.json:1:15: terminal.editor: must be a list of a program and its arguments: ["code", "--wait"]',
    ],
    ['{"terminal": {"editor": ["vi\\u0000"]}}', "s.json:1:26: terminal.editor[0]: must not contain a NUL character"],
    [
      '{"permissions": {"mode": "bubble"}}',
      's.json:1:18: permissions.mode: must be one of "default", "accept-edits", "plan"',
    ],
    [
      '{"permissions": {"additionalDirectories": ["/"]}}',
      "s.json:1:44: permissions.additionalDirectories[0]: is the whole file system; name a folder",
    ],
    [
      '{"permissions": {"readOnlyPrograms": [{"name": "./x"}]}}',
      "s.json:1:40: permissions.readOnlyPrograms[0].name: must be a program's plain name",
    ],
    [
      '{"permissions": {"readOnlyPrograms": [{"name": "bash"}]}}',
      "s.json:1:39: permissions.readOnlyPrograms[0]: bash runs or changes other things, so it is never read-only",
    ],
  ];
  for (const [text, error] of rows) assert.deepEqual(errorsOf(text), [error], text);
  assert.equal(errorsOf('{"permissions": {"allow": ["x", "y"]}}').length, 2);
  assert.equal(errorsOf("[".repeat(100_000)).length, 1);
});

test("comments, trailing commas and a byte order mark are allowed", () => {
  const parsed = read('\uFEFF// mine\n{ "$schema": "x", "permissions": { "deny": ["Bash(rm:*)",], /* all */ }, }');
  assert.ok(parsed.kind === "settings");
  assert.deepEqual(
    parsed.settings.rules.map(({ text, list, origin }) => ({ text, list, origin })),
    [{ text: "Bash(rm:*)", list: "deny", origin: "s.json" }],
  );
});

test("a project's file is checked whole, though only what tightens counts", () => {
  assert.deepEqual(errorsOf('{"permissions": {"allow": ["Bsh"]}}', "project"), [
    's.json:1:28: permissions.allow[0]: "Bsh" names no known tool; did you mean Bash?',
  ]);
  const parsed = read('{"permissions": {"allow": ["Bash"], "mode": "plan", "ask": ["Edit"]}}', "local");
  assert.ok(parsed.kind === "settings");
  assert.deepEqual(
    parsed.settings.rules.map(({ text }) => text),
    ["Edit"],
  );
  assert.deepEqual(parsed.settings.notices, [
    "s.json: permissions.allow: not accepted when this folder was trusted, so not applied: Bash",
    "s.json: permissions.mode: skipped, because only your own settings and the command line may set it",
  ]);
});

test("the command line overrides the user's file, and only it can set bypass", () => {
  const user = read(
    '{"permissions": {"mode": "plan", "additionalDirectories": ["~/n", "sub"]}, "sandbox": {"mode": "off"}}',
  );
  const line = settingsOfFlags({ mode: "bypass", allow: ["Bash(ls)"], directories: ["/opt/x"] }, place);
  assert.ok(user.kind === "settings" && typeof line !== "string");
  for (const layers of [
    [user.settings, line],
    [line, user.settings],
  ]) {
    const policy = mergeLayers(layers);
    assert.equal(policy.mode, "bypass");
    assert.deepEqual(policy.directories.toSorted(), [`${HOME}/n`, "/opt/x", `${ROOT}/sub`].toSorted());
    assert.equal(policy.sandbox, "off");
  }
  assert.match(settingsOfFlags({ deny: ["Bsh"] }, place) as string, /did you mean Bash/);
  assert.match(settingsOfFlags({ directories: ["/a\0b"] }, place) as string, /contains a NUL character/);
});

test("a project can make forks rarer and cheaper, and nothing else of them", () => {
  const says = (layer: Layer, forks: object): LayerSettings => {
    const reading = read(JSON.stringify({ forks }), layer);
    assert.ok(reading.kind === "settings", JSON.stringify(reading));
    return reading.settings;
  };
  const user = says("user", { atOnce: 8, maxBudgetUsd: 2, inFlight: "trim", explicit: false });
  const project = says("project", { atOnce: 20, maxBudgetUsd: 1, explicit: true, enabled: true, placeholders: "all" });
  const { forks, notices } = mergeLayers([project, user]);
  assert.deepEqual(forks, { atOnce: 8, maxBudgetUsd: 1, inFlight: "trim", explicit: true });
  assert.deepEqual(
    notices.map((notice) => notice.split(": ")[1]),
    ["forks.enabled", "forks.placeholders"],
  );
  assert.deepEqual(mergeLayers([user, says("local", { enabled: false })]).forks.enabled, false);
});

test("paths in Claude's files start at the project after one slash, and at the root after two", () => {
  const deny = ["Read(/keys/**)", "Read(//etc/hosts)", "Read(~/.netrc)", "Read(notes)", "Grep(/found)", "Bash(curl*)"];
  const parsed = parseClaudeSettings(JSON.stringify({ permissions: { deny } }), {
    ...place,
    name: ".claude/settings.json",
    layer: "project",
  });
  assert.ok(parsed.kind === "settings");
  const { rules, notices } = parsed.settings;
  const denied = (tool: string, target: string): boolean => {
    const args = tool === "Bash" ? { command: target } : { file_path: target };
    const prepared = prepareCall(tool, targetOf({ tool, args }, ROOT));
    return rules.some((rule) => matches(rule, prepared));
  };
  const paths = [`${ROOT}/keys/a`, "/keys/a", "/etc/hosts", `${ROOT}/etc/hosts`, `${HOME}/.netrc`, `${ROOT}/a/notes`];
  assert.deepEqual(
    [...paths, `${ROOT}/found`].map((path) => [path, denied("Read", path)]),
    [
      [`${ROOT}/keys/a`, true],
      ["/keys/a", false],
      ["/etc/hosts", true],
      [`${ROOT}/etc/hosts`, false],
      [`${HOME}/.netrc`, true],
      [`${ROOT}/a/notes`, true],
      [`${ROOT}/found`, true],
    ],
  );
  assert.deepEqual([denied("Bash", "curl -s x"), denied("Bash", "ls")], [true, false]);
  assert.deepEqual(notices, []);
});
