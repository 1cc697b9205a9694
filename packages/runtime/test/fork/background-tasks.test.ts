/** Tasks that run in the background of a conversation: when they are reported, how they are waited for and steered, and which
 *  calls are too slow to wait for. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { mergeLayers } from "@prefork/guard";
import { callTools, type SimAnswer, type SimRequest, type SimScript, say } from "@prefork/simulator";
import { FORK_PLACEHOLDER_RESULT, InputError } from "@prefork/wire";
import { createSession, type RuntimeEvent } from "../../src/index.ts";
import { type Gate, gate, openStage, type Stage, startedIn, unasked, until } from "../tasks/fixture.ts";
import { type Seen, seenIn } from "../tasks/model-view.ts";

type Part = (seen: Seen, request: SimRequest) => SimAnswer | Promise<SimAnswer>;

/** The main agent answers by `main`, each fork by the part that its directive names. */
const cast =
  (main: Part, forks: Readonly<Record<string, Part>>): SimScript =>
  (request) => {
    const seen = seenIn(request);
    const name = seen.directive ?? Object.keys(forks).find((one) => seen.told.includes(one));
    const part = name === undefined ? main : forks[name];
    return part ? part(seen, request) : say(`Scope: ${name}\nResult: nothing`);
  };

const report = (name: string): SimAnswer => say(`Scope: ${name}\nResult: done`);

/** Begun at once, so that others need not wait for its entry, and said when the gate opens. */
const held = (answer: SimAnswer, { passed }: Gate): SimAnswer => ({ ...answer, hold: passed });

const agents = (...names: readonly string[]): SimAnswer =>
  callTools(names.map((name) => ({ name: "Agent", input: { description: name, prompt: name } })));

/** Starts these, then says what it hears. */
const startsAndListens =
  (...names: readonly string[]): Part =>
  ({ calls, news }) =>
    calls.length === 0
      ? agents(...names)
      : say(news.map(({ label, status }) => `${label} ${status}`).join(", ") || "I wait.");

/** What the main agent was told of tasks, request by request. */
const heard = (stage: Stage): readonly (readonly string[])[] =>
  stage.asked().map(({ seen }) => seen.news.map(({ label, status }) => `${label} ${status}`).sort());

// --- when the parent hears -------------------------------------------------------------------------------------------

for (const [name, more] of [
  ["PREFORK_AUTO_BACKGROUND_MS", { environment: { PATH: "/usr/bin:/bin", PREFORK_AUTO_BACKGROUND_MS: "10" } }],
  [
    "forks.autoBackgroundMs of the settings",
    { permissions: { ...unasked, policy: { ...mergeLayers([]), sandbox: "off", forks: { autoBackgroundMs: 10 } } } },
  ],
] as const)
  test(`a call that waits longer than ${name} continues in the background`, async () => {
    const told = gate();
    await using stage = await openStage(
      cast(
        ({ calls, news }) => {
          if (calls[0]?.result?.startsWith("async_launched")) told.open();
          return calls.length === 0 ? agents("slow") : say(news[0]?.result ?? "I wait.");
        },
        { slow: () => held(report("slow"), told) },
      ),
    );
    await using session = await createSession(stage.options({ forks: "off", ...more }));
    assert.equal((await session.prompt("go").result()).text, "Scope: slow\nResult: done");
    assert.deepEqual(heard(stage), [[], [], ["slow reported"]]);
  });

for (const [wake, expected] of [
  ["family", [[], [], ["first reported", "second reported"]]],
  ["each", [[], [], ["first reported"], ["second reported"]]],
] as const)
  test(`with wake "${wake}" a waiting parent is notified of ${wake === "each" ? "each fork" : "all forks together"}`, async () => {
    const goOn = gate();
    await using stage = await openStage(
      cast(
        (seen, request) => {
          if (seen.news.length > 0) goOn.open();
          return startsAndListens("first", "second")(seen, request);
        },
        { second: () => held(report("second"), goOn) },
      ),
    );
    await using session = await createSession(stage.options({ forking: { wake } }));
    const exchange = session.prompt("go");
    // The second one ends when the first is heard of, or where it is not, once it has ended.
    for await (const event of exchange) if (event.type === "task_ended" && wake === "family") goOn.open();
    assert.equal((await exchange.result()).end, "done");
    assert.deepEqual(heard(stage), expected);
  });

