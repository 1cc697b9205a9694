/** Turns, money and time: each stops a run at its limit, with exit code 3 and a session that can be resumed. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { callTools, type SimScript, say, toolResults } from "@prefork/simulator";
import { openGround, processesWith, resultIn } from "./ground.ts";

/** A sleep that is longer than anyone waits, and unique on this machine. */
const SLEEP = `sleep ${1_000_000 + process.pid}`;

/** Reads the same file forever. */
const restless: SimScript = () => callTools([{ name: "Read", input: { file_path: "a.txt" } }], "Once more.");

test("--max-turns ends a run between two turns, and the session resumes from there", async () => {
  await using ground = await openGround(restless);
  ground.put("a.txt", "a\n");
  const argv = ["-p", "--max-turns", "2"];
  const { code, out, err } = await ground.prefork([...argv, "look"]);
  assert.deepEqual([code, out], [3, "Once more.\n"]);
  const [, id = ""] =
    /^prefork: stopped: the limit of 2 turns is reached \(to resume: --resume (\w+)\)\n$/.exec(err) ?? [];
  const again = await ground.prefork([...argv, "--output-format", "json", "--resume", id, "look again"]);
  const { end, session_id, num_turns } = resultIn(again.out);
  assert.deepEqual(
    { code: again.code, end, session_id, num_turns },
    {
      ...{ code: 3, end: "max-turns", session_id: id, num_turns: 2 },
    },
  );
  assert.deepEqual(
    ground.simulator.ledger().map(({ outcome, missCause }) => [outcome, missCause]),
    Array.from({ length: 4 }, () => ["complete", null]),
  );
});

test("--max-budget-usd sends nothing that could cost more", async () => {
  await using ground = await openGround(restless);
  const { code, out, err } = await ground.prefork(["-p", "--max-budget-usd", "0.001", "look"]);
  assert.deepEqual([code, out, ground.simulator.ledger()], [3, "", []]);
  assert.match(
    err,
    /^prefork: stopped: the next request could cost \$\d\.\d{4}, and \$0\.0010 of the budget is left \(to resume: --resume \w+\)\n$/,
  );
});

test("--max-budget-usd lowers what an answer may be, then stops, and is kept by the bill", async () => {
  await using ground = await openGround(restless);
  ground.put("a.txt", "a\n");
  const budget = 0.05;
  const argv = ["-p", "--max-budget-usd", String(budget), "--output-format", "json", "look"];
  const { code, out } = await ground.prefork(argv);
  const { end, total_cost_usd } = resultIn(out);
  assert.deepEqual([code, end], [3, "over-budget"]);
  const rows = ground.simulator.ledger();
  const billed = rows.reduce((sum, row) => sum + (row.billed.usd ?? 0), 0);
  assert.equal(Number(total_cost_usd).toFixed(9), billed.toFixed(9));
  assert.ok(rows.length > 1 && billed <= budget);
  const lengths = ground.bodies().map((body) => Number(body.max_tokens));
  assert.ok(lengths.every((length, at) => length <= (lengths[at - 1] ?? 16_000)) && (lengths.at(-1) ?? 0) < 16_000);
});

test("money that was spent before counts when a session resumes", async () => {
  await using ground = await openGround();
  await ground.prefork(["-p", "speak"]);
  const [first] = ground.simulator.ledger();
  const spent = String((first?.billed.usd ?? 0) + 0.001);
  const { code } = await ground.prefork(["-p", "-c", "--max-budget-usd", spent, "speak again"]);
  assert.deepEqual([code, ground.simulator.ledger().length], [3, 1]);
  const none = await ground.prefork(["-p", "-c", "--max-budget-usd", String(first?.billed.usd), "speak again"]);
  assert.match(
    none.err,
    /^prefork: stopped: the budget is used up; the next request could cost \$\d\.\d{4} \(to resume: --resume \w+\)\n$/,
  );
});

test("a budget in dollars needs a model whose price is known, and leaves no session behind", async () => {
  await using ground = await openGround();
  const argv = ["-p", "--max-budget-usd", "1", "--model", "somebody-elses", "speak"];
  assert.deepEqual(await ground.prefork(argv), {
    code: 2,
    out: "",
    err: "prefork: the price of somebody-elses is unknown, so a budget in dollars cannot be enforced; remove the budget\n",
  });
  assert.equal((await ground.prefork(["sessions", "--all"])).out, "There are no sessions.\n");
});

test("--timeout ends a request that takes too long", async () => {
  const { promise: never, resolve: release } = Promise.withResolvers<void>();
  await using ground = await openGround(() => ({ ...say("late"), hold: never }));
  const { code, out, err } = await ground.prefork(["-p", "--timeout", "0.3", "speak"]);
  release();
  assert.deepEqual([code, out], [3, ""]);
  assert.match(err, /^prefork: stopped: the time limit is reached \(to resume: --resume \w+\)\n$/);
});

test("--timeout ends a command that takes too long, and everything it started", async () => {
  const long = `touch begun; ${SLEEP} & ${SLEEP}`;
  await using ground = await openGround((request) =>
    toolResults(request).length === 0 ? callTools([{ name: "Bash", input: { command: long } }]) : say("over"),
  );
  const argv = ["-p", "--permission-mode", "bypass", "--timeout", "3", "--output-format", "json", "wait"];
  const { code, out } = await ground.prefork(argv);
  assert.deepEqual([code, resultIn(out).end], [3, "out-of-time"]);
  assert.ok(existsSync(ground.at("begun")));
  assert.deepEqual(processesWith(SLEEP), []);
});

test("limits that are none are refused", async () => {
  await using ground = await openGround();
  for (const [flag, value, kind] of [
    ["--max-turns", "0", "whole number"],
    ["--max-turns", "1.5", "whole number"],
    ["--max-budget-usd", "free", "number"],
    ["--timeout", "-1", "number"],
    ["--timeout", "", "number"],
  ] as const)
    assert.deepEqual(await ground.prefork(["-p", `${flag}=${value}`, "speak"]), {
      ...{ code: 2, out: "", err: `prefork: ${flag} takes a ${kind} above 0, not ${JSON.stringify(value)}\n` },
    });
  assert.deepEqual(ground.simulator.ledger(), []);
});
