import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  anthropic,
  bytesOf,
  type FrozenPrefix,
  familyMarkers,
  LOOK_BACK,
  type Marker,
  markerPlaces,
  markersAt,
  nextMarkers,
  prepare,
  type Ttl,
} from "../src/index.ts";
import { grown, open, readTurn, text, userText } from "./conversations.ts";

const closing = { maxTokens: 10, stream: false };
const roles = (markers: readonly Marker[]) => markers.map(({ role, at }) => `${role}@${at.index}`);
/** Segments 0 to 3 of a test conversation: head, two tools, system. */
const FIRST_BLOCK = 4;

/** The lines of a session: each turn either plain reads or a fan-out that goes on as parent or as child. */
const anySession = fc.array(
  fc.record({
    reads: fc.integer({ min: 1, max: 45 }),
    fan: fc.constantFrom("no", "fork", "parent"),
    ttl: fc.constantFrom<Ttl>("5m", "1h"),
  }),
  { minLength: 1, maxLength: 8 },
);

test("never more than four, in order, lifetimes never growing, and the last entry always within reach", () => {
  fc.assert(
    fc.property(anySession, (turns) => {
      let prefix = grown([userText("start")]);
      let markers = nextMarkers(prefix);
      turns.forEach(({ reads, fan, ttl }, turn) => {
        const last = markers.at(-1) as Marker;
        prefix = grown(readTurn(reads, turn * 100), prefix);
        const sharedEnd = prefix.tip;
        if (fan !== "no" && sharedEnd) prefix = prefix.extend([text("note")]);
        markers =
          fan === "no"
            ? nextMarkers(prefix, markers, { ttl })
            : familyMarkers(prefix, markers, { ttl, line: fan, ...(sharedEnd ? { sharedEnd } : {}) });
        assert.ok(markers.length <= 4);
        const places = markers.map(({ at }) => at.index);
        assert.deepEqual(
          places,
          [...new Set(places)].sort((a, b) => a - b),
        );
        const hours = markers.map((marker) => marker.ttl === "1h");
        assert.equal(hours.lastIndexOf(true) < 0 || hours.slice(0, hours.lastIndexOf(true)).every(Boolean), true);
        assert.equal(markers.at(-1)?.at, prefix.tip);
        assert.ok(
          markers.some(({ at }) => at.index >= last.at.index && at.index - last.at.index < 20),
          "entry out of reach",
        );
      });
    }),
  );
});

test("the main conversation marks the end of system and its last block", () => {
  const first = grown([userText("start")]);
  const second = grown(readTurn(3), first);
  assert.deepEqual(roles(nextMarkers(first)), ["system@3", "tail@4"]);
  assert.deepEqual(roles(nextMarkers(second, nextMarkers(first))), ["system@3", "tail@10"]);
});

test("the last tail is kept when a turn is longer than the look-back, and not one block earlier", () => {
  const first = grown([userText("start")]);
  const markers = nextMarkers(first);
  // 9 calls and 9 results, then a text: 19 positions on; one more is out of reach of a marker that checks 20.
  const within = grown(readTurn(9), first).extend([text("note")]);
  const beyond = within.extend([text("one more")]);
  assert.deepEqual(roles(nextMarkers(within, markers)), ["system@3", `tail@${FIRST_BLOCK + 19}`]);
  assert.deepEqual(roles(nextMarkers(beyond, markers)), ["system@3", "previous@4", `tail@${FIRST_BLOCK + 20}`]);
});

test("a fork keeps its parent's two markers and adds the end of the shared tail and its own", () => {
  const parent = grown([userText("start")]);
  const shared = grown(readTurn(2), parent);
  const child = shared.extend([text("directive")]);
  const markers = familyMarkers(child, nextMarkers(parent), { ...(shared.tip ? { sharedEnd: shared.tip } : {}) });
  assert.deepEqual(roles(markers), ["system@3", "inherited@4", "shared@8", "tail@9"]);
  const near = grown(readTurn(2, 10), child);
  assert.deepEqual(roles(nextMarkers(near, markers)), ["system@3", "inherited@4", "shared@8", "tail@13"]);
  const far = grown(readTurn(12, 10), child);
  assert.deepEqual(roles(nextMarkers(far, markers)), ["system@3", "shared@8", "previous@9", "tail@33"]);
});

test("a fork that answers once marks nothing that nobody will read", () => {
  const parent = grown([userText("start")]);
  const shared = grown(readTurn(1), parent);
  const child = shared.extend([text("directive")]);
  const markers = familyMarkers(child, nextMarkers(parent), {
    tail: false,
    ...(shared.tip ? { sharedEnd: shared.tip } : {}),
  });
  assert.deepEqual(roles(markers), ["system@3", "inherited@4", "shared@6"]);
});

test("the parent continues with two markers after its fan-out", () => {
  const parent = grown([userText("start")]);
  const shared = grown(readTurn(2), parent);
  const next = shared.extend([text("launched")]);
  const markers = familyMarkers(next, nextMarkers(parent), {
    line: "parent",
    ...(shared.tip ? { sharedEnd: shared.tip } : {}),
  });
  assert.deepEqual(roles(markers), ["system@3", "previous@4", "shared@8", "tail@9"]);
  assert.deepEqual(roles(nextMarkers(grown(readTurn(1, 10), next), markers)), ["system@3", "tail@11"]);
});

