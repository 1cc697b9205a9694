/** Requests that were interrupted after their answer had begun: a provider bills them, so every sum includes them,
 *  in this run of the session and the next. The figures are the simulator's own. */

import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { test } from "node:test";
import { callTools, type Fault, lastUserText, type SimScript, say, toolResults } from "@prefork/simulator";
import type { Usage } from "@prefork/wire";
import { anthropicEngine, resumeSession, type Session, type SessionOptions } from "../../src/index.ts";
import { explainFamily, listTasks, type RequestRow, readFamily } from "../../src/observe/index.ts";
import { hastyTiming } from "../tasks/fixture.ts";
import { directiveIn, type Ground, openGround, prompted } from "./fixture.ts";

const script: SimScript = () => say(`Scope: it\nResult: ${"word ".repeat(40)}`);

const hasty = ({ simulator }: Ground): Partial<SessionOptions> => ({
  engine: anthropicEngine({
    baseUrl: simulator.url,
    credential: { kind: "api-key", value: "any" },
    timing: hastyTiming,
  }),
});

const inputOf = ({ plain, read, written }: Usage) => ({ plain, read, written: written["5m"] ?? 0 });

/** What the simulator billed for all prompts together. */
const billed = ({ simulator }: Ground) =>
  simulator.ledger().reduce(
    (sum, { plain, read, written }) => ({
      plain: sum.plain + plain,
      read: sum.read + read,
      written: sum.written + written["5m"],
    }),
    { plain: 0, read: 0, written: 0 },
  );

/** Rows, tasks, the session and its next run have the same sums, and these are what was billed. */
const assertAsBilled = async (ground: Ground, session: Session): Promise<readonly RequestRow[]> => {
  const family = await ground.family(session.id);
  const { total, agents } = explainFamily(family);
  assert.deepEqual(inputOf(total.usage), billed(ground));
  assert.deepEqual(session.spent.usage, total.usage);
  assert.equal(session.spent.usd.toFixed(9), total.usd?.toFixed(9));
  const tasks = await listTasks(ground.store, { ended: true });
  assert.deepEqual(
    tasks.map(({ task, usage, usd }) => [task.id, usage, usd.toFixed(9)]).toSorted(),
    agents
      .filter(({ agent }) => agent !== "main")
      .map(({ agent, usage, usd }) => [agent, usage, usd?.toFixed(9)])
      .toSorted(),
  );
  await session.close();
  await using again = await resumeSession(session.id, ground.options());
  assert.deepEqual([again.spent.usage, again.spent.usd.toFixed(9)], [total.usage, total.usd?.toFixed(9)]);
  return family.rows;
};

const shown = ({ agent, turn, kind, isAnswered }: RequestRow) =>
  `${agent === "main" ? agent : "fork"} ${kind} ${turn}: ${isAnswered ? "answered" : "broken off"}`;

/** Streams slowly, so that it can be interrupted in the middle. */
const SLOWLY: Fault = { kind: "slow-drip", delayMs: 20 };

test("a prompt and a fork that were aborted in the middle of their answers are on the bill", async () => {
  await using ground = await openGround({ script });
  await using session = await ground.open(hasty(ground));
  await prompted(session, "hello");
  ground.simulator.fault({ ...SLOWLY, times: 2 });
  const fork = session.fork({ prompt: "look" });
  for await (const { type } of fork.events) if (type === "text_grew") fork.abort();
  const exchange = session.prompt("and now?");
  for await (const { type } of exchange) if (type === "text_grew") exchange.abort();
  const rows = await assertAsBilled(ground, session);
  assert.deepEqual(rows.map(shown), ["main turn 1: answered", "fork turn 1: broken off", "main turn 2: broken off"]);
});

const BREAKS: Readonly<Record<string, Fault>> = {
  "before its content": { kind: "error-mid-stream", moment: "before-content", times: 2 },
  "after its content": { kind: "error-mid-stream", moment: "after-content", times: 2 },
  "with its connection": { kind: "reset-mid-stream", afterEvents: 1, times: 2 },
};

for (const [when, fault] of Object.entries(BREAKS))
  test(`a request that was answered after interrupted attempts (${when}) has two rows: what they took, and what it took`, async () => {
    await using ground = await openGround({ script });
    await using session = await ground.open(hasty(ground));
    await prompted(session, "hello");
    ground.simulator.fault(fault);
    await session.fork({ prompt: "look" }).result();
    ground.simulator.fault(fault);
    await prompted(session, "and now?");
    const rows = await assertAsBilled(ground, session);
    assert.deepEqual(rows.map(shown), [
      "main turn 1: answered",
      "fork turn 1: broken off",
      "fork turn 1: answered",
      "main turn 2: broken off",
      "main turn 2: answered",
    ]);
    assert.equal(ground.simulator.ledger().length, 7);
  });

