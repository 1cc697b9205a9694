/** What must hold of any conversations that pass. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { startThread } from "../../src/proxy/server-thread.ts";
import type { Request } from "../compare/corpus/conversation.ts";
import { anyChanges, anyRequest, anyTurn, edited, withMarkers } from "../compare/random.ts";
import { ledgerSums, openGround, spentSums } from "./ground.ts";

const anyMoves = fc.array(
  fc.record({
    from: fc.nat(),
    turn: anyTurn,
    change: anyChanges,
    isChanged: fc.integer({ min: 0, max: 3 }),
    edit: fc.option(fc.nat(), { nil: undefined }),
    places: fc.array(fc.nat(30), { minLength: 1, maxLength: 4 }),
    pause: fc.constantFrom(0, 1_000, 299_000, 301_000),
    isStream: fc.boolean(),
  }),
  { minLength: 1, maxLength: 6 },
);

test("whatever is sent, sums are the ledger's and every loss has a cause that the provider's rules give", async () => {
  await using ground = await openGround();
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(anyRequest, anyMoves, async (request, moves) => {
      runs += 1;
      const key = `key-of-run-${runs}`;
      const known = ground.sim.ledger().length;
      const bare: Request[] = [request];
      await ground.send(withMarkers(request, [0, 5]), { key });
      for (const { from, turn, change, isChanged, edit, places, pause, isStream } of moves) {
        const parent = bare[from % bare.length] ?? request;
        const altered = isChanged === 0 && parent === request ? change(parent) : parent;
        const body = edit !== undefined && edit % 4 === 0 ? (edited(altered, edit, edit)?.request ?? altered) : altered;
        const grown = { ...body, messages: [...body.messages, ...turn] };
        bare.push(grown);
        ground.clock.advance(pause);
        const { status, text } = await ground.send(withMarkers(grown, places), { key, stream: isStream });
        assert.equal(status, 200, text);
      }
      const { lineages, misses, errors, all } = await ground.report();
      const rows = ground.sim.ledger();
      const own = lineages.filter(({ account }) => account === runs);
      assert.equal(
        own.reduce((sum, { requests }) => sum + requests, 0),
        rows.length - known,
      );
      assert.deepEqual(spentSums(all), ledgerSums(rows));
      assert.deepEqual(errors, []);
      for (const { cause, request: number, lost } of misses) {
        assert.notEqual(cause.kind, "unexplained", JSON.stringify({ number, cause }));
        const row = rows[number - 1];
        assert.ok(lost.tokens <= (row?.promptTokens ?? 0) - (row?.read ?? 0), "no more is lost than was paid for");
      }
    }),
    { numRuns: 25, seed: 4 },
  );
});

test("an analysis that ends is reported, and no request waits for it", async () => {
  const thread = startThread(
    { models: [], bodyLimit: 1_000, recordTo: "/nowhere/that/exists", bodyBytes: 0 },
    () => undefined,
  );
  assert.equal(await thread.report("report"), undefined);
  assert.equal(thread.state(), "ended: ENOENT");
  thread.post({ type: "bytes", id: 1, bytes: new Uint8Array(8) });
  assert.equal(thread.hasRoom(1), false);
  assert.equal(await thread.report("finish"), undefined);
  await thread.close();
});
