/** The first start in a folder: what it is asked to trust, what it suggests, and how the terminal is left behind. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { grant, stateFolder, trustOf } from "@prefork/guard";
import { readTasks } from "../../src/rehearsal/tasks.ts";
import { type FolderFacts, keysIn, localEngineLines, readFirstRun, suggestPrompts } from "../../src/tui/first-run.ts";
import { engineAddresses } from "../../src/tui/local-engines.ts";
import { trustOptions } from "../../src/tui/state/index.ts";
import { summarizeTrust } from "../../src/tui/trust-summary.ts";
import { type Ground, openGround } from "../print/ground.ts";
import { TerminalScreen } from "./pty.ts";

/** Keys that were pressed sooner count as typing. */
const GRACE_MS = 600;

const settings = (allow: readonly string[]): string =>
  JSON.stringify({
    permissions: { allow, deny: ["Bash(rm *)"], ask: ["Bash(git push *)"] },
    mcpServers: { db: { command: "node", args: ["./serve it.mjs"], env: { WHERE: `\${HOME}`, TOKEN: "a b" } } },
  });

const CRASHES = `export default () => ({
  name: "crashes",
  on: { promptEntered: () => { setTimeout(() => { throw new Error("boom \\u001b[2J"); }, 0); } },
});
`;

test("what a folder's files would do is shown before they are trusted, and shown again if they change; a crash is logged", async () => {
  await using ground = await openGround();
  const { work, home, env } = ground;
  ground.put(".prefork/settings.json", settings(["Bash(npm test)"]));
  ground.put(".prefork/extensions/crashes.ts", CRASHES);
  ground.put(
    ".claude/skills/review/SKILL.md",
    "---\nname: review\ndescription: Reviews \u001b[2J a change\n---\nText\n",
  );
  ground.put(".envrc", "export A=1\n");
  const state = stateFolder(env, home);
  await using screen = new TerminalScreen([], { cwd: work, env, rows: 40, columns: 100 });
  screen.type("tan"); // before anything is asked
  const shown = await screen.shows(/Not used[\s\S]*kept for the input/);
  assert.deepEqual(
    shown
      .split("\n")
      .slice(2)
      .filter((line) => line !== "" && !line.startsWith("─")),
    [
      "Files in this folder can change what prefork does. None of them is used until you trust them. This",
      "is what they would do:",
      "Extensions: code that runs inside prefork with all your rights",
      "  .prefork/extensions/crashes.ts  (144 bytes)",
      "Tool servers: started with every session here",
      "  db: runs WHERE=$HOME TOKEN='a b' node './serve it.mjs'",
      "Calls that run without asking, if you accept these rules",
      "  Bash(npm test)  (.prefork/settings.json)",
      "Skills: instructions that the agent can load",
      "  review: Reviews  [2J a change",
      "Calls that are denied",
      "  Bash(rm *)  (.prefork/settings.json)",
      "Calls that are asked about",
      "  Bash(git push *)  (.prefork/settings.json)",
      "Not used",
      "  .envrc",
      "t  trust it, but without its allow rule",
      "a  trust it, and accept its allow rule",
      "n  not now: work without these files",
      "q  leave",
      "text that you type is kept for the input",
    ],
  );
  const before = screen.output.length;
  screen.kill("SIGTSTP"); // no shell could continue it, so it only draws everything again
  await screen.shows(() => {
    const [, ...since] = screen.output.slice(before).split("\u001b[?2004l"); // pastes are not marked any more
    return since.join("").includes("\u001b[?2004h") && since.join("").includes("kept for the input");
  });
  ground.put(".prefork/settings.json", settings(["Bash(npm test)", "Bash(make *)"]));
  await delay(GRACE_MS);
  screen.press("t");
  await screen.shows(/changed while you were looking[\s\S]*Bash\(make \*\)/);
  assert.equal((await trustOf(state, work)).kind, "unknown");
  await delay(GRACE_MS);
  screen.press("a");
  await screen.shows(/ tan[\s\S]*claude-sonnet/);
  const trust = await trustOf(state, work);
  assert.deepEqual(trust.kind === "trusted" && trust.accepted, [
    { file: ".prefork/settings.json", rule: "Bash(npm test)" },
    { file: ".prefork/settings.json", rule: "Bash(make *)" },
  ]);

  screen.press("enter");
  assert.equal(await screen.ended, 1);
  const [, file = ""] = /it is described in\s+(\S+\s*\S*\.txt)/.exec(screen.all()) ?? [];
  const [log = ""] = readdirSync(join(state, "crashes"));
  assert.equal(file.replaceAll(/\s/g, ""), join(state, "crashes", log));
  assert.match(readFileSync(join(state, "crashes", log), "utf8"), /Error: boom [\s\S]*crashes\.ts/);
  assert.equal(statSync(join(state, "crashes", log)).mode & 0o077, 0);
  assert.ok(
    screen.output.lastIndexOf("\u001b[?25h") > screen.output.lastIndexOf("\u001b[?25l"),
    "the cursor is visible",
  );
});

