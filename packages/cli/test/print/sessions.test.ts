/** Resuming sessions, and what is stored of them. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmdirSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { anthropicEngine, createSession } from "@prefork/runtime";
import { callTools, lastUserText, type SimScript, say, startSimulator, toolResults } from "@prefork/simulator";
import type { JsonObject } from "@prefork/wire";
import { type Ground, objectsIn, openGround, parsedLines, resultIn } from "./ground.ts";

const hearing: SimScript = (request) => say(`heard ${lastUserText(request)}`);

const idOf = async (ground: Ground, ...argv: readonly string[]): Promise<string> => {
  const { code, out, err } = await ground.prefork(["-p", "--output-format", "json", ...argv]);
  assert.deepEqual([code, err], [0, ""]);
  return String(resultIn(out).session_id);
};

/** Every request after the first read all of the previous one from the cache. */
const assertWarm = (ground: Ground): void => {
  const rows = ground.simulator.ledger();
  assert.deepEqual(
    rows.map(({ read, missCause }) => [read, missCause]),
    [0, ...rows.map(({ promptTokens }) => promptTokens)].slice(0, -1).map((tokens) => [tokens, null]),
  );
};

test("--continue resumes the last session of the folder, and pays for nothing twice", async () => {
  await using ground = await openGround(hearing);
  const first = await idOf(ground, "one");
  assert.equal(await idOf(ground, "--continue", "two"), first);
  assert.equal(await idOf(ground, "-c", "three"), first);
  assert.equal(await idOf(ground, "--resume", "--", "four"), first);
  assertWarm(ground);
});

test("each folder has its own last session, whichever link leads to it", async () => {
  await using ground = await openGround(hearing);
  mkdirSync(ground.at("other"));
  symlinkSync(ground.work, ground.at("other/link"));
  const first = await idOf(ground, "one");
  const other = await idOf(ground, "--cwd", ground.at("other"), "two");
  assert.notEqual(other, first);
  assert.equal(await idOf(ground, "-c", "three"), first);
  assert.equal(await idOf(ground, "--cwd", ground.at("other/link"), "-c", "four"), first);
});

test("--resume takes an id, or as much of it as is needed", async () => {
  await using ground = await openGround(hearing);
  const [first, second] = [await idOf(ground, "one"), await idOf(ground, "two")];
  assert.equal(await idOf(ground, "--resume", first, "three"), first);
  const length = [...first].findIndex((letter, at) => letter !== second[at]) + 1;
  assert.equal(await idOf(ground, "-r", first.slice(0, length), "four"), first);
});

test("a session is not taken into another folder, unless its own is gone", async () => {
  await using ground = await openGround(hearing);
  for (const name of ["one", "two"]) mkdirSync(ground.at(name));
  const [one, two] = [ground.at("one"), ground.at("two")];
  const id = await idOf(ground, "--cwd", one, "speak");
  assert.deepEqual(await ground.prefork(["-p", "--cwd", two, "--resume", id, "speak"]), {
    ...{ code: 2, out: "", err: `prefork: session ${id} belongs to ${one}; resume it there with --cwd ${one}\n` },
  });
  rmdirSync(one);
  assert.equal(await idOf(ground, "--cwd", two, "--resume", id, "speak"), id);
});

/** A session with an id of our choice, still open. */
const openSession = (ground: Ground, id: string): ReturnType<typeof createSession> =>
  createSession({
    engine: anthropicEngine({ baseUrl: ground.simulator.url, credential: { kind: "api-key", value: "any" } }),
    cwd: ground.work,
    home: ground.home,
    environment: ground.env,
    ids: { next: (kind) => `${kind}-${id}` },
  });

