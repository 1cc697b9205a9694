/** Fifty turns in a real repository, over real HTTP: is every token written once, and is every read what it should be? */

import assert from "node:assert/strict";
import { test } from "node:test";
import { createSession, type ExchangeResult, type RuntimeEvent } from "@prefork/runtime";
import { type CacheRules, ManualClock, type SimScript, startSimulator } from "@prefork/simulator";
import { scratch } from "@prefork/testing/scratch";
import { extendsBlocks, extendsMessages, headTokens, readable, rewriteFactor, type Sent, sentTo } from "./as-sent.ts";
import { Calendar, converse, effectsIn, makePlace, optionsFor, watch } from "./long-session.ts";
import { asksForSummary, doneWith, scriptedModel } from "./scripted-model.ts";
import { TURNS, tasks } from "./tasks.ts";

type Ran = {
  readonly results: readonly ExchangeResult[];
  readonly events: readonly RuntimeEvent[];
  readonly requests: readonly Sent[];
  readonly head: number;
  readonly effects: readonly string[];
};

type Circumstances = {
  readonly lookback?: CacheRules["lookback"];
  /** After this many requests everything in the cache expires. */
  readonly lapseAfter?: number;
};

const run = async ({ lookback = "runs", lapseAfter }: Circumstances): Promise<Ran> => {
  using base = scratch();
  const place = makePlace(base.path);
  const clock = new ManualClock();
  const model = scriptedModel(place.project);
  let answered = 0;
  const script: SimScript = (request) => {
    answered += 1;
    if (answered === lapseAfter) clock.advance(5 * 60_000 + 1);
    return model(request);
  };
  await using simulator = await startSimulator({ script, lookback, clock, keepBodies: true });
  const calendar = new Calendar();
  const events: RuntimeEvent[] = [];
  const session = await createSession(optionsFor(place, { url: simulator.url, calendar }));
  const watching = watch(session, { calendar, seen: (event) => void events.push(event) });
  const results = await converse(session, place);
  await session.close();
  await watching;
  const requests = sentTo(simulator);
  const [first] = requests;
  assert.ok(first);
  return { results, events, requests, head: await headTokens(simulator, first), effects: effectsIn(place) };
};

/** Why a request reads what it reads. */
type Kind = "first" | "goes on" | "summary" | "new epoch";

const kindOf = ({ body }: Sent, before: Sent | undefined): Kind => {
  if (!before) return "first";
  if (asksForSummary(body)) return "summary";
  return asksForSummary(before.body) ? "new epoch" : "goes on";
};

/** What the session went through, in figures and names. */
const storyOf = ({ results, events, effects }: Ran) => {
  const count = (type: RuntimeEvent["type"]): number => events.filter((event) => event.type === type).length;
  return {
    ends: results.map(({ end, text }) => [end, text]),
    turns: count("turn_ended"),
    compactions: [count("compaction_started"), count("compaction_ended")],
    previews: count("result_replaced"),
    notes: events.flatMap((event) => (event.type === "note_entered" ? [event.kind] : [])).join(" "),
    faults: events.flatMap((event) =>
      event.type === "call_ended" && event.fault ? [`${event.callId} ${event.tool} ${event.fault}`] : [],
    ),
    effects,
  };
};

const STORY = {
  ends: tasks.map((_, index) => ["done", doneWith(index + 1)]),
  turns: 50,
  compactions: [1, 1],
  previews: 2,
  notes: "mode date conventions conventions mode git mode mode git conventions date mode",
  faults: [
    "toolu_1_3_0 Edit denied",
    "toolu_2_2_0 Edit failed",
    "toolu_2_6_0 Bash denied",
    "toolu_4_3_0 Write denied",
    "toolu_4_3_1 Record denied",
  ],
  effects: [
    ...["toolu_1_5_0", "toolu_2_4_0", "toolu_2_4_1", "toolu_3_2_1", "toolu_5_0_1"],
    ...["toolu_6_3_0", "toolu_7_3_0", "toolu_7_3_2", "toolu_8_2_0"],
    ...["toolu_5_0_0", "toolu_5_1_0"],
  ],
};

for (const lookback of ["singly", "runs"] as const)
  test(`fifty turns write every token once, with positions counted ${lookback}`, async (context) => {
    const ran = await run({ lookback });
    const { requests, head } = ran;
    assert.equal(TURNS, 50);
    assert.deepEqual(storyOf(ran), STORY); // else the figures below would show nothing

    for (const [at, sent] of requests.entries()) {
      const before = requests.slice(0, at).findLast(({ body }) => !asksForSummary(body));
      const kind = kindOf(sent, requests[at - 1]);
      if (before && kind === "goes on")
        assert.ok(extendsMessages(sent, before), `request ${at + 1} does not extend the one before it`);
      if (before && kind === "summary")
        assert.ok(extendsBlocks(sent, before), `the question for a summary, request ${at + 1}, edits what it sums up`);
    }

    assert.deepEqual(
      requests.map((sent, at) => {
        const { read, plain, missCause, outcome } = sent.row;
        return { kind: kindOf(sent, requests[at - 1]), read, isPlain: plain > 0, missCause, outcome };
      }),
      requests.map((sent, at) => {
        const kind = kindOf(sent, requests[at - 1]);
        const previous = requests[at - 1]?.row.promptTokens ?? 0;
        // Nothing was sent before the first request; a new epoch has the head of the old one, and nothing else of it.
        const allowed: Readonly<Record<Kind, number>> = {
          first: 0,
          "goes on": previous,
          summary: previous,
          "new epoch": head,
        };
        const read = allowed[kind];
        assert.equal(readable(sent, requests.slice(0, at), head), read);
        // Nobody reads what follows a summary's question, so it is not written.
        return { kind, read, isPlain: kind === "summary", missCause: null, outcome: "complete" };
      }),
    );

    const factor = rewriteFactor(requests, head);
    context.diagnostic(`re-write factor ${factor}`);
    assert.ok(factor <= 1.02, `re-write factor ${factor}`);
  });

test("a cache that expires once in fifty turns shows in the re-write factor, and with its miss reason in the ledger", async () => {
  const { requests, head } = await run({ lapseAfter: 30 });
  const missed = requests.filter((sent, at) => sent.row.read < readable(sent, requests.slice(0, at), head));
  assert.deepEqual(
    missed.map(({ row }) => [row.sequence, row.read, row.missCause]),
    [[31, 0, "expired"]],
  );
  assert.ok(rewriteFactor(requests, head) > 1.5, `re-write factor ${rewriteFactor(requests, head)}`);
});