const NASTY = "\u001b[2J\r\u202e";

test("the question about a hostile folder is safe, bounded, and offers no trust while its settings are broken", async () => {
  await using ground = await openGround();
  const { home, env, work: folder, put } = ground;
  execFileSync("git", ["init", "-q", folder], { env });
  put(".git/hooks/pre-commit", "#!/bin/sh\n");
  put(
    ".mcp.json",
    JSON.stringify({ mcpServers: { long: { command: "sh", args: ["-c", `${NASTY}${"x ".repeat(3_000)}`] } } }),
  );
  for (let index = 0; index < 150; index++) put(`.prefork/extensions/e${index}.ts`, "");
  const summarize = async () => summarizeTrust(await trustOf(stateFolder(env, home), folder), { home, env });
  const summary = await summarize();
  assert.ok(summary);
  const { sections } = summary;
  assert.deepEqual(
    sections.map(({ title, lines, isRisk }) => [title, lines.length, isRisk]),
    [
      ["Extensions: code that runs inside prefork with all your rights (150)", 101, true],
      ["Tool servers: started with every session here", 1, true],
      ["Settings and hooks of git: if they change, you are asked again", 1, false],
    ],
  );
  assert.equal(sections[0]?.lines.at(-1), "and 50 more");
  assert.match(
    sections[1]?.lines[0] ?? "",
    /^long: runs sh -c '\\u001b\[2J\\u000d\\u202ex x .*… \[cut: 4\d{3} more characters\]$/,
  );
  assert.deepEqual(sections[2]?.lines, [".git/hooks/pre-commit"]);
  for (const line of sections.flatMap(({ lines }) => lines)) assert.doesNotMatch(line, /[\p{Cc}\u202e]/u);

  put(".prefork/settings.json", '{ "permissions": { "allow": ["Bash(ls)"], ');
  const broken = await summarize();
  assert.match(broken?.problem ?? "", /settings\.json/);
  const question = { ...(broken ?? summary), scroll: 0, shownAt: 0 };
  assert.deepEqual(
    trustOptions(question).map(({ choice }) => choice),
    ["later", "leave"],
  );
});

test("nothing is asked about a folder with nothing to use, and what changed since it was trusted is named", async () => {
  await using ground = await openGround();
  const { home, work, env } = ground;
  const state = stateFolder(env, home);
  execFileSync("git", ["init", "-q"], { cwd: work, env });
  ground.put(".envrc", "export A=1\n");
  ground.put("README.md", "Hello\n");
  const summarize = async (folder = work) => summarizeTrust(await trustOf(state, folder), { home, env });
  assert.equal(await summarize(), undefined);
  ground.putHome(".prefork/settings.json", "{}"); // the user's own
  assert.equal(await summarize(home), undefined);
  ground.put(".claude/skills/review/SKILL.md", "---\ndescription: Reviews\n---\n");
  const summary = await summarize();
  assert.ok(summary && summary.changed === undefined);
  assert.deepEqual(await grant(state, work, { fingerprint: summary.fingerprint }), { ok: true });
  assert.equal(await summarize(), undefined);
  ground.put(".envrc", "export A=2\n");
  assert.deepEqual((await summarize())?.changed, [".envrc"]);
});