test("if a request got no answer, what the request before it wrote is marked again", () => {
  const first = grown([userText("start")]);
  const far = grown(readTurn(LOOK_BACK), first);
  const unanswered = nextMarkers(far, nextMarkers(first));
  const again = far.extend([text("once more")]);
  const tail = `tail@${again.tip?.index}`;
  assert.deepEqual(roles(unanswered), ["system@3", "previous@4", `tail@${far.tip?.index}`]);
  assert.deepEqual(roles(nextMarkers(again, unanswered, { unanswered: true })), ["system@3", "previous@4", tail]);
  assert.deepEqual(roles(nextMarkers(again, unanswered)), ["system@3", tail], "it was written with the tail");
});

test("if a parent's first request after a fan-out got no answer, what its family shares stays marked", () => {
  const parent = grown([userText("start")]);
  const shared = grown(readTurn(2), parent);
  const next = shared.extend([text("launched")]);
  const markers = familyMarkers(next, nextMarkers(parent), {
    line: "parent",
    ...(shared.tip ? { sharedEnd: shared.tip } : {}),
  });
  const again = next.extend([text("once more")]);
  const expected = ["system@3", "previous@4", "shared@8", "tail@10"];
  assert.deepEqual(roles(nextMarkers(again, markers, { unanswered: true })), expected);
});

test("a warm fork keeps its parent's hour and writes five minutes; a cold one writes only five minutes", () => {
  const parent = grown([userText("start")]);
  const hour = nextMarkers(parent, [], { ttl: "1h" });
  const shared = grown(readTurn(1), parent);
  const child = shared.extend([text("directive")]);
  const lifetimes = (cold: boolean) =>
    familyMarkers(child, hour, { cold, ...(shared.tip ? { sharedEnd: shared.tip } : {}) }).map(({ ttl }) => ttl);
  assert.deepEqual(lifetimes(false), ["1h", "1h", "5m", "5m"]);
  assert.deepEqual(lifetimes(true), ["5m", "5m", "5m", "5m"]);
});

test("a marker on the system text stays where it was, with its lifetime", () => {
  const first = grown([userText("start")]);
  const hour = nextMarkers(first, [], { ttl: "1h" });
  const next = nextMarkers(grown(readTurn(1), first), hour, { ttl: "5m" });
  assert.deepEqual(
    next.map(({ role, ttl }) => `${role} ${ttl}`),
    ["system 1h", "tail 5m"],
  );
  const parent = grown([userText("start")]);
  const child = grown(readTurn(1), parent).extend([text("directive")]);
  const kept = familyMarkers(child, nextMarkers(parent, [], { ttl: "1h" }), {});
  assert.deepEqual(
    kept.map(({ role, ttl }) => `${role} ${ttl}`),
    ["system 1h", "inherited 1h", "tail 5m"],
    "a family counts as warm unless it is said to be cold",
  );
});

test("the end of the last answered request is marked again if several requests after it got no answer", () => {
  const first = grown([userText("start")]);
  const far = grown(readTurn(LOOK_BACK), first);
  const [sent, answered] = [nextMarkers(first), first.tip];
  assert.ok(answered);
  const again = nextMarkers(far, [sent[0], { ...sent[1], at: far.tip }] as readonly Marker[], {
    unanswered: true,
    answered,
  });
  assert.deepEqual(roles(again), ["system@3", "previous@4", `tail@${far.tip?.index}`]);
  const near = first.extend([text("once more")]);
  const within = nextMarkers(near, sent, { unanswered: true, answered });
  assert.deepEqual(roles(within), ["system@3", "tail@5"], "the new tail reaches it");
});

test("thinking and empty heads are never marked", () => {
  const thought = grown([
    userText("start"),
    { role: "assistant", content: [text("words"), { type: "thinking", thinking: "hm", signature: "sig" }] },
  ]);
  assert.deepEqual(roles(nextMarkers(thought)), ["system@3", "tail@5"]);
  const bare = grown([userText("start")], open({ tools: [], system: [] }));
  assert.deepEqual(roles(nextMarkers(bare)), ["tail@1"]);
  const toolsOnly = grown([userText("start")], open({ system: [] }));
  assert.deepEqual(roles(nextMarkers(toolsOnly)), ["system@2", "tail@3"]);
});

test("markers are restored from their journalled positions", () => {
  const prefix = grown([userText("start"), ...readTurn(2)]);
  const markers = nextMarkers(prefix);
  assert.deepEqual(markersAt(prefix, JSON.parse(JSON.stringify(markerPlaces(markers)))), markers);
});

test("markers change no other byte of a request", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 30 }), (reads) => {
      const prefix = grown([userText("start"), ...readTurn(reads)]);
      const send = (from: FrozenPrefix, markers: readonly Marker[]) =>
        bytesOf(prepare({ protocol: anthropic, prefix: from, markers, closing })).toString();
      const marked = send(prefix, nextMarkers(prefix));
      assert.equal(marked.replaceAll(`,"cache_control":{"type":"ephemeral"}`, ""), send(prefix, []));
    }),
  );
});
