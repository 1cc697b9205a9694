/** Slash commands and completion, on the reducer and a real session of the rehearsal engine. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { TreeNode } from "@prefork/runtime";
import { parseForkRequest } from "../../src/tui/commands/forks.ts";
import { slashCommands } from "../../src/tui/commands/index.ts";
import { treeItems } from "../../src/tui/commands/rewind.ts";
import { Completions } from "../../src/tui/completion.ts";
import { readEarlier } from "../../src/tui/earlier-blocks.ts";
import { ProjectFiles } from "../../src/tui/project-files.ts";
import { type Child, emptyConversation, type State, stripRows } from "../../src/tui/state/index.ts";
import { CommandGround } from "./command-ground.ts";

const FILES = { "src/a.ts": "export const a = 1;\n// TODO one\n", "README.md": "# Sample\n" };

/** The agent has read and answered the fork's report. */
const isTold = ({ main }: State): boolean =>
  main.done.some((block) => block.kind === "answer" && block.text.includes("News of tasks"));

test("what /fork means: one task, a number of the same, or one per line", () => {
  assert.deepEqual(parseForkRequest("look at a.ts"), { directives: ["look at a.ts"], isIsolated: false });
  assert.deepEqual(parseForkRequest("2 look for bugs"), {
    directives: ["look for bugs", "look for bugs"],
    isIsolated: false,
  });
  assert.deepEqual(parseForkRequest("--worktree\n- fix a.ts\n2. fix b.ts\n\n"), {
    directives: ["fix a.ts", "fix b.ts"],
    isIsolated: true,
  });
  assert.deepEqual(parseForkRequest("--worktree 2\none\ntwo"), { directives: ["one", "two"], isIsolated: true });
  assert.throws(() => parseForkRequest("3\none\ntwo"), /3 forks and 2 tasks: leave the number out/);
  assert.throws(() => parseForkRequest("--worktree"), /Say what the fork should do/);
  assert.throws(() => parseForkRequest("99 look"), /Between 1 and 50 forks/);
});