test("an id that is unknown or of several sessions is refused with what is known", async () => {
  await using ground = await openGround(hearing);
  for (const id of ["abc1", "abc2"]) await (await openSession(ground, id)).close();
  const refusals: readonly (readonly [readonly string[], string])[] = [
    [["--resume", "abc", "speak"], "2 sessions begin with abc: abc1, abc2"],
    [["--resume", "xyz", "speak"], "there is no session xyz"],
    [["--resume=", "speak"], "there is no session"],
    [
      ["--resume", "go on please"],
      'there is no session go on please; to resume the last session, give the prompt first: prefork -p "…" --resume',
    ],
  ];
  for (const [argv, complaint] of refusals)
    assert.deepEqual(await ground.prefork(["-p", ...argv]), { code: 2, out: "", err: `prefork: ${complaint}\n` });
  const empty = ground.at("empty");
  mkdirSync(empty);
  assert.deepEqual(await ground.prefork(["-p", "--cwd", empty, "-c", "speak"]), {
    ...{ code: 2, out: "", err: `prefork: there is no session in ${empty} to resume\n` },
  });
  assert.deepEqual(ground.simulator.ledger(), []);
});

test("a session that somebody writes in is refused, with who it is", async () => {
  await using ground = await openGround(hearing);
  await using session = await openSession(ground, "held");
  await session.prompt("one").result();
  const refusal = `session held is in use by this process (${process.pid}); end it there, or start another session`;
  for (const argv of [
    ["-p", "--resume", "held", "two"],
    ["-p", "-c", "two"],
    ["sessions", "delete", "held"],
  ])
    assert.deepEqual(await ground.prefork(argv), { code: 2, out: "", err: `prefork: ${refusal}\n` });
  const { out } = await ground.prefork(["sessions", "--all", "--json"]);
  assert.deepEqual(
    parsedLines(out).map(({ id, turns, firstPrompt, cwd }) => ({ id, turns, firstPrompt, cwd })),
    [{ id: "held", turns: 1, firstPrompt: "one", cwd: ground.work }],
  );
  assert.match((await ground.prefork(["sessions", "--all"])).out, new RegExp(`open in process ${process.pid}\\)`));
});

test("another model continues the conversation in a new epoch", async () => {
  await using ground = await openGround(hearing);
  const id = await idOf(ground, "one");
  assert.deepEqual(await ground.prefork(["-p", "-c", "--model", "claude-opus-4-6", "two"]), {
    ...{ code: 0, out: "heard two\n" },
    err: "prefork: this conversation was with anthropic (claude-sonnet-5) and continues with anthropic (claude-opus-4-6): its cache is cold, so the next request pays for the whole conversation\n",
  });
  const { out } = await ground.prefork(["sessions", "show", id, "--json"]);
  const { epoch, model, turns } = resultIn(out);
  assert.deepEqual({ epoch, model, turns }, { epoch: 2, model: "claude-opus-4-6", turns: 2 });
});

test("sessions are listed, the last used first", async () => {
  await using ground = await openGround(hearing);
  assert.equal((await ground.prefork(["sessions", "--all"])).out, "There are no sessions.\n");
  const [first, second] = [await idOf(ground, "the first prompt"), await idOf(ground, "the second")];
  const { out } = await ground.prefork(["sessions", "list", "--all"]);
  const [title = "", , ...rows] = out.trimEnd().split("\n");
  assert.match(title, /^id +last used +turns +forks +cost +size +folder +title$/);
  assert.deepEqual(
    rows
      .map((row) => row.split(/ {2,}/))
      .map(([id, used, turns, forks, , , folder, prompt]) => [id, used, turns, forks, folder, prompt]),
    [
      [second, "just now", "1", "0", ground.work, "the second"],
      [first, "just now", "1", "0", ground.work, "the first prompt"],
    ],
  );
});

const working: SimScript = (request) =>
  toolResults(request).length === 0
    ? callTools([{ name: "Read", input: { file_path: "notes.txt" } }], "I look.")
    : say("It is *short*.");

