/** `prefork tasks stop` and `resume`: stops a task in another process; resumes an ended task from its journal. */

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { callTools, type SimRequest, type SimScript, say, toolResults } from "@prefork/simulator";
import type { JsonObject } from "@prefork/wire";
import { type Ground, parsedLines, resultIn } from "../print/ground.ts";
import { directiveIn, forking, LOOK, looked, openForking, PARTS } from "./family.ts";

/** A minimal tool server: it returns its arguments. */
const SERVER = `
import { createInterface } from "node:readline";
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  const answers = {
    initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: {} }),
    "tools/list": () => ({ tools: [{ name: "tell", description: "Tells.", inputSchema: { type: "object" } }] }),
    "tools/call": () => ({ content: [{ type: "text", text: JSON.stringify(params.arguments) }] }),
  };
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method]() }));
}
`;

const tasksOf = async (ground: Ground): Promise<readonly JsonObject[]> =>
  parsedLines((await ground.prefork(["ps", "--all", "--json"])).out);

const idOf = (rows: readonly JsonObject[], label: string): string =>
  String(rows.find((row) => row.label === label)?.id ?? "");

/** One fork waits forever after its first turn. */
const stuck = (): ReturnType<typeof openForking> => {
  const script = forking(PARTS);
  return openForking((request) => {
    const hasRead = toolResults(request).some(({ text }) => text.includes("content of"));
    return directiveIn(request) === "service" && hasRead ? new Promise<never>(() => {}) : script(request);
  });
};

test("a task in another process is stopped there, and its parent is told", async () => {
  await using ground = await stuck();
  const running = ground.start(LOOK);
  let rows: readonly JsonObject[] = [];
  while (rows.find((row) => row.label === "look at service")?.turns !== 1) rows = await tasksOf(ground);
  const id = idOf(rows, "look at service");
  const stopped = await ground.prefork(["tasks", "stop", id]);
  assert.deepEqual(stopped, { code: 0, out: `${id} ended: aborted\n`, err: "" });
  const { code, out } = await running.ended;
  assert.equal(code, 0);
  assert.equal(resultIn(out).result, "All have reported.");
  assert.deepEqual(await ground.prefork(["tasks", "stop", id]), {
    code: 0,
    out: `${id} has already ended: aborted\n`,
    err: "",
  });
});

test("a background shell of another process is ended there, while its session works on", async () => {
  const stopped = Promise.withResolvers<void>();
  await using ground = await openForking(async (request) => {
    if (toolResults(request).length === 0)
      return callTools([{ name: "Bash", input: { command: "sleep 600", run_in_background: true } }]);
    await stopped.promise;
    return say("It was ended.");
  });
  const running = ground.start(["-p", "--permission-mode", "bypass", "--output-format", "json", "Go."]);
  let rows: readonly JsonObject[] = [];
  while (rows.length === 0) rows = await tasksOf(ground);
  const { id, kind, words } = rows[0] ?? {};
  assert.deepEqual([kind, words], ["shell", "running"]);
  assert.deepEqual(await ground.prefork(["tasks", "stop", String(id)]), {
    code: 0,
    out: `${id} ended: aborted\n`,
    err: "",
  });
  stopped.resolve();
  const { code, out } = await running.ended;
  assert.deepEqual([code, resultIn(out).result], [0, "It was ended."]);
  assert.deepEqual(
    (await tasksOf(ground)).map((row) => [row.id, row.words]),
    [[id, "aborted"]],
  );
});

