/** Rows of requests, compared with what the simulator itself billed: every figure is the provider's, and each miss
 *  has the reason that was provoked. */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { type LedgerRow as Billed, callTools, say, textOfTokens, think, toolResults } from "@prefork/simulator";
import { promptTokens } from "@prefork/wire";
import { type ForkOptions, resumeSession } from "../../src/index.ts";
import { explainFamily, type RequestRow } from "../../src/observe/index.ts";
import { readSession } from "../../src/observe.ts";
import { parseNotifications } from "../../src/tasks/index.ts";
import {
  causesOf,
  directiveIn,
  forking,
  type Ground,
  lastWords,
  openForking,
  openGround,
  PARTS,
  prompted,
} from "./fixture.ts";

/** What both sides say about a request, by the provider's id of its answer. */
const figures = ({ answer, expected, usage, usd }: RequestRow) => ({
  answer,
  expected,
  read: usage.read,
  written: usage.written["5m"] ?? 0,
  plain: usage.plain,
  output: usage.output,
  usd: usd?.toFixed(9),
});

const billed = ({ messageId, expectedRead, read, written, plain, output, billed: { usd } }: Billed) => ({
  answer: messageId,
  expected: expectedRead,
  read,
  written: written["5m"],
  plain,
  output,
  usd: usd?.toFixed(9),
});

const byAnswer = (a: { readonly answer?: string | null | undefined }, b: typeof a): number =>
  String(a.answer) < String(b.answer) ? -1 : 1;

/** Rows and simulator agree on every figure. */
const assertAsBilled = (rows: readonly RequestRow[], { simulator }: Ground): void =>
  assert.deepEqual(rows.map(figures).toSorted(byAnswer), simulator.ledger().map(billed).toSorted(byAnswer));

for (const count of [1, 2, 5])
  test(`a warm family of ${count}: every row expects and reads what the simulator says, and all add up to what was spent`, async () => {
    await using ground = await openForking(count);
    await using session = await ground.open();
    await prompted(session, "Look at every part.");
    const { rows, unread, problems } = await ground.family(session.id);
    assertAsBilled(rows, ground);
    assert.deepEqual([unread, problems], [[], []]);
    const begun = rows
      .filter(({ agent, turn }) => turn === 1 || (agent === "main" && turn === 2))
      .map(({ agent, turn, family }) => `${agent === "main" ? "main" : "fork"} ${turn} ${family?.role ?? "alone"}`);
    assert.deepEqual(begun.slice(0, 2), ["main 1 alone", "fork 1 leader"]);
    // The followers are released together, so the order of their answers is not fixed.
    assert.deepEqual(begun.slice(2).sort(), [...PARTS.slice(1, count).map(() => "fork 1 follower"), "main 2 follower"]);
    assert.deepEqual(
      [
        ...new Set(
          causesOf(rows)
            .slice(1)
            .map((words) => words.replace(/^.*: /, "")),
        ),
      ],
      ["none"],
    );
    const { usage, usd } = session.spent;
    const sum = (pick: (row: RequestRow) => number): number => rows.reduce((all, row) => all + pick(row), 0);
    assert.deepEqual(
      [sum((row) => promptTokens(row.usage)), sum((row) => row.usage.read), sum((row) => row.usage.output)],
      [promptTokens(usage), usage.read, usage.output],
    );
    assert.equal(sum((row) => row.usd ?? 0).toFixed(9), usd.toFixed(9));
  });

const TAILS: readonly ForkOptions[] = [
  {},
  { inFlight: "trim" },
  { placeholders: "all" },
  { maxTurns: 1 },
  { protocol: "none", overrides: { criticalSystemReminder: "Be quick." } },
];

for (const tail of TAILS)
  test(`forks of a program, ${JSON.stringify(tail)}: every row expects and reads what the simulator says`, async () => {
    const parts = PARTS.slice(0, 3);
    await using ground = await openForking(3);
    await using session = await ground.open();
    await prompted(session, "Hello.");
    const forks = session.forkAll(parts.map((prompt) => ({ ...tail, prompt })));
    await Promise.all(forks.map((fork) => fork.result()));
    await prompted(session, "And now?");
    const { rows, unread } = await ground.family(session.id);
    assertAsBilled(rows, ground);
    assert.deepEqual(unread, []);
    assert.deepEqual(
      rows.flatMap(({ cause }) => (cause.kind === "none" ? [] : [cause.kind])),
      ["first-request"],
    );
    assert.deepEqual(explainFamily(await ground.family(session.id)).total.usage, session.spent.usage);
  });