test("a session is shown with its turns, tokens and cost", async () => {
  await using ground = await openGround(working);
  ground.put("notes.txt", "text\n");
  const id = await idOf(ground, "look at notes.txt");
  const { out } = await ground.prefork(["sessions", "show", id.slice(0, 6), "--json"]);
  const { lastUsed, usd, ...facts } = resultIn(out);
  const rows = ground.simulator.ledger();
  const sum = (pick: (row: (typeof rows)[number]) => number): number => rows.reduce((all, row) => all + pick(row), 0);
  assert.match(String(lastUsed), /^\d{4}-\d\d-\d\d \d\d:\d\d$/);
  assert.equal(Number(usd).toFixed(9), sum(({ billed }) => billed.usd ?? 0).toFixed(9));
  assert.deepEqual(facts, {
    ...{ id, title: "look at notes.txt", folder: ground.work, model: "claude-sonnet-5", epoch: 1, turns: 2 },
    promptTokens: sum(({ promptTokens }) => promptTokens),
    readFromCache: sum(({ read }) => read),
    outputTokens: sum(({ output }) => output),
    ...{ usdWithForks: usd, openCalls: 0, forks: [], problems: [], lastAnswer: "It is *short*." },
  });
  assert.match((await ground.prefork(["sessions", "show", id])).out, /^forks +none$/m);
});

test("a session is renamed, and found by words of its prompts and answers", async () => {
  await using ground = await openGround(hearing);
  const [first, second] = [await idOf(ground, "Repair the flaky clock"), await idOf(ground, "other words")];
  const prefork = async (...argv: readonly string[]) => ground.prefork(["sessions", ...argv]);
  assert.deepEqual(await prefork("rename", second, "Don't", "$(touch x)\u001b[2J"), {
    ...{ code: 0, out: `Session ${second} is now: Don't $(touch x) [2J\n`, err: "" },
  });
  assert.equal(resultIn((await prefork("show", second, "--json")).out).title, "Don't $(touch x) [2J");
  assert.match((await prefork("show", second)).out, /\n\nLast answer:\n {2}heard other words\n$/);
  assert.deepEqual(await prefork("search", "--all", "FLAKY clock"), {
    code: 0,
    out: `${first}  just now  Repair the flaky clock\n  you:   Repair the flaky clock\n  agent: heard Repair the flaky clock\n`,
    err: "",
  });
  const matches = parsedLines((await prefork("search", "--all", "--json", "heard")).out);
  assert.deepEqual(
    matches.map(({ session, excerpts }) => [
      objectsIn([session ?? null])[0]?.id,
      objectsIn(excerpts).map(({ text }) => text),
    ]),
    [
      [second, ["heard other words"]],
      [first, ["heard Repair the flaky clock"]],
    ],
  );
  assert.deepEqual(await prefork("search", "flaky", "nowhere"), {
    ...{ code: 1, out: "" },
    err: 'prefork: no session of this folder has "flaky" and "nowhere" (--all searches every folder)\n',
  });
  assert.deepEqual(await prefork("search", " "), {
    ...{ code: 2, out: "", err: "prefork: name a word to search for: prefork sessions search flaky test\n" },
  });
  assert.equal((await prefork("rename", second, "")).out, `Session ${second} is named by its first prompt again.\n`);
});

test("a session is exported as Markdown, and over no file that is there", async () => {
  await using ground = await openGround(working);
  ground.put("notes.txt", "text\n");
  const id = await idOf(ground, "look at notes.txt");
  const { out } = await ground.prefork(["sessions", "export", id]);
  for (const part of ["> look at notes.txt", "<summary>Call of Read</summary>", "1\ttext", "It is *short*."])
    assert.ok(out.includes(part), part);
  const file = ground.at("talk.md");
  assert.deepEqual(await ground.prefork(["sessions", "export", id, "-o", file]), { code: 0, out: "", err: "" });
  assert.equal(readFileSync(file, "utf8"), out);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const again = await ground.prefork(["sessions", "export", id, "-o", file]);
  assert.deepEqual([again.code, again.out], [2, ""]);
  assert.match(again.err, /^prefork: .*talk\.md cannot be written: EEXIST/);
});

