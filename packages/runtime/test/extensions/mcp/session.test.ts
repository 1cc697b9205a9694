/** A session with tool servers: what its model sees of them, what it may call, and what survives. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  callTools,
  lastUserText,
  type SimAnswer,
  type SimRequest,
  say,
  type ToolCall,
  toolResults,
} from "@prefork/simulator";
import { isRunning } from "@prefork/testing/processes";
import type { JsonObject } from "@prefork/wire";
import { builtInTools, resumeSession, type Session, type SessionOptions } from "../../../src/index.ts";
import { assertOnlyGrown, type Ground, openGround } from "../../session/fault-ground.ts";
import { stdioEntry } from "./fixture.ts";
import { type Described, described } from "./fixture-tools.ts";

const TIMES = { listMs: 60_000, startMs: 60_000, waitMs: 60_000 };

const servers = (ground: Ground, tools: Readonly<Record<string, readonly Described[]>>): Partial<SessionOptions> => ({
  servers: Object.entries(tools).map(([name, list]) => stdioEntry(ground.folder, name, list)),
  environment: { PATH: process.env.PATH, ANTHROPIC_API_KEY: "sk-ours" },
  serverTimes: TIMES,
});

type Turn = { readonly results: readonly string[]; readonly prompt: string };

/** What the model received last: results of its calls, and the user's last text. */
const turnOf = (request: SimRequest): Turn => {
  const results = toolResults(request).map(({ text, isError }) => `${isError ? "! " : ""}${text}`);
  return { results, prompt: lastUserText(request) };
};

/** A model that makes the calls in its prompt, all in one turn, and repeats the results. */
const obeying = (request: SimRequest): SimAnswer => {
  const { results, prompt } = turnOf(request);
  if (prompt.includes("goes on from a summary that you write now")) return say("<summary>It was done.</summary>");
  if (results.length > 0) return say(results.join(" | "));
  const found = /CALLS (.*)$/m.exec(prompt)?.[1];
  return found === undefined ? say("heard") : callTools(JSON.parse(found));
};

const calls = (...made: readonly ToolCall[]): string => `CALLS ${JSON.stringify(made)}`;

const mcp = (server: string, tool: string, args: JsonObject = {}): ToolCall => ({
  name: "McpCall",
  input: { server, tool, args },
});

const bodies = ({ simulator }: Ground): readonly JsonObject[] =>
  simulator.requests().map(({ body }) => JSON.parse(body.toString("utf8")));

const toolsIn = (body: JsonObject = {}): readonly string[] =>
  (body.tools as readonly JsonObject[]).map(({ name }) => String(name)).filter((name) => name.startsWith("mcp__"));

/** The announcements about tool servers in a request, in order. */
const wordsIn = (body: JsonObject = {}): readonly string[] =>
  (body.messages as readonly { readonly content: readonly JsonObject[] }[]).flatMap(({ content }) =>
    content.flatMap(({ text }) =>
      /^<(note kind="servers"|section name="tool-servers")>/.test(String(text)) ? [String(text)] : [],
    ),
  );

/** Resolves when this server's list was read again. */
const listedAnew = async (session: Session, server: string): Promise<void> => {
  for await (const event of session.events()) if (event.type === "server_listed" && event.server === server) return;
};

const ABOUT =
  "Tools of tool servers that are not in your list, or no longer as they stand there. Call them with McpCall:";
const ARGS = '  args: {"type":"object","properties":{"value":{"type":"string"}}}';

test("server tools come sorted after our own; a rule for one applies by its name and through McpCall", async () => {
  await using ground = await openGround(obeying);
  const given = servers(ground, { b: [described("echo"), described("environment")], a: [described("echo")] });
  const permissions = { allow: ["mcp__b__echo", "mcp__a"], deny: ["mcp__a__echo"] };
  await using session = await ground.open({ ...given, permissions });
  const { text } = await session
    .prompt(
      calls(
        { name: "mcp__b__echo", input: { value: "1" } },
        mcp("b", "echo", { value: "2" }),
        { name: "mcp__a__echo", input: {} },
        mcp("a", "echo"),
        mcp("b", "environment"),
        mcp("a__echo", "x"),
      ),
    )
    .result();
  assert.deepEqual(text.split(" | "), [
    '{"value":"1"}',
    '{"value":"2"}',
    "! Not allowed: denied by mcp__a__echo (the program)",
    "! Not allowed: denied by mcp__a__echo (the program)",
    "! Not allowed: mcp__b__environment belongs to a tool server; there is nobody to ask, and the rule mcp__b__environment would allow it",
    "! Not allowed: mcp__a__echo__x belongs to a tool server; there is nobody to ask, and the rule mcp__a__echo__x would allow it",
  ]);
  const { tools } = bodies(ground)[0] as { readonly tools: readonly JsonObject[] };
  assert.deepEqual(
    tools.slice(-5).map(({ name }) => name),
    ["McpCall", "Skill", "mcp__a__echo", "mcp__b__echo", "mcp__b__environment"],
  );
});

