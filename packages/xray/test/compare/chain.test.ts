/** More than two requests: who goes on from whom, and what each one reads of all that came before. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type LedgerRow, ManualClock, type Simulator, startSimulator } from "@prefork/simulator";
import { type ChainRequest, type XrayChain, xrayChain } from "@prefork/xray";
import fc from "fast-check";
import {
  a,
  assistant,
  b,
  marked,
  next,
  prose,
  type Request,
  text,
  tool,
  unmarked,
  user,
  words,
} from "./corpus/conversation.ts";
import { anyChanges, anyRequest, anyTurn, edited, withMarkers } from "./random.ts";

const send = async (sim: Simulator, body: Request): Promise<LedgerRow> => {
  const headers = { "content-type": "application/json", "x-api-key": "any" };
  const response = await fetch(`${sim.url}/v1/messages`, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(response.status, 200, await response.text());
  const row = sim.ledger().at(-1);
  if (!row) throw new Error("no row");
  return row;
};

/** All of them sent one after the other; the chain beside the bill. */
const judged = async (
  requests: readonly Request[],
  pauses: readonly number[] = [],
): Promise<{ chain: XrayChain; rows: readonly LedgerRow[] }> => {
  await using sim = await startSimulator({ clock: new ManualClock() });
  const given: ChainRequest[] = [];
  const rows: LedgerRow[] = [];
  for (const [index, body] of requests.entries()) {
    sim.clock.advance(pauses[index] ?? 1_000);
    given.push({ body: JSON.stringify(body), startedAt: sim.clock.now(), firstEventAt: sim.clock.now() });
    rows.push(await send(sim, body));
  }
  return { chain: xrayChain(given), rows };
};

const reads = ({ steps }: XrayChain): readonly number[] => steps.map(({ xray }) => xray?.tokens.read ?? 0);

const shown = ({ steps }: XrayChain) =>
  steps.map(({ relation, lineage, against, grewFrom, xray }) => [
    relation,
    lineage,
    against,
    grewFrom,
    xray?.cause.kind,
  ]);

/** A fork: the parent's request, its turn with a marker at its end, and words of its own. */
const fork = (parent: Request, directive: string): Request => ({
  ...parent,
  messages: [...parent.messages, assistant(prose(300, 7)), user(prose(200, 8, marked), text(directive, marked))],
});

test("a parent, two forks of one turn, its own next request and a later turn of a fork", async () => {
  const forks = ["Look at the schema.", "Look at the service."].map((directive) => fork(a, directive));
  const [one = a, two = a] = forks;
  const parentNext = fork(a, "You started two tasks.");
  const later: Request = {
    ...two,
    messages: [
      ...two.messages.slice(0, -1),
      user(prose(200, 8, marked), text("Look at the service.")),
      assistant(prose(90, 9)),
      user(prose(30, 10, marked)),
    ],
  };
  const { chain, rows } = await judged([a, one, two, parentNext, later]);
  assert.deepEqual(
    reads(chain),
    rows.map(({ read }) => read),
  );
  assert.deepEqual(shown(chain), [
    ["starts", 0, undefined, undefined, undefined],
    ["extends", 0, 0, 0, "none"],
    ["forks", 1, 1, 0, "none"],
    ["forks", 2, 2, 0, "none"],
    ["extends", 1, 2, 2, "none"],
  ]);
  assert.deepEqual(chain.families, [{ from: 0, members: [1, 2, 3] }]);
  assert.deepEqual(chain.lineages, [
    { id: 0, requests: [0, 1] },
    { id: 1, requests: [2, 4], forkedFrom: 0 },
    { id: 2, requests: [3], forkedFrom: 0 },
  ]);
  assert.deepEqual(chain.lost, { tokens: 0 });
});

test("a changed tool list breaks its own lineage, and not that of another agent with the same tools", async () => {
  const other: Request = { ...a, system: [prose(1_400, 91, marked)], messages: [user(prose(500, 92, marked))] };
  const late = { ...next(b), tools: [...a.tools, tool("Late")] };
  const { chain, rows } = await judged([a, other, b, next(other), late]);
  assert.deepEqual(
    reads(chain),
    rows.map(({ read }) => read),
  );
  assert.deepEqual(shown(chain), [
    ["starts", 0, undefined, undefined, undefined],
    ["starts", 1, 0, undefined, "marker-missing"],
    ["extends", 0, 0, 0, "none"],
    ["extends", 1, 1, 1, "none"],
    ["changes", 0, 2, undefined, "tools-added"],
  ]);
});

