/** A session: one prompt, its events, its result. The simulator replaces the provider; pass a key to use a real one. */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { say, startSimulator } from "@prefork/simulator";

await using simulator = await startSimulator({ script: () => say("There are two kinds of caches.") });
const folder = await mkdtemp(join(tmpdir(), "prefork-example-"));

// #region session
import { anthropicEngine, createSession } from "@prefork/runtime";

const engine = anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } });
{
  await using session = await createSession({ engine, cwd: folder, state: join(folder, ".state") });
  const exchange = session.prompt("How many kinds of caches are there?");
  for await (const event of exchange) if (event.type === "text_grew") process.stdout.write(event.text);
  const { end, text, turns, usd } = await exchange.result();
  console.log(`\n${end} after ${turns} turn, $${usd.toFixed(4)}`);
  // #endregion
  assert.deepEqual([end, text, turns], ["done", "There are two kinds of caches.", 1]);
}
await rm(folder, { recursive: true });