test("a resumed task reads what it had written itself, in rows of the same agent", async () => {
  await using ground = await openForking(1);
  await using session = await ground.open();
  await prompted(session, "Look at every part.");
  const [task] = session.tasks;
  assert.ok(task);
  await session.resumeTask(task.id, { message: "Look again." });
  const { rows } = await ground.family(session.id);
  assertAsBilled(rows, ground);
  const own = rows.filter(({ agent }) => agent === task.id);
  assert.deepEqual(
    own.map(({ turn, cause }) => [turn, cause.kind]),
    own.map((_, at) => [at + 1, "none"]),
  );
  assert.ok(own.length > 2);
});

test("an agent that starts empty has a first request of its own", async () => {
  await using ground = await openGround({
    script: (request) => {
      if (lastWords(request).includes("Find the file")) return say("It is here.");
      if (parseNotifications(lastWords(request)).length > 0) return say("done");
      if (toolResults(request).length > 0) return say("I wait.");
      const input = { description: "find it", prompt: "Find the file", subagent_type: "general-purpose" };
      return callTools([{ name: "Agent", input }]);
    },
  });
  await using session = await ground.open();
  await prompted(session, "Look.");
  const { rows, tasks } = await ground.family(session.id);
  assert.deepEqual(
    tasks.map(({ kind, agentType }) => [kind, agentType]),
    [["agent", "general-purpose"]],
  );
  const own = rows.filter(({ agent }) => agent === tasks[0]?.id);
  assert.deepEqual(
    own.map(({ cause, expected, family }) => [cause.kind, expected, family]),
    [["first-request", 0, undefined]],
  );
  assert.deepEqual(explainFamily(await ground.family(session.id)).total.usage, session.spent.usage);
});

test("the ledger can be read while the session is running, and a request in flight has no figures yet", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const parts = PARTS.slice(0, 2);
  await using ground = await openForking(2, {
    script: async (request) => {
      if (directiveIn(request) === "service") await promise;
      return forking(parts)(request);
    },
  });
  await using session = await ground.open();
  const reading = Promise.withResolvers<readonly RequestRow[]>();
  const running = prompted(session, "Look at every part.", (event) => {
    if (event.type !== "task_ended") return;
    ground.family(session.id).then(({ rows }) => reading.resolve(rows), reading.reject);
  });
  const rows = await reading.promise;
  resolve();
  await running;
  const open = rows.filter(({ isAnswered }) => !isAnswered);
  assert.deepEqual(
    open.map(({ turn, expected, usage, cause, family }) => ({
      turn,
      usage,
      cause,
      role: family?.role,
      expects: expected > 8_000,
    })),
    [
      {
        turn: 1,
        usage: { plain: 0, read: 0, written: {}, output: 0 },
        cause: { kind: "none" },
        role: "follower",
        expects: true,
      },
    ],
  );
});

test("an entry older than its lifetime has expired, for the main agent and for the leader of a family", async () => {
  await using ground = await openForking(2);
  await using session = await ground.open();
  await prompted(session, "Look at every part.", (event) => {
    if (event.type === "turn_ended" && event.turn === 1 && event.agent === "main") ground.later(6 * 60_000);
  });
  ground.later(7 * 60_000);
  await prompted(session, "Thank you.");
  const { rows } = await ground.family(session.id);
  // Once the leader has been answered, the others are sent in any order.
  const causes = causesOf(rows);
  assert.deepEqual(
    [...causes.slice(0, 2), ...causes.slice(2, 6).toSorted(), ...causes.slice(6)],
    [
      "main 1: first-request",
      "fork 1 1: expired",
      "fork 1 2: none",
      "fork 2 1: none",
      "fork 2 2: none",
      "main 2: none",
      "main 3: none",
      "main 4: expired",
    ],
  );
  const expired = rows.flatMap(({ cause, expected, usage, writtenBefore }) =>
    cause.kind === "expired"
      ? [
          {
            ...cause,
            unusedMs: Math.floor(cause.unusedMs / 60_000),
            expected,
            read: usage.read,
            lost: writtenBefore > 8_000,
          },
        ]
      : [],
  );
  assert.deepEqual(expired, [
    { kind: "expired", ttl: "5m", unusedMs: 6, expected: 0, read: 0, lost: true },
    { kind: "expired", ttl: "5m", unusedMs: 7, expected: 0, read: 0, lost: true },
  ]);
});

