import assert from "node:assert/strict";
import { test } from "node:test";
import { callTools, lastUserText, type SimScript, say, toolResults } from "@prefork/simulator";
import type { RuntimeEvent } from "../../src/index.ts";
import { assertGoesOn, endOf, followed, openGround, reopened, SUMMARY } from "../session/fault-ground.ts";
import { refuses } from "../session/twisting-proxy.ts";

const looking = callTools([{ name: "Glob", input: { pattern: "*" } }]);

/** To "work" one call after another without an end; to all else a word. */
const busy: SimScript = (request) => {
  const prompt = lastUserText(request);
  return prompt === "work" || toolResults(request).length > 0 ? looking : say(`heard ${prompt}`);
};

test("turns are counted, and the limit ends the exchange between two of them", async () => {
  await using ground = await openGround(busy);
  await using session = await ground.open({ limits: { maxTurns: 3 } });
  const { events, result } = await followed(session.prompt("work"));
  assert.deepEqual([endOf(events), result.turns], ["max-turns: the limit of 3 turns is reached", 3]);
  assert.equal(ground.proxy.arrived(), 3);
  const once = await followed(session.prompt("work", { limits: { maxTurns: 1 } }));
  assert.deepEqual([endOf(once.events), once.result.turns], ["max-turns: the limit of 1 turn is reached", 1]);
  await assertGoesOn(ground, session);
});

test("a budget in dollars is enforced with the worst-case cost of requests, over all exchanges and runs of a session", async () => {
  await using ground = await openGround(busy);
  await using session = await ground.open({ limits: { usd: 0.06 }, maxTokens: 1_500 });
  const { events, result } = await followed(session.prompt("work"));
  assert.match(
    endOf(events) ?? "",
    /^over-budget: the next request could cost \$0\.0\d{3}, and \$0\.0\d{3} of the budget is left$/,
  );
  assert.ok(result.usd > 0 && session.spent.usd <= 0.06);
  assert.equal(result.turns, ground.proxy.arrived());
  // Answers were asked to be shorter before the end was reached.
  const lengths = ground.simulator
    .requests()
    .map(({ body }) => Number(/"max_tokens":(\d+)/.exec(body.toString("utf8"))?.[1]));
  assert.equal(lengths[0], 1_500);
  assert.ok(lengths.every((length) => length >= 1_024 && length <= 1_500));
  await session.close();
  const sent = ground.proxy.arrived();
  await using again = await reopened(ground, session.id, { limits: { usd: 0.06 }, maxTokens: 1_500 });
  assert.match(endOf((await followed(again.prompt("more"))).events) ?? "", /^over-budget: /);
  assert.equal(ground.proxy.arrived(), sent);
});

test("a budget in tokens is enforced too", async () => {
  await using ground = await openGround(busy);
  await using session = await ground.open({ limits: { tokens: 20_000 }, maxTokens: 1_024 });
  const { events } = await followed(session.prompt("work"));
  assert.match(endOf(events) ?? "", /^over-budget: the next request could take \d+ tokens, and \d+ are left$/);
  const { plain, read, written, output } = session.spent.usage;
  assert.ok(plain + read + (written["5m"] ?? 0) + output <= 20_000);
});

test("a budget in dollars for a model without a price is refused before a session is used", async () => {
  await using ground = await openGround();
  await assert.rejects(ground.open({ limits: { usd: 1 }, model: "nobody-knows" }), {
    name: "InputError",
    message: "the price of nobody-knows is unknown, so a budget in dollars cannot be enforced; remove the budget",
  });
});

test("the time limit ends the exchange: before a request by the session's clock, and in the middle of a request", async () => {
  const time = { now: 1_000_000 };
  await using ground = await openGround({
    work: () => {
      time.now += 60_001;
      return looking;
    },
    wait: () => new Promise(() => {}),
  });
  await using session = await ground.open({ clock: { now: () => time.now } });
  const { events, result } = await followed(session.prompt("work", { limits: { ms: 60_000 } }));
  assert.deepEqual([endOf(events), result.turns], ["out-of-time: the time limit is reached", 1]);
  const inside = await followed(session.prompt("wait", { limits: { ms: 50 } }));
  assert.equal(endOf(inside.events), "out-of-time: the time limit is reached");
  await assertGoesOn(ground, session);
});

