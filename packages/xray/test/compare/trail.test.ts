/** Requests that go on arriving: what is still told when bodies, and then requests, are let go. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Trail, type TrailOptions, type XrayStep } from "../../src/compare/index.ts";
import { a, b, next, prose, type Request, tool, user } from "./corpus/conversation.ts";
import { anyRequest, anyTurn, withMarkers } from "./random.ts";

type Sent = { readonly body: Request; readonly at: number };

const walked = (requests: readonly Sent[], options: TrailOptions): readonly XrayStep[] => {
  const trail = new Trail(options);
  return requests.map(({ body, at }, index) =>
    trail.add(JSON.stringify(body), { index, startedAt: at, firstEventAt: at + 1 }),
  );
};

/** All but the letters of the earlier body. */
const told = ({ xray, ...step }: XrayStep) => {
  const { divergence, notes: _notes, ...rest } = xray ?? {};
  return { ...step, ...rest, level: divergence?.level };
};

test("without the bodies of earlier requests the lineages, reads, time causes and marker causes stay the same", () => {
  fc.assert(
    fc.property(
      anyRequest,
      fc.array(
        fc.record({
          from: fc.nat(),
          turn: anyTurn,
          places: fc.array(fc.nat(30), { minLength: 1, maxLength: 4 }),
          pause: fc.constantFrom(0, 1_000, 299_999, 300_000),
        }),
        { minLength: 1, maxLength: 8 },
      ),
      (request, moves) => {
        const bare: Request[] = [request];
        const sent: Sent[] = [{ body: withMarkers(request, [0, 5]), at: 0 }];
        for (const { from, turn, places, pause } of moves) {
          const parent = bare[from % bare.length] ?? request;
          const grown = { ...parent, messages: [...parent.messages, ...turn] };
          bare.push(grown);
          sent.push({ body: withMarkers(grown, places), at: (sent.at(-1)?.at ?? 0) + pause });
        }
        assert.deepEqual(walked(sent, { bodyBytes: 0 }).map(told), walked(sent, {}).map(told));
      },
    ),
    { numRuns: 40, seed: 5 },
  );
});

test("a tool that is added is named also where the earlier body is gone", () => {
  const other: Request = { ...a, system: [prose(1_400, 91)], messages: [user(prose(500, 92))] };
  const late = { ...next(b), tools: [...a.tools, tool("Late")] };
  const steps = walked(
    [a, other, late].map((body, index) => ({ body, at: index * 1_000 })),
    { bodyBytes: 0 },
  );
  assert.deepEqual(
    [steps[2]?.relation, steps[2]?.against, steps[2]?.xray?.cause],
    ["changes", 0, { kind: "tools-added", tools: ["Late"] }],
  );
});

test("the oldest requests are forgotten, with all that only they had; reports on the others stay the same", () => {
  const strangers = Array.from({ length: 30 }, (_, index): Request => {
    const messages = [user(prose(900, 2_000 + index))];
    return { ...a, tools: [tool(`T${index}`)], system: [prose(1_300, 1_000 + index)], messages };
  });
  const sent = [a, ...strangers, next(strangers.at(-1) ?? a), a].map((body, at) => ({ body, at: at * 1_000 }));
  const steps = walked(sent, { remembers: 10 });
  const [last, forgotten] = steps.slice(-2);
  assert.deepEqual([last?.relation, last?.against, last?.lineage, last?.grewFrom], ["extends", 30, 30, 30]);
  assert.deepEqual([forgotten?.relation, forgotten?.lineage, forgotten?.grewFrom], ["starts", 31, undefined]);
  assert.equal(forgotten?.xray?.lost.tokens, 0);
});
