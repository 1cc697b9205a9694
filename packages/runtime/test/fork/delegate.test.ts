/** Forks that a program starts: how they end, with or without success, and what their handles do. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { callTools, type SimAnswer, say } from "@prefork/simulator";
import { promptTokens } from "@prefork/wire";
import { Account } from "../../src/agent/index.ts";
import { Running } from "../../src/children/running.ts";
import type { ForkHandle, ForkOptions, ForkOutcome, SessionOptions } from "../../src/index.ts";
import type { ChildEnding, ChildHost, ChildParent, Mail } from "../../src/ports.ts";
import {
  bash,
  begun,
  countedIds,
  ended,
  endsOf,
  type FamilyGround,
  familyScript,
  gate,
  openFamily,
  openListening,
  part,
  prompted,
  type Seen,
  starts,
  unkeptPlan,
  watched,
} from "./family-ground.ts";

// --- how it ends well --------------------------------------------------------------------------------------------------

test("a fork's result has its text, report, turns, calls and cost", async () => {
  await using place = await openListening(({ answers, results }) =>
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

test("in both modes the handle is available at once and the fork works; only the mode's name differs", async () => {
  const released = gate();
  await using place = await openListening(async ({ directive }) => {
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

test("a session that has sent nothing yet can be forked; one with nobody to ask and no stated policy cannot", async () => {
  await using place = await openListening(({ directive }) => say(`Scope: ${directive}\nResult: done`));
  await using session = await place.open();
  assert.equal((await ended(session.fork({ prompt: "one" }))).end, "reported");
  await using unstated = await place.open({ permissions: {}, state: place.folder.at("other") });
  assert.throws(
    () => unstated.fork({ prompt: "one" }),
    /cannot fork: nobody can be asked here and no permission policy was stated/,
  );
});

test("forks of a conversation without a token count raise one alarm if nothing of it is cached", async () => {
  await using place = await openFamily(
    familyScript({ main: () => say("heard"), fork: ({ directive }) => say(`Scope: ${directive}\nResult: done`) }),
    { conventions: 20_000, rules: { cache: { minimumPrefix: 10_000_000 } } },
  );
  await using session = await place.open();
  const forks = ["one", "two", "three"].map((prompt) => ({ prompt }));
  const events = await watched(session, () => Promise.all(session.forkAll(forks).map(ended)));
  // Forks end in any order.
  const missed = events
    .flatMap((event) =>
      event.type === "fork_cache_missed" ? [`${event.isWarning} ${event.siblings}: ${event.cause}`] : [],
    )
    .sort();
  const cause = "the bytes are the parent's; the provider no longer had the entry, or not yet";
  assert.deepEqual(missed, [
    "false undefined: nothing of the conversation was cached yet, and this fork wrote it",
    `false undefined: ${cause}`,
    `true 1: ${cause}`,
  ]);
});

test("forks of one call are returned in order, and differ only in their last block", async () => {
  await using place = await openListening(({ directive }) => say(`Scope: ${directive}\nResult: done`));
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
  "timed-out": { options: { timeoutMs: 5_000 }, next: never, reason: /the time limit is reached/ },
  "out-of-turns": {
    options: { maxTurns: 2 },
    next: () => callTools([bash("true")]),
    reason: /the limit of 2 turns is reached/,
  },
  "over-budget": {
    options: { limits: { tokens: 9_000 } },
    next: () => ({ ...callTools([bash("true")]), outputTokens: 1_500 }),
    reason: /the tokens are used up; the next request could take \d+$/m,
  },
};

for (const [end, { options, next, during, reason }] of Object.entries(ENDINGS)) {
  test(`a fork that ends ${end} says so, with its text so far and its cost`, async () => {
    await using place = await openListening((seen) => beginsThen((later) => next(later, place))(seen));
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

test("a permanent provider failure ends the fork as failed, and keeps the work of earlier turns", async () => {
  await using place = await openListening((seen) => {
    if (seen.answers === 0) place.simulator.fault({ kind: "status", status: 403 });
    return beginsThen(() => say("never"))(seen);
  });
  await using session = await begun(place);
  const { end, text, turns, toolUses } = await ended(session.fork({ prompt: "part" }));
  assert.deepEqual([end, turns, toolUses], ["failed", 2, 1]);
  assert.match(text, /^Ended as failed: [\s\S]*\nWhat it had said:\nI have begun\.$/);
});

test("a fork whose calls are all refused gets three turns for its report, and fails with the next", () => {
  const clock = { now: () => 0 };
  const start = { child: unkeptPlan("task-1"), budget: new Account(), notifies: false };
  const running = new Running(start, { clock, above: undefined });
  const stops: unknown[] = [];
  running.begin({
    cacheKeyHash: "",
    steer: () => true,
    refuseCalls: () => undefined,
    stop: (ending) => void stops.push(ending),
    result: () => Promise.reject(new Error("not run")),
  });
  const turn = (): boolean => {
    running.observe({ type: "turn_started", turn: 1, prefixHash: "", bytes: 0, markers: [] });
    running.observe({ type: "call_ended", callId: "call-1", tool: "Bash", text: "no", fault: "denied", ms: 0 });
    return running.signal.aborted;
  };
  assert.deepEqual(Array.from({ length: 7 }, turn), [false, false, false, false, false, false, true]);
  assert.deepEqual(stops, [{ end: "failed", reason: "it went on calling tools after all of them were refused" }]);
});

test("with zero turns nothing is sent and the text is empty; a fork without text never returns its parent's text", async () => {
  await using place = await openListening(() => callTools([bash("true")]));
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

test("an already aborted signal starts nothing; one that is aborted later ends only its fork", async () => {
  await using place = await openListening(({ directive }) =>
    directive === "ends" ? never() : say(`Scope: ${directive}\nResult: done`),
  );
  await using session = await begun(place);
  const before = place.simulator.ledger().length;
  const gone = await ended(session.fork({ prompt: "never begins", signal: AbortSignal.abort() }));
  assert.deepEqual([gone.end, gone.turns, place.simulator.ledger().length], ["aborted", 0, before]);
  const caller = new AbortController();
  const [first, second] = session.forkAll([{ prompt: "stays" }, { prompt: "ends", signal: caller.signal }]);
  assert.ok(first && second);
  const results = Promise.all([ended(first), ended(second)]);
  for await (const event of first.events) if (event.type === "task_ended") caller.abort();
  assert.deepEqual(
    (await results).map(({ end }) => end),
    ["reported", "aborted"],
  );
});

test("a fork that runs out of time ends alone: its sibling and its parent continue", async () => {
  const released = gate();
  await using place = await openListening(({ directive }) =>
    directive === "slow" ? never() : { ...say(`Scope: ${directive}\nResult: done`), hold: released.passed },
  );
  await using session = await begun(place);
  const [other, slow] = session.forkAll([{ prompt: "other" }, { prompt: "slow", timeoutMs: 20 }]);
  assert.ok(slow && other);
  const rest = ended(other);
  assert.equal((await ended(slow)).end, "timed-out");
  assert.equal((await session.prompt("and now?").result()).end, "done");
  released.open();
  assert.equal((await rest).end, "reported");
});

// --- the handle --------------------------------------------------------------------------------------------------------

test("a result can be taken only once", async () => {
  await using place = await openListening(({ directive }) => say(`Scope: ${directive}\nResult: done`));
  await using session = await begun(place);
  const handle = session.fork({ prompt: "part" });
  const first = handle.result();
  await assert.rejects(handle.result(), /^InputError: the result of task-1 has already been taken$/);
  assert.equal((await first).status, "ended");
  await assert.rejects(handle.result(), /already been taken/);
});

test("disposing of a handle ends its fork only if nobody has taken the result", async () => {
  const released = gate();
  await using place = await openListening(({ directive }) =>
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

// --- hosts ---------------------------------------------------------------------------------------------------------------

/** What is left of a value that went to another process and back. */
const crossed = <T>(value: T): T =>
  value === undefined ? value : (JSON.parse(JSON.stringify(structuredClone(value))) as T);