test("an entry that is read now and then outlives five minutes; one that is not does not", async () => {
  const [third, fourth] = [next(b), next(next(b))];
  const pause = 4 * 60_000;
  const { chain, rows } = await judged([a, a, b, third, fourth], [0, pause, pause, pause, 6 * 60_000]);
  assert.deepEqual(
    reads(chain),
    rows.map(({ read }) => read),
  );
  assert.deepEqual(
    chain.steps.map(({ xray }) => xray?.cause),
    [
      undefined,
      { kind: "none" },
      { kind: "none" },
      { kind: "none" },
      { kind: "expired", ttl: "5m", unusedMs: 6 * 60_000 },
    ],
  );
});

test("entries written by older requests count, not only those of the previous one", async () => {
  const bare: Request = { ...b, system: [prose(1_000, 1), prose(500, 2)], messages: unmarked(b.messages) };
  const { chain, rows } = await judged([a, bare, next(b)]);
  assert.deepEqual(
    reads(chain),
    rows.map(({ read }) => read),
  );
  assert.equal(chain.steps[2]?.against, 1);
  assert.deepEqual(chain.steps[2]?.xray?.cause, { kind: "marker-missing", in: "a", at: "messages[6].content[0]" });
});

test("single questions under a system text that contains the time are compared with the last one", () => {
  const asked = (time: string, question: string): string =>
    JSON.stringify({
      model: "claude-sonnet-5",
      max_tokens: 9,
      system: [text(`${words(1_500, 1)}Now: ${time}`, marked)],
      messages: [{ role: "user", content: question }],
    });
  const { steps, lost } = xrayChain(
    ["09:15:02", "09:17:44", "09:18:00"].map((time, index) => ({ body: asked(time, `Question ${index}?`) })),
  );
  assert.deepEqual(
    steps.map(({ xray }) => xray?.cause),
    [
      undefined,
      { kind: "system", change: "edited", volatile: "time" },
      { kind: "system", change: "edited", volatile: "time" },
    ],
  );
  assert.equal(lost.tokens, 3_008);
});

test("formats are never compared with each other", () => {
  const chat = {
    model: "gpt-5",
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Who?" },
    ],
  };
  const { steps } = xrayChain([{ body: a }, { body: chat }, { body: b }]);
  assert.deepEqual(
    steps.map(({ relation, against }) => [relation, against]),
    [
      ["starts", undefined],
      ["starts", undefined],
      ["extends", 0],
    ],
  );
});

test("in any order of requests, pauses, forks and changes each one reads what the simulator says", async () => {
  await fc.assert(
    fc.asyncProperty(
      anyRequest,
      fc.array(
        fc.record({
          from: fc.nat(),
          turn: anyTurn,
          change: anyChanges,
          isChanged: fc.integer({ min: 0, max: 3 }),
          edit: fc.option(fc.nat(), { nil: undefined }),
          places: fc.array(fc.nat(30), { minLength: 1, maxLength: 4 }),
          pause: fc.constantFrom(0, 1_000, 200_000, 299_999, 300_000),
        }),
        { minLength: 1, maxLength: 7 },
      ),
      async (request, moves) => {
        const bare: Request[] = [request];
        const sent: Request[] = [withMarkers(request, [0, 5])];
        for (const { from, turn, change, isChanged, edit, places } of moves) {
          const parent = bare[from % bare.length] ?? request;
          const altered = isChanged === 0 && parent === request ? change(parent) : parent;
          const body =
            edit !== undefined && edit % 4 === 0 ? (edited(altered, edit, edit)?.request ?? altered) : altered;
          const grown = { ...body, messages: [...body.messages, ...turn] };
          bare.push(grown);
          sent.push(withMarkers(grown, places));
        }
        const { chain, rows } = await judged(sent, [0, ...moves.map(({ pause }) => pause)]);
        assert.deepEqual(
          reads(chain),
          rows.map(({ read }) => read),
        );
      },
    ),
    { numRuns: 60, seed: 3 },
  );
});