test("a failed fork is reported at once, while its siblings still work", async () => {
  const known = gate();
  await using stage = await openStage(
    cast(
      (seen, request) => {
        if (seen.news.length > 0) known.open();
        return startsAndListens("bad", "good")(seen, request);
      },
      {
        bad: () => {
          throw new Error("no answer for this one");
        },
        good: () => held(report("good"), known),
      },
    ),
  );
  await using session = await createSession(stage.options());
  assert.equal((await session.prompt("go").result()).text, "good reported");
  assert.deepEqual(heard(stage), [[], [], ["bad failed"], ["good reported"]]);
});

test("an exchange that does not wait for its tasks ends, and the idle session resumes by itself when they have ended", async () => {
  const left = gate();
  await using stage = await openStage(
    cast(startsAndListens("first", "second"), {
      first: () => held(report("first"), left),
      second: () => held(report("second"), left),
    }),
  );
  await using session = await createSession(stage.options());
  const { end, text } = await session.prompt("go", { tasks: "leave" }).result();
  assert.deepEqual([end, text], ["done", "I wait."]);
  assert.deepEqual(
    session.tasks.map(({ state }) => state.kind),
    ["running", "running"],
  );
  const ended = until(session, ({ type }) => type === "exchange_ended");
  left.open();
  await ended;
  assert.deepEqual(heard(stage), [[], [], ["first reported", "second reported"]]);
  assert.equal((await session.prompt("thanks").result()).text, "I wait.");
  assert.equal(stage.asked().at(-1)?.seen.notifications.length, 2);
});

test("a prompt that arrives while an idle session has resumed by itself waits for that exchange, and only one prompt may wait", async () => {
  const [left, thinking] = [gate(), gate()];
  await using stage = await openStage(
    cast(
      ({ calls, news, words }) => {
        if (calls.length === 0) return agents("first");
        if (news.length > 0) return held(say("woken"), thinking);
        return say(words.includes("and now?") ? "now this" : "I wait.");
      },
      { first: () => held(report("first"), left) },
    ),
  );
  await using session = await createSession(stage.options());
  await session.prompt("go", { tasks: "leave" }).result();
  const woken = until(session, ({ type, agent }) => type === "turn_started" && agent === "main");
  left.open();
  await woken;
  const exchange = session.prompt("and now?");
  assert.throws(() => session.prompt("and then?"), {
    message: "an exchange is running; wait for its result or abort it",
  });
  await assert.rejects(session.compact(), { message: "an exchange is running; wait for its result or abort it" });
  thinking.open();
  const said: string[] = [];
  for await (const event of exchange) {
    if (event.type === "text_entered") said.push(event.text);
    // What was let wait is under way now, whatever ended before it.
    if (event.type === "turn_started") assert.throws(() => session.prompt("and then?"), InputError);
  }
  const { end, text } = await exchange.result();
  assert.deepEqual([end, text, said], ["done", "now this", ["now this"]]);
  assert.deepEqual(
    stage.asked().map(({ seen }) => seen.words.at(-1)?.slice(0, 19)),
    ["go", '<note kind="tasks">', "<task-notification>", "and now?"],
  );
});

// --- joining ---------------------------------------------------------------------------------------------------------

type Join = { readonly wait: "any" | "all" | "none"; readonly timeout_ms?: number };

const joining = (seen: Seen, names: readonly string[], how: Join): SimAnswer => {
  const ids = startedIn(seen);
  return callTools([{ name: "TaskOutput", input: { task_ids: names.map((name) => ids.get(name) ?? ""), ...how } }]);
};

