import assert from "node:assert/strict";
import { test } from "node:test";
import { LaunchGate, type LaunchOrder, type Ticket } from "../src/launch-gate.ts";

type Cap = { readonly ms: number; readonly up: () => void; readonly signal: AbortSignal };

/** A gate whose time is up when a test says so, and a record of who was admitted in which order. */
const gated = (
  launch: "leader-first" | "at-once" = "leader-first",
  pacing: Omit<LaunchOrder, "launch" | "waitCapMs"> = {},
) => {
  const caps: Cap[] = [];
  const time = { now: 0 };
  const gate = new LaunchGate(
    { launch, waitCapMs: 10_000, ...pacing },
    {
      now: () => time.now,
      wait: (ms, signal) =>
        new Promise((up, reject) => {
          caps.push({ ms, up, signal });
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
    },
  );
  const admitted: string[] = [];
  const tickets = new Map<string, Ticket>();
  const ask = async (name: string, signal?: AbortSignal): Promise<void> => {
    tickets.set(name, await gate.admit(signal));
    admitted.push(name);
  };
  const ticket = (name: string): Ticket => {
    const found = tickets.get(name);
    assert.ok(found, `${name} was not admitted`);
    return found;
  };
  return { gate, caps, admitted, ask, ticket, time };
};

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("the leader goes alone, and all others in order once its entry can be read", async () => {
  const { admitted, ask, ticket, caps } = gated();
  const sent = ["a", "b", "c", "parent"].map((name) => ask(name));
  await settled();
  assert.deepEqual(admitted, ["a"]);
  assert.deepEqual(
    caps.map(({ ms }) => ms),
    [10_000],
  );
  ticket("a").readable();
  await Promise.all(sent);
  assert.deepEqual(admitted, ["a", "b", "c", "parent"]);
  assert.equal(caps[0]?.signal.aborted, true, "no timer is left behind");
  await ask("late");
  assert.deepEqual(admitted.at(-1), "late");
  assert.equal(caps.length, 1, "nobody leads any more");
});

test("when the wait is over all are released", async () => {
  const { admitted, ask, caps, ticket } = gated();
  const sent = ["a", "b", "c"].map((name) => ask(name));
  await settled();
  caps[0]?.up();
  await Promise.all(sent);
  assert.deepEqual(admitted, ["a", "b", "c"]);
  ticket("a").failed();
  ticket("a").readable();
  await ask("d");
  assert.deepEqual(admitted, ["a", "b", "c", "d"]);
});

test("if a leader fails, the next one leads, with its own wait", async () => {
  const { admitted, ask, ticket, caps } = gated();
  const sent = ["a", "b", "c", "d"].map((name) => ask(name));
  await settled();
  ticket("a").failed();
  await settled();
  assert.deepEqual(admitted, ["a", "b"]);
  assert.deepEqual(
    caps.map(({ signal }) => signal.aborted),
    [true, false],
  );
  ticket("a").readable();
  caps[0]?.up();
  await settled();
  assert.deepEqual(admitted, ["a", "b"], "who no longer leads releases nobody");
  ticket("b").failed();
  await settled();
  assert.deepEqual(admitted, ["a", "b", "c"]);
  ticket("c").readable();
  await Promise.all(sent);
  assert.deepEqual(admitted, ["a", "b", "c", "d"]);
  assert.deepEqual(
    caps.map(({ signal }) => signal.aborted),
    [true, true, true],
  );
});

test("when the last member fails no timer is left, and the next to ask leads", async () => {
  const { admitted, ask, ticket, caps } = gated();
  await ask("a");
  ticket("a").failed();
  assert.equal(caps[0]?.signal.aborted, true);
  await ask("b");
  const waits = ask("c");
  await settled();
  assert.deepEqual(admitted, ["a", "b"]);
  ticket("b").readable();
  await waits;
});

test("a member that asks during a hand-over waits for the new leader", async () => {
  const { admitted, ask, ticket } = gated();
  const sent = [ask("a"), ask("b")];
  await settled();
  ticket("a").failed();
  sent.push(ask("c"));
  await settled();
  assert.deepEqual(admitted, ["a", "b"]);
  ticket("b").readable();
  await Promise.all(sent);
  assert.deepEqual(admitted, ["a", "b", "c"]);
});

test("an aborted member leaves the queue, and the others still go", async () => {
  const { admitted, ask, ticket } = gated();
  const abort = new AbortController();
  const [leader, leaving, ...others] = [ask("a"), ask("b", abort.signal), ask("c"), ask("d")];
  await leader;
  abort.abort(new Error("enough"));
  await assert.rejects(leaving, { message: "enough" });
  ticket("a").failed();
  await settled();
  assert.deepEqual(admitted, ["a", "c"], "the lead passes it by");
  ticket("c").readable();
  await Promise.all(others);
  assert.deepEqual(admitted, ["a", "c", "d"]);
});

test("at once nobody waits and no time passes", async () => {
  const { admitted, ask, caps, ticket } = gated("at-once");
  await Promise.all(["a", "b", "c"].map((name) => ask(name)));
  assert.deepEqual(admitted, ["a", "b", "c"]);
  assert.equal(caps.length, 0);
  ticket("a").failed();
  await ask("d");
  assert.deepEqual(admitted, ["a", "b", "c", "d"]);
});

test("a member that is aborted before asking is not admitted and does not lead", async () => {
  const { admitted, ask, caps } = gated();
  await assert.rejects(ask("a", AbortSignal.abort(new Error("enough"))), { message: "enough" });
  assert.deepEqual([admitted, caps.length], [[], 0]);
  await ask("b");
  assert.deepEqual(admitted, ["b"]);
});

test("if an entry takes time to build, followers wait for that too", async () => {
  const { admitted, ask, ticket, caps } = gated("leader-first", { settleMs: 3_000 });
  const sent = ["a", "b"].map((name) => ask(name));
  await settled();
  ticket("a").readable();
  ticket("a").failed(); // said of every member in the end
  await settled();
  const late = ask("c");
  await settled();
  assert.deepEqual(admitted, ["a"]);
  caps.findLast(({ ms }) => ms === 3_000)?.up();
  await Promise.all([...sent, late]);
  assert.deepEqual(admitted, ["a", "b", "c"]);
});

test("more members than a provider keeps together in a minute are sent in the next one, in order", async () => {
  const { admitted, ask, caps, time } = gated("at-once", { perMinute: 2 });
  const sent = ["a", "b", "c", "d", "e"].map((name) => ask(name));
  await settled();
  assert.deepEqual(admitted, ["a", "b"]);
  time.now = 60_000;
  caps.at(-1)?.up();
  await settled();
  assert.deepEqual(admitted, ["a", "b", "c", "d"]);
  time.now = 119_000;
  caps.at(-1)?.up(); // too early: nobody is let go
  await settled();
  assert.deepEqual([admitted.length, caps.at(-1)?.ms], [4, 1_000]);
  time.now = 120_000;
  caps.at(-1)?.up();
  await Promise.all(sent);
  assert.deepEqual(admitted, ["a", "b", "c", "d", "e"]);
});

test("a member that leaves while waiting for the rate limit is not sent, and leaves no timer", async () => {
  const { admitted, ask, caps } = gated("at-once", { perMinute: 1 });
  await ask("a");
  const leaving = new AbortController();
  const left = ask("b", leaving.signal);
  await settled();
  leaving.abort(new Error("gone"));
  await assert.rejects(left, /gone/);
  assert.deepEqual([admitted, caps.at(-1)?.signal.aborted], [["a"], true]);
});

test("a member that arrives while an entry is being built waits, and later ones do not", async () => {
  const { admitted, ask, ticket, caps, time } = gated("leader-first", { settleMs: 3_000 });
  await ask("a");
  ticket("a").readable();
  const early = ask("b");
  await settled();
  assert.deepEqual([admitted, caps.at(-1)?.ms], [["a"], 3_000]);
  time.now = 3_000;
  await ask("c");
  await early;
  assert.deepEqual(admitted.toSorted(), ["a", "b", "c"]);
});

test("a leader that leaves while waiting for the rate limit hands over, and an abort is never lost", async () => {
  const { admitted, ask, ticket, caps, time } = gated("leader-first", { perMinute: 1 });
  await ask("first");
  ticket("first").failed();
  const leaving = new AbortController();
  const leader = ask("leader", leaving.signal);
  const follower = ask("follower");
  await settled();
  leaving.abort(new Error("gone"));
  await assert.rejects(leader, /gone/);
  await settled();
  time.now = 60_000;
  for (const cap of caps) if (!cap.signal.aborted) cap.up();
  await follower;
  assert.deepEqual(admitted, ["first", "follower"]);
});

test("a member that arrives after the shared entry has expired leads again, and the next ones wait for it", async () => {
  for (const launch of ["leader-first", "at-once"] as const) {
    const { admitted, ask, ticket, caps, time } = gated(launch, { lifetimeMs: 300_000 });
    await ask("a");
    ticket("a").readable();
    time.now = 200_000;
    await ask("b"); // it uses the entry, which lives on
    time.now = 480_000;
    await ask("c");
    time.now = 800_000;
    const late = ["d", "e", "f"].map((name) => ask(name));
    await settled();
    assert.deepEqual(admitted, ["a", "b", "c", "d"]);
    assert.equal(caps.at(-1)?.ms, 60_000);
    ticket("d").readable();
    await Promise.all(late);
    assert.deepEqual(admitted, ["a", "b", "c", "d", "e", "f"]);
  }
});
