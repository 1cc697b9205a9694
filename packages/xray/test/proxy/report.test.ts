/** What the proxy reports of scripted agents is what the simulator's ledger says, to the token. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { LedgerRow } from "@prefork/simulator";
import {
  a,
  assistant,
  b,
  call,
  KEPT,
  marked,
  next,
  prose,
  type Request,
  result,
  text,
  tool,
  unmarked,
  user,
  words,
} from "../compare/corpus/conversation.ts";
import { ANSWER_MS, type Ground, ledgerSums, openGround, type Sent, spentSums } from "./ground.ts";

const rowsOf = (sent: readonly Sent[]): readonly LedgerRow[] => sent.flatMap(({ row }) => row ?? []);

const sendAll = async (ground: Ground, bodies: readonly Request[]): Promise<readonly Sent[]> => {
  const sent: Sent[] = [];
  for (const body of bodies) sent.push(await ground.send(body));
  return sent;
};

/** The causes with what they cost, and for which request. */
const missesOf = async (ground: Ground) =>
  (await ground.report()).misses.map(({ request, lineage, cause, lost, path }) => ({
    request,
    lineage,
    cause: cause.kind,
    tokens: lost.tokens,
    ...(path === undefined ? {} : { path }),
  }));

test("an agent that only continues its conversation has lost nothing", async () => {
  await using ground = await openGround();
  const sent = await sendAll(ground, [a, b, next(b), next(next(b))]);
  const { all, lineages, misses, families, causes, errors, analysis, answered } = await ground.report();
  assert.deepEqual(spentSums(all), ledgerSums(rowsOf(sent)));
  assert.deepEqual(
    { rewriteFactor: all.rewriteFactor, lost: all.lost, misses, families, causes, errors, analysis, answered },
    {
      rewriteFactor: 1,
      lost: { tokens: 0, units: 0, usd: 0 },
      misses: [],
      families: [],
      causes: [],
      errors: [],
      analysis: "runs",
      answered: 4,
    },
  );
  assert.deepEqual(
    lineages.map(({ id, wire, model, first, last, prompt, requests, forkedFrom }) => ({
      id,
      wire,
      model,
      first,
      last,
      prompt,
      requests,
      forkedFrom,
    })),
    [
      {
        id: 1,
        wire: "anthropic-messages",
        model: "claude-sonnet-5",
        first: 1,
        last: 4,
        prompt: KEPT + 3 * 140,
        requests: 4,
        forkedFrom: undefined,
      },
    ],
  );
});

test("answers that are not streamed are read as well as streams", async () => {
  await using ground = await openGround();
  const sent = [await ground.send(a, { stream: false }), await ground.send(b, { stream: false })];
  const { all } = await ground.report();
  assert.deepEqual(spentSums(all), ledgerSums(rowsOf(sent)));
  assert.equal(all.lost.tokens, 0);
});

test("an entry that expired is named, with all that was written again", async () => {
  await using ground = await openGround();
  const sent = [await ground.send(a), await ground.send(b)];
  ground.clock.advance(6 * 60_000);
  sent.push(await ground.send(next(b)));
  const [, , last] = rowsOf(sent);
  const { all, causes } = await ground.report();
  assert.deepEqual([last?.missCause, last?.expectedRead, last?.read], ["expired", KEPT + 140, 0]);
  assert.deepEqual(await missesOf(ground), [{ request: 3, lineage: 1, cause: "expired", tokens: KEPT + 140 }]);
  assert.deepEqual(spentSums(all), ledgerSums(rowsOf(sent)));
  // Written 4,359 + 140 + 4,639; of these the first 4,499 of the last one for the second time.
  assert.equal(all.rewriteFactor, (KEPT + 140 + KEPT + 280) / (KEPT + 280));
  // A token written instead of read costs 1.25 - 0.1 of a plain one, and that is 2 dollars a million here.
  assert.deepEqual(causes, [
    { kind: "expired", words: "expired", times: 1, tokens: 4_499, units: 5_173.85, usd: 0.0103477 },
  ]);
});

test("a time in the system text is found, with its location and its cost", async () => {
  await using ground = await openGround();
  const at = (time: string, body: Request): Request => ({
    ...body,
    system: [text(`${words(1_500, 1)}It is ${time}.`, marked)],
  });
  const sent = await sendAll(ground, [at("09:15", a), at("09:17", b)]);
  const [miss] = (await ground.report()).misses;
  assert.deepEqual(
    { words: miss?.words, why: miss?.why, path: miss?.path, against: miss?.against, tokens: miss?.lost.tokens },
    {
      words: "system changed",
      why: "the system text changed: it contains a time",
      path: "system[0].text",
      against: 1,
      // All that the first one wrote, the tools included: no marker ends with them.
      tokens: KEPT + 3,
    },
  );
  assert.equal(rowsOf(sent)[1]?.read, 0);
});

