import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Fault } from "@prefork/simulator";
import type { RuntimeEvent } from "../../src/index.ts";
import { assertGoesOn, endOf, followed, type Ground, jumpingTiming, KEY, openGround } from "./fault-ground.ts";
import { endsBefore, refuses, resets, stallsBefore, staysSilent, type Twist } from "./twisting-proxy.ts";

const retries = (events: readonly RuntimeEvent[]): readonly string[] =>
  events.flatMap((event) => (event.type === "request_retried" ? [`${event.reason.kind}: ${event.message}`] : []));

const restarts = (events: readonly RuntimeEvent[]): number =>
  events.filter(({ type }) => type === "answer_restarted").length;

/** Systems differ in how they tell of a reset. */
const alike = (words: string | undefined): string | undefined =>
  words?.replace(/read ECONNRESET|socket hang up/, "reset");

/** What happens to requests before they are answered as they should be. */
type Trouble = Fault | Twist;

const bring = ({ simulator, proxy }: Ground, trouble: Trouble): void =>
  typeof trouble === "function" ? proxy.twist(trouble) : simulator.fault(trouble);

test("a rate limit is waited out for at least as long as the provider asks", async () => {
  await using ground = await openGround();
  const timing = jumpingTiming();
  await using session = await ground.open({}, { timing });
  ground.simulator.fault({ kind: "status", status: 429, retryAfterMs: 7_000, times: 2 });
  const { events, result } = await followed(session.prompt("hello"));
  assert.equal(result.text, "heard hello");
  assert.deepEqual(retries(events), Array(2).fill(`rate-limited: ${RATE_LIMIT}`));
  assert.deepEqual(timing.waits, [7_000, 7_000]);
  await assertGoesOn(ground, session);
});

const RATE_LIMIT = "rate_limit_error: This request would exceed your account's rate limit. Please try again later.";
const NONSENSE = "malformed-response: the provider's answer makes no sense";

/** Shown before the trouble, so the answer visibly begins anew. */
const passing: Readonly<Record<string, { readonly by: Trouble; readonly told: string; readonly anew: number }>> = {
  "an overloaded provider": {
    by: { kind: "status", status: 529 },
    told: "overloaded: overloaded_error: Overloaded",
    anew: 0,
  },
  "an error of the server": {
    by: { kind: "status", status: 500 },
    told: "server: api_error: Internal server error",
    anew: 0,
  },
  "a connection reset before the first byte": {
    by: resets,
    told: "connection: the connection failed: reset",
    anew: 0,
  },
  "a connection lost before any content": {
    by: { kind: "reset-mid-stream", afterEvents: 1 },
    told: "connection: the connection failed: aborted",
    anew: 0,
  },
  "a connection lost in the middle of the text": {
    by: { kind: "reset-mid-stream", afterEvents: 4 },
    told: "connection: the connection failed: aborted",
    anew: 1,
  },
  "an error event before any content": {
    by: { kind: "error-mid-stream", moment: "before-content" },
    told: "overloaded: overloaded_error: Overloaded",
    anew: 0,
  },
  "an error event after some content": {
    by: { kind: "error-mid-stream", moment: "after-content" },
    told: "overloaded: overloaded_error: Overloaded",
    anew: 1,
  },
  "a frame that is cut in the middle of its JSON": {
    by: { kind: "truncated-json" },
    told: `${NONSENSE}: a frame is not JSON`,
    anew: 0,
  },
  "a stream that ends inside a block": {
    by: endsBefore("content_block_stop", 'event: message_stop\ndata: {"type":"message_stop"}\n\n'),
    told: `${NONSENSE}: it ended without a stop reason`,
    anew: 1,
  },
  "an event for a block that never began": {
    by: endsBefore(
      "content_block_stop",
      'event: content_block_stop\ndata: {"type":"content_block_stop","index":7}\n\n',
    ),
    told: `${NONSENSE}: block 7 stopped but never started`,
    anew: 1,
  },
  "a first byte that does not come": { by: staysSilent, told: "timeout: no first byte within 1500 ms", anew: 0 },
  "a stream that falls silent": {
    by: stallsBefore("content_block_stop"),
    told: "timeout: no more of the answer within 1500 ms",
    anew: 1,
  },
};

/** Long enough for every answer that does come, however busy the machine is. */
const timeouts = { firstByteMs: 1_500, idleMs: 1_500 };

