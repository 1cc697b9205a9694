/** Forks that have to ask: all at once, with somebody there, with nobody left, and with a denial each time. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { mergeLayers } from "@prefork/guard";
import { callTools, type SimScript, say } from "@prefork/simulator";
import {
  type Answer,
  createSession,
  type Question,
  resumeSession,
  type Session,
  type SessionOptions,
} from "../../src/index.ts";
import { describeState } from "../../src/tasks/index.ts";
import { gate, openStage, type Stage } from "./fixture.ts";
import { seenIn } from "./model-view.ts";

const names = (count: number): readonly string[] => Array.from({ length: count }, (_, at) => `part-${at + 1}`);

/** The main agent starts one fork per part. Each fork wants to write its part, and reports what came of it. */
const script =
  (count: number): SimScript =>
  (request) => {
    const { directive, calls, notifications } = seenIn(request);
    if (directive !== undefined) {
      const [first] = calls;
      if (!first)
        return callTools([
          { name: "Write", input: { file_path: `${folderIn(request.body)}/${directive}`, content: directive } },
        ]);
      return say(
        `Scope: ${directive}\nResult: ${first.result}\nFiles changed: ${first.result?.startsWith("Not allowed") ? "none" : directive}`,
      );
    }
    if (calls.length === 0)
      return callTools(names(count).map((name) => ({ name: "Agent", input: { description: name, prompt: name } })));
    return say(`${notifications.length} told`);
  };

/** As the environment says it. */
const folderIn = (body: unknown): string => /Working folder: ([^\\]+)/.exec(JSON.stringify(body))?.[1] ?? "";

const asking = (stage: Stage, count: number, ask: (question: Question) => Promise<Answer>): SessionOptions =>
  stage.options({ permissions: { policy: { ...mergeLayers([]), sandbox: "off" }, ask }, mostTasks: count });

const states = ({ tasks }: Session): readonly string[] => [...new Set(tasks.map(describeState))];

const COUNT = 50;

test("fifty forks that ask at once are answered one by one in the order they asked; while waiting they send nothing", async () => {
  await using stage = await openStage(script(COUNT));
  const allAsk = gate();
  const put: string[] = [];
  let isPut = false;
  const parked: { readonly requests: number; readonly states: readonly string[] }[] = [];
  const ask = async ({ scope = "", agent, tool }: Question): Promise<Answer> => {
    assert.equal(isPut, false, "one question is put at a time");
    isPut = true;
    await allAsk.passed;
    const task = session.tasks.find(({ id }) => id === agent);
    assert.deepEqual([task?.label, task && describeState(task), tool], [scope, "waiting for permission", "Write"]);
    put.push(scope);
    isPut = false;
    return put.length % 10 === 0 ? { kind: "deny", reason: "not this one" } : { kind: "allow" };
  };
  await using session = await createSession(asking(stage, COUNT, ask));
  const exchange = session.prompt("go");
  const asked: string[] = [];
  const look = () => ({ requests: stage.simulator.ledger().length, states: states(session) });
  let said = 0;
  for await (const event of exchange) {
    if (event.type === "text_entered" && event.agent === "main") said += 1;
    if (event.type === "question_asked") asked.push(session.tasks.find(({ id }) => id === event.agent)?.label ?? "");
    if (asked.length < COUNT || said === 0 || parked.length > 0) continue;
    parked.push(look());
    await new Promise((resolve) => setTimeout(resolve, 50));
    parked.push(look());
    allAsk.open();
  }
  const { end, text } = await exchange.result();
  assert.deepEqual([end, text], ["done", `${COUNT} told`]);
  assert.deepEqual([...asked].sort(), [...names(COUNT)].sort());
  assert.deepEqual(put, asked);
  // The parent, its forks, the parent again. Then all of them wait.
  const waiting = { requests: 1 + COUNT + 1, states: ["waiting for permission"] };
  assert.deepEqual(parked, [waiting, waiting]);
  const { notifications = [] } = stage.asked().at(-1)?.seen ?? {};
  assert.deepEqual(
    notifications.map(({ label, status }) => `${label} ${status}`).sort(),
    names(COUNT)
      .map((name) => `${name} reported`)
      .sort(),
  );
  const denied = put.filter((_, at) => at % 10 === 9);
  assert.deepEqual(
    notifications.flatMap(({ label, result }) => (result?.includes("Not allowed: not this one") ? [label] : [])).sort(),
    [...denied].sort(),
  );
});

