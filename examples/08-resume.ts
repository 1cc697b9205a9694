/** Resumes a session from its journal: the same bytes are sent again, so they hit the provider's cache. */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anthropicEngine, createSession, resumeSession } from "@prefork/runtime";
import { lastUserText, say, startSimulator } from "@prefork/simulator";

await using simulator = await startSimulator({ script: (request) => say(`You said: ${lastUserText(request)}`) });
const folder = await mkdtemp(join(tmpdir(), "prefork-example-"));
const engine = anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } });
const options = { engine, cwd: folder, state: join(folder, ".state") };

let id = "";
{
  await using session = await createSession(options);
  id = session.id;
  await session.prompt("Remember the number 7.").result();
}
{
  await using session = await resumeSession(id, options);
  await session.prompt("Which number?").result();
}

const [before, after] = simulator.ledger();
assert.ok(before && after);
assert.equal(after.read, before.promptTokens, "the resumed session reads all that it had written");
console.log(`resumed ${id}: ${after.read} of ${after.promptTokens} prompt tokens came from the cache`);
await rm(folder, { recursive: true });