const compactions = (events: readonly RuntimeEvent[]): readonly string[] =>
  events.flatMap((event) => {
    if (event.type === "compaction_started") return [`started: ${event.why}`];
    if (event.type === "compaction_failed") return [`failed: ${event.reason}`];
    return event.type === "compaction_ended"
      ? ["ended"]
      : event.type === "epoch_started"
        ? [`epoch ${event.epoch}`]
        : [];
  });

const TOO_LONG = { type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" };

test("when the provider says that a prompt is too long, the conversation is compacted and the work continues", async () => {
  await using ground = await openGround({ [SUMMARY]: say("<summary>we said hello</summary>") });
  await using session = await ground.open();
  await session.prompt("hello").result();
  ground.proxy.twist(refuses(400, TOO_LONG));
  const { events, result } = await followed(session.prompt("what next?"));
  assert.deepEqual(compactions(events), ["started: context-full", "ended", "epoch 2"]);
  assert.equal(endOf(events), "done: end");
  assert.match(result.text, /^heard /);
  const last = ground.simulator.requests().at(-1)?.body.toString("utf8") ?? "";
  assert.ok(last.includes("we said hello") && last.includes("what next?"));
  ground.simulator.reset(); // a new epoch begins with bytes of its own
  await assertGoesOn(ground, session);
});

test("an answer that fills the window is followed by a compaction, and the work continues", async () => {
  await using ground = await openGround({
    [SUMMARY]: say("<summary>we said hello</summary>"),
    fill: { ...say("and so on"), stopReason: "model_context_window_exceeded" },
  });
  await using session = await ground.open();
  await session.prompt("hello").result();
  const { events } = await followed(session.prompt("fill"));
  assert.deepEqual(compactions(events).slice(0, 3), ["started: context-full", "ended", "epoch 2"]);
});

test("a prompt that is too long right after a compaction ends the exchange, and so does one with nothing to compact", async () => {
  await using ground = await openGround({ [SUMMARY]: say("<summary>we said hello</summary>") });
  await using session = await ground.open();
  ground.proxy.twist(refuses(400, TOO_LONG));
  const first = await followed(session.prompt("hello"));
  assert.deepEqual(
    [compactions(first.events), endOf(first.events)],
    [["epoch 1"], `context-full: invalid_request_error: ${TOO_LONG.message}`],
  );
  await session.prompt("again").result();
  const passOn = async ({ response, whole }: Parameters<ReturnType<typeof refuses>>[0]): Promise<void> => {
    const stream = await whole();
    response.writeHead(200, { "content-type": "text/event-stream" }).end(stream);
  };
  ground.proxy.twist(refuses(400, TOO_LONG), passOn, refuses(400, TOO_LONG));
  const { events } = await followed(session.prompt("what next?"));
  assert.deepEqual(compactions(events), ["started: context-full", "ended", "epoch 2"]);
  assert.equal(endOf(events), `context-full: invalid_request_error: ${TOO_LONG.message}`);
  ground.simulator.reset();
  await assertGoesOn(ground, session);
});

test("a failed summary changes nothing, and the exchange says why it could not continue", async () => {
  await using ground = await openGround({ [SUMMARY]: say(" ") });
  await using session = await ground.open();
  await session.prompt("hello").result();
  ground.proxy.twist(refuses(400, TOO_LONG));
  const { events } = await followed(session.prompt("what next?"));
  assert.deepEqual(compactions(events), ["started: context-full", "failed: the answer holds no summary"]);
  assert.equal(endOf(events), `context-full: invalid_request_error: ${TOO_LONG.message}`);
  await assertGoesOn(ground, session);
});

test("a request's reservation is released however the request ended", async () => {
  await using ground = await openGround();
  // Room for one request at a time: a hold that stayed would refuse the next.
  await using session = await ground.open({ limits: { tokens: 60_000 }, maxTokens: 30_000 });
  for (let time = 0; time < 4; time += 1) {
    ground.proxy.twist(refuses(404, { type: "not_found_error", message: "nothing here" }));
    assert.match(endOf((await followed(session.prompt("hello"))).events) ?? "", /^provider-failed: /);
    const stopped = await followed(session.prompt("hello", { signal: AbortSignal.timeout(0) }));
    assert.match(endOf(stopped.events) ?? "", /^(?:aborted|done): /);
  }
  const { result } = await followed(session.prompt("at last"));
  assert.equal(result.text, "heard at last");
  await assertGoesOn(ground, session);
});