test("forks: started, listed, merged after a preview, undone, and billed", async () => {
  await using ground = await CommandGround.open(FILES);
  await ground.type("/fork find TODO in src");
  assert.match(ground.notices.at(-1) ?? "", /Send a prompt first/);
  await ground.type("find TODO in src");
  await ground.type("/fork --worktree append `two` to README.md");
  await ground.until((state) => isTold(state) && state.runningSince === undefined);
  const [child] = [...ground.state.children.values()];

  await ground.type("/tasks");
  assert.deepEqual(ground.labels, ["append `two` to README.md"]);
  assert.match(ground.items[0]?.detail ?? "", /^reported · \$/);
  await ground.press("enter");
  assert.deepEqual(ground.state.page, { kind: "conversation", agent: child?.id, scroll: 0, isExpanded: false });
  await ground.press("escape");
  assert.equal(ground.list.title, "Tasks");
  await ground.press("escape");
  assert.equal(ground.state.page, undefined);

  await ground.type("/worktrees");
  assert.deepEqual(
    ground.items.map(({ label, detail }) => [label, detail]),
    [["append `two` to README.md", "1 file to merge"]],
  );
  await ground.press("enter");
  assert.deepEqual(ground.labels, ["Merge into this checkout", "Show the whole diff", "Do nothing"]);
  assert.equal(ground.items[0]?.preview, "✓ append `two` to README.md: 1 file, +1 −0\n  M README.md +1 −0");
  await ground.choose("diff");
  assert.match(ground.text, /^\+two$/m);
  assert.equal(ground.read("README.md"), "# Sample\n");
  // Closing the diff leads back to the merge, and closing that to the worktrees; a merge closes all of them.
  await ground.press("escape");
  assert.equal(ground.list.title, "Merge append `two` to README.md");
  await ground.press("escape");
  assert.equal(ground.list.title, "Worktrees");
  await ground.press("enter");
  await ground.choose("Merge into");
  assert.equal(ground.state.page, undefined);
  assert.equal(ground.read("README.md"), "# Sample\ntwo\n");
  assert.equal(ground.state.children.get(child?.id ?? "")?.worktree?.state, "merged");
  assert.equal(ground.notices.at(-1), "Merged append `two` to README.md: 1 file (/undo takes it back).");
  await ground.type("/merge");
  assert.equal(ground.notices.at(-1), "There is nothing to merge. /worktrees lists all worktrees.");

  await ground.type("/undo");
  await ground.choose("Undo the last merge");
  assert.equal(ground.read("README.md"), "# Sample\n");
  assert.equal(ground.state.children.get(child?.id ?? "")?.worktree?.state, "ready");

  // A resumed conversation still tells what its forks did, and what waits to be merged.
  const { session } = ground.state;
  await ground.type("/clear");
  assert.deepEqual(stripRows(ground.state), []);
  await ground.type(`/resume ${session}`);
  assert.deepEqual(
    stripRows(ground.state).map((row) => [row.id, row.kind === "child" && row.child.worktree?.files]),
    [[child?.id, 1]],
  );
  const families = ground.state.main.done.flatMap((block) => (block.kind === "family" ? [block.ends] : []));
  assert.deepEqual(families, [{ reported: 1 }]);
  await ground.press("down");
  await ground.press("m");
  assert.equal(ground.list.title, "Merge append `two` to README.md");
  await ground.press("escape");
  await ground.press("escape");
  await ground.type("find TODO in src");

  // A conflict is named before anything changes, with what can be done about it.
  ground.put("README.md", "# Sample\nmine\n");
  await ground.type(`/merge ${child?.id.slice(0, 8)}`);
  assert.deepEqual(ground.labels, [
    "Let the fork resolve the conflicts, then merge",
    "Merge, with conflict markers in the files",
    "Show the whole diff",
    "Do nothing",
  ]);
  assert.match(ground.items[0]?.preview ?? "", /! README\.md: conflict/);
  await ground.choose("markers");
  assert.match(ground.read("README.md"), /<<<<<<<[\s\S]*mine[\s\S]*two[\s\S]*>>>>>>>/);
  assert.match(ground.notices.at(-1) ?? "", /Conflicts are left in README\.md/);
  await ground.type("/merge nothing-like-this");
  assert.equal(ground.notices.at(-1), "There is no worktree of nothing-like-this. /worktrees lists them.");

  await ground.type("/cost");
  assert.match(ground.text, /\*\*\$[\d.]+\*\* for \d+ requests/);
  assert.match(ground.text, /- main agent: \*\*\$[\d.]+\*\*, \d+ requests\n- append `two` to README\.md: \*\*\$/);
  assert.match(ground.text, /- fresh sub-agents with the same context: \$[\d.]+ \(\$[\d.]+ more\)/);
  await ground.press("escape");
  await ground.type("/cache");
  assert.match(ground.text, /main agent\*\*: [\d.]+ % of [\d,]+ tokens read from the cache, warm for \d+ min/);
  assert.match(ground.text, /Next request: about \$[\d.]+ warm, \$[\d.]+ cold/);
  await ground.press("escape");
  await ground.type(`/explain ${child?.id}`);
  assert.match(ground.text, /task-\w+ on claude-sonnet-5/);
});

test("conversations: another model after its price, a new one, an earlier one, and back in time", async () => {
  await using ground = await CommandGround.open(FILES);
  await ground.type("find TODO in src");
  const { session: first } = ground.state;

  await ground.type("/model");
  assert.equal(ground.items[0]?.detail, "in use");
  await ground.choose("claude-sonnet-4-6");
  assert.deepEqual(ground.labels, ["Switch to claude-sonnet-4-6", "Stay with claude-sonnet-5"]);
  assert.match(
    ground.items[0]?.preview ?? "",
    /^The [\d,]+ tokens of this conversation are written to the cache again: about \$[\d.]+ for the input of the next request, instead of \$[\d.]+ if you stay with claude-sonnet-5\. After that, about \$[\d.]+ per request\.$/,
  );
  await ground.choose("Switch to");
  assert.deepEqual([ground.state.session, ground.state.model], [first, "claude-sonnet-4-6"]);
  assert.equal(ground.state.cache?.warmUntil, undefined); // the other model's entries cannot be read
  await ground.type("read README.md");
  assert.deepEqual(ground.prompts, ["find TODO in src", "read README.md"]);

  await ground.type("/clear");
  assert.notEqual(ground.state.session, first);
  assert.deepEqual([ground.prompts, ground.state.usd], [[], 0]);
  assert.equal(ground.state.model, "claude-sonnet-4-6");
  await ground.type("/resume");
  assert.deepEqual(ground.labels, ["find TODO in src"]);
  assert.match(ground.items[0]?.preview ?? "", /^3 turns|^4 turns/);
  await ground.press("enter");
  assert.deepEqual([ground.state.session, ground.prompts], [first, ["find TODO in src", "read README.md"]]);

  await ground.type("count lines in src/a.ts");
  await ground.type("/rewind");
  assert.deepEqual(ground.labels, ["count lines in src/a.ts", "read README.md", "find TODO in src"]);
  await ground.press("enter");
  await ground.choose("Go back to before it");
  assert.equal(ground.typed, "count lines in src/a.ts");
  await ground.until(() => ground.prompts.length === 2);
  await ground.type("list *.ts files in src");
  await ground.type("/tree");
  assert.deepEqual(ground.labels, [
    "│ find TODO in src",
    "│ read README.md",
    "  ○ count lines in src/a.ts",
    "  ● list *.ts files in src",
  ]);
  assert.match(ground.items[2]?.detail ?? "", /^warm \d+ min \d+ s · \$/);
  await ground.choose("count lines");
  await ground.choose("Continue after it");
  await ground.until(() => ground.prompts.at(-1) === "count lines in src/a.ts");
  await ground.type("/rewind undo");
  await ground.until(() => ground.prompts.at(-1) === "list *.ts files in src");

  // Files too, after a look at which.
  await ground.type("append `two` to README.md");
  assert.equal(ground.read("README.md"), "# Sample\ntwo\n");
  await ground.type("/rewind");
  await ground.press("enter");
  assert.deepEqual(ground.labels, [
    "Go back to before it: the conversation",
    "Go back to before it: conversation and files",
    "Restore the files only",
    "Do nothing",
  ]);
  assert.equal(ground.items[2]?.preview, "1 file would be restored, 0 files removed:\n  M README.md +0 −1");
  await ground.choose("conversation and files");
  assert.equal(ground.read("README.md"), "# Sample\n");
  assert.equal(ground.state.hint, "Done; /rewind undo takes it back. 1 file restored.");
  await ground.until(() => ground.prompts.at(-1) === "list *.ts files in src");
  await ground.type("/rewind undo");
  assert.equal(ground.read("README.md"), "# Sample\ntwo\n");
});