test("a changed list is announced at the tail with how to call what is new, and no byte before it changes", async () => {
  await using ground = await openGround(obeying);
  const changed = [described("echo", { description: "Echoes louder." }), described("new.one"), described("become")];
  await using session = await ground.open(
    servers(ground, { b: [described("become"), described("echo"), described("old")] }),
  );
  const listed = listedAnew(session, "b");
  await session.prompt(calls({ name: "mcp__b__become", input: { tools: changed as readonly JsonObject[] } })).result();
  await listed;
  await session.prompt(calls(mcp("b", "echo", { value: "through" }))).result();
  await session.prompt("and now nothing").result();
  assert.deepEqual(wordsIn(bodies(ground).at(-1)), [
    `<note kind="servers">${[
      ABOUT,
      '- server "b", tool "echo" (its form in your list is old): Echoes louder.',
      ARGS,
      '- server "b", tool "new.one": Does new.one.',
      ARGS,
      "No longer offered: mcp__b__old.",
    ].join("\n")}</note>`,
  ]);
  assertOnlyGrown(ground.simulator);
});

test("a late server is not waited for; its tools are announced when they are there, and again after a compaction", async () => {
  await using ground = await openGround(obeying);
  const given = servers(ground, { late: [described("echo")] });
  await using session = await ground.open({ ...given, serverTimes: { ...TIMES, listMs: 1 } });
  await listedAnew(session, "late");
  const { text } = await session.prompt(calls(mcp("late", "echo", { value: "here" }))).result();
  assert.equal(text, '{"value":"here"}');
  const section = `<section name="tool-servers">\n${ABOUT}\n- server "late", tool "echo": Does echo.\n${ARGS}\n</section>`;
  const told = bodies(ground);
  assert.deepEqual([toolsIn(told[0]), wordsIn(told[0]), wordsIn(told[1])], [[], [section], [section]]);
  assert.equal((await session.compact()).kind, "compacted");
  await session.prompt("go on").result();
  assert.deepEqual(wordsIn(bodies(ground).at(-1)), [section]);
});

test("a resumed session keeps the list it has sent, is told once what changed, and calls the current servers", async () => {
  await using ground = await openGround(obeying);
  const first = await ground.open(servers(ground, { a: [described("echo")], gone: [described("echo")] }));
  await first.prompt("begin").result();
  await first.close();
  const changed = servers(ground, { a: [described("echo"), described("new")] });
  for (const words of ["second life", "third life"]) {
    await using again = await resumeSession(first.id, ground.options(changed));
    const both = calls({ name: "mcp__a__echo", input: { value: words } }, { name: "mcp__gone__echo", input: {} });
    assert.equal(
      (await again.prompt(both).result()).text,
      `{"value":"${words}"} | ! There is no server "gone" here. Servers: a.`,
    );
  }
  const last = bodies(ground).at(-1);
  assert.deepEqual(toolsIn(last), ["mcp__a__echo", "mcp__gone__echo"]);
  assert.deepEqual(wordsIn(last), [
    `<note kind="servers">${[ABOUT, '- server "a", tool "new": Does new.', ARGS].join("\n")}</note>`,
  ]);
  assertOnlyGrown(ground.simulator);
});

test("a fork calls the tools of its parent's servers, under its parent's rules", async () => {
  await using ground = await openGround(obeying);
  const permissions = { allow: ["mcp__a"], deny: ["mcp__a__environment"] };
  await using session = await ground.open({ ...servers(ground, { a: [described("echo")] }), permissions });
  await session.prompt("begin").result();
  const made = calls({ name: "mcp__a__echo", input: { value: "1" } }, mcp("a", "echo"), mcp("a", "environment"));
  const outcome = await session.fork({ prompt: made, protocol: "none" }).result();
  assert.ok(outcome.status === "ended");
  assert.equal(outcome.text, '{"value":"1"} | {} | ! Not allowed: denied by mcp__a__environment (the program)');
});

test("servers do not see our keys; they end with the session, and with one that could not be opened", async () => {
  await using ground = await openGround(obeying);
  const given = servers(ground, { a: [] });
  const session = await ground.open(given);
  const seen: readonly string[] = (
    await session.prompt(calls(mcp("a", "environment"), mcp("a", "family"))).result()
  ).text.split(" | ");
  assert.doesNotMatch(seen[0] ?? "", /sk-ours|ANTHROPIC/);
  const pids = (seen[1] ?? "").split(" ").map(Number);
  assert.deepEqual(pids.map(isRunning), [true, true]);
  await session.close();
  assert.deepEqual(pids.map(isRunning), [false, false]);
  const twice = { ...given, tools: [...builtInTools, ...builtInTools] };
  await assert.rejects(ground.open(twice), { name: "InputError", message: "there are two tools named Bash" });
});
