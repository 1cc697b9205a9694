/** Servers that are programs: what is listed, what a call returns, and what happens to their processes. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isRunning, until } from "@prefork/testing/processes";
import { toolName } from "../../../src/context/index.ts";
import type { Servers } from "../../../src/extensions/mcp/index.ts";
import { opened, stdioEntry, still } from "./fixture.ts";
import { described } from "./fixture-tools.ts";

const namesOf = (servers: Servers): readonly string[] =>
  servers.offered().servers.flatMap(({ tools }) => tools.map(toolName));

test("the lists of several servers are awaited, sorted, tidied and frozen", async () => {
  const schema = { $schema: "http://json-schema.org/draft-07/schema#", type: "object", properties: { z: {}, a: {} } };
  await using open = await opened((folder) => [
    stdioEntry(folder, "second", [described("echo")]),
    stdioEntry(folder, "first", [
      described("zoo", { inputSchema: schema }),
      described("ant", { description: "A\u200bn\u202et" }),
    ]),
  ]);
  const tools = open.servers.freeze();
  assert.deepEqual(
    tools.map(({ name, description, schema: shown, readOnly }) => [name, description, JSON.stringify(shown), readOnly]),
    [
      ["mcp__first__ant", "Ant", '{"type":"object","properties":{"value":{"type":"string"}}}', false],
      ["mcp__first__zoo", "Does zoo.", '{"type":"object","properties":{"z":{},"a":{}}}', false],
      ["mcp__second__echo", "Does echo.", '{"type":"object","properties":{"value":{"type":"string"}}}', false],
    ],
  );
});

test("a call returns text, images and notes for the rest; errors of the tool and of the protocol are error results", async () => {
  await using open = await opened((folder) => [stdioEntry(folder, "one", [described("picky")])]);
  const [dot, words] = [{ kind: "base64", mediaType: "image/png", data: "aGFsbG8=" }, "a dot"];
  assert.deepEqual(
    [
      await open.call("one", "echo", { a: [1, { b: null }] }),
      await open.call("one", "picture"),
      (await open.call("one", "mixed")).text,
      await open.call("one", "fail"),
      await open.call("one", "picky"),
      await open.call("two", "echo"),
    ],
    [
      { text: '{"a":[1,{"b":null}]}', content: [{ type: "text", text: '{"a":[1,{"b":null}]}' }] },
      {
        text: `[image]\n${words}`,
        content: [
          { type: "image", source: dot },
          { type: "text", text: words },
        ],
      },
      "[audio (audio/wav) was left out]\nfile:///a.txt a\nfile:///b.txt:\ninside b",
      { text: "it did not work", content: [{ type: "text", text: "it did not work" }], isError: true },
      {
        text:
          "Server one refused the call: number is missing\n" +
          'It takes: {"type":"object","properties":{"value":{"type":"string"}}}',
        isError: true,
      },
      { text: 'There is no server "two" here. Servers: one.', isError: true },
    ],
  );
});

test("a server sees what every program needs and what it was configured with, and no other variable except our mark", async () => {
  const env = { FIXTURE_TOKEN: "configured" };
  await using open = await opened((folder) => [{ ...stdioEntry(folder, "one", []), env }]);
  const seen = JSON.parse((await open.call("one", "environment")).text) as Record<string, string>;
  const { PATH, HOME, FIXTURE_TOKEN, PREFORK_COMMAND = "", PWD, SHLVL, _, ...others } = seen;
  assert.deepEqual([PATH, HOME, FIXTURE_TOKEN], [process.env.PATH, open.folder.path, "configured"]);
  assert.match(PREFORK_COMMAND, /^[0-9a-f]{16}$/);
  assert.deepEqual(others, {}); // the rest is bash's own
});

test("a call that times out, and one that is interrupted, return an error and leave the server usable", async () => {
  await using open = await opened((folder) => [{ ...stdioEntry(folder, "one", []), timeoutMs: 2_000 }]);
  assert.deepEqual(await open.call("one", "hang"), {
    text: "Server one: no answer within 2 s; what the call had begun may still go on.",
    isError: true,
  });
  const stop = new AbortController();
  const hanging = open.servers.call({ server: "one", tool: "hang" }, {}, stop.signal);
  await setImmediate(); // it is running
  stop.abort();
  assert.deepEqual(await hanging, { text: "The call of server one was interrupted.", isError: true });
  assert.equal((await open.call("one", "echo", { still: "here" })).text, '{"still":"here"}');
});

test("a dying server answers its call with an error without its secrets, and is back with its current list", async () => {
  const env = { FIXTURE_TOKEN: "very-secret-token" };
  await using open = await opened((folder) => [{ ...stdioEntry(folder, "one", [described("echo")]), env }]);
  const events: unknown[] = [];
  open.servers.follow((event) => events.push(event));
  open.folder.put("one.json", JSON.stringify([described("echo"), described("more")]));
  assert.deepEqual(await open.call("one", "die"), {
    text: "Server one is not available: it ended with exit code 3: dying with ***",
    isError: true,
  });
  assert.equal((await open.call("one", "echo", { back: true })).text, '{"back":true}');
  assert.deepEqual(namesOf(open.servers), ["mcp__one__echo", "mcp__one__more"]);
  assert.deepEqual(events, [
    { type: "server_lost", server: "one", reason: "it ended with exit code 3: dying with ***" },
    { type: "server_listed", server: "one", tools: 2 },
  ]);
});

test("a program that does not exist is tried a few times with growing pauses, then only when it is called", async () => {
  const pauses: number[] = [];
  const clock = { now: () => 0, sleep: async (ms: number) => void pauses.push(ms) };
  const entry = { name: "none", transport: "stdio", command: "no-such-program-anywhere" } as const;
  await using open = await opened(() => [entry], { clock, times: { waitMs: 50 } });
  await until(() => pauses.length === 5);
  const reason = /^Server none is not available: it ended with exit code 127: .*no-such-program-anywhere: not found$/;
  assert.match((await open.call("none", "echo")).text, reason);
  assert.deepEqual(pauses, [1_000, 2_000, 4_000, 8_000, 16_000]);
});

test("after closing nothing of a server runs, not even a child of it that ignores SIGTERM", async () => {
  const open = await opened((folder) => [stdioEntry(folder, "one", [])]);
  const pids = (await open.call("one", "family")).text.split(" ").map(Number);
  assert.deepEqual(pids.map(isRunning), [true, true]);
  await open[Symbol.asyncDispose]();
  assert.deepEqual(pids.map(isRunning), [false, false]);
});

test("a killed process leaves no server behind", async () => {
  const script = fileURLToPath(new URL("./server-user.ts", import.meta.url));
  const user = spawn(process.execPath, [...process.execArgv, script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(user.stdout, "data")) as [Buffer];
  const pids = line.toString().trim().split(" ").map(Number);
  assert.deepEqual(pids.map(isRunning), [true, true]);
  user.kill("SIGKILL");
  await once(user, "exit");
  await until(() => pids.every((pid) => !isRunning(pid)));
});

test("an answer that is too long only fails its own call, and the server continues", async () => {
  await using open = await opened((folder) => [stdioEntry(folder, "one", [described("flood")])], { clock: still });
  const [flood, echo] = await Promise.all([open.call("one", "flood"), open.call("one", "echo", { a: 1 })]);
  assert.deepEqual(flood, {
    text: "Server one has run the call, but its answer has more than 16777216 bytes and was left out.",
    isError: true,
  });
  assert.equal(echo.text, '{"a":1}');
  assert.deepEqual(
    [(await open.call("one", "echo", { b: 2 })).text, open.servers.offered().servers.length],
    ['{"b":2}', 1],
  );
});

test("a call of a server that is away is answered, even if nothing else keeps the process alive", async () => {
  const script = fileURLToPath(new URL("./lonely-caller.ts", import.meta.url));
  const caller = spawn(process.execPath, ["--conditions=prefork-source", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said: Buffer[] = [];
  caller.stdout.on("data", (chunk: Buffer) => said.push(chunk));
  const [code] = await once(caller, "close");
  assert.deepEqual(
    [code, Buffer.concat(said).toString().split("\n")],
    [
      0,
      ["Server one is not available: it ended with exit code 3: dying with nothing", "the next call was answered", ""],
    ],
  );
});

test("a server that sends an endless message is stopped, and the error says so", async () => {
  const flood =
    "process.stdin.once('data', () => { (function more() { process.stdout.write('x'.repeat(1 << 20), more); })(); })";
  const entry = { name: "flood", transport: "stdio", command: process.execPath, args: ["-e", flood] } as const;
  await using open = await opened(() => [entry], {
    times: { waitMs: 1 },
    clock: still,
  });
  assert.deepEqual(
    open.servers.follow(() => {}),
    [{ type: "server_lost", server: "flood", reason: "it sent a message of more than 67108864 bytes" }],
  );
});
