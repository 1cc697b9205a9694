/** Why did this request miss the cache of that one? Compares any agent's recorded bodies, to the exact character. */

import assert from "node:assert/strict";
import { startSimulator, textOfTokens } from "@prefork/simulator";

// Two requests of an agent that writes the time into its system prompt, as they were sent.
const marker = { cache_control: { type: "ephemeral" } };
const recorded = (time: string, ...more: readonly object[]): string =>
  JSON.stringify({
    model: "claude-sonnet-5",
    max_tokens: 100,
    system: [{ type: "text", text: `It is ${time}. ${textOfTokens(2_000)}`, ...marker }],
    messages: [{ role: "user", content: [{ type: "text", text: textOfTokens(500), ...marker }] }, ...more],
  });
const turn = [
  { role: "assistant", content: "Done." },
  { role: "user", content: [{ type: "text", text: "Go on.", ...marker }] },
];
const [first, second] = [recorded("09:15"), recorded("09:17", ...turn)];

// #region pair
import { diffRequests } from "@prefork/xray";

const { cause, divergence, lost, why, fix } = diffRequests(first, second);
console.log(`${why}: ${lost.tokens} tokens, $${lost.usd?.toFixed(4)}`);
console.log(`${divergence?.path}, byte ${divergence?.b.offset}: ${divergence?.a.text} became ${divergence?.b.text}`);
console.log(`To fix it: ${fix}.`);
// #endregion

assert.deepEqual(cause, { kind: "system", change: "edited", volatile: "time" });
assert.deepEqual([divergence?.path, divergence?.a.text, divergence?.b.text], ["system[0].text", "5", "7"]);

// The provider's bill says the same: nothing of the first request was read, and all of it was paid for again.
await using simulator = await startSimulator();
for (const body of [first, second])
  await fetch(`${simulator.url}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": "any" },
    body,
  }).then((response) => response.text());
const [wrote, missed] = simulator.ledger();
assert.deepEqual([missed?.read, lost.tokens], [0, wrote?.written["5m"]]);

// #region chain
import { xrayChain } from "@prefork/xray";

const answer = { role: "assistant", content: "Not yet." };
const prompt = { role: "user", content: [{ type: "text", text: "Then start anew.", ...marker }] };
const mended = [recorded("09:15"), recorded("09:15", ...turn), recorded("09:15", answer, prompt)];
const { steps, families } = xrayChain(mended.map((body) => ({ body })));
for (const { index, relation, against, xray } of steps)
  console.log(index, relation, against ?? "", xray ? `reads ${xray.tokens.read}, loses ${xray.lost.tokens}` : "");
// #endregion

assert.deepEqual(
  steps.map(({ relation, xray }) => [relation, xray?.cause.kind]),
  [
    ["starts", undefined],
    ["extends", "none"],
    ["forks", "none"],
  ],
);
assert.deepEqual(families, [{ from: 0, members: [1, 2] }]);
