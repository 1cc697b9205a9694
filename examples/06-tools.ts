/** The built-in tools on real files: the scripted model sees a result, and acts on it in the next turn. */

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anthropicEngine, createSession } from "@prefork/runtime";
import { callTools, say, startSimulator, toolResults } from "@prefork/simulator";

const folder = await mkdtemp(join(tmpdir(), "prefork-example-"));
const file = join(folder, "greeting.txt");
await writeFile(file, "Helo, world\n");

// Reads, then repairs what it read, then looks with a command: each step follows from the results so far.
await using simulator = await startSimulator({
  script: (request) => {
    const [result] = toolResults(request);
    if (!result) return callTools([{ name: "Read", input: { file_path: file } }]);
    if (result.text.includes("Helo,"))
      return callTools([{ name: "Edit", input: { file_path: file, old_string: "Helo", new_string: "Hello" } }]);
    if (result.text.startsWith("Hello, world")) return say(result.text);
    return callTools([{ name: "Bash", input: { command: "cat greeting.txt" } }]);
  },
});

const engine = anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } });
{
  await using session = await createSession({
    engine,
    cwd: folder,
    state: join(folder, ".state"),
    permissions: { mode: "accept-edits" },
  });
  const exchange = session.prompt("Repair the greeting.");
  for await (const event of exchange) {
    if (event.type === "call_ended") console.log(`${event.tool}: ${event.text.split("\n")[0]}`);
  }
  assert.match((await exchange.result()).text, /^Hello, world/);
}
assert.equal(await readFile(file, "utf8"), "Hello, world\n");

// Every request read all that the one before it had written.
const rows = simulator.ledger();
assert.equal(rows.length, 4);
rows.slice(1).forEach(({ read }, at) => {
  assert.equal(read, rows[at]?.promptTokens);
});
await rm(folder, { recursive: true });
