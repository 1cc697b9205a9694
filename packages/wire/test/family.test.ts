import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ManualClock,
  type SimAnswer,
  type Simulator,
  type SimulatorOptions,
  say,
  startSimulator,
  textOfTokens,
} from "@prefork/simulator";
import {
  anthropic,
  type Client,
  createClient,
  type Family,
  type FamilyOptions,
  type FamilyOutcome,
  FrozenPrefix,
  forkFamily,
  type Message,
  ModelError,
  nextMarkers,
  type Outcome,
  type Prepared,
  prepare,
  sendFamily,
  text,
  toolResult,
  userText,
} from "../src/index.ts";

const model = "claude-sonnet-5";

/** P = 5,000 tokens: 2,000 of system and 3,000 of user text. */
const parentRequest = (): Prepared => {
  const head = { model, tools: [], system: [text(textOfTokens(2_000, 1))], settings: {} };
  const prefix = FrozenPrefix.open(anthropic.encoder, head).append(userText(textOfTokens(3_000, 2)));
  return prepare({
    protocol: anthropic,
    prefix,
    markers: nextMarkers(prefix),
    closing: { maxTokens: 64, stream: true },
  });
};

/** S = 1,000 tokens: 97 of words, three calls of one token each, three results of 300. */
const ids = ["toolu_1", "toolu_2", "toolu_3"];
const inFlight: Message = {
  role: "assistant",
  content: [
    text(textOfTokens(97, 3)),
    ...ids.map((id) => ({ type: "tool_use" as const, id, name: "Agent", input: "{}" })),
  ],
};
const results = ids.map((id, index) => toolResult(id, textOfTokens(300, 4 + index)));

/** Three children with D = 50 tokens each, and a parent that goes on with 20. */
const familyOf = (parent: Prepared, options: FamilyOptions = {}): Family =>
  forkFamily(
    parent,
    [10, 11, 12].map((seed) => textOfTokens(50, seed)),
    { inFlight, results, protocol: "none", parentNote: textOfTokens(20, 20), parentTokens: 5_000, ...options },
  );

type Stage = { readonly sim: Simulator; readonly client: Client; readonly parent: Prepared };

const onStage = async (
  act: (stage: Stage) => Promise<void>,
  { warm = true, ...options }: SimulatorOptions & { readonly warm?: boolean } = {},
): Promise<void> => {
  await using sim = await startSimulator({ clock: new ManualClock(), ...options });
  const credential = { kind: "api-key", value: "key" } as const;
  const client = createClient({ baseUrl: sim.url, credential, retry: { attempts: 1 } });
  const parent = parentRequest();
  if (warm) assert.equal((await client.send(parent)).usage.written["5m"], 5_000);
  await act({ sim, client, parent });
  client.close();
};

/** [read, written, plain] as the simulator billed it, by the id of the answer. */
const billed = (sim: Simulator, outcome: Outcome | undefined): readonly number[] => {
  assert.ok(outcome?.status === "answered", `not answered: ${outcome?.status}`);
  const row = sim.ledger().find(({ messageId }) => messageId === outcome.response.id);
  assert.ok(row);
  const { read, written, plain } = outcome.response.usage;
  assert.deepEqual([read, written["5m"] ?? 0, plain], [row.read, row.written["5m"], row.plain], "told as billed");
  assert.equal(row.outcome, "complete");
  return [row.read, row.written["5m"], row.plain];
};

const bills = (sim: Simulator, { members, parentNext }: FamilyOutcome): readonly (readonly number[])[] =>
  [...members, parentNext].map((outcome) => billed(sim, outcome));

const failure = (outcome: Outcome | undefined): ModelError => {
  assert.ok(outcome?.status === "failed", `not failed: ${outcome?.status}`);
  assert.ok(outcome.error instanceof ModelError);
  return outcome.error;
};

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise(setImmediate);
};

/** Answers the nth request of a run by the nth; the rest with a word. */
const answering = (...script: readonly (SimAnswer | Promise<SimAnswer>)[]): (() => SimAnswer | Promise<SimAnswer>) => {
  const left = [...script];
  return () => left.shift() ?? say("Done.");
};

