/** Test your own agent against a provider that caches and bills like the real one: here, the official SDK used plainly. */

import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { say, startSimulator, textOfTokens } from "@prefork/simulator";

await using simulator = await startSimulator({ script: () => say("Hello from the script.") });
const client = new Anthropic({ baseURL: simulator.url, apiKey: "any" });

const ask = () =>
  client.messages.create({
    model: "claude-sonnet-5",
    max_tokens: 100,
    system: [{ type: "text", text: textOfTokens(2_000), cache_control: { type: "ephemeral" } }],
    messages: [{ role: "user", content: "Hello?" }],
  });

const first = await ask();
const second = await ask();
assert.deepEqual([first.usage.cache_creation_input_tokens, first.usage.cache_read_input_tokens], [2_000, 0]);
assert.deepEqual([second.usage.cache_creation_input_tokens, second.usage.cache_read_input_tokens], [0, 2_000]);

simulator.clock.advance(6 * 60_000);
const late = await ask();
assert.equal(late.usage.cache_creation_input_tokens, 2_000, "the entry lived for five minutes");

console.table(
  simulator
    .ledger()
    .map(({ sequence, read, written, missWords }) => ({ sequence, read, written: written["5m"], missWords })),
);
