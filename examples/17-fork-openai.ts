/** forkRequests for your own loop on OpenAI Responses: three forks of its last request. They start with its exact bytes, and
 *  x-ray shows what that saves. A Chat Completions body is forked in the same way. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

// A provider stand-in that keeps what it gets: it calls three agents, and a fork answers with its directive.
const bodies: string[] = [];
const answerTo = (body: string): readonly object[] => {
  const [, directive] = /fork-directive: (\w+)/.exec(body) ?? [];
  if (directive)
    return [{ type: "message", role: "assistant", content: [{ type: "output_text", text: `Scope: ${directive}` }] }];
  return ["schema", "service", "tests"].map((prompt) => ({
    type: "function_call",
    call_id: `call_${prompt}`,
    name: "Agent",
    arguments: JSON.stringify({ prompt }),
  }));
};
const server = createServer(async (received, response) => {
  let body = "";
  for await (const chunk of received) body += chunk;
  bodies.push(body);
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ id: "resp_1", model: "gpt-6-sol", status: "completed", output: answerTo(body) }));
});
await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;

// Your own loop: what it sent last, as text, and the answer that it got.
const request = JSON.stringify({
  model: "gpt-6-sol",
  prompt_cache_key: "session-1",
  instructions: "You are a careful engineer. ".repeat(300),
  tools: [{ type: "function", name: "Agent", parameters: { type: "object", properties: { prompt: {} } } }],
  input: [{ role: "user", content: "Migrate it: schema, service, tests." }],
  store: false,
});
const headers = { authorization: "Bearer any", "content-type": "application/json" };
const answer = await (await fetch(`${baseUrl}/responses`, { method: "POST", headers, body: request })).text();

// #region fork
import { createClient, forkRequests, sendFamily } from "@prefork/wire";
import { diffRequests } from "@prefork/xray";

const client = createClient({ baseUrl, credential: { kind: "api-key", value: "any" } });
const family = forkRequests(request, ["schema", "service", "tests"], { answer });
const { members, launch } = await sendFamily(client, family);

for (const member of members) {
  if (member.status === "failed") throw member.error;
  console.log(member.response.message.content);
}
console.log(launch.reason);
// #endregion
client.close();
server.close();

const [parent = "", ...forks] = bodies;
const shared = request.slice(0, request.indexOf(`],"store"`));
for (const fork of forks) {
  assert.ok(fork.startsWith(shared), "the parent's bytes, up to the end of its last item");
  const { cause, tokens, lost } = diffRequests(parent, fork);
  console.log(`reads ${tokens.read} tokens of its parent's, loses ${lost.tokens}`);
  assert.deepEqual([cause.kind, lost.tokens], ["none", 0]);
  assert.ok(tokens.read > 2_000);
}
assert.equal(forks.length, 3);
assert.deepEqual(family.notes, []);