test("markers that are missing or too far away, and prompts too short to be cached, are named as the ledger names them", async () => {
  const calls = Array.from({ length: 24 }, (_, index) => `toolu_${index + 10}`);
  const far: Request = {
    ...a,
    messages: [
      ...unmarked(a.messages),
      ...calls.flatMap((id) => [assistant(prose(5, 4), call(id)), user(result(id, 10))]),
      assistant(prose(5, 5)),
      user(prose(5, 6, marked)),
    ],
  };
  const bare: Request = { ...b, system: [prose(1_000, 1), prose(500, 2)], messages: unmarked(b.messages) };
  const short: Request = { ...a, tools: [], system: [prose(300, 1, marked)], messages: [user(prose(100, 2, marked))] };
  const shortNext = next(short);
  // Of what lay too far away the second wrote all but the head again; without a marker it wrote nothing, and what is too
  // short nobody had written.
  const [wrote, wroteFar] = [KEPT, KEPT - 3_000 + 24 * (5 + 9 + 10) + 10];
  for (const { bodies, cause, row, lost, rewriteFactor } of [
    {
      bodies: [a, far],
      cause: "look-back-exceeded",
      row: "look-back exceeded",
      lost: KEPT - 3_000,
      rewriteFactor: (wrote + wroteFar) / (wrote + wroteFar - (KEPT - 3_000)),
    },
    { bodies: [a, bare], cause: "marker-missing", row: "no marker there", lost: KEPT, rewriteFactor: 1 },
    { bodies: [short, shortNext], cause: "below-minimum", row: "below minimum", lost: 400, rewriteFactor: null },
  ]) {
    await using ground = await openGround();
    const rows = rowsOf(await sendAll(ground, bodies));
    assert.deepEqual(await missesOf(ground), [{ request: 2, lineage: 1, cause, tokens: lost }]);
    assert.equal(rows[1]?.missCause, row);
    const { all } = await ground.report();
    assert.deepEqual(spentSums(all), ledgerSums(rows));
    assert.equal(all.rewriteFactor, rewriteFactor, cause);
  }
});

/** A fork: the parent's request, its turn with a marker at its end, and words of its own. */
const fork = (parent: Request, directive: string): Request => ({
  ...parent,
  messages: [...parent.messages, assistant(prose(300, 7)), user(prose(200, 8, marked), text(directive, marked))],
});
const DIRECTIVES = ["Look at the schema.", "Look at the service.", "Look at the tests."];

test("forks of one parent are a family, and its figures are the ledger's", async () => {
  await using ground = await openGround();
  const parent = await ground.send(a);
  const leader = await ground.send(fork(a, DIRECTIVES[0] ?? ""));
  const others = await Promise.all(DIRECTIVES.slice(1).map((directive) => ground.send(fork(a, directive))));
  const parentNext = await ground.send(fork(a, "You started three tasks."));
  const { families, misses, all, lineages } = await ground.report();
  const members = [leader, ...others, parentNext];
  assert.deepEqual(
    families.map(({ from, prefix, members: numbers, lineages: ids }) => ({ from, prefix, numbers, ids })),
    [{ from: 1, prefix: KEPT, numbers: [2, 3, 4, 5], ids: [1, 2, 3, 4] }],
  );
  assert.deepEqual(families.map(spentSums), [ledgerSums(rowsOf(members))]);
  assert.deepEqual(spentSums(all), ledgerSums(rowsOf([parent, ...members])));
  assert.deepEqual(misses, []);
  assert.deepEqual(
    lineages.map(({ forkedFrom }) => forkedFrom),
    [undefined, 1, 1, 1],
  );
});

test("forks that race for an entry not written yet are reported, each with what it wrote again", async () => {
  await using ground = await openGround();
  await ground.send(a);
  ground.sim.fault({ kind: "together", times: 3 });
  const sent = await Promise.all(DIRECTIVES.map((directive) => ground.send(fork(a, directive))));
  const { families, all } = await ground.report();
  // 300 of answer and 200 of results: the first one had to write them, the others raced it.
  assert.deepEqual(
    (await missesOf(ground)).map(({ cause, tokens }) => [cause, tokens]),
    [
      ["raced", 500],
      ["raced", 500],
    ],
  );
  assert.equal(rowsOf(sent).filter(({ missCause }) => missCause === "raced").length, 3 - 1);
  assert.equal(families[0]?.lost.tokens, 1_000);
  assert.equal(all.lost.tokens, 1_000);
});