test("if asking fails, the policy denies each question, says so, and each fork reports it", async () => {
  await using stage = await openStage(script(5));
  const ask = async (): Promise<Answer> => {
    throw new Error("the terminal is gone");
  };
  await using session = await createSession(asking(stage, 5, ask));
  assert.equal((await session.prompt("go").result()).text, "5 told");
  const { notifications = [] } = stage.asked().at(-1)?.seen ?? {};
  const no = "nobody could answer (the terminal is gone), so the policy did: no";
  assert.deepEqual(
    notifications
      .map(({ label, status, result }) => [label, status, result?.includes(`Result: Not allowed: ${no}`)])
      .sort(),
    names(5).map((name) => [name, "reported", true]),
  );
});

test("closing a session while its forks wait for an answer ends them, and the next session reports each once", async () => {
  await using stage = await openStage(script(5));
  const never = (): Promise<Answer> => new Promise(() => {});
  const options = asking(stage, 5, never);
  const session = await createSession(options);
  const exchange = session.prompt("go");
  let asked = 0;
  let requests = 0;
  for await (const { type } of exchange) {
    if (type === "question_asked") asked += 1;
    if (asked < 5 || requests > 0) continue;
    requests = stage.simulator.ledger().length;
    void session.close();
  }
  await session.close();
  assert.deepEqual(states(session), ["aborted"]);
  assert.equal(stage.simulator.ledger().length, requests, "whoever is ended while it waits asks nothing more");
  await using again = await resumeSession(session.id, options);
  assert.equal((await again.prompt("and now?").result()).text, "5 told");
  const { notifications = [] } = stage.asked().at(-1)?.seen ?? {};
  assert.deepEqual(
    notifications.map(({ label, status }) => `${label} ${status}`).sort(),
    names(5).map((name) => `${name} aborted`),
  );
});

test("a fork that is denied again and again is told to report, and ends with what it has", async () => {
  const wants = (name: string) => callTools([{ name: "Write", input: { file_path: `/tmp/${name}`, content: "" } }]);
  await using stage = await openStage((request) => {
    const { directive, calls, notifications } = seenIn(request);
    if (directive === undefined)
      return calls.length === 0
        ? callTools(
            ["gives up", "goes on"].map((name) => ({ name: "Agent", input: { description: name, prompt: name } })),
          )
        : say(notifications.map(({ label, status, result }) => `${label} ${status}: ${result}`).join("\n"));
    const told = calls.at(-1)?.result ?? "";
    if (directive === "gives up" && told.includes("report now"))
      return say(`Scope: ${directive}\nResult: ${told.replace("Not allowed: ", "")}`);
    return wants(`try-${calls.length + 1}`);
  });
  await using session = await createSession(asking(stage, 2, async () => ({ kind: "deny" })));
  const { end } = await session.prompt("go").result();
  assert.equal(end, "done");
  const { notifications = [] } = stage.asked().at(-1)?.seen ?? {};
  const text = new Map(notifications.map(({ label, status, result }) => [label, `${status}\n${result}`]));
  assert.match(
    text.get("gives up") ?? "",
    /^reported\nScope: gives up\nResult: 3 calls in a row were not allowed: Write .*try-1.*try-2.*try-3.*report now/s,
  );
  assert.match(
    text.get("goes on") ?? "",
    /^failed\nEnded as failed: it went on calling tools after all of them were refused/,
  );
});
