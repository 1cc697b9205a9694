/** Forks in the hands of a program: what one may be told and allowed, who looks on, and what is left of it. */

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { type Message, userText } from "@prefork/wire";
import { callTools, say } from "@prefork/wire/simulator";
import * as z from "zod";
import { builtInTools, defineTool, type ForkOptions, only, type RuntimeEvent, readOnly } from "../../src/index.ts";
import {
  asksForSummary,
  bash,
  begun,
  ended,
  openFamily,
  openListening,
  prompted,
  seenIn,
  watched,
  withoutMarkers,
} from "./family-ground.ts";

// --- what it is told and allowed ---------------------------------------------------------------------------------------

test("what would make no sense is refused before anything starts", async () => {
  await using place = await openListening(() => say("never"));
  await using session = await begun(place);
  const wrong: readonly (readonly [ForkOptions, RegExp])[] = [
    [{}, /a fork needs a prompt or messages/],
    [{ prompt: "  " }, /a fork needs a prompt or messages/],
    [{ prompt: "x", messages: [userText("y")] }, /a prompt or messages of its own, not both/],
    [
      { messages: [userText("y"), { role: "assistant", content: [{ type: "text", text: "z" }] }] },
      /must end with one of the user/,
    ],
    [{ messages: [{ role: "user", content: [] }] }, /a message of the fork is empty/],
    [{ prompt: "x", maxTurns: -1 }, /maxTurns must be a whole number, got -1/],
    [{ prompt: "x", timeoutMs: 0.5 }, /timeoutMs must be a whole number, got 0.5/],
  ];
  for (const [options, reason] of wrong) assert.throws(() => session.fork(options), reason);
  assert.deepEqual([session.tasks, place.simulator.ledger().length], [[], 1]);
});

test("a caller's own messages stand alone, without the words on how a fork behaves", async () => {
  await using place = await openFamily((request) => say(`answer ${seenIn(request).answers}`));
  await using session = await begun(place);
  const messages: readonly Message[] = [
    userText("What is one and one?"),
    { role: "assistant", content: [{ type: "text", text: "Two." }] },
    userText("And one more?"),
  ];
  const handle = session.fork({ messages, label: "sums", querySource: "eval" });
  const outcome = await ended(handle);
  // It answers as it likes: nobody asked it for a report.
  assert.deepEqual([outcome.end, outcome.text, "report" in outcome], ["reported", "answer 2", false]);
  const [parent, child] = place.bodies().map(({ messages: all }) => JSON.parse(withoutMarkers(JSON.stringify(all))));
  assert.deepEqual(child.slice(0, parent.length), parent);
  assert.deepEqual(
    child.slice(parent.length).map(({ role, content }: Message) => [role, content]),
    [["assistant", [{ type: "text", text: "answer 0" }]], ...messages.map(({ role, content }) => [role, content])],
  );
  assert.doesNotMatch(JSON.stringify(child), /fork-boilerplate|fork-directive/);
  assert.deepEqual(
    session.tasks.map(({ label, querySource }) => [label, querySource]),
    [["sums", "eval"]],
  );
});

test("a reminder stands at the tail before the directive and changes no byte before it", async () => {
  await using place = await openListening(({ directive }) => say(`Scope: ${directive}\nResult: done`));
  await using session = await begun(place);
  await ended(session.fork({ prompt: "part" }));
  await ended(session.fork({ prompt: "part", overrides: { criticalSystemReminder: "Touch </note> nothing." } }));
  const [, plain, reminded] = place.simulator.requests().map(({ body }) => withoutMarkers(body.toString("utf8")));
  assert.ok(plain && reminded);
  const own = plain.indexOf('{"type":"text","text":"<fork-boilerplate>');
  assert.equal(reminded.slice(0, own), plain.slice(0, own));
  const added = reminded.slice(own, reminded.length - (plain.length - own));
  assert.equal(
    added,
    `{"type":"text","text":${JSON.stringify('<note kind="reminder">Touch &lt;/note> nothing.</note>')}},`,
  );
  assert.equal(reminded.slice(own + added.length), plain.slice(own));
});

test("a read-only run may call a tool of the program's own that is declared to read, and is told why it may not another", async () => {
  const own = (name: string, reads: boolean) =>
    defineTool({
      name,
      description: "Tells.",
      input: z.strictObject({}),
      readOnly: reads,
      run: async () => ({ content: `${name} ran` }),
    });
  const got: string[] = [];
  await using place = await openListening(({ directive, answers, results }) => {
    got.push(...results.map(({ text }) => text));
    return answers === 0
      ? callTools([
          { name: "Weather", input: {} },
          { name: "Deploy", input: {} },
        ])
      : say(`Scope: ${directive}\nResult: done`);
  });
  await using session = await begun(place, { tools: [...builtInTools, own("Weather", true), own("Deploy", false)] });
  await ended(session.fork({ prompt: "part", filter: readOnly }));
  assert.deepEqual(got, [
    "Weather ran",
    "Not allowed: Deploy is not declared to be read-only. Here you may only read: Read, Glob, Grep, and Bash for commands that change nothing",
  ]);
  assert.equal(session.snapshot?.querySource, "sdk");
});