for (const [name, { by, told, anew }] of Object.entries(passing))
  test(`${name} costs one more request and nothing else`, async () => {
    await using ground = await openGround();
    await using session = await ground.open(
      {},
      { timeouts: name.includes("not come") || name.includes("silent") ? timeouts : {} },
    );
    bring(ground, by);
    const { events, result } = await followed(session.prompt("hello"));
    assert.deepEqual([endOf(events), result.text, result.turns], ["done: end", "heard hello", 1]);
    assert.deepEqual([retries(events).map(alike), restarts(events)], [[told], anew]);
    await assertGoesOn(ground, session);
  });

const billing = (message: string): { readonly type: string; readonly message: string } => ({
  type: "billing_error",
  message,
});

/** Never sent again. */
const final: Readonly<Record<string, { readonly by: Trouble; readonly reason: string }>> = {
  "a wrong key": {
    by: refuses(401, { type: "authentication_error", message: `invalid x-api-key ${KEY}` }),
    reason: "authentication_error: invalid x-api-key [key]",
  },
  "a key without permission": {
    by: refuses(403, { type: "permission_error", message: "not for this workspace" }),
    reason: "permission_error: not for this workspace",
  },
  "an unknown model": {
    by: refuses(404, { type: "not_found_error", message: "model: nobody" }),
    reason: "not_found_error: model: nobody",
  },
  "an account without money": { by: refuses(402, billing("no credit")), reason: "billing_error: no credit" },
  "a balance that is too low": {
    by: refuses(400, { type: "invalid_request_error", message: "Your credit balance is too low" }),
    reason: "invalid_request_error: Your credit balance is too low",
  },
  "a spend limit": {
    by: refuses(429, { type: "rate_limit_error", message: "monthly spend limit" }, { "x-should-retry": "false" }),
    reason: "rate_limit_error: monthly spend limit",
  },
};

for (const [name, { by, reason }] of Object.entries(final))
  test(`${name} ends the exchange at once with the provider's message, without the key`, async () => {
    await using ground = await openGround();
    await using session = await ground.open();
    bring(ground, by);
    const { events } = await followed(session.prompt("hello"));
    assert.equal(endOf(events), `provider-failed: ${reason}`);
    assert.deepEqual([retries(events), ground.proxy.arrived()], [[], 1]);
    assert.ok(!JSON.stringify(events).includes(KEY));
    const journal = readFileSync(ground.folder.at("state/sessions", session.id, "journal.jsonl"), "utf8");
    assert.ok(journal.includes('"provider-failed"') && !journal.includes(KEY));
    await assertGoesOn(ground, session);
  });

/** Trouble that does not pass. */
const lasting: Readonly<Record<string, { readonly by: Trouble; readonly reason: string; readonly requests: number }>> =
  {
    overload: { by: { kind: "status", status: 529, times: 3 }, reason: "overloaded_error: Overloaded", requests: 3 },
    "a dead connection": {
      by: { kind: "reset", times: 3 },
      reason: "the connection failed: reset",
      requests: 3,
    },
    "an answer that always breaks off": {
      by: { kind: "reset-mid-stream", afterEvents: 4, times: 3 },
      reason: "the connection failed: aborted",
      requests: 3,
    },
  };

for (const [name, { by, reason, requests }] of Object.entries(lasting))
  test(`${name} ends the exchange after the last attempt, and leaves nothing in the context`, async () => {
    await using ground = await openGround();
    await using session = await ground.open({}, { retry: { attempts: 3 } });
    bring(ground, by);
    const { events, result } = await followed(session.prompt("hello"));
    assert.deepEqual([alike(endOf(events)), result.text], [`provider-failed: ${reason}`, ""]);
    assert.equal(ground.proxy.arrived(), requests);
    assert.equal(events.filter(({ type }) => type === "text_entered").length, 0);
    await assertGoesOn(ground, session);
  });

test("a key that is not valid in a header is reported before anything is sent, without showing the key", async () => {
  await using ground = await openGround();
  await using session = await ground.open({}, { credential: { kind: "api-key", value: `${KEY}\nx` } });
  const { events } = await followed(session.prompt("hello"));
  assert.equal(
    endOf(events),
    'provider-failed: the request cannot be sent: Invalid character in header content ["x-api-key"]',
  );
  assert.equal(ground.proxy.arrived(), 0);
});
