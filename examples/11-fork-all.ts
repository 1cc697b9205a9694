/** Forks that a program starts: they continue the present conversation in parallel, and the program waits for them. */

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readOnly } from "@prefork/guard";
import { anthropicEngine, createSession } from "@prefork/runtime";
import { callTools, type SimRequest, say, startSimulator, toolResults } from "@prefork/simulator";

const parts = ["schema", "service", "tests"];

// The scripted model: a fork counts the lines of its part and reports; the main agent only talks.
const script = (request: SimRequest) => {
  const part = /fork-directive: count the lines of (\w+)/.exec(JSON.stringify(request.body.messages))?.[1];
  const [result] = toolResults(request);
  if (part === undefined) return say("I know the three parts now.");
  if (result === undefined) return callTools([{ name: "Bash", input: { command: `wc -l ${part}.txt` } }]);
  return say(`Scope: ${part}\nResult: ${result.text.split("\n")[0]}\nKey files: ${part}.txt`);
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
  await session.prompt("Get to know the parts: schema, service, tests.").result();

  // #region fork-all
  const forks = session.forkAll(
    parts.map((part) => ({ prompt: `count the lines of ${part}`, label: part, filter: readOnly, maxTurns: 5 })),
  );
  const outcomes = await Promise.all(forks.map((fork) => fork.result()));

  for (const outcome of outcomes) {
    if (outcome.status !== "ended") continue; // somebody moved it to the background
    const { end, report, usage, usd } = outcome;
    console.log(end, report?.scope, report?.result, `${usage.read} tokens read`, `$${usd.toFixed(4)}`);
  }
  // #endregion
  assert.deepEqual(
    outcomes.map((outcome) => outcome.status === "ended" && outcome.report),
    parts.map((part) => {
      const [result, keyFiles] = [`${part.length} ${part}.txt`, [`${part}.txt`]];
      return { scope: part, result, keyFiles, filesChanged: [], issues: "" };
    }),
  );
  assert.deepEqual(
    session.tasks.map(({ label, state }) => [label, state]),
    parts.map((part) => [part, { kind: "ended", end: "reported" }]),
  );
}

// Each fork read all that the conversation had sent, and in its second turn all that it had sent itself.
const [parent, ...rows] = simulator.ledger();
assert.equal(rows.length, 6);
for (const { read } of rows) assert.ok(parent && read >= parent.promptTokens);
await rm(folder, { recursive: true });