/** Which of the tasks are told to have ended, and which not. */
const statesIn = (text = ""): readonly string[] =>
  [...text.matchAll(/^task-\w+ \((\w+)\): (\w+)/gm)].map(([, name, state]) => `${name} ${state}`);

type Joined = {
  readonly title: string;
  readonly how: Join;
  /** When each fork may report: before anybody waits, while somebody does, or once the join is over. */
  readonly first: "before" | "during" | "after";
  readonly second: "before" | "during" | "after";
  readonly joined: readonly string[];
  readonly announced: readonly string[];
};

const joins: readonly Joined[] = [
  {
    title: "waiting for all tasks returns every report, and none is announced again",
    how: { wait: "all" },
    ...{ first: "before", second: "during" },
    joined: ["first reported", "second reported"],
    announced: [],
  },
  {
    title: "waiting for any task returns the first report; the other one is announced when it arrives",
    how: { wait: "any" },
    ...{ first: "during", second: "after" },
    joined: ["first reported", "second running"],
    announced: ["second reported"],
  },
  {
    title: "a wait that times out leaves all tasks running, and each is announced",
    how: { wait: "all", timeout_ms: 20 },
    ...{ first: "after", second: "after" },
    joined: ["first running", "second running"],
    announced: ["first reported", "second reported"],
  },
  {
    title: "reading the output of a task that has ended replaces its announcement",
    how: { wait: "none" },
    ...{ first: "before", second: "after" },
    joined: ["first reported", "second running"],
    announced: ["second reported"],
  },
];

for (const { title, how, first, second, joined, announced } of joins)
  test(title, async () => {
    const gates = { before: gate(), during: gate(), after: gate() };
    const isBefore = [first, second].includes("before");
    await using stage = await openStage(
      cast(
        (seen) => {
          const [, , join] = seen.calls;
          if (seen.calls.length === 0) return agents("first", "second");
          if (join?.result === undefined)
            return {
              ...joining(seen, ["first", "second"], how),
              hold: isBefore ? gates.before.passed : Promise.resolve(),
            };
          gates.after.open();
          return say("I know.");
        },
        {
          first: () =>
            held(report("first"), first === "before" ? { ...gates.before, passed: Promise.resolve() } : gates[first]),
          second: () => held(report("second"), gates[second]),
        },
      ),
    );
    await using session = await createSession(stage.options());
    const exchange = session.prompt("go");
    for await (const event of exchange) {
      if (event.type === "task_ended") gates.before.open();
      if (event.type === "call_started" && event.tool === "TaskOutput") gates.during.open();
    }
    assert.equal((await exchange.result()).end, "done");
    const last = stage.asked().at(-1);
    assert.deepEqual(statesIn(last?.seen.calls[2]?.result), joined);
    assert.deepEqual(heard(stage).flat().sort(), announced);
    // Nor later: a next prompt has nothing to add.
    await session.prompt("is there more?").result();
    assert.equal(stage.asked().at(-1)?.seen.notifications.length, announced.length);
  });

// --- words for a task ------------------------------------------------------------------------------------------------

/** Each request begins with the one before it, and reads all that it wrote. */
const assertGrewWarm = (asked: ReturnType<Stage["asked"]>): void => {
  const plainBytes = (body: Buffer): string => body.toString("utf8").replaceAll(/,"cache_control":\{[^{}]*\}/g, "");
  for (const [at, { row, body }] of asked.entries()) {
    const before = asked[at - 1];
    if (!before) continue;
    const kept = plainBytes(before.body).replace(/\],"max_tokens":.*$/, "");
    assert.ok(plainBytes(body).startsWith(kept), `request ${at + 1} does not begin with the one before it`);
    assert.equal(row.read, before.row.promptTokens - before.row.plain, `request ${at + 1} was not warm`);
  }
};

