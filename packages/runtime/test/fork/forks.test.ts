/** Forks of a session, end to end on the simulator: warm, side by side, reported once. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { directiveText, FORK_PLACEHOLDER_RESULT } from "@prefork/wire";
import { callTools, type SimRequest, say, startSimulator, textOfTokens, toolResults } from "@prefork/wire/simulator";
import {
  anthropicEngine,
  createSession,
  type RuntimeEvent,
  resumeSession,
  type SessionOptions,
} from "../../src/index.ts";
import { notificationsIn } from "../../src/tasks/index.ts";

const directiveIn = (request: SimRequest): string | undefined => {
  const all = JSON.stringify(request.body.messages);
  return /fork-directive: ([^"\\]*)/.exec(all)?.[1];
};

/** All text of the last message: each notification is a block of its own. */
const lastWords = (request: SimRequest): string => {
  const { messages } = request.body;
  const last = (Array.isArray(messages) ? messages.at(-1) : undefined) as { readonly content?: unknown } | undefined;
  const blocks = Array.isArray(last?.content) ? last.content : [];
  return blocks.map((block: { readonly text?: string }) => block.text ?? "").join("\n");
};

/** The parent starts one fork a part; a fork reads its part's file and reports; the parent sums up what it was told. */
const script = (parts: readonly string[]) => (request: SimRequest) => {
  const directive = directiveIn(request);
  const results = toolResults(request);
  if (directive !== undefined) {
    const read = results.find(({ text }) => text.includes("content of"));
    if (read) return say(`Scope: ${directive}\nResult: ${read.text.trim()}`);
    return callTools([{ name: "Bash", input: { command: `cat ${directive}.txt` } }]);
  }
  const told = notificationsIn(lastWords(request));
  if (told.length > 0)
    return say(
      told
        .map(({ label, status, result = "" }) => `${label} ${status}: ${/content of \w+/.exec(result)?.[0]}`)
        .join("\n"),
    );
  if (results.some(({ text }) => text === FORK_PLACEHOLDER_RESULT)) return say("I wait for them.");
  return callTools(parts.map((part) => ({ name: "Agent", input: { description: `look at ${part}`, prompt: part } })));
};