test("sessions are deleted all or none", async () => {
  await using ground = await openGround(hearing);
  const [first, second] = [await idOf(ground, "one"), await idOf(ground, "two")];
  const folder = join(ground.home, ".local/state/prefork/sessions");
  assert.deepEqual(await ground.prefork(["sessions", "delete", first, "nobody"]), {
    ...{ code: 2, out: "", err: "prefork: there is no session nobody\n" },
  });
  assert.ok(existsSync(join(folder, first)));
  assert.deepEqual(await ground.prefork(["sessions", "delete", first, second]), {
    ...{ code: 0, out: `deleted ${first}\ndeleted ${second}\n`, err: "" },
  });
  assert.deepEqual([existsSync(join(folder, first)), existsSync(join(folder, second))], [false, false]);
});

test("XDG_STATE_HOME is where sessions are kept, where it is an absolute path", async () => {
  await using ground = await openGround(hearing);
  const elsewhere = ground.at("state");
  const { out } = await ground.prefork(["-p", "--output-format", "json", "speak"], {
    env: { XDG_STATE_HOME: elsewhere },
  });
  const id = String(resultIn(out).session_id);
  assert.ok(existsSync(join(elsewhere, "prefork/sessions", id)));
  assert.deepEqual(await ground.prefork(["-p", "-r", id, "speak"], { env: { XDG_STATE_HOME: "relative" } }), {
    ...{ code: 2, out: "", err: `prefork: there is no session ${id}\n` },
  });
});

test("a conversation that continues at another base URL of the same format prints one notice", async () => {
  await using ground = await openGround(hearing);
  await using other = await startSimulator({ script: hearing });
  const id = await idOf(ground, "one", "--base-url", other.url);
  const model = "claude-sonnet-5";
  assert.deepEqual(await ground.prefork(["-p", "-c", "two"]), {
    ...{ code: 0, out: "heard two\n" },
    err: `prefork: this conversation was with ${model} at ${other.url} and continues with anthropic (${model}) at ${ground.simulator.url}: its cache is cold, so the next request pays for the whole conversation\n`,
  });
  const hiding = anthropicEngine({ baseUrl: "https://me:secret@gateway.example/anthropic?key=secret" });
  assert.equal(hiding.address, "https://gateway.example");
  // From then on the session stays there.
  assert.equal(await idOf(ground, "-c", "three"), id);
});

test("a conversation that moves to another vendor prints a notice on standard error only, in every format", async () => {
  await using ground = await openGround(hearing);
  const id = await idOf(ground, "one");
  const said = (from: string, to: string): string =>
    `prefork: this conversation was with ${from} and continues with ${to}: its cache is cold, so the next request pays for the whole conversation\n`;
  const [claude, gpt, flash] = ["anthropic (claude-sonnet-5)", "openai (gpt-6.1-sol)", "gemini (gemini-3.8-flash)"];
  await using openai = await startSimulator({ provider: "openai", script: hearing });
  await using gemini = await startSimulator({ provider: "gemini", script: hearing });
  const [toOpenai, toGemini] = [
    ["--provider", "openai", "--base-url", `${openai.url}/v1`],
    ["--provider", "gemini", "--base-url", `${gemini.url}/v1beta`],
  ];
  const env = { OPENAI_API_KEY: "any", GEMINI_API_KEY: "any" };
  const text = await ground.prefork(["-p", "-c", ...toOpenai, "two"], { env });
  assert.deepEqual(text, { code: 0, out: "heard two\n", err: said(claude, gpt) });
  const json = await ground.prefork(["-p", "-c", "--output-format", "json", ...toGemini, "three"], { env });
  assert.deepEqual([json.err, resultIn(json.out).model], [said(gpt, flash), "gemini-3.8-flash"]);
  const lines = await ground.prefork(["-p", "-c", "--output-format", "events", "--provider", "anthropic", "four"]);
  assert.equal(lines.err, said(flash, claude));
  const events = parsedLines(lines.out);
  assert.deepEqual(
    events.filter(({ type }) => type === "epoch_started").map(({ epoch, reason }) => [epoch, reason]),
    [[4, "model"]],
  );
  assert.equal(events.at(-1)?.session_id, id);
  // Without a flag it stays where it is.
  assert.equal(await idOf(ground, "-c", "five"), id);
});