test("a message to a running fork is read at its next turn boundary, and one to a fork that has ended resumes it with a warm cache", async () => {
  const steered = gate();
  const SEND = "SendMessage";
  await using stage = await openStage(
    cast(
      (seen) => {
        const to = startedIn(seen).get("worker") ?? "";
        const sent = seen.calls.filter(({ name }) => name === SEND);
        if (seen.calls.length === 0) return agents("worker");
        if (sent.length === 0) return callTools([{ name: SEND, input: { to, message: "mind the gap" } }]);
        if (seen.notifications.length === 0) {
          steered.open();
          return say(sent[0]?.result ?? "");
        }
        if (sent.length === 1) return callTools([{ name: SEND, input: { to, message: "once more" } }]);
        return say(
          seen.notifications.length === 1 ? "I wait." : seen.notifications.map(({ result }) => result).join("\n"),
        );
      },
      {
        worker: ({ calls, told }) => {
          if (calls.length === 0)
            return { ...callTools([{ name: "Bash", input: { command: "pwd" } }]), hold: steered.passed };
          const heardOf = ["mind the gap", "once more"].filter((words) => told.some((text) => text.includes(words)));
          return say(`Scope: worker\nResult: ${heardOf.join(" and ")}`);
        },
      },
    ),
  );
  await using session = await createSession(stage.options());
  const { end, text } = await session.prompt("go").result();
  assert.deepEqual(
    [end, text],
    ["done", "Scope: worker\nResult: mind the gap\nScope: worker\nResult: mind the gap and once more"],
  );
  const { seen } = stage.asked().at(-1) ?? {};
  assert.deepEqual(
    seen?.calls.flatMap(({ name, result }) => (name === SEND ? [result?.replace(/task-\w+/, "it")] : [])),
    [
      "it reads it when its present turn ends.",
      "it had ended (reported) and goes on with your message; it reports again.",
    ],
  );
  assert.equal(new Set(seen?.notifications.map(({ id }) => id)).size, 2);
  assert.equal(session.tasks.length, 1);
  const asked = stage.asked("worker");
  assert.equal(asked.length, 3);
  assertGrewWarm(asked);
});

test("a message to a fork that has just finished its last turn is not lost: it resumes the fork", async () => {
  const reported = gate();
  await using stage = await openStage(
    cast(
      (seen) => {
        const to = startedIn(seen).get("worker") ?? "";
        if (seen.calls.length === 0) return agents("worker");
        if (seen.calls.length === 1)
          return {
            ...callTools([{ name: "SendMessage", input: { to, message: "one more thing" } }]),
            hold: reported.passed,
          };
        return say("I wait.");
      },
      {
        worker: ({ told }) =>
          say(`Scope: worker\nResult: ${told.some((text) => text.includes("one more thing")) ? "that too" : "done"}`),
      },
    ),
  );
  await using session = await createSession(stage.options());
  const exchange = session.prompt("go");
  // From here on its report is checked, which takes git some time.
  for await (const event of exchange) if (event.type === "turn_ended" && event.agent !== "main") reported.open();
  await exchange.result();
  assert.match(stage.asked().at(-1)?.seen.notifications.at(-1)?.result ?? "", /Result: that too/);
  assertGrewWarm(stage.asked("worker"));
});

// --- what is too slow ------------------------------------------------------------------------------------------------

test("a skill that runs as a fork is not delayed by slow calls of the same turn either", async () => {
  await using stage = await openStage(
    cast(({ calls, news }) => {
      if (calls.length > 0) return say(news.map(({ label, status }) => `${label} ${status}`).join("\n") || "I wait.");
      return callTools([
        { name: "Bash", input: { command: "until [ -e go ]; do sleep 0.02; done" } },
        { name: "Skill", input: { name: "look" } },
      ]);
    }, {}),
  );
  const skills = [{ name: "look", description: "Looks.", body: "Look.", folder: "/s", context: "fork" }] as const;
  await using session = await createSession(stage.options({ skills, forking: { otherToolsMs: 40 } }));
  const exchange = session.prompt("go");
  for await (const event of exchange) if (event.type === "task_ended") writeFileSync(stage.folder.at("work/go"), ""); // the fork's: the call still waits
  await exchange.result();
  assert.deepEqual(
    session.tasks.map(({ kind }) => kind),
    ["call", "fork"],
  );
});

