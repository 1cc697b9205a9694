/** What is listened to while it passes: handed over once, bounded, and all of it accounted for. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { TapMessage } from "../../src/proxy/messages.ts";
import { openTap, type Tap } from "../../src/proxy/tap.ts";

const facts = {
  id: 1,
  wire: "anthropic-messages",
  path: "/v1/messages",
  upstream: "http://localhost",
  account: 1,
  client: "test",
  betas: [],
  headers: {},
  encoding: "",
  secrets: [],
} as const;

type Listened = {
  readonly tap: Tap;
  readonly posted: TapMessage[];
  readonly held: () => number;
  readonly left: () => number;
};

const listen = ({ bodyLimit = 1_000, room = 10_000 } = {}): Listened => {
  const posted: TapMessage[] = [];
  let [held, left, time] = [0, 0, 0];
  const tap = openTap(facts, {
    now: () => {
      time += 1;
      return time;
    },
    post: (message) => posted.push(message),
    hasRoom: (bytes) => held + bytes <= room,
    hold: (bytes) => {
      held += bytes;
    },
    bodyLimit,
    unfinished: () => {
      left += 1;
    },
  });
  return { tap, posted, held: () => held, left: () => left };
};

const said = (posted: readonly TapMessage[]): readonly string[] =>
  posted.map((message) => {
    const bytes = message.type === "asked" ? message.body : message.bytes;
    const text = bytes === undefined ? "" : typeof bytes === "string" ? `(${bytes})` : Buffer.from(bytes).toString();
    return `${message.type} ${message.type === "ended" ? message.outcome : ""}${text}`.trim();
  });

const bytes = (text: string): Buffer => Buffer.from(text);

test("a request, the first bytes of its answer, and its end with the rest", () => {
  const { tap, posted } = listen();
  tap.sent(bytes("ques"));
  tap.sent(bytes("tion"));
  tap.sentAll();
  tap.answered(200, ["Content-Type", "text/event-stream"]);
  tap.received(bytes("one "));
  tap.received(bytes("two "));
  tap.received(bytes("three"));
  tap.ended("complete");
  tap.ended("aborted");
  assert.deepEqual(said(posted), ["asked question", "answered one", "ended completetwo three"]);
});

test("errors of the provider are not listened to, long bodies are let go, clients that leave early are counted", () => {
  const refused = listen();
  refused.tap.sentAll();
  refused.tap.answered(429, []);
  refused.tap.received(bytes("no"));
  refused.tap.ended("complete");
  assert.deepEqual(said(refused.posted), ["asked", "answered", "ended complete"]);
  const long = listen({ bodyLimit: 5 });
  long.tap.sent(bytes("123"));
  long.tap.sent(bytes("456"));
  long.tap.sentAll();
  assert.deepEqual(said(long.posted), ["asked (too long)"]);
  const early = listen();
  early.tap.sent(bytes("123"));
  early.tap.ended("aborted");
  assert.deepEqual([early.posted, early.left()], [[], 1]);
  const broken = listen();
  broken.tap.sent(bytes("123"));
  broken.tap.ended("unanswered");
  assert.deepEqual(said(broken.posted), ["asked (not sent completely)", "ended unanswered"]);
});

test("without room nothing is buffered, and after a gap nothing more of an answer", () => {
  const full = listen({ room: 4 });
  full.tap.sent(bytes("12345"));
  full.tap.sentAll();
  full.tap.answered(200, []);
  full.tap.received(bytes("ab"));
  full.tap.received(bytes("cdefg"));
  full.tap.received(bytes("h"));
  full.tap.ended("complete");
  assert.deepEqual(said(full.posted), ["asked (the analysis was behind)", "answered ab", "ended complete"]);
});

const anyStep = fc.oneof(
  fc.record({ do: fc.constant("sent" as const), size: fc.nat(400) }),
  fc.record({ do: fc.constant("received" as const), size: fc.nat(70_000) }),
  fc.constantFrom(
    { do: "sentAll" as const },
    { do: "answered" as const },
    { do: "refused" as const },
    { do: "ended" as const },
  ),
);

test("in whatever order things happen, each delivered chunk existed, is delivered once, and nothing stays buffered", () => {
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 30 }), fc.nat(200_000), (steps, room) => {
      const { tap, posted, held } = listen({ room });
      let [sent, received] = [0, 0];
      for (const step of steps) {
        if (step.do === "sent") tap.sent(Buffer.alloc(step.size));
        else if (step.do === "received") tap.received(Buffer.alloc(step.size));
        else if (step.do === "sentAll") tap.sentAll();
        else if (step.do === "ended") tap.ended("complete");
        else tap.answered(step.do === "answered" ? 200 : 500, []);
        if (step.do === "sent") sent += step.size;
        if (step.do === "received") received += step.size;
      }
      tap.ended("aborted");
      const types = posted.map(({ type }) => type);
      assert.equal(held(), 0);
      assert.ok(types.filter((type) => type === "asked").length <= 1);
      assert.equal(types.filter((type) => type === "ended").length, types.includes("asked") ? 1 : 0);
      assert.equal(types.length === 0 ? "ended" : types.at(-1), "ended");
      const sizes = posted.flatMap((message) =>
        message.type !== "asked" && message.bytes ? [message.bytes.length] : [],
      );
      assert.ok(sizes.reduce((sum, size) => sum + size, 0) <= received);
      const asked = posted.find((message) => message.type === "asked");
      if (asked && typeof asked.body !== "string") assert.ok(asked.body.length <= Math.min(sent, 1_000));
    }),
    { numRuns: 300, seed: 2 },
  );
});