test("an entry that the provider dropped early is unexplained: the journal shows no reason", async () => {
  await using ground = await openGround({ script: () => say("heard") });
  await using session = await ground.open();
  await prompted(session, "one");
  ground.simulator.clock.advance(6 * 60_000);
  await prompted(session, "two");
  const { rows } = await ground.family(session.id);
  assert.deepEqual(causesOf(rows), ["main 1: first-request", "main 2: unexplained"]);
  const [first, second] = rows;
  assert.deepEqual([second?.expected, second?.usage.read], [first && promptTokens(first.usage), 0]);
});

test("a summary is a side request that reads the old context, and what follows begins a new epoch", async () => {
  await using ground = await openGround({
    script: (request) =>
      say(
        JSON.stringify(request.body.messages).includes("goes on from a summary")
          ? "<summary>All is well.</summary>"
          : "heard",
      ),
  });
  await using session = await ground.open();
  await prompted(session, "one");
  await prompted(session, "two");
  assert.equal((await session.compact()).kind, "compacted");
  await prompted(session, "three");
  const { rows } = await ground.family(session.id);
  assert.deepEqual(
    rows.map(({ kind, turn, epoch, cause }) => [kind, turn, epoch, cause]),
    [
      ["turn", 1, 1, { kind: "first-request" }],
      ["turn", 2, 1, { kind: "none" }],
      ["aside", 0, 1, { kind: "none" }],
      ["turn", 3, 2, { kind: "new-epoch", reason: "compaction" }],
    ],
  );
  // The new epoch begins with the same head: that much of it is read again.
  assertAsBilled(rows, ground);
});

test("another model reads nothing that the first one wrote", async () => {
  await using ground = await openGround({ script: () => say("heard") });
  const { id } = await (async () => {
    await using session = await ground.open();
    await prompted(session, "one");
    return session;
  })();
  await using session = await resumeSession(id, ground.options({ model: "claude-opus-4-6" }));
  await prompted(session, "two");
  const { rows } = await ground.family(id);
  assert.deepEqual(
    rows.map(({ model, cause, expected }) => [model, cause, expected]),
    [
      ["claude-sonnet-5", { kind: "first-request" }, 0],
      ["claude-opus-4-6", { kind: "new-epoch", reason: "model" }, 0],
    ],
  );
});

test("a prompt below the model's minimum is not cached, so the next one reads nothing", async () => {
  await using ground = await openGround({ script: () => say("heard"), conventions: 0 });
  await using session = await ground.open({ model: "claude-opus-4-6" });
  await prompted(session, "one");
  await prompted(session, "two");
  const { rows } = await ground.family(session.id);
  const tokens = rows[0] ? promptTokens(rows[0].usage) : 0;
  assert.deepEqual(
    rows.map(({ cause, expected }) => [cause, expected]),
    [
      [{ kind: "first-request" }, 0],
      [{ kind: "below-minimum", minimum: 4_096, tokens }, 0],
    ],
  );
});