test("a request that failed in the end is one row with what all of its attempts took", async () => {
  await using ground = await openGround({ script });
  await using session = await ground.open(hasty(ground));
  await prompted(session, "hello");
  ground.simulator.fault({ kind: "error-mid-stream", moment: "after-content", times: 3 });
  const outcome = await session.fork({ prompt: "look" }).result();
  assert.equal(outcome.status === "ended" && outcome.end, "failed");
  const rows = await assertAsBilled(ground, session);
  assert.deepEqual(rows.map(shown), ["main turn 1: answered", "fork turn 1: broken off"]);
  assert.equal(ground.simulator.ledger().length, 4);
});

test("an interrupted summary is on the bill, and the conversation continues without it", async () => {
  await using ground = await openGround({ script });
  await using session = await ground.open(hasty(ground));
  await prompted(session, "hello");
  ground.simulator.fault({ kind: "error-mid-stream", moment: "after-content" });
  assert.equal((await session.compact()).kind, "failed");
  await prompted(session, "and now?");
  const rows = await assertAsBilled(ground, session);
  assert.deepEqual(rows.map(shown), ["main turn 1: answered", "main unkept 0: answered", "main turn 2: answered"]);
});

// --- forks that leave nothing else ---------------------------------------------------------------------------------------

test("a fork without a transcript is one row with all that it took, and it changes no other row's expectation", async () => {
  const work: SimScript = (request) =>
    directiveIn(request) !== undefined && toolResults(request).length === 0
      ? callTools([{ name: "Bash", input: { command: "pwd" } }])
      : say("Scope: it\nResult: done");
  await using ground = await openGround({ script: work });
  await using session = await ground.open();
  await prompted(session, "hello");
  const forks = session.forkAll([{ prompt: "kept" }, { prompt: "unkept", skipTranscript: true }]);
  await Promise.all(forks.map((fork) => fork.result()));
  await prompted(session, "and now?");
  const rows = await assertAsBilled(ground, session);
  assert.deepEqual(rows.map(shown).toSorted(), [
    "fork turn 1: answered",
    "fork turn 2: answered",
    "main turn 1: answered",
    "main turn 2: answered",
    "main unkept 0: answered",
  ]);
  const others = rows.filter(({ kind }) => kind === "turn");
  assert.deepEqual(
    others.map(({ expected, cause }) => [expected, cause.kind]),
    others.map(({ usage }, at) => [usage.read, at === 0 ? "first-request" : "none"]),
  );
});

// --- after a kill --------------------------------------------------------------------------------------------------------

for (const interrupted of ["report", "resume"] as const)
  test(`the second run of a resumed task that was killed in the middle is counted once (${interrupted})`, async () => {
    let isHeld = true;
    await using ground = await openGround({
      script: async (request) => {
        if (directiveIn(request) === undefined) return say("hello");
        if (!lastUserText(request).includes("more") && toolResults(request).length === 0)
          return say("Scope: it\nResult: done");
        if (toolResults(request).length === 0) return callTools([{ name: "Bash", input: { command: "pwd" } }]);
        if (isHeld) await new Promise(() => {});
        return say("Scope: it\nResult: more");
      },
    });
    await using session = await ground.open();
    await prompted(session, "hello");
    const fork = session.fork({ prompt: "look" });
    await fork.result();
    const woken = session.resumeTask(fork.id, { message: "and more" });
    for await (const { type, agent, ...event } of session.events())
      if (type === "turn_started" && agent === fork.id && Object(event).turn === 3) break;
    const left = ground.folder.at("left");
    cpSync(ground.folder.at(".state"), left, { recursive: true, filter: (path) => !/lock-/.test(path) });
    isHeld = false;
    const before = billed(ground);
    await using again = await resumeSession(session.id, ground.options({ state: left, forking: { interrupted } }));
    if (interrupted === "resume") await again.prompt("and now?").result();
    else assert.deepEqual(inputOf(again.spent.usage), before);
    const { total, agents } = explainFamily(await readFamily({ ...ground.store, state: left }, session.id));
    const [task] = again.tasks;
    assert.deepEqual(
      [again.spent.usage, again.spent.usd.toFixed(9), task?.spent?.usage],
      [total.usage, total.usd?.toFixed(9), agents.find(({ agent }) => agent === fork.id)?.usage],
    );
    await session.stopTask(fork.id);
    await woken;
  });
