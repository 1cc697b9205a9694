/** A tool server (MCP) next to the built-in tools: your own program over stdio. Its tools are in the list that is sent
 *  once, so every later request reads them from the cache. */

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anthropicEngine, createSession } from "@prefork/runtime";
import { callTools, say, startSimulator, toolResults } from "@prefork/simulator";

// A whole server with one tool: a line of JSON in, a line of JSON out.
const program = `
import { createInterface } from "node:readline";
const stock = { apples: 12 };
const tool = {
  name: "count",
  description: "How many of a product are in stock.",
  inputSchema: { type: "object", properties: { product: { type: "string" } }, required: ["product"] },
};
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "stock" } }),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": ({ arguments: { product } }) => ({ content: [{ type: "text", text: stock[product] + " " + product }] }),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method](params) }));
}
`;

await using simulator = await startSimulator({
  script: (request) => {
    const [result] = toolResults(request);
    return result
      ? say(`We have ${result.text}.`)
      : callTools([{ name: "mcp__stock__count", input: { product: "apples" } }]);
  },
});
const folder = await mkdtemp(join(tmpdir(), "prefork-example-"));
await writeFile(join(folder, "stock.mjs"), program);
const engine = anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } });
{
  // #region servers
  await using session = await createSession({
    engine,
    cwd: folder,
    state: join(folder, ".state"),
    servers: [{ name: "stock", transport: "stdio", command: process.execPath, args: [join(folder, "stock.mjs")] }],
    permissions: { allow: ["mcp__stock__count"] }, // without a rule somebody is asked
  });
  const { text } = await session.prompt("How many apples are there?").result();
  // #endregion
  console.log(text);
  assert.equal(text, "We have 12 apples.");
}

// The request with the tool's result has read all of the one before, the server's tool among it.
const [first, second, ...others] = simulator.ledger();
assert.ok(first && second && others.length === 0);
assert.equal(second.read, first.promptTokens);
await rm(folder, { recursive: true });
