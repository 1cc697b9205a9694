/** Forks in the hands of a program: how one is asked for, what it may be told and allowed, how it ends, and what is left. */

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { setImmediate as immediate } from "node:timers/promises";
import { type Message, promptTokens, userText } from "@prefork/wire";
import { callTools, type SimAnswer, say, type ToolCall } from "@prefork/wire/simulator";
import * as z from "zod";
import {
  builtInTools,
  defineTool,
  type ForkHandle,
  type ForkOptions,
  type ForkOutcome,
  only,
  type RuntimeEvent,
  type Session,
} from "../../src/index.ts";
import {
  asksForSummary,
  endsOf,
  type FamilyGround,
  familyScript,
  gate,
  openFamily,
  prompted,
  type Seen,
  seenIn,
} from "./family-ground.ts";

type Ended = Extract<ForkOutcome, { readonly status: "ended" }>;

const ended = async (handle: ForkHandle): Promise<Ended> => {
  const outcome = await handle.result();
  assert.ok(outcome.status === "ended");
  return outcome;
};

const bash = (command: string): ToolCall => ({ name: "Bash", input: { command } });

/** A parent that only listens; forks by their directive. */
const ground = (
  fork: (seen: Seen & { readonly directive: string }) => SimAnswer | Promise<SimAnswer>,
  conventions = 0,
) => openFamily(familyScript({ main: () => say("heard"), fork }), { conventions });

const begun = async (place: FamilyGround, more: Parameters<FamilyGround["open"]>[0] = {}): Promise<Session> => {
  const session = await place.open(more);
  await prompted(session, "hello");
  return session;
};

/** Everything that happens while `work` goes on. */
const watched = async (session: Session, work: () => Promise<unknown>): Promise<readonly RuntimeEvent[]> => {
  const seen: RuntimeEvent[] = [];
  const reader = session.events();
  const reading = (async () => {
    for await (const event of reader) seen.push(event);
  })();
  await work();
  await immediate(); // what was given last is read
  reader[Symbol.dispose]();
  await reading;
  return seen;
};

// --- how it ends well --------------------------------------------------------------------------------------------------

test("a fork ends with its answer: its text, its report, its turns, its calls, and what they took", async () => {
  await using place = await ground(({ answers, results }) =>
    answers === 0
      ? callTools([bash("echo found it"), bash("echo more")], "I look.")
      : say(`Scope: the part\nResult: ${results[0]?.text.split("\n")[0]}\nKey files: a.ts`),
  );
  await using session = await begun(place);
  const handle = session.fork({ prompt: "look for it", label: "the search" });
  const { ms, ...outcome } = await ended(handle);
  assert.ok(ms >= 0);
  const [, ...rows] = place.simulator.ledger();
  const sum = (of: (row: (typeof rows)[number]) => number): number => rows.reduce((all, row) => all + of(row), 0);
  assert.deepEqual(outcome, {
    ...{ status: "ended", taskId: handle.id, end: "reported", summary: "the part", turns: 2, toolUses: 2 },
    text: "Scope: the part\nResult: found it\nKey files: a.ts",
    report: { scope: "the part", result: "found it", keyFiles: ["a.ts"], filesChanged: [], issues: "" },
    usage: {
      plain: sum(({ plain }) => plain),
      read: sum(({ read }) => read),
      written: { "5m": sum(({ written }) => written["5m"]) },
      output: sum(({ output }) => output),
    },
    usd: outcome.usd,
  });
  assert.ok(outcome.usage.read > 0 && Math.abs(outcome.usd - sum(({ billed }) => billed.usd ?? 0)) < 1e-9);
  assert.deepEqual(
    session.tasks.map(({ id, label, state }) => [id, label, state.kind]),
    [[handle.id, "the search", "ended"]],
  );
  // The second request holds what the first one's calls gave.
  assert.match(JSON.stringify(place.bodies()[2]?.messages), /found it/);
});

test("in either mode the handle is there at once and the fork works; only what it is called differs", async () => {
  const released = gate();
  await using place = await ground(async ({ directive }) => {
    await released.passed;
    return say(`Scope: ${directive}\nResult: done`);
  });
  await using session = await begun(place);
  const events = await watched(session, async () => {
    const handles = (["sync", "fire-and-forget"] as const).map((mode) => session.fork({ prompt: mode, mode }));
    assert.deepEqual(Object.values(endsOf(session)), ["queued", "queued"]);
    released.open();
    assert.deepEqual(
      (await Promise.all(handles.map(ended))).map(({ end }) => end),
      ["reported", "reported"],
    );
  });
  assert.deepEqual(
    events.flatMap((event) => (event.type === "fork_started" ? [`${event.label}: ${event.mode}`] : [])).sort(),
    ["fire-and-forget: fire-and-forget", "sync: sync"],
  );
  // The conversation does not hear of what a program started.
  await prompted(session, "and now?");
  assert.doesNotMatch(JSON.stringify(place.bodies().at(-1)?.messages), /task-notification/);
});