// --- going back ----------------------------------------------------------------------------------------------------------

const writing: SimScript = (request) => {
  const words = lastUserText(request);
  const [, path, content] = /^write (\S+) (\S+)$/.exec(words) ?? [];
  if (path === undefined || content === undefined) return say(words === "" ? "done" : `heard ${words}`);
  return callTools([{ name: "Write", input: { file_path: path, content } }]);
};

test("sessions tree shows where a session can be continued, and rewind goes there with files and back", async () => {
  await using ground = await openGround(writing);
  execFileSync("git", ["init", "-q"], { cwd: ground.work });
  const allowed = ["--allow", "Write"];
  const id = await idOf(ground, ...allowed, `write ${ground.at("a")} one`);
  await idOf(ground, ...allowed, "-c", `write ${ground.at("b")} two`);
  const tree = async (): Promise<readonly JsonObject[]> =>
    parsedLines((await ground.prefork(["sessions", "tree", id, "--json"])).out);
  const [first, second] = await tree();
  assert.deepEqual(
    [first, second].map((node) => [node?.kind, node?.files, node?.current]),
    [
      ["prompt", true, false],
      ["prompt", true, true],
    ],
  );
  const to = String(second?.id);
  const preview = await ground.prefork(["rewind", id.slice(0, 6), "--to", to, "--both", "--preview"]);
  const title = `The conversation would be before: write ${ground.at("b")} two`.slice(0, 110);
  assert.deepEqual([preview.code, preview.out.split("\n")[0]], [0, "would remove b (+0 -1)"]);
  assert.ok(preview.out.split("\n")[1]?.startsWith(title.slice(0, 60)), preview.out);
  assert.equal(existsSync(ground.at("b")), true);
  const done = await ground.prefork(["rewind", id, "--to", to, "--both"]);
  assert.match(
    done.out,
    /^removed b \(\+0 -1\)\nThe conversation is before: .*\nThe files as they were are kept: commit /,
  );
  assert.equal(existsSync(ground.at("b")), false);
  await idOf(ground, "--resume", id, "other");
  const sent = JSON.stringify(ground.bodies().at(-1));
  assert.deepEqual([sent.includes(ground.at("b")), sent.includes(ground.at("a"))], [false, true]);
  const shown = (await ground.prefork(["sessions", "tree", id])).out;
  assert.match(shown, /\(left\) write .*\n.*\[branch\] continues write .*\n.*\* other\n$/);
  const branch = (await tree()).find(({ kind }) => kind === "branch");
  const undone = await ground.prefork(["sessions", "rewind", id, "--to", String(branch?.id), "--files"]);
  assert.equal(undone.out.split("\n")[0], "restored b (+1 -0)");
  assert.equal(existsSync(ground.at("b")), true);

  const refs = (): string => execFileSync("git", ["for-each-ref"], { cwd: ground.work, encoding: "utf8" });
  assert.equal(refs(), "", "snapshots are in the session's folder");
  assert.equal((await ground.prefork(["sessions", "delete", id])).code, 0);
  assert.equal(refs(), "");
});

test("a rewind without such a node, with two choices or of an open session is a usage error", async () => {
  await using ground = await openGround(writing);
  const id = await idOf(ground, "one");
  const refused = async (...words: readonly string[]): Promise<string> => {
    const { code, err } = await ground.prefork(["rewind", id, ...words]);
    assert.equal(code, 2);
    return err;
  };
  assert.equal(
    await refused("--to", "n7000"),
    `prefork: there is no node "n7000" in this session; its tree lists them (prefork sessions tree ${id})\n`,
  );
  assert.match(await refused("--to", "n1", "--files", "--both"), /choose one of --conversation, --files and --both/);
  await using session = await openSession(ground, "open1");
  const { code, err } = await ground.prefork(["rewind", session.id, "--to", "n1"]);
  assert.deepEqual([code, /open1/.test(err)], [2, true]);
});
