/** The proxy between an agent and its provider reports cache hits and misses; here the agent is the official SDK. */

import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { ManualClock, startSimulator, textOfTokens } from "@prefork/simulator";

const clock = new ManualClock();
await using provider = await startSimulator({ clock });

// #region proxy
import { startProxy } from "@prefork/xray/proxy";

await using proxy = await startProxy({ upstream: provider.url, now: () => clock.now() });
const client = new Anthropic({ baseURL: proxy.url, apiKey: "any" });
// #endregion

// An agent of four turns that comes back after lunch, and says the time in its system prompt.
const marker = { cache_control: { type: "ephemeral" as const } };
const ask = (time: string, turns: number): Promise<Anthropic.Message> =>
  client.messages.create({
    model: "claude-sonnet-5",
    max_tokens: 100,
    system: [{ type: "text", text: `It is ${time}. ${textOfTokens(2_000)}`, ...marker }],
    messages: Array.from({ length: 2 * turns - 1 }, (_, index) => ({
      role: index % 2 === 0 ? "user" : "assistant",
      content: [{ type: "text", text: textOfTokens(100, index), ...(index === 2 * turns - 2 ? marker : {}) }],
    })),
  });
await ask("09:15", 1);
await ask("09:15", 2);
clock.advance(60 * 60_000);
await ask("09:15", 3);
clock.advance(1_000);
await ask("10:15", 4);

// #region report
const { all, lineages, misses } = await proxy.close();
console.log(`${lineages.length} lineage, ${((all.readShare ?? 0) * 100).toFixed(1)} % read`);
console.log(
  `re-write factor ${all.rewriteFactor?.toFixed(2)}, $${all.lost.usd?.toFixed(4)} of $${all.usd?.toFixed(4)} lost`,
);
for (const { request, words, path, lost, fix } of misses)
  console.log(`#${request}: ${words} ${path ?? ""}, ${lost.tokens} tokens. To fix it: ${fix}.`);
// #endregion

// The provider's bill says the same.
const rows = provider.ledger();
const sum = (pick: (row: (typeof rows)[number]) => number): number => rows.reduce((total, row) => total + pick(row), 0);
assert.equal(all.readShare, sum(({ read }) => read) / sum(({ promptTokens }) => promptTokens));
assert.equal(all.usd?.toFixed(9), sum(({ billed }) => billed.usd ?? 0).toFixed(9));
assert.deepEqual(
  misses.map(({ request, cause, lost }) => [request, cause.kind, lost.tokens]),
  [
    [3, "expired", rows[2]?.expectedRead],
    [4, "system", 2_004 + 500],
  ],
);
