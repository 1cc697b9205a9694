/** A budget for a family: a request that could exceed it is never sent. */

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anthropicEngine, createSession } from "@prefork/runtime";
import { callTools, type SimRequest, say, startSimulator } from "@prefork/simulator";
import { modelFacts } from "@prefork/wire";

// The scripted model: the main agent talks, and a fork goes on looking for ever.
const isFork = ({ body }: SimRequest): boolean => JSON.stringify(body.messages).includes("fork-directive:");
await using simulator = await startSimulator({
  keepBodies: true,
  script: (request) =>
    isFork(request)
      ? callTools([{ name: "Bash", input: { command: "wc -l notes.txt" } }], "I look once more.")
      : say("Ready."),
});
const folder = await mkdtemp(join(tmpdir(), "prefork-example-"));
await writeFile(join(folder, "notes.txt"), "line\n");

const budget = 0.05;
{
  await using session = await createSession({
    engine: anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } }),
    cwd: folder,
    state: join(folder, ".state"),
    permissions: { mode: "default" },
    // #region budget
    limits: { usd: 1 }, // the session with everything that it starts
    forking: {
      family: { usd: budget }, // all forks of one call or one turn together
      fork: { usd: 0.03, turns: 100 }, // each of them
    },
    // #endregion
  });
  await session.prompt("Get ready.").result();
  const before = session.spent.usd;

  const forks = session.forkAll(["one", "two", "three"].map((prompt) => ({ prompt })));
  const outcomes = await Promise.all(forks.map((fork) => fork.result()));
  for (const outcome of outcomes)
    if (outcome.status === "ended") console.log(outcome.end, `${outcome.turns} turns`, outcome.text.split("\n")[0]);
  const spent = session.spent.usd - before;
  console.log(`$${spent.toFixed(4)} of $${budget} were spent`);

  for (const outcome of outcomes) {
    assert.equal(outcome.status === "ended" && outcome.end, "over-budget");
    assert.match(outcome.status === "ended" ? outcome.text : "", /I look once more\./, "what it had said is kept");
  }
  assert.ok(spent > 0 && spent <= budget);
}

// By the provider's own bill: with all that was billed before it, no request could have passed the budget, even if it had
// read nothing from the cache and answered at full length.
const { prices } = modelFacts("claude-sonnet-5") ?? {};
const bodies = simulator.requests().map(({ body }) => JSON.parse(body.toString()) as { readonly max_tokens: number });
let billed = 0;
for (const [at, { promptTokens, billed: bill }] of simulator.ledger().entries()) {
  if (at === 0) continue; // the conversation's own
  const answer = (bodies[at]?.max_tokens ?? 0) * (prices?.output ?? Number.NaN);
  assert.ok(billed + (promptTokens * (prices?.write["5m"] ?? Number.NaN) + answer) / 1e6 <= budget);
  billed += bill.usd ?? Number.NaN;
}
assert.ok(billed > 0 && billed <= budget);
await rm(folder, { recursive: true });
