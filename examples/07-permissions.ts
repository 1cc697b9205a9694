/** Permissions: rules, and a function that answers questions. */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anthropicEngine, createSession, type Question } from "@prefork/runtime";
import { callTools, say, startSimulator } from "@prefork/simulator";

const commands = ["git status", "touch made", "touch other", "rm -rf made"];
await using simulator = await startSimulator({
  script: (request) => {
    const { messages } = request.body;
    const command = commands[Array.isArray(messages) ? messages.length >> 1 : 0]; // each turn adds two
    return command === undefined ? say("done") : callTools([{ name: "Bash", input: { command } }]);
  },
});
const folder = await mkdtemp(join(tmpdir(), "prefork-example-"));
const engine = anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } });

const asked: Question[] = [];
const outcomes: string[] = [];
{
  await using session = await createSession({
    engine,
    cwd: folder,
    state: join(folder, ".state"),
    permissions: {
      deny: ["Bash(rm:*)"],
      // A person, a policy, another program: whoever answers for the session.
      ask: async (question) => {
        asked.push(question);
        return question.rule === undefined ? { kind: "allow" } : { kind: "always", rule: question.rule };
      },
    },
  });
  const exchange = session.prompt("Try some commands.");
  for await (const event of exchange) if (event.type === "call_ended") outcomes.push(event.fault ?? "ran");
  await exchange.result();
}
console.log(asked.map(({ args, reason, rule }) => ({ command: args.command, reason, rule })));
assert.equal(asked[0]?.args.command, "touch made", "only reading needs no question");
assert.equal(outcomes.at(-1), "denied", "a deny rule is never asked about");
await rm(folder, { recursive: true });
