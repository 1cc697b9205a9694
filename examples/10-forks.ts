/** Forks of a session: the model starts three of them in one turn; each uses real tools and reports once. */

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anthropicEngine, createSession } from "@prefork/runtime";
import { callTools, lastUserText, type SimRequest, say, startSimulator, toolResults } from "@prefork/simulator";

const parts = ["schema", "service", "tests"];

// The scripted model: a fork counts the lines of its part and reports; the main agent starts the forks, then sums up.
const script = (request: SimRequest) => {
  const directive = /fork-directive: (\w+)/.exec(JSON.stringify(request.body.messages))?.[1];
  const [result] = toolResults(request);
  if (directive !== undefined)
    return result?.text.includes(`${directive}.txt`)
      ? say(`Scope: ${directive}\nResult: ${result.text.split("\n")[0]}`)
      : callTools([{ name: "Bash", input: { command: `wc -l ${directive}.txt` } }]);
  if (lastUserText(request).includes("<task-notification>")) return say("All three have reported.");
  if (result) return say("They are under way.");
  return callTools(parts.map((prompt) => ({ name: "Agent", input: { description: `count ${prompt}`, prompt } })));
};

await using simulator = await startSimulator({ script });
const folder = await mkdtemp(join(tmpdir(), "prefork-example-"));
for (const part of parts) await writeFile(join(folder, `${part}.txt`), "line\n".repeat(part.length));

{
  await using session = await createSession({
    engine: anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } }),
    cwd: folder,
    state: join(folder, ".state"),
    permissions: { mode: "default" }, // stated, so forks may run with nobody to ask
  });
  const { text } = await session.prompt("Count the lines of every part.").result();
  assert.equal(text, "All three have reported.");
  for (const { label, state, result } of session.tasks) console.log(label, state, result?.text);
  assert.ok(session.tasks.every(({ state }) => state.kind === "ended" && state.end === "reported"));
}

// The leader read all that its parent had written; the others read the shared tail too.
const [parent, leader, ...followers] = simulator.ledger();
assert.ok(parent && leader);
assert.equal(leader.read, parent.promptTokens);
for (const { read } of followers) assert.ok(read > leader.read);
await rm(folder, { recursive: true });