/** An engine on loopback, as far as its list of models goes. */
const openEngine = async (models: readonly unknown[]): Promise<AsyncDisposable & { readonly port: number }> => {
  const server: Server = createServer((request, response) => {
    if (request.url === "/v1/models") response.end(JSON.stringify({ object: "list", data: models }));
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
};

/** Without the provider and the key of the ground. */
const withoutKeys = ({ env }: Ground): Readonly<Record<string, string>> => {
  const { ANTHROPIC_API_KEY: _key, ANTHROPIC_BASE_URL: _url, ...rest } = env;
  return rest;
};

test("without a key: what to try, which local engine answers, a suggestion that works, and Ctrl-Z and fg in between", async () => {
  await using ground = await openGround();
  await using engine = await openEngine([{ id: "qwen3:8b", owned_by: "library" }]);
  const env = { ...withoutKeys(ground), OLLAMA_HOST: `127.0.0.1:${engine.port}` };
  ground.put("src/a.ts", "1\n");
  ground.put("docs/b.md", "2\n");
  execFileSync("git", ["init", "-q"], { cwd: ground.work, env });
  await using screen = new TerminalScreen([], { cwd: ground.work, env, columns: 120, rows: 30, isJob: true });
  await screen.shows(
    /without a model; prefork tour shows forks at work\.[\s\S]*count files per folder[\s\S]*how many files are in `src`/,
  );
  await screen.shows(`prefork --provider ollama --base-url http://127.0.0.1:${engine.port}/v1 --model qwen3:8b`);
  screen.press("ctrl+z");
  await screen.shows("stopped: 148");
  screen.press("enter");
  await screen.shows((text) => text.lastIndexOf("? help") > text.lastIndexOf("stopped"));
  screen.press("2");
  await screen.shows(/─\n\s+count files per folder\s*\n─/);
  screen.press("enter");
  await screen.shows(/1 .*docs[\s\S]*1 .*src/);
  await screen.shows((text) => !text.includes("Prompts that work here"));
  await screen.idle();
  screen.press("ctrl+c", "ctrl+c");
  assert.equal(await screen.ended, 0);
  assert.ok(
    screen.output.lastIndexOf("\u001b[?25h") > screen.output.lastIndexOf("\u001b[?25l"),
    "the cursor is visible",
  );

  // The folder has a session now.
  const store = { state: stateFolder(env, ground.home), now: Date.now, newId: () => "" };
  const here = { cwd: ground.work, store, session: "another", engine: "rehearsal", model: "m" };
  assert.equal(await readFirstRun(here, env), undefined);
});

test("every suggestion is something that the rehearsal engine understands, in any folder", () => {
  const folders: readonly FolderFacts[] = [
    { isRepository: true, folders: ["src", "docs", "test", "x"], files: ["README.md"] },
    { isRepository: true, folders: [], files: [] },
    { isRepository: false, folders: ["find"], files: ["Makefile", "run"] },
    { isRepository: false, folders: [], files: ["notes.txt"] },
    { isRepository: false, folders: [], files: [] },
  ];
  for (const folder of folders) {
    const prompts = suggestPrompts(folder);
    assert.equal(prompts.length, 3);
    const parts = prompts.flatMap((prompt) => readTasks(prompt)).flatMap(({ moves }) => moves);
    const inner = parts.flatMap((move) => (move.kind === "fork" ? move.items.flatMap(readTasks) : []));
    const kinds = [...parts, ...inner.flatMap(({ moves }) => moves)].map(({ kind }) => kind);
    assert.ok(kinds.includes("fork") && kinds.includes("look") && !kinds.includes("unknown"), prompts.join(" | "));
  }
});

test("local engines are asked on loopback only, and only a list of their own models counts", async () => {
  await using vllm = await openEngine([
    { id: "org/Model-8B", owned_by: "vllm" },
    { id: "evil; rm", owned_by: "vllm" },
  ]);
  await using other = await openEngine([{ id: "x", owned_by: "somebody" }]);
  const [ollama, ...others] = engineAddresses({ OLLAMA_HOST: "http://192.0.2.1:99" });
  assert.deepEqual(
    [ollama?.port, ollama?.baseUrl, others.map(({ port }) => port)],
    [11_434, undefined, [8_000, 8_080]],
  );
  const at = (port: number) => others.map((address) => ({ ...address, port }));
  assert.deepEqual(await localEngineLines({}, at(vllm.port)), [
    "vLLM answers on this machine. To use it, leave and run:\nprefork --provider vllm --model org/Model-8B",
  ]);
  assert.deepEqual(await localEngineLines({}, at(other.port)), []);
  assert.deepEqual(await localEngineLines({ OPENAI_API_KEY: "k" }, at(vllm.port)), []);
  assert.deepEqual(keysIn({ OPENAI_API_KEY: "secret", GEMINI_API_KEY: " ", ANTHROPIC_AUTH_TOKEN: "t" }), [
    "OPENAI_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
  ]);
});