const ground = async (parts: readonly string[]) => {
  const folder = mkdtempSync(join(tmpdir(), "prefork-forks-"));
  for (const part of parts) writeFileSync(join(folder, `${part}.txt`), `content of ${part}\n`);
  writeFileSync(join(folder, "AGENTS.md"), textOfTokens(8_000));
  const simulator = await startSimulator({ script: script(parts), keepBodies: true });
  const engine = anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } });
  const options: SessionOptions = {
    engine,
    cwd: folder,
    home: folder,
    state: join(folder, ".state"),
    permissions: { mode: "default" },
  };
  return {
    simulator,
    options,
    [Symbol.asyncDispose]: async () => {
      await simulator.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

for (const count of [1, 2, 5]) {
  test(`${count} forks of one turn read all that their parent wrote, work with real tools and report once`, async () => {
    const parts = ["schema", "service", "router", "tests", "types"].slice(0, count);
    await using place = await ground(parts);
    await using session = await createSession(place.options);
    const exchange = session.prompt("Look at every part.");
    const events: RuntimeEvent[] = [];
    for await (const event of exchange) events.push(event);
    const { end, text } = await exchange.result();
    assert.equal(end, "done");
    assert.deepEqual(
      text.split("\n").sort(),
      parts.map((part) => `look at ${part} reported: content of ${part}`).sort(),
    );
    assert.deepEqual(
      session.tasks.map(({ state }) => state),
      parts.map(() => ({ kind: "ended", end: "reported" })),
    );
    assert.equal(events.filter(({ type }) => type === "notification_entered").length, count);
    assert.deepEqual(
      events.filter(({ type }) => type === "fork_cache_missed"),
      [],
    );

    // The ledger: the parent's first request, then the family, leader first.
    const [first, ...rows] = place.simulator.ledger();
    assert.ok(first);
    const family = rows.slice(0, count + 1);
    assert.equal(family[0]?.read, first.promptTokens, "the leader reads all that its parent wrote");
    for (const row of family.slice(1)) assert.ok(row.read > first.promptTokens, "followers read the shared tail too");
    for (const row of rows) assert.ok(row.read >= first.promptTokens, "nothing is written twice");
  });
}

test("a fork's request is its parent's up to the last block, and siblings differ in that block alone", async () => {
  const parts = ["schema", "service", "router"];
  await using place = await ground(parts);
  await using session = await createSession(place.options);
  await session.prompt("Look at every part.").result();
  const bodies = place.simulator
    .requests()
    .map(({ body }) => JSON.parse(body.toString()) as { messages: { content: unknown[] }[] });
  const firsts = parts.map((part) => {
    const words = directiveText(part);
    const found = bodies.find(({ messages }) =>
      JSON.stringify(messages.at(-1)).includes(JSON.stringify(words).slice(1, -1)),
    );
    assert.ok(found, part);
    return found;
  });
  const shared = firsts.map(({ messages }) =>
    JSON.stringify([
      ...messages.slice(0, -1),
      { ...messages.at(-1), content: messages.at(-1)?.content.slice(0, -1) },
    ]).replaceAll(/,"cache_control":\{[^}]*\}/g, ""),
  );
  assert.equal(new Set(shared).size, 1);
});

test("a fork that tries to start others is told to do the work itself", async () => {
  const folder = mkdtempSync(join(tmpdir(), "prefork-forks-"));
  const tried: string[] = [];
  await using simulator = await startSimulator({
    script: (request) => {
      const results = toolResults(request);
      if (directiveIn(request) === undefined) {
        if (notificationsIn(lastWords(request)).length > 0) return say("all told");
        return results.length > 0
          ? say("I wait.")
          : callTools([{ name: "Agent", input: { description: "one", prompt: "part" } }]);
      }
      if (results.length === 0 || results.some(({ text }) => text === FORK_PLACEHOLDER_RESULT && tried.length === 0)) {
        tried.push("spawn");
        return callTools([
          { name: "Agent", input: { description: "more", prompt: "again" } },
          { name: "SendMessage", input: { to: "task-1", message: "hello" } },
        ]);
      }
      tried.push(...results.map(({ text }) => text));
      return say("Scope: part\nResult: done alone");
    },
  });
  const engine = anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } });
  {
    await using session = await createSession({
      engine,
      cwd: folder,
      home: folder,
      state: join(folder, ".state"),
      permissions: { mode: "default" },
    });
    assert.equal((await session.prompt("go").result()).text, "all told");
    assert.equal(session.tasks.length, 1);
  }
  assert.match(tried[1] ?? "", /Not available in a fork/);
  assert.match(tried[2] ?? "", /Not available in a fork/);
  rmSync(folder, { recursive: true });
});

test("with nobody to ask and no policy stated no fork is started, and the model is told why", async () => {
  await using place = await ground(["schema"]);
  const { permissions: _permissions, ...options } = place.options;
  await using session = await createSession(options);
  const exchange = session.prompt("Look at every part.", { limits: { maxTurns: 2 } });
  const texts: string[] = [];
  for await (const event of exchange) if (event.type === "call_ended") texts.push(event.text);
  assert.match(texts[0] ?? "", /no permission policy was stated/);
  assert.deepEqual(session.tasks, []);
});

test("a session that died with a fork under way tells it as interrupted, once", async () => {
  const parts = ["schema"];
  await using place = await ground(parts);
  await using simulator = await startSimulator({
    // A fork never gets its first word.
    script: (request) => (directiveIn(request) ? new Promise<never>(() => {}) : script(parts)(request)),
  });
  const engine = anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } });
  const options = { ...place.options, engine };
  let id = "";
  {
    await using session = await createSession(options);
    id = session.id;
    const exchange = session.prompt("Look at every part.");
    for await (const event of exchange) if (event.type === "fork_started") exchange.abort();
    assert.equal((await exchange.result()).end, "aborted");
  }
  await using session = await resumeSession(id, options);
  assert.deepEqual(
    session.tasks.map(({ state }) => state),
    [{ kind: "ended", end: "aborted" }],
  );
  const exchange = session.prompt("And now?");
  const told: string[] = [];
  for await (const event of exchange) if (event.type === "notification_entered") told.push(event.taskId);
  assert.match((await exchange.result()).text, /^look at schema aborted/);
  assert.deepEqual(told, [session.tasks[0]?.id]);
});