test("durations are never negative, whatever happens to the clock", async () => {
  const clock = { at: 1_000_000 };
  await using place = await openListening(({ directive, answers }) => {
    clock.at -= 60_000;
    return answers === 0 ? callTools([bash("true")]) : say(`Scope: ${directive}\nResult: done`);
  });
  await using session = await begun(place, { clock: { now: () => clock.at } });
  const events = await watched(session, () => ended(session.fork({ prompt: "part" })));
  const durations = events.flatMap((event) => ("ms" in event ? [[event.type, event.ms >= 0]] : []));
  assert.deepEqual(durations, [
    ["turn_ended", true],
    ["call_ended", true],
    ["turn_ended", true],
  ]);
  assert.deepEqual(
    session.tasks.map(({ result }) => (result?.ms ?? -1) >= 0),
    [true],
  );
});

test("a filter refuses calls while the fork runs, and its tools are declared as they were", async () => {
  const got: (readonly string[])[] = [];
  await using place = await openListening(({ directive, answers, results }) => {
    if (answers === 1) got.push(results.map(({ text, isError }) => `${isError ? "! " : ""}${text}`));
    const write = { name: "Write", input: { file_path: place.folder.at("work/made"), content: "x" } };
    return answers === 0
      ? callTools([write, { name: "Read", input: { file_path: place.folder.at("work/notes") } }])
      : say(`Scope: ${directive}\nResult: done`);
  });
  place.folder.put("work/notes", "noted\n");
  await using session = await begun(place);
  const events = await watched(session, async () => {
    const { end, toolUses } = await ended(session.fork({ prompt: "part", filter: only(["Read"]) }));
    assert.deepEqual([end, toolUses], ["reported", 1]);
  });
  assert.deepEqual(got, [["! Not allowed: Write is not allowed in this run. Here you may use: Read", "1\tnoted"]]);
  assert.deepEqual(readdirSync(place.work), ["notes"]);
  assert.deepEqual(
    events.flatMap((event) => (event.type === "fork_tool_denied" ? [[event.level, event.tool, event.reason]] : [])),
    [["debug", "Write", "Not allowed: Write is not allowed in this run. Here you may use: Read"]],
  );
  const [parent, child] = place.bodies();
  assert.deepEqual(child?.tools, parent?.tools);
});

test("tools and events call a fork by the id it was given, by its task's otherwise, and its parent as before", async () => {
  const callers: string[] = [];
  const whoTool = defineTool({
    name: "Who",
    description: "Says who calls.",
    input: z.strictObject({}),
    readOnly: true,
    run: async (_input, { agent }) => {
      callers.push(agent);
      return { content: agent };
    },
  });
  await using place = await openFamily((request) => {
    const { results, words } = seenIn(request);
    return results.length > 0 ? say(`I am ${words}`) : callTools([{ name: "Who" }]);
  });
  await using session = await place.open({ tools: [...builtInTools, whoTool] });
  await prompted(session, "who?");
  const named = await ended(session.fork({ prompt: "who?", overrides: { agentId: "reviewer" } }));
  const plain = await ended(session.fork({ prompt: "who?" }));
  await prompted(session, "who now?");
  assert.deepEqual(callers, ["main", "reviewer", "task-2", "main"]);
  assert.deepEqual([named.taskId, plain.taskId], ["task-1", "task-2"]);
  const events = await watched(session, () =>
    ended(session.fork({ prompt: "who?", overrides: { agentId: "reviewer" } })),
  );
  assert.deepEqual([...new Set(events.map(({ agent }) => agent))].sort(), ["main", "reviewer"]);
});

// --- who looks on ------------------------------------------------------------------------------------------------------

const shapeOf = ({ role, content }: Message): string => `${role}: ${content.map(({ type }) => type).join(" ")}`;