test("a task whose process is gone resumes from its journal with a warm cache, and its parent is told once", async () => {
  const script = forking(PARTS);
  let isStuck = true;
  await using ground = await openForking((request) => {
    const hasRead = toolResults(request).some(({ text }) => text.includes("content of"));
    if (isStuck && directiveIn(request) === "service" && hasRead) return new Promise<never>(() => {});
    return script(request);
  });
  const running = ground.start(LOOK);
  let rows: readonly JsonObject[] = [];
  const word = (label: string): unknown => rows.find((row) => row.label === label)?.words;
  while (rows.find((row) => row.label === "look at service")?.turns !== 1 || word("look at schema") !== "reported")
    rows = await tasksOf(ground);
  running.child.kill("SIGKILL");
  await running.ended;
  isStuck = false;
  const id = idOf(rows, "look at service");
  const refused = await ground.prefork(["tasks", "stop", id]);
  assert.equal(refused.code, 2);
  assert.match(refused.err, /is not running: its process has ended\. Resume the task \(prefork tasks resume task-/);

  const before = ground.simulator.ledger().length;
  const resumed = await ground.prefork(["tasks", "resume", id, "--permission-mode", "default"]);
  assert.deepEqual([resumed.code, resumed.out], [0, "Scope: service\nResult: all is well\\u001b[2J\n"]);
  const [row] = ground.simulator.ledger().slice(before);
  assert.ok(row);
  assert.equal(row.read, row.expectedRead);
  assert.ok(row.read > 8_000);

  const went = await ground.prefork(["-p", "--permission-mode", "default", "--continue", "Go on."]);
  assert.equal(went.code, 0);
  const last = JSON.stringify(ground.bodies().at(-1));
  const told = [
    ...last.matchAll(/<task-id>([^<]*)<\/task-id>\\n<description>([^<]*)<\/description>\\n<status>([^<]*)</g),
  ];
  assert.deepEqual(told.map(([, , label, status]) => `${label}: ${status}`).toSorted(), [
    "look at schema: reported",
    "look at service: reported",
  ]);
});

test("a task that has reported resumes only with a message, and an unknown task is named", async () => {
  await using ground = await openForking();
  await looked(ground);
  const id = idOf(await tasksOf(ground), "look at schema");
  const bare = await ground.prefork(["tasks", "resume", id, "--permission-mode", "default"]);
  assert.equal(bare.code, 2);
  assert.match(bare.err, /it has reported; send it a message that says what else to do/);
  const more = await ground.prefork(["tasks", "resume", id, "--permission-mode", "default", "and", "the", "rest"]);
  assert.equal(more.code, 0);
  assert.match(JSON.stringify(ground.bodies().at(-1)), /Message of the user to you:.*and the rest/);
  const unknown = await ground.prefork(["tasks", "stop", "task-ffffffffff"]);
  assert.equal(unknown.code, 2);
  assert.match(unknown.err, /task-ffffffffff/);
});

test("a fork's shell cannot stop other tasks", async () => {
  await using ground = await openForking();
  await looked(ground);
  const id = idOf(await tasksOf(ground), "look at schema");
  const refused = await ground.prefork(["tasks", "stop", id], { env: { PREFORK_LINEAGE: "fork:task-1" } });
  assert.deepEqual(refused, {
    code: 2,
    out: "",
    err: "prefork: a fork started this command, and a fork may not stop other tasks\n",
  });
});

test("a task that is resumed has its tool servers and skills again", async () => {
  const offered = { teller: `Skill tells; files that it names are in` };
  await using ground = await openForking((request) => {
    const last = JSON.stringify(Array.isArray(request.body.messages) ? request.body.messages.at(-1) : "");
    if (!last.includes("and the server"))
      return toolResults(request).length > 0 ? servedReport(request) : forking(PARTS)(request);
    return callTools([
      { name: "mcp__teller__tell", input: { what: "it" } },
      { name: "Skill", input: { name: "tells" } },
    ]);
  });
  const servedReport = (request: SimRequest): ReturnType<SimScript> =>
    toolResults(request).some(({ text }) => text.includes(offered.teller))
      ? say(`Scope: server\nResult: ${toolResults(request)[0]?.text}`)
      : forking(PARTS)(request);
  const script = ground.put("server.mjs", SERVER);
  await ground.prefork(["mcp", "add", "teller", "--", process.execPath, script]);
  const skill = join(ground.home, ".prefork/skills/tells/SKILL.md");
  mkdirSync(dirname(skill), { recursive: true });
  writeFileSync(skill, "---\nname: tells\ndescription: Tells.\n---\nTell it.\n");
  await looked(ground);
  const id = idOf(await tasksOf(ground), "look at schema");
  const argv = ["tasks", "resume", id, "--permission-mode", "bypass", "and", "the", "server"];
  const resumed = await ground.prefork(argv);
  assert.deepEqual([resumed.code, resumed.out], [0, 'Scope: server\nResult: {"what":"it"}\n']);
});