test("a tree of a long conversation is listed without exhausting the stack", () => {
  const nodes = Array.from({ length: 20_000 }, (_, index): TreeNode => {
    const parent = index === 0 ? {} : { parent: `n${index - 1}` };
    const kind = "prompt" as const;
    return {
      ...{ id: `n${index}`, ...parent, at: 0, kind, title: `prompt ${index}`, entry: index },
      ...{ forks: [], current: index === 19_999, onLine: true, files: false },
    };
  });
  const items = treeItems(nodes, 0);
  assert.equal(items.length, 20_000);
  assert.deepEqual([items[1]?.label, items.at(-1)?.label], ["│ prompt 1", "● prompt 19999"]);
});

test("setting up: rules, settings, theme, conventions; the file and the clipboard", async () => {
  await using ground = await CommandGround.open({ ...FILES, "AGENTS.md": "Use tabs.\n" });
  await ground.type("/permissions allow Bash(npm test");
  assert.equal(ground.notices.at(-1), '"Bash(npm test" is not a rule; write Tool or Tool(pattern)');
  await ground.type("/permissions allow Bash(npm test)");
  await ground.type("/permissions always deny Read(secret/**)");
  assert.match(ground.notices.at(-1) ?? "", /write the path from ~\/ or from \//);
  await ground.type("/permissions always deny Read(~/secret/**)");
  const settings = join(ground.home, ".prefork/settings.json");
  assert.equal(ground.notices.at(-1), `Set permissions.deny = ["Read(~/secret/**)"] in ${settings}.`);
  await ground.type("/permissions");
  assert.deepEqual(
    ground.items.slice(0, 3).map(({ label, detail }) => [label.replace(/\/\/.*/, "…"), detail]),
    [
      ["deny  Read(~/secret/**)", "this session"],
      ["allow Read(…", "the session's own outputs"],
      ["allow Bash(npm test)", "this session"],
    ],
  );
  await ground.choose("Bash(npm test)");
  await ground.choose("Remove it from this session");
  assert.equal(ground.notices.at(-1), "Removed from this session: allow Bash(npm test)");
  await ground.type("/permissions");
  await ground.choose("what is always asked about");
  assert.equal(ground.typed, "/permissions ask ");
  // In the next conversation the rule comes from the file, and can be removed from there.
  await ground.type("/clear");
  await ground.type("/permissions");
  assert.equal(ground.items[0]?.detail, "your settings");
  await ground.press("enter");
  await ground.choose("Remove it from your settings");
  assert.ok(ground.notices.includes(`Removed permissions.deny from ${settings}.`));

  await ground.type("/config forks.atOnce 8");
  assert.ok(ground.notices.includes(`Set forks.atOnce = 8 in ${settings}.`));
  await ground.type("/config forks.atOnce none");
  assert.match(ground.notices.at(-1) ?? "", /^not changed: .*forks\.atOnce/);
  await ground.type("/config atOnce");
  assert.deepEqual(
    [ground.list.filter, ground.items.find(({ id }) => id === "forks.atOnce")?.detail],
    ["atOnce", "user"],
  );
  await ground.press("escape");
  await ground.press("escape");
  await ground.type("/theme light");
  assert.deepEqual(ground.themes, ["light"]);
  assert.equal(ground.notices.at(-1), `Set terminal.theme = "light" in ${settings}.`);
  await ground.type("/theme pink");
  assert.match(ground.notices.at(-1) ?? "", /There is no theme pink\. Themes: auto, dark, light/);
  await ground.type("/memory");
  assert.deepEqual(
    ground.items.map(({ label, preview }) => [label, preview]),
    [["AGENTS.md", "Use tabs.\n"]],
  );
  await ground.press("enter"); // the editor is `true`
  assert.match(ground.state.hint ?? "", /with your next prompt/);
  await ground.type("/mcp");
  assert.match(ground.notices.at(-1) ?? "", /No tool server is configured here/);

  await ground.type("!echo hello; exit 3");
  const shown = ground.state.main.done.at(-1);
  assert.deepEqual(shown, { kind: "output", title: "! echo hello; exit 3 (ended with 3)", text: "hello\n" });

  await ground.type("/copy");
  assert.equal(ground.notices.at(-1), "There is no answer to copy yet.");
  await ground.type("find TODO in src");
  await ground.type("/copy");
  const [start, end] = ["\u001b]52;c;", "\u0007"];
  assert.ok(ground.written.startsWith(start) && ground.written.endsWith(end));
  const encoded = ground.written.slice(start.length, -end.length);
  assert.match(Buffer.from(encoded, "base64").toString(), /^\[rehearsal engine[\s\S]*2:\/\/ TODO one$/);
  await ground.type("/export talk.md");
  assert.match(ground.read("talk.md"), /## User[\s\S]*> find TODO in src[\s\S]*Call of Grep/);
  await ground.type("/export talk.md");
  assert.match(ground.notices.at(-1) ?? "", /talk\.md exists already and was not changed\. Name another file/);
  // Without a name it is written outside the checkout, as often as it is asked for.
  const exported = join(ground.home, ".local/state/prefork/exports", `prefork-${ground.state.session}`);
  for (const path of [`${exported}.md`, `${exported}-2.md`]) {
    await ground.type("/export");
    assert.ok(ground.notices.at(-1)?.endsWith(` is in ${path}`), ground.notices.at(-1));
  }
});

test("what a command cannot do is one clear sentence", async () => {
  await using ground = await CommandGround.open(FILES);
  await ground.type("/modle");
  assert.equal(ground.notices.at(-1), "There is no command /modle. Did you mean /model? /help lists all of them.");
  await ground.type("/help");
  for (const { name } of slashCommands) assert.ok(ground.text.includes(`**/${name}**`), name);
  await ground.press("escape");
  ground.context.dispatch({
    type: "event",
    event: { type: "prompt_entered", level: "info", session: "", seq: 0, agent: "main", at: Date.now(), text: "go" },
  });
  for (const name of ["clear", "compact"]) {
    await ground.type(`/${name}`);
    assert.equal(ground.notices.at(-1), "The agent is working. Wait for it, or stop it with Esc first.");
  }
  // Leaving while a fork runs asks first.
  const fork: Child = {
    ...{ id: "task-1", label: "look", family: "f", parent: "main", state: "running", activity: "thinking" },
    ...{ turns: 1, tokens: 1, usd: 0, startedAt: 0, isForeground: false, isDetached: true },
    conversation: emptyConversation,
  };
  ground.context.dispatch({ type: "restored", blocks: [], usd: 0, children: [fork] });
  await ground.type("/quit");
  assert.deepEqual(ground.labels, ["Quit, and stop 1 fork", "Stay"]);
  await ground.press("escape");
  ground.attach();
  for (const line of ["/fork look", "/permissions", "/memory", "/clear", "/resume", "/model"]) {
    await ground.type(line);
    assert.match(ground.notices.at(-1) ?? "", /attached to a session of another process/);
    assert.equal(ground.state.page, undefined);
  }
});

test("completion: commands with their arguments, and files that git knows", async () => {
  await using ground = await CommandGround.open({
    ...FILES,
    ".gitignore": "ignored/\n",
    "ignored/no.ts": "",
    "src/two words.ts": "",
    "docs/deep/Note.md": "",
  });
  writeFileSync(join(ground.work, "bell\u0007.ts"), "");
  ground.put("new.ts", "");
  const completions = new Completions(ground.context);
  const suggest = async (line: string): Promise<readonly string[]> => {
    const { signal } = new AbortController();
    const found = await completions.getSuggestions([line], 0, line.length, { signal });
    return (found?.items ?? []).map(({ value }) => value);
  };
  const complete = async (line: string): Promise<string> => {
    const { signal } = new AbortController();
    const found = await completions.getSuggestions([line], 0, line.length, { signal });
    const [item] = found?.items ?? [];
    if (!found || !item) return line;
    const { lines, cursorCol } = completions.applyCompletion([line], 0, line.length, item, found.prefix);
    return `${lines[0]?.slice(0, cursorCol)}|${lines[0]?.slice(cursorCol)}`;
  };
  assert.deepEqual((await suggest("/mo")).slice(0, 1), ["/model"]);
  assert.equal(await complete("/wor"), "/worktrees |");
  assert.equal(await complete("/theme col"), "/theme colour-blind |");
  assert.deepEqual(await suggest("/theme light"), []);
  assert.equal(await complete("/config terminal.theme li"), "/config terminal.theme light |");
  assert.equal(await complete("/model haiku-4"), "/model claude-haiku-4-5 |");
  assert.deepEqual(await suggest("not a /com"), []);
  assert.deepEqual(await suggest("name@example"), []);

  assert.equal(await complete("look at @a.t"), "look at @src/a.ts |");
  assert.equal(await complete("look at @two"), 'look at @"src/two words.ts" |');
  assert.equal(await complete('look at @"two w'), 'look at @"src/two words.ts" |');
  assert.equal(await complete("in @deep"), "in @docs/deep/|");
  assert.deepEqual((await suggest("@note")).slice(0, 1), ["@docs/deep/Note.md"]);
  const all = await suggest("@");
  assert.deepEqual(
    all.toSorted(),
    [
      "@.gitignore",
      "@README.md",
      '@"src/two words.ts"',
      "@docs/",
      "@docs/deep/",
      "@docs/deep/Note.md",
      "@new.ts",
      "@src/",
      "@src/a.ts",
    ].toSorted(),
  );
  const stopped = new AbortController();
  stopped.abort();
  assert.equal(await completions.getSuggestions(["@a"], 0, 2, { signal: stopped.signal }), null);
  assert.equal(existsSync(join(ground.work, "ignored/no.ts")), true);
});

test("names that only a forged index contains are not completed, and cost no time", async () => {
  const work = realpathSync(mkdtempSync(join(tmpdir(), "prefork-names-")));
  try {
    const git = (args: readonly string[], input = ""): void =>
      void execFileSync("git", args, { cwd: work, input, stdio: ["pipe", "ignore", "ignore"] });
    git(["init"]);
    const blob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
    const deep = (index: number): string => `${index}/${"a/".repeat(500)}x`;
    const names = [...Array.from({ length: 300 }, (_, index) => deep(index)), "src/a.ts", "b.ts"];
    git(["update-index", "--index-info"], names.map((name) => `100644 ${blob}\t${name}\n`).join(""));
    assert.deepEqual(await new ProjectFiles(() => work).paths(), ["src/", "b.ts", "src/a.ts"]);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
});

test("a call that was interrupted is not shown as done after its session was resumed", async () => {
  await using ground = await CommandGround.open(FILES);
  await ground.type("read README.md");
  const sessions = join(ground.home, ".local/state/prefork/sessions");
  const lines = readFileSync(join(sessions, ground.state.session ?? "", "journal.jsonl"), "utf8").split("\n");
  // As a machine leaves it that fails before the call has a result.
  const call = lines.findIndex((line) => line.includes(`"stop":"tool-use"`));
  mkdirSync(join(sessions, "cut"));
  writeFileSync(join(sessions, "cut", "journal.jsonl"), `${lines.slice(0, call + 1).join("\n")}\n`);
  const store = { state: join(ground.home, ".local/state/prefork"), now: Date.now, newId: () => "" };
  const faults = async (id: string): Promise<unknown> =>
    (await readEarlier(store, id)).blocks.flatMap((block) =>
      block.kind === "call" ? [[block.tool, block.fault]] : [],
    );
  assert.deepEqual(await faults("cut"), [["Read", "interrupted"]]);
  assert.deepEqual(await faults(ground.state.session ?? ""), [["Read", undefined]]);
});