test("warm: the leader reads P and writes S, the others and the parent read P and S", () =>
  onStage(async ({ sim, client, parent }) => {
    const outcome = await sendFamily(client, familyOf(parent));
    assert.deepEqual(bills(sim, outcome), [
      [5_000, 1_050, 0],
      [6_000, 50, 0],
      [6_000, 50, 0],
      [6_000, 20, 0],
    ]);
    const { launch, waitCapMs, reason } = outcome.launch;
    assert.deepEqual([launch, waitCapMs], ["leader-first", 10_000]);
    assert.match(reason, /^leader first: at once would cost [\d.]+ % more/);
  }));

test("cold: the leader writes P and S, the others and the parent read both", () =>
  onStage(
    async ({ sim, client, parent }) => {
      const outcome = await sendFamily(client, familyOf(parent, { cold: true }));
      assert.deepEqual(bills(sim, outcome), [
        [0, 6_050, 0],
        [6_000, 50, 0],
        [6_000, 50, 0],
        [6_000, 20, 0],
      ]);
      assert.deepEqual([outcome.launch.launch, outcome.launch.waitCapMs], ["leader-first", 60_000]);
    },
    { warm: false },
  ));

test("single-turn children leave D unmarked", () =>
  onStage(async ({ sim, client, parent }) => {
    const outcome = await sendFamily(client, familyOf(parent, { singleTurn: true }));
    assert.deepEqual(bills(sim, outcome), [
      [5_000, 1_000, 50],
      [6_000, 0, 50],
      [6_000, 0, 50],
      [6_000, 20, 0],
    ]);
  }));

test("trimmed members all go at once and read P; the parent keeps its turn", () =>
  onStage(async ({ sim, client, parent }) => {
    sim.fault({ kind: "together", times: 4 });
    const outcome = await sendFamily(client, familyOf(parent, { trim: true }));
    assert.deepEqual(bills(sim, outcome), [
      [5_000, 50, 0],
      [5_000, 50, 0],
      [5_000, 50, 0],
      [5_000, 1_020, 0],
    ]);
    assert.equal(outcome.launch.launch, "at-once");
  }));