test("followers that are released before the leader's entry can be read have raced it", async () => {
  const parts = PARTS.slice(0, 3);
  let asked = 0;
  const all = Promise.withResolvers<void>();
  // This provider creates an entry only when an answer is complete, and none is before all requests were sent.
  await using ground = await openForking(3, {
    rules: { cache: { readable: "complete" } },
    script: async (request) => {
      const answer = await forking(parts)(request);
      // With its calls the parent adds much that all share.
      if (directiveIn(request) === undefined && asked === 0)
        return { ...answer, content: [{ type: "text", text: textOfTokens(2_000) }, ...answer.content] };
      asked += 1;
      if (asked === 4) all.resolve();
      return { ...answer, hold: all.promise };
    },
  });
  await using session = await ground.open();
  await prompted(session, "Look at every part.");
  const { rows } = await ground.family(session.id);
  const leader = rows.find(({ family }) => family?.role === "leader")?.agent;
  assert.deepEqual(
    rows.filter(({ family }) => family).map(({ family, cause }) => [family?.role, cause]),
    [
      ["leader", { kind: "none" }],
      ["follower", { kind: "raced", leader }],
      ["follower", { kind: "raced", leader }],
      ["follower", { kind: "raced", leader }],
    ],
  );
});

test("bytes that were changed in the journal between two runs are reported with the location of the first one", async () => {
  await using ground = await openGround({ script: () => say("heard") });
  const { id } = await (async () => {
    await using session = await ground.open();
    await prompted(session, "the first words");
    await prompted(session, "the second words");
    return session;
  })();
  const journal = ground.folder.at(".state", "sessions", id, "journal.jsonl");
  writeFileSync(journal, readFileSync(journal, "utf8").replaceAll("the second words", "the sekond words"));
  await using session = await resumeSession(id, ground.options());
  await prompted(session, "the third words");
  const { rows, problems } = await ground.family(id);
  const [first, second, third] = rows;
  assert.match(problems.join("\n"), /from here on the bytes differ/);
  // Its last marker was on the prompt that was changed.
  const { reading } = await readSession(ground.store, id);
  const asked = reading.entries.flatMap(({ entry }) => (entry.kind === "request" ? [entry.markers] : []));
  const segment = asked[1]?.at(-1)?.segment;
  assert.deepEqual(third?.cause, { kind: "changed-bytes", segment, path: "messages[2].content[0]" });
  assert.equal(third?.expected, second && promptTokens(second.usage));
  // What comes before the change is read all the same.
  assert.equal(third?.usage.read, first && promptTokens(first.usage));
  assert.deepEqual([first?.cause.kind, second?.cause.kind], ["first-request", "none"]);
});

test("forks whose parent's journal was changed afterwards are counted as a whole, and nothing is lost from the sum", async () => {
  await using ground = await openForking(2);
  await using session = await ground.open();
  await prompted(session, "Look at every part.");
  const before = await ground.family(session.id);
  const journal = ground.folder.at(".state", "sessions", session.id, "journal.jsonl");
  writeFileSync(journal, readFileSync(journal, "utf8").replaceAll("Look at every part.", "Look at every pant."));
  const after = await ground.family(session.id);
  assert.deepEqual(
    after.unread.map(({ agent, usage, reason }) => [agent, usage, /have changed$/.test(reason)]),
    session.tasks.map(({ id, result }) => [id, result?.usage, true]),
  );
  assert.deepEqual(explainFamily(after).total.usage, session.spent.usage);
  // What the main agent was billed stays the same. That its bytes are gone is not anybody's fault.
  const main = ({ rows }: typeof before) => rows.filter(({ agent }) => agent === "main").map(({ usage }) => usage);
  assert.deepEqual(main(after), main(before));
  assert.deepEqual(
    after.rows.map(({ cause }) => cause.kind),
    ["first-request", "none", "none"],
  );
});

test("a model that drops earlier thinking at a new user message always loses what came after it", async () => {
  await using ground = await openGround({
    script: (request) =>
      think(
        "Let me see.",
        toolResults(request).length > 0
          ? say("read")
          : callTools([{ name: "Read", input: { file_path: "AGENTS.md", limit: 1 } }]),
      ),
  });
  await using session = await ground.open({
    model: "claude-sonnet-4-5",
    settings: { thinking: { type: "enabled", budgetTokens: 1_024 } },
  });
  await prompted(session, "one");
  await prompted(session, "two");
  const { rows } = await ground.family(session.id);
  assert.deepEqual(causesOf(rows), [
    "main 1: first-request",
    "main 2: none",
    "main 3: thinking-dropped",
    "main 4: none",
  ]);
});