test("a slow call next to Agent calls becomes a task: its placeholder is shared, and its result arrives as a notification", async () => {
  await using stage = await openStage(
    cast(
      ({ calls, news }) => {
        if (calls.length === 0)
          return callTools([
            { name: "Bash", input: { command: "until [ -e go ]; do sleep 0.02; done; echo it went" } },
            { name: "Bash", input: { command: "echo quick" } },
            { name: "Agent", input: { description: "helper", prompt: "helper" } },
          ]);
        const told = news.map(({ label, status, result }) => `${label.replace(/toolu\w+/, "…")} ${status}: ${result}`);
        return say(told.join("\n") || "I wait.");
      },
      { helper: () => report("helper") },
    ),
  );
  await using session = await createSession(stage.options({ forking: { otherToolsMs: 40 } }));
  const exchange = session.prompt("go");
  const events: RuntimeEvent[] = [];
  let texts = 0;
  for await (const event of exchange) {
    events.push(event);
    // Everybody else is done: only the slow one is waited for.
    if (event.type === "text_entered" && event.agent === "main") texts += 1;
    if (texts === 2) writeFileSync(stage.folder.at("work/go"), "");
  }
  assert.deepEqual(await exchange.result().then(({ end, text }) => [end, text]), [
    "done",
    "Bash (…) reported: it went\n[exit code 0]",
  ]);
  assert.deepEqual(
    session.tasks.map(({ kind, label, state }) => [kind, label.replace(/toolu\w+/, "…"), state]),
    [
      ["call", "Bash (…)", { kind: "ended", end: "reported" }],
      ["fork", "helper", { kind: "ended", end: "reported" }],
    ],
  );
  const shared = [FORK_PLACEHOLDER_RESULT, "quick\n[exit code 0]", FORK_PLACEHOLDER_RESULT];
  const [, parent] = stage.asked();
  const [child] = stage.asked("helper");
  assert.deepEqual(
    parent?.seen.calls.map(({ result }) => result),
    shared,
  );
  assert.equal(child?.row.read, stage.asked()[0]?.row.promptTokens);
  assert.ok(
    (parent?.row.read ?? 0) > (child?.row.read ?? 0),
    "the parent reads what its fork wrote, the constants too",
  );
});

test("a turn without an Agent call waits for its slow call", async () => {
  await using stage = await openStage(
    cast(
      ({ calls }) =>
        calls.length === 0
          ? callTools([{ name: "Bash", input: { command: "sleep 0.2; echo slow" } }])
          : say(calls[0]?.result ?? ""),
      {},
    ),
  );
  await using session = await createSession(stage.options({ forking: { otherToolsMs: 10 } }));
  assert.equal((await session.prompt("go").result()).text, "slow\n[exit code 0]");
  assert.deepEqual(session.tasks, []);
});

// --- after an abort --------------------------------------------------------------------------------------------------

test("a program's fork is not ended by an earlier interrupted exchange, nor by that exchange's time limit", async () => {
  await using stage = await openStage(
    cast(({ words }) => (words.includes("stay") ? { ...say(""), hold: new Promise(() => {}) } : say("hello")), {
      helper: () => report("helper"),
    }),
  );
  await using session = await createSession(stage.options());
  await session.prompt("hello").result();
  const exchange = session.prompt("stay");
  for await (const { type } of exchange) if (type === "turn_started") exchange.abort();
  assert.equal((await exchange.result()).end, "aborted");
  const outcome = await session.fork({ prompt: "helper" }).result();
  assert.equal(outcome.status === "ended" && outcome.end, "reported");
});