test("a session that has said nothing yet can be forked; one with nobody to ask and no policy stated cannot", async () => {
  await using place = await ground(({ directive }) => say(`Scope: ${directive}\nResult: done`));
  await using session = await place.open();
  assert.equal((await ended(session.fork({ prompt: "one" }))).end, "reported");
  await using unstated = await place.open({ permissions: {}, state: place.folder.at("other") });
  assert.throws(
    () => unstated.fork({ prompt: "one" }),
    /no fork: nobody can be asked here and no permission policy was stated/,
  );
});

test("forks of one call come in their order, and differ in their last block alone", async () => {
  await using place = await ground(({ directive }) => say(`Scope: ${directive}\nResult: done`));
  await using session = await begun(place);
  const handles = session.forkAll(["one", "two", "three"].map((prompt) => ({ prompt })));
  assert.deepEqual(
    (await Promise.all(handles.map(ended))).map(({ summary }) => summary),
    ["one", "two", "three"],
  );
  const shared = place
    .bodies()
    .slice(1)
    .map(({ messages }) => JSON.stringify(messages).replaceAll(/,"cache_control":\{[^{}]*\}/g, ""))
    .map((messages) => messages.slice(0, messages.indexOf("fork-directive:")));
  assert.deepEqual([shared.length, new Set(shared).size], [3, 1]);
});

// --- how it ends otherwise ---------------------------------------------------------------------------------------------

const BEGINNING = "I have begun.";

/** Says something and calls a tool, then whatever `next` does. */
const beginsThen =
  (next: (seen: Seen) => SimAnswer | Promise<SimAnswer>) =>
  (seen: Seen): SimAnswer | Promise<SimAnswer> =>
    seen.answers === 0 ? callTools([bash("true")], BEGINNING) : next(seen);

const never = (): Promise<never> => new Promise(() => {});

type Ending = {
  readonly options?: Partial<ForkOptions>;
  readonly next: (seen: Seen, place: FamilyGround) => SimAnswer | Promise<SimAnswer>;
  readonly during?: (handle: ForkHandle) => void;
  readonly reason: RegExp;
};

const ENDINGS: Readonly<Record<string, Ending>> = {
  failed: { next: () => ({ content: [{ type: "text", text: "I will not." }], stopReason: "refusal" }), reason: /./ },
  aborted: { next: never, during: (handle) => handle.abort(), reason: /interrupted/ },
  "timed-out": { options: { timeoutMs: 2_000 }, next: never, reason: /the time limit is reached/ },
  "out-of-turns": {
    options: { maxTurns: 2 },
    next: () => callTools([bash("true")]),
    reason: /the limit of 2 turns is reached/,
  },
  "over-budget": {
    options: { limits: { tokens: 9_000 } },
    next: () => ({ ...callTools([bash("true")]), outputTokens: 1_500 }),
    reason: /the next request could take \d+ tokens, and \d+ are left/,
  },
};

for (const [end, { options, next, during, reason }] of Object.entries(ENDINGS)) {
  test(`a fork that ends ${end} says so, with what it had said and what it took`, async () => {
    await using place = await ground((seen) => beginsThen((later) => next(later, place))(seen));
    await using session = await begun(place, { maxTokens: 2_000 });
    const caller = new AbortController();
    const handle = session.fork({ prompt: "part", signal: caller.signal, ...options });
    const result = ended(handle);
    for await (const event of handle.events) if (event.type === "turn_started" && event.turn === 2) during?.(handle);
    const outcome = await result;
    assert.equal(outcome.end, end);
    assert.match(outcome.text, new RegExp(`^Ended as ${end}: `));
    assert.match(outcome.text, reason);
    assert.ok(outcome.text.includes(end === "failed" ? "I will not." : BEGINNING), outcome.text);
    assert.doesNotMatch(outcome.text, /heard/); // the parent's last words
    assert.ok(outcome.turns >= 1 && outcome.toolUses >= 1 && promptTokens(outcome.usage) > 0);
    assert.equal("report" in outcome, false);
    // Whoever called is not concerned, and the session goes on.
    assert.equal(caller.signal.aborted, false);
    assert.equal((await session.prompt("and now?").result()).end, "done");
  });
}

test("a provider that fails for good ends the fork as failed, with the work of the turns before", async () => {
  await using place = await ground((seen) => {
    if (seen.answers === 0) place.simulator.fault({ kind: "status", status: 403 });
    return beginsThen(() => say("never"))(seen);
  });
  await using session = await begun(place);
  const { end, text, turns, toolUses } = await ended(session.fork({ prompt: "part" }));
  assert.deepEqual([end, turns, toolUses], ["failed", 2, 1]);
  assert.match(text, /^Ended as failed: [\s\S]*\nWhat it had said:\nI have begun\.$/);
});

test("without a turn nothing is sent and nothing said; a fork that said nothing gives none of its parent's words", async () => {
  await using place = await ground(() => callTools([bash("true")]));
  await using session = await begun(place);
  const before = place.simulator.ledger().length;
  const none = await ended(session.fork({ prompt: "part", maxTurns: 0 }));
  assert.deepEqual([none.end, none.turns, none.summary], ["out-of-turns", 0, "out-of-turns"]);
  assert.equal(place.simulator.ledger().length, before);
  const silent = await ended(session.fork({ prompt: "part", maxTurns: 1 }));
  assert.deepEqual(
    [silent.end, silent.text],
    ["out-of-turns", "Ended as out-of-turns: the limit of 1 turn is reached"],
  );
});