/** As if children ran in another process: nothing but data goes in and out. */
const farHost = (local: ChildHost): ChildHost => ({
  prepare: async (plans) => local.prepare?.(crossed(plans)),
  open: async (plan, parent, signal) => {
    const { ask, budget } = parent;
    const far: ChildParent = {
      emit: (event) => parent.emit(crossed(event)),
      append: (entry) => parent.append(crossed(entry)),
      ask: ask && (async (question, aborted) => crossed(await ask(crossed(question), aborted))),
      awaitTurn: (aborted) => parent.awaitTurn(aborted),
      reportTurn: (state) => parent.reportTurn(crossed(state)),
      budget: {
        get left() {
          return structuredClone(budget.left);
        },
        get unspent() {
          return structuredClone(budget.unspent);
        },
        get countsMoney() {
          return budget.countsMoney;
        },
        reserve: (amount) => crossed(budget.reserve(crossed(amount))),
        settle: (reservation, used) => budget.settle(crossed(reservation), crossed(used)),
        freed: (aborted) => budget.freed(aborted),
      },
    };
    const { session, cacheKeyHash, diverged, ...child } = await local
      .open(crossed(plan), far, signal)
      .then((opened) => ({
        ...{ session: opened.session, cacheKeyHash: opened.cacheKeyHash, diverged: opened.diverged },
        steer: (mail: Mail) => opened.steer(crossed(mail)),
        refuseCalls: (reason: string) => opened.refuseCalls(crossed(reason)),
        stop: (ending?: ChildEnding) => opened.stop(crossed(ending)),
        result: async () => crossed(await opened.result()),
      }));
    return { ...crossed({ session, cacheKeyHash, diverged }), ...child };
  },
});

test("a plan and everything that a child and its parent exchange can cross a process boundary, and the requests are the same", async () => {
  const run = async (host: Partial<SessionOptions>): Promise<unknown> => {
    const parts = ["one", "two", "three"];
    await using place = await openFamily(
      familyScript({
        main: starts([...parts.map(part), { ...part("four"), subagent_type: "general-purpose" }]),
        fork: ({ directive, answers }) =>
          answers === 0 ? callTools([bash("echo found")]) : say(`Scope: ${directive}\nResult: done`),
      }),
      { conventions: 6_000 },
    );
    await using session = await place.open({ ...host, ids: countedIds(), limits: { usd: 5 } });
    const { result } = await prompted(session, "go");
    const fork = await ended(session.fork({ prompt: "later", maxTurns: 1, skipTranscript: true }));
    const [first] = session.tasks;
    const { state } = await session.resumeTask(first?.id ?? "", { message: "look again" });
    const told = session.tasks.map(({ result: kept }) => [kept?.text, kept?.turns, kept?.toolUses]);
    // Of the forks of the turn: what the parent hears of them afterwards comes in any order.
    const bodies = place.bodies().map((body) => JSON.stringify(body).replaceAll(place.folder.at(), ""));
    const own = bodies.filter((body) => parts.some((name) => body.includes(`fork-directive: ${name}`))).sort();
    assert.ok(own.length >= 2 * parts.length, `${own.length} requests are compared`);
    return { end: result.end, told, state, fork: [fork.end, fork.text, fork.turns], own };
  };
  assert.deepEqual(await run({ childHost: farHost }), await run({}));
});
