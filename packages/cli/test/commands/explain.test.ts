/** `prefork explain`: its rows match the provider's ledger and are readable. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { anthropicEngine, createSession } from "@prefork/runtime";
import { type Ground, resultIn } from "../print/ground.ts";
import { looked, openForking } from "./family.ts";

const figure = (tokens: number): string => tokens.toLocaleString("en-US");

/** The cells of the request table. */
const cellsIn = (out: string): readonly (readonly string[])[] => {
  const lines = out.split("\n");
  const from = lines.findIndex((line) => line.startsWith("────")) + 1;
  return lines.slice(from, lines.indexOf("", from)).map((line) => line.split(/ {2,}/));
};

test("every request is one line with the provider's own figures, in 100 columns", async () => {
  await using ground = await openForking();
  const id = await looked(ground);
  const { code, out, err } = await ground.prefork(["explain", id.slice(0, 8)]);
  assert.deepEqual([code, err], [0, ""]);
  const ledger = ground.simulator.ledger();
  const shown = cellsIn(out).map(([, , , expected, read, written, plain, output]) =>
    [expected, read, written, plain, output].join(" "),
  );
  const billed = ledger.map(({ expectedRead, read, written, plain, output }) =>
    [expectedRead, read, written["5m"], plain, output].map(figure).join(" "),
  );
  assert.deepEqual(shown.toSorted(), billed.toSorted());
  assert.deepEqual(
    out.split("\n").filter((line) => [...line].length > 100),
    [],
  );
  assert.ok(!out.includes("\u001b"));
  const sum = (pick: (row: (typeof ledger)[number]) => number): string =>
    figure(ledger.reduce((all, row) => all + pick(row), 0));
  const total = `7 requests: ${sum(({ read }) => read)} tokens read, ${sum(({ written }) => written["5m"])} written, 0 uncached, ${sum(({ output }) => output)} output. The total cost is $`;
  assert.ok(out.replace(/\s+/g, " ").includes(total), `${total} is in\n${out}`);
  assert.match(out, /^[0-9a-f]{10} {2}look at schema\n[0-9a-f]{10} {2}look at service\n/m);
  assert.match(out, /^no fork +[\d,]+ +\$[\d.]+ +\$[\d.]+ +1\.\d\d ×$/m);
  assert.match(out, /^no cache +[\d,]+ +\$[\d.]+ +\$[\d.]+ +[2-9]\.\d\d ×$/m);
  assert.match(out, /^cold, all at once +[\d,]+ +\$[\d.]+ +\$[\d.]+ +[2-9]\.\d\d ×$/m);
});

test("the JSON sums to what the run itself reported, for the session and for one task", async () => {
  await using ground = await openForking();
  const run = await ground.prefork(["-p", "--permission-mode", "default", "--output-format", "json", "Look at all."]);
  const { session_id: id, total_cost_usd: cost, usage } = resultIn(run.out);
  const { total, rows, tasks } = resultIn((await ground.prefork(["explain", String(id), "--json"])).out) as {
    readonly total: { readonly usage: unknown; readonly usd: number };
    readonly rows: readonly { readonly agent: string }[];
    readonly tasks: readonly { readonly id: string; readonly label: string }[];
  };
  const ledger = ground.simulator.ledger();
  assert.equal(rows.length, ledger.length);
  const sum = (pick: (row: (typeof ledger)[number]) => number): number =>
    ledger.reduce((all, row) => all + pick(row), 0);
  const spent = {
    plain: 0,
    read: sum(({ read }) => read),
    written: { "5m": sum(({ written }) => written["5m"]) },
    output: sum(({ output }) => output),
  };
  assert.deepEqual(total.usage, spent);
  assert.deepEqual(usage, {
    prompt_tokens: spent.read + spent.written["5m"],
    input_tokens: 0,
    cache_read_input_tokens: spent.read,
    cache_creation_input_tokens: spent.written["5m"],
    output_tokens: spent.output,
  });
  assert.equal(total.usd.toFixed(9), Number(cost).toFixed(9));
  const [task] = tasks;
  const one = resultIn((await ground.prefork(["explain", String(id), task?.id.slice(0, 9) ?? "", "--json"])).out);
  assert.deepEqual(
    one.rows,
    rows.filter(({ agent }) => agent === task?.id),
  );
  assert.deepEqual(one.tasks, [task]);
});

/** A session whose clock moves together with its provider's clock. */
const pausing = async (ground: Ground): Promise<string> => {
  let now = Date.UTC(2026, 0, 1);
  await using session = await createSession({
    engine: anthropicEngine({ baseUrl: ground.simulator.url, credential: { kind: "api-key", value: "any" } }),
    ...{ cwd: ground.work, home: ground.home, environment: ground.env, clock: { now: () => now } },
  });
  await session.prompt("one").result();
  now += 6 * 60_000;
  ground.simulator.clock.advance(6 * 60_000);
  await session.prompt("two").result();
  return session.id;
};

test("a miss is shown with its cost, its reason, and how to avoid it", async () => {
  await using ground = await openForking();
  const id = await pausing(ground);
  const [first, second] = ground.simulator.ledger();
  assert.ok(first && second);
  const { out } = await ground.prefork(["explain", id]);
  assert.deepEqual(
    cellsIn(out).map(([agent, turn, at, expected, read, , , , , why]) => [agent, turn, at, expected, read, why]),
    [
      ["main", "1", "0:00", "0", "0", "first request"],
      ["main", "2", "6:00", "0", "0", "expired"],
    ],
  );
  const lost = first.promptTokens * 2.3e-6; // written at $2.50 per million instead of read at $0.20
  const sentence = out.slice(out.indexOf("main turn 2 missed")).replace(/\s+/g, " ").trim();
  assert.equal(
    sentence,
    `main turn 2 missed ${figure(first.promptTokens)} cached tokens ($${lost.toFixed(4)}): the cache entry had expired: unused for 6.0 min, with a lifetime of 5m. To avoid it: if pauses are longer than five minutes, a cache lifetime of 1h costs less.`,
  );
});

test("without an id it explains the last session of the current folder", async () => {
  await using ground = await openForking();
  const id = await looked(ground);
  const named = await ground.prefork(["explain", id, "--json"]);
  for (const argv of [
    ["explain", "--json"],
    ["explain", "latest", "--json"],
  ])
    assert.equal((await ground.start(argv).ended).out, named.out);
});

test("an unknown session or task is a usage error of one line", async () => {
  await using ground = await openForking();
  assert.deepEqual(await ground.prefork(["explain", "nope"]), {
    code: 2,
    out: "",
    err: "prefork: there is no session nope\n",
  });
  const id = await looked(ground);
  assert.deepEqual(await ground.prefork(["explain", id, "nope"]), {
    ...{ code: 2, out: "", err: `prefork: session ${id} has no task nope\n` },
  });
});