test("a signal that was aborted before starts nothing; one that is aborted later ends its fork alone", async () => {
  await using place = await ground(({ directive }) =>
    directive === "ends" ? never() : say(`Scope: ${directive}\nResult: done`),
  );
  await using session = await begun(place);
  const before = place.simulator.ledger().length;
  const gone = await ended(session.fork({ prompt: "never begins", signal: AbortSignal.abort() }));
  assert.deepEqual([gone.end, gone.turns, place.simulator.ledger().length], ["aborted", 0, before]);
  const caller = new AbortController();
  const [first, second] = session.forkAll([{ prompt: "ends", signal: caller.signal }, { prompt: "stays" }]);
  assert.ok(first && second);
  const results = Promise.all([ended(first), ended(second)]);
  for await (const event of second.events) if (event.type === "task_ended") caller.abort();
  assert.deepEqual(
    (await results).map(({ end }) => end),
    ["aborted", "reported"],
  );
});

test("a fork that runs out of time ends alone: its sibling and its parent go on", async () => {
  const released = gate();
  await using place = await ground(({ directive }) =>
    directive === "slow" ? never() : released.passed.then(() => say(`Scope: ${directive}\nResult: done`)),
  );
  await using session = await begun(place);
  const [slow, other] = session.forkAll([{ prompt: "slow", timeoutMs: 20 }, { prompt: "other" }]);
  assert.ok(slow && other);
  const rest = ended(other);
  assert.equal((await ended(slow)).end, "timed-out");
  assert.equal((await session.prompt("and now?").result()).end, "done");
  released.open();
  assert.equal((await rest).end, "reported");
});

// --- the handle --------------------------------------------------------------------------------------------------------

test("a result is taken once", async () => {
  await using place = await ground(({ directive }) => say(`Scope: ${directive}\nResult: done`));
  await using session = await begun(place);
  const handle = session.fork({ prompt: "part" });
  const first = handle.result();
  await assert.rejects(handle.result(), /^InputError: the result of task-1 was taken before$/);
  assert.equal((await first).status, "ended");
  await assert.rejects(handle.result(), /taken before/);
});

test("leaving a handle ends its fork only while nobody has taken the result", async () => {
  const released = gate();
  await using place = await ground(({ directive }) =>
    directive === "left" ? never() : released.passed.then(() => say(`Scope: ${directive}\nResult: done`)),
  );
  await using session = await begun(place);
  {
    await using _left = session.fork({ prompt: "left" });
  }
  assert.deepEqual(endsOf(session), { left: "aborted" });
  let taken: Promise<ForkOutcome> | undefined;
  {
    await using handle = session.fork({ prompt: "taken" });
    taken = handle.result();
  }
  released.open();
  assert.equal((await taken).status, "ended");
  assert.deepEqual(endsOf(session), { left: "aborted", taken: "reported" });
});

// --- what it is told and allowed ---------------------------------------------------------------------------------------

test("what would make no sense is refused before anything starts", async () => {
  await using place = await ground(() => say("never"));
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

const withoutMarkers = (json: string): string => json.replaceAll(/,"cache_control":\{[^{}]*\}/g, "");

test("a reminder stands at the tail before the directive and changes no byte before it", async () => {
  await using place = await ground(({ directive }) => say(`Scope: ${directive}\nResult: done`));
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

test("a filter refuses calls while the fork runs, and its tools are declared as they were", async () => {
  const got: (readonly string[])[] = [];
  await using place = await ground(({ directive, answers, results }) => {
    if (answers === 1) got.push(results.map(({ text, isError }) => `${isError ? "! " : ""}${text}`));
    const write = { name: "Write", input: { file_path: place.folder.at("work/made"), content: "x" } };
    return answers === 0
      ? callTools([write, { name: "Glob", input: { pattern: "*" } }])
      : say(`Scope: ${directive}\nResult: done`);
  });
  await using session = await begun(place);
  const events = await watched(session, async () => {
    const { end, toolUses } = await ended(session.fork({ prompt: "part", filter: only(["Glob"]) }));
    assert.deepEqual([end, toolUses], ["reported", 1]);
  });
  assert.deepEqual(got, [
    [
      "! Not allowed: Write is not allowed in this run. Here you may use: Glob",
      `No file fits * in ${place.work} (what git ignores was not looked at).`,
    ],
  ]);
  assert.deepEqual(readdirSync(place.work), []);
  assert.deepEqual(
    events.flatMap((event) => (event.type === "fork_tool_denied" ? [[event.level, event.tool, event.reason]] : [])),
    [["debug", "Write", "Not allowed: Write is not allowed in this run. Here you may use: Glob"]],
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
  await using place = await ground(({ directive, answers }) =>
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
  await using place = await ground(({ directive, answers }) =>
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
  await using place = await ground(({ directive }) => say(`Scope: ${directive}\nResult: done`), 3_000);
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