test("several agents at once, a side question and a compaction are lineages of their own", async () => {
  await using ground = await openGround();
  const agents = [1, 2, 3].map((seed): readonly Request[] => {
    const first: Request = {
      ...a,
      system: [prose(1_500, 100 + seed, marked)],
      messages: [user(prose(700, 200 + seed, marked))],
    };
    return [first, next(first), next(next(first)), next(next(next(first)))];
  });
  const title: Request = {
    ...a,
    model: "claude-haiku-4-5",
    tools: [],
    system: [prose(40, 300)],
    messages: [user(prose(60, 301))],
  };
  const compacted: Request = { ...(agents[0]?.[0] ?? a), messages: [user(prose(900, 302, marked))] };
  const sent: Sent[][] = [];
  await Promise.all(
    agents.map(async (bodies, index) => {
      const own: Sent[] = [];
      sent[index] = own;
      for (const body of bodies) {
        own.push(await ground.send(body, { headers: { "user-agent": `agent-${index}/1.0 (x)` } }));
        if (index === 0 && own.length === 2) sent[3] = [await ground.send(title)];
      }
    }),
  );
  sent[4] = [await ground.send(compacted)];
  const { lineages, all, families } = await ground.report();
  assert.deepEqual(
    lineages
      .map(({ client, model, ...lineage }) => ({ client, model, ...spentSums(lineage) }))
      .sort(
        (one, other) =>
          one.client.localeCompare(other.client) || other.requests - one.requests || other.read - one.read,
      ),
    [
      { client: "agent-0/1.0", model: "claude-sonnet-5", ...ledgerSums(rowsOf(sent[0] ?? [])) },
      { client: "agent-1/1.0", model: "claude-sonnet-5", ...ledgerSums(rowsOf(sent[1] ?? [])) },
      { client: "agent-2/1.0", model: "claude-sonnet-5", ...ledgerSums(rowsOf(sent[2] ?? [])) },
      { client: "node", model: "claude-sonnet-5", ...ledgerSums(rowsOf(sent[4] ?? [])) },
      { client: "node", model: "claude-haiku-4-5", ...ledgerSums(rowsOf(sent[3] ?? [])) },
    ],
  );
  assert.deepEqual(spentSums(all), ledgerSums(rowsOf(sent.flat())));
  assert.deepEqual(families, []);
});

test("a request that was refused is counted by its status, and the same again is none of two", async () => {
  await using ground = await openGround();
  await ground.send(a);
  ground.sim.fault({ kind: "status", status: 529 });
  const refused = await ground.send(b);
  const again = await ground.send(b);
  const { failed, answered, lineages, all, misses } = await ground.report();
  assert.deepEqual([refused.status, again.status], [529, 200]);
  assert.deepEqual(
    { failed, answered, requests: lineages.map(({ requests }) => requests) },
    {
      failed: [{ name: "529", times: 1 }],
      answered: 2,
      requests: [2],
    },
  );
  assert.deepEqual(misses, []);
  assert.deepEqual(spentSums(all), ledgerSums(ground.sim.ledger().filter(({ status }) => status === 200)));
});