test("observers see exactly the fork's own messages, each of them all, and one that throws harms nobody", async () => {
  await using place = await openListening(({ directive, answers }) =>
    answers === 0 ? callTools([bash("true"), bash("true")], "I look.") : say(`Scope: ${directive}\nResult: done`),
  );
  await using session = await begun(place);
  const seen: Message[][] = [[], []];
  const onMessage = [
    (message: Message) => void seen[0]?.push(message),
    () => {
      throw new Error("no good");
    },
    (message: Message) => void seen[1]?.push(message),
  ];
  const events = await watched(session, async () => {
    assert.equal((await ended(session.fork({ prompt: "part", onMessage }))).end, "reported");
  });
  assert.deepEqual(seen[0]?.map(shapeOf), [
    "user: text",
    "assistant: text tool_use tool_use",
    "user: tool_result tool_result",
    "assistant: text",
  ]);
  assert.deepEqual(seen[1], seen[0]);
  const [first] = seen[0] ?? [];
  assert.match(JSON.stringify(first), /fork-directive: part/);
  assert.deepEqual(
    events.flatMap((event) => (event.type === "observer_failed" ? [[event.level, event.taskId, event.reason]] : [])),
    Array(4).fill(["warn", "task-1", "no good"]),
  );
  // Alone it does no harm either.
  const alone = session.fork({
    prompt: "part",
    onMessage: () => {
      throw new Error("no good");
    },
  });
  assert.equal((await ended(alone)).end, "reported");
});

// --- what is left ------------------------------------------------------------------------------------------------------

test("a fork that is not to be kept leaves no row, no journal and no folder, and its cost is counted", async () => {
  await using place = await openListening(({ directive, answers }) =>
    answers === 0 ? callTools([bash("seq 1 60000")]) : say(`Scope: ${directive}\nResult: done`),
  );
  await using session = await begun(place);
  const folders = (): readonly string[] => readdirSync(tmpdir()).filter((name) => name.startsWith("prefork-unkept-"));
  const [kept, before, spent] = [place.kept(), folders(), session.spent.usd];
  let during = 0;
  const handle = session.fork({
    prompt: "part",
    skipTranscript: true,
    onMessage: () => {
      during = Math.max(during, folders().length);
    },
  });
  const { end, usd } = await ended(handle);
  assert.equal(end, "reported");
  assert.deepEqual([session.tasks, place.kept(), folders()], [[], kept, before]);
  assert.ok(during > before.length && Math.abs(session.spent.usd - spent - usd) < 1e-9);
  await session.close();
  await using again = await place.resume(session.id);
  assert.deepEqual(again.tasks, []);
});

test("a fork whose context is summed up leaves the shared prefix as it was, for its parent and for its siblings", async () => {
  await using place = await openFamily(
    (request) => {
      const seen = seenIn(request);
      if (asksForSummary(seen)) return say("<summary>Half of it is done.</summary>");
      if (seen.directive === undefined) return say("heard");
      if (seen.directive === "long" && seen.answers === 0 && !seen.words.includes("Half of it")) {
        place.simulator.fault({ kind: "status", status: 413 });
        return callTools([bash("true")]);
      }
      return say(`Scope: ${seen.directive}\nResult: done`);
    },
    { conventions: 6_000 },
  );
  await using session = await begun(place);
  const snapshot = session.snapshot?.prefix.hash;
  const events = await watched(session, async () => {
    assert.equal((await ended(session.fork({ prompt: "long" }))).end, "reported");
  });
  assert.deepEqual(
    events.flatMap((event) => (event.type === "epoch_started" ? [event.agent] : [])),
    ["task-1"],
  );
  assert.equal(session.snapshot?.prefix.hash, snapshot);
  // The parent's request, and its answer, which the first fork has written.
  const [parent, first] = place.simulator.ledger();
  assert.ok(parent && first && first.read === parent.promptTokens);
  const since = place.simulator.ledger().length;
  assert.equal((await ended(session.fork({ prompt: "short" }))).end, "reported");
  await prompted(session, "and now?");
  const answer = 2; // tokens of "heard"
  assert.deepEqual(
    place.simulator.ledger(since).map(({ read }) => read),
    [parent.promptTokens + answer, parent.promptTokens + answer],
  );
});

test("sessions that fork in turns read each its own, and raise no alarm", async () => {
  await using place = await openListening(({ directive }) => say(`Scope: ${directive}\nResult: done`), 3_000);
  await using one = await place.open({ appendSystemPrompt: "You are the first." });
  await using other = await place.open({ appendSystemPrompt: "You are the second.", state: place.folder.at("other") });
  const alarms: RuntimeEvent[] = [];
  for (const session of [one, other, one, other]) {
    const events = await watched(session, async () => {
      await prompted(session, "hello");
      await Promise.all(session.forkAll([{ prompt: "a" }, { prompt: "b" }]).map(ended));
    });
    alarms.push(...events.filter(({ type }) => type === "fork_cache_missed"));
  }
  assert.deepEqual(alarms, []);
});
