/** forkRequests: three forks of a request that your own loop sent, with any client. They share its cache and differ only in
 *  one block. */

import assert from "node:assert/strict";
import { callTools, lastUserText, say, startSimulator, textOfTokens } from "@prefork/simulator";

// A provider stand-in: it calls three agents, and a fork answers with its directive.
await using simulator = await startSimulator({
  script: (request) => {
    const directive = /fork-directive: (.*)/.exec(lastUserText(request))?.[1];
    return directive
      ? say(`Scope: ${directive}`)
      : callTools(["schema", "service", "tests"].map((prompt) => ({ name: "Agent", input: { prompt } })));
  },
});

// What your loop sent last, and the answer it got: any recorded Anthropic request will do.
const request = JSON.stringify({
  model: "claude-sonnet-5",
  max_tokens: 1_000,
  tools: [{ name: "Agent", input_schema: { type: "object", properties: { prompt: { type: "string" } } } }],
  system: [{ type: "text", text: textOfTokens(20_000), cache_control: { type: "ephemeral" } }],
  messages: [{ role: "user", content: [{ type: "text", text: "Migrate it.", cache_control: { type: "ephemeral" } }] }],
});
const headers = { "x-api-key": "any", "content-type": "application/json" };
const answer = await (await fetch(`${simulator.url}/v1/messages`, { method: "POST", headers, body: request })).text();

// #region fork
import { createClient, forkRequests, sendFamily } from "@prefork/wire";

export async function explore(request: string, answer: string, baseUrl: string): Promise<void> {
  const client = createClient({ baseUrl, credential: { kind: "api-key", value: "any" } });
  const family = forkRequests(request, ["schema", "service", "tests"], { answer });
  const { members, launch } = await sendFamily(client, family);

  for (const member of members) {
    if (member.status === "failed") throw member.error;
    const { message, usage } = member.response;
    console.log(message.content, usage);
  }
  console.log(launch.reason);
  client.close();
}
// #endregion
await explore(request, answer, simulator.url);

const [parent, leader, ...followers] = simulator.ledger();
assert.ok(parent && leader);
assert.equal(leader.read, parent.promptTokens, "the leader reads all that its parent wrote");
for (const follower of followers) assert.ok(follower.read > leader.read, "followers read the shared tail too");