test("an answer whose client disconnected, and one that the provider broke off, count what they wrote", async () => {
  let goOn = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  await using ground = await openGround({
    sim: {
      script: ({ body }) => ({
        content: [{ type: "text", text: "Long." }],
        outputTokens: 1,
        ...((body.messages as readonly unknown[]).length === b.messages.length ? { hold: held } : {}),
      }),
    },
  });
  await ground.send(a);
  const leaving = new AbortController();
  const response = await fetch(`${ground.proxy.url}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": "key-a" },
    body: JSON.stringify({ ...b, stream: true }),
    signal: leaving.signal,
  });
  await response.body?.getReader().read();
  leaving.abort();
  ground.sim.fault({ kind: "reset-mid-stream", afterEvents: 2 });
  await ground.send(next(b)).catch(() => undefined);
  const last = await ground.send(next(next(b)));
  goOn();
  const { aborted, cut, answered, all, brokenOff, lineages, misses } = await ground.report();
  assert.deepEqual(
    { aborted, cut, answered, lineages: lineages.length, misses },
    { aborted: 1, cut: 1, answered: 2, lineages: 1, misses: [] },
  );
  const rows = ground.sim.ledger();
  const whole = rows.filter((_, index) => index === 0 || index === 3);
  const broken = rows.filter((_, index) => index === 1 || index === 2);
  for (const [{ requests, usage }, own] of [
    [all, whole],
    [brokenOff, broken],
  ] as const)
    assert.deepEqual(
      [requests, usage.read, usage.written["5m"], usage.plain],
      [2, ledgerSums(own).read, ledgerSums(own).written, ledgerSums(own).plain],
    );
  assert.equal(last.row?.read, KEPT + 280);
});

test("a request that waits long for its answer is overtaken, and takes its position when answered", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const slow: Request = { ...a, messages: [user(prose(700, 41, marked))] };
  await using ground = await openGround({
    sim: {
      script: async ({ body }) => {
        if (JSON.stringify(body.messages).includes(words(700, 41))) await released;
        return { content: [{ type: "text", text: "Done." }], outputTokens: 7 };
      },
    },
  });
  const late = ground.send(slow);
  while (ground.sim.ledger().length === 0) await new Promise((resolve) => setImmediate(resolve));
  await ground.send(a);
  const entered = async (): Promise<number> => (await ground.proxy.report()).lineages.length;
  assert.equal(await entered(), 0, "it waits for the one before it");
  ground.clock.advance(31_000);
  await ground.send(b);
  assert.equal(await entered(), 1, "and does not wait for ever");
  release();
  const sent = [await late, await ground.send(next(slow)), await ground.send(next(b))];
  assert.equal(sent.length, 3);
  const { all, lineages } = await ground.report();
  assert.deepEqual(spentSums(all), ledgerSums(ground.sim.ledger()));
  assert.deepEqual(
    lineages.map(({ requests, first, last }) => [requests, first, last]),
    [
      [3, 2, 5],
      [2, 1, 4],
    ],
  );
  // Both wrote the 3,000 tokens of tools and system text that they share.
  assert.deepEqual(await missesOf(ground), [
    { request: 1, lineage: 2, cause: "raced", tokens: 3_000, path: "messages[0].content[0].text" },
  ]);
});

test("accounts share no cache, and one account's requests are never a loss for another", async () => {
  await using ground = await openGround();
  const sent = [await ground.send(a, { key: "key-of-one" }), await ground.send(b, { key: "key-of-another" })];
  const { lineages, misses, all } = await ground.report();
  assert.deepEqual(
    lineages.map(({ account, requests }) => [account, requests]),
    [
      [1, 1],
      [2, 1],
    ],
  );
  assert.deepEqual(misses, []);
  assert.deepEqual(spentSums(all), ledgerSums(rowsOf(sent)));
});

test("betas are compared, and tools that were added are named", async () => {
  await using ground = await openGround();
  await ground.send(a, { headers: { "anthropic-beta": "one-2026-01-01" } });
  await ground.send(b, { headers: { "anthropic-beta": "one-2026-01-01, two-2026-02-02" } });
  await ground.send(
    { ...next(b), tools: [...a.tools, tool("Late")] },
    { headers: { "anthropic-beta": "one-2026-01-01, two-2026-02-02" } },
  );
  assert.deepEqual(
    (await ground.report()).misses.map(({ cause, lost }) => [cause, lost.tokens]),
    [
      [{ kind: "parameter", name: "betas", from: "one-2026-01-01", to: "one-2026-01-01,two-2026-02-02" }, KEPT],
      [{ kind: "tools-added", tools: ["Late"] }, KEPT + 140],
    ],
  );
});

test("the events reported along the way equal the final report", async () => {
  const told: string[] = [];
  await using ground = await openGround({
    proxy: {
      onEvent: (event) => {
        if (event.type === "request_ended")
          told.push(`#${event.request} ${event.relation} in ${event.lineage}, ${event.all.usage.read} read`);
        else if (event.type === "request_missed")
          told.push(`#${event.request} lost ${event.lost.tokens}: ${event.words}`);
        else told.push(`${event.members.length} grew from #${event.from}`);
      },
    },
  });
  await sendAll(ground, [a, fork(a, "One."), fork(a, "Two.")]);
  ground.clock.advance(10 * 60_000 - ANSWER_MS);
  await ground.send(next(a));
  await ground.report();
  assert.deepEqual(told, [
    "#1 starts in 1, 0 read",
    `#2 extends in 1, ${KEPT} read`,
    "2 grew from #1",
    `#3 forks in 2, ${2 * KEPT + 500} read`,
    "3 grew from #1",
    `#4 lost ${KEPT}: expired`,
    `#4 forks in 3, ${2 * KEPT + 500} read`,
  ]);
});