test("if the caller asks for at once, every member pays for S", () =>
  onStage(async ({ sim, client, parent }) => {
    sim.fault({ kind: "together", times: 4 });
    const outcome = await sendFamily(client, familyOf(parent), { launch: "at-once" });
    assert.deepEqual(bills(sim, outcome), [
      [5_000, 1_050, 0],
      [5_000, 1_050, 0],
      [5_000, 1_050, 0],
      [5_000, 1_020, 0],
    ]);
    assert.match(outcome.launch.reason, /^at-once, as the caller asked \(advice: leader first: /);
  }));

test("nobody is sent while the leader is unanswered, and all are sent at its first event, long before its end", () => {
  const { promise: first, resolve: speak } = Promise.withResolvers<SimAnswer>();
  const { promise: hold, resolve: finish } = Promise.withResolvers<void>();
  return onStage(
    async ({ sim, client, parent }) => {
      const events: string[] = [];
      const sent = sendFamily(client, familyOf(parent), {
        onEvent: (member, { type }) => events.push(`${member} ${type}`),
      });
      await until(() => sim.ledger().length === 2);
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
      assert.equal(sim.ledger().length, 2, "the parent's first request, and the leader");
      speak({ ...say("Led."), hold });
      await until(() => sim.ledger().filter(({ outcome }) => outcome === "complete").length === 4);
      assert.equal(sim.ledger()[1]?.outcome, "open");
      assert.equal(events[0], "0 response_started");
      assert.ok(!events.includes("0 response_stopped"));
      finish();
      const { members } = await sent;
      assert.equal(events.at(-1), "0 response_stopped");
      assert.deepEqual(billed(sim, members[0]), [5_000, 1_050, 0]);
      assert.deepEqual(billed(sim, members[2]), [6_000, 50, 0]);
    },
    { script: answering(say("Parent."), first) },
  );
});

test("every member's outcome is complete", () =>
  onStage(
    async ({ sim, client, parent }) => {
      const { members, parentNext } = await sendFamily(client, familyOf(parent));
      assert.deepEqual(members[0], {
        status: "answered",
        response: {
          id: sim.ledger()[1]?.messageId,
          model,
          message: { role: "assistant", content: [text("Led the way.")] },
          stop: "end",
          usage: { plain: 0, read: 5_000, written: { "5m": 1_050 }, output: 3 },
        },
      });
      assert.deepEqual(
        [...members.slice(1), parentNext].map((outcome) => outcome?.status === "answered" && outcome.response.message),
        Array.from({ length: 3 }, () => ({ role: "assistant", content: [text("Done.")] })),
      );
      const answered = new Set([...members, parentNext].map((each) => each?.status === "answered" && each.response.id));
      assert.equal(answered.size, 4);
    },
    { script: answering(say("Parent."), say("Led the way.")) },
  ));

test("if a leader fails, the next one leads, and the others are still answered", () =>
  onStage(async ({ sim, client, parent }) => {
    sim.fault({ kind: "status", status: 500 });
    const outcome = await sendFamily(client, familyOf(parent));
    const error = failure(outcome.members[0]);
    assert.deepEqual(error.reason, { kind: "server", status: 500 });
    assert.deepEqual(
      [...outcome.members.slice(1), outcome.parentNext].map((member) => billed(sim, member)),
      [
        [5_000, 1_050, 0],
        [6_000, 50, 0],
        [6_000, 20, 0],
      ],
    );
  }));

test("if one leader after another fails, the parent leads in the end", () =>
  onStage(async ({ sim, client, parent }) => {
    sim.fault({ kind: "reset", times: 2 });
    sim.fault({ kind: "status", status: 529 });
    const outcome = await sendFamily(client, familyOf(parent));
    assert.deepEqual(
      outcome.members.map((member) => failure(member).reason.kind),
      ["connection", "connection", "overloaded"],
    );
    assert.deepEqual(billed(sim, outcome.parentNext), [5_000, 1_020, 0]);
  }));

test("a leader that fails after its first event has done its part", () =>
  onStage(async ({ sim, client, parent }) => {
    sim.fault({ kind: "reset-mid-stream", afterEvents: 3 });
    const outcome = await sendFamily(client, familyOf(parent));
    assert.deepEqual(failure(outcome.members[0]).reason, { kind: "connection" });
    assert.equal(failure(outcome.members[0]).afterContent, true);
    assert.deepEqual(
      [...outcome.members.slice(1), outcome.parentNext].map((member) => billed(sim, member)),
      [
        [6_000, 50, 0],
        [6_000, 50, 0],
        [6_000, 20, 0],
      ],
    );
  }));

test("abort ends the whole family: requests in flight are closed, waiting ones are never sent", () =>
  onStage(
    async ({ sim, client, parent }) => {
      const abort = new AbortController();
      const sent = sendFamily(client, familyOf(parent), { signal: abort.signal });
      await until(() => sim.ledger().length === 2);
      abort.abort();
      const { members, parentNext } = await sent;
      assert.deepEqual(
        [...members, parentNext].map((member) => failure(member).reason),
        Array.from({ length: 4 }, () => ({ kind: "aborted" })),
      );
      await until(() => sim.ledger()[1]?.outcome === "aborted");
      assert.equal(sim.ledger().length, 2);
    },
    { script: answering(say("Parent."), new Promise<never>(() => {})) },
  ));

test("a family aborted before it starts has outcomes for all, and nothing is sent", () =>
  onStage(async ({ sim, client, parent }) => {
    const { members } = await sendFamily(client, familyOf(parent), { signal: AbortSignal.abort() });
    assert.deepEqual(
      members.map((member) => failure(member).reason.kind),
      ["aborted", "aborted", "aborted"],
    );
    assert.equal(sim.ledger().length, 1);
  }));

test("a listener that throws is the caller's error, and nothing continues in the background", () =>
  onStage(
    async ({ sim, client, parent }) => {
      const broken = new TypeError("a bug of the caller");
      const sent = sendFamily(client, familyOf(parent), {
        onEvent: () => {
          throw broken;
        },
      });
      await assert.rejects(sent, broken);
      await until(() => sim.ledger().every(({ outcome }) => outcome !== "open"));
      assert.equal(sim.ledger()[1]?.outcome, "aborted");
    },
    { script: answering(say("Parent."), { ...say("never"), hold: new Promise<never>(() => {}) }) },
  ));
