/** Your own tool next to the built-in ones. Its schema is sent once, as part of the prefix. */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anthropicEngine, builtInTools, createSession, defineTool, failed } from "@prefork/runtime";
import { callTools, say, startSimulator, toolResults } from "@prefork/simulator";
import * as z from "zod";

// #region tool
const stock: ReadonlyMap<string, number> = new Map([["apples", 12]]);

const stockTool = defineTool({
  name: "Stock",
  description: "How many of a product are in stock.",
  input: z.object({ product: z.string().describe("plural, lower case") }),
  readOnly: true, // runs unasked, beside other readers, and again after a crash
  run: async ({ product }) => {
    const count = stock.get(product);
    return count === undefined ? failed(`There is no product ${product}.`) : { content: `${count} ${product}` };
  },
});
// #endregion

await using simulator = await startSimulator({
  script: (request) => {
    const [result] = toolResults(request);
    if (!result) return callTools([{ name: "Stock", input: { product: "pears" } }]);
    return result.isError
      ? callTools([{ name: "Stock", input: { product: "apples" } }])
      : say(`We have ${result.text}.`);
  },
});
const folder = await mkdtemp(join(tmpdir(), "prefork-example-"));
const engine = anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } });
{
  await using session = await createSession({
    engine,
    cwd: folder,
    state: join(folder, ".state"),
    tools: [...builtInTools, stockTool],
  });
  const { text } = await session.prompt("How many apples are there?").result();
  console.log(text);
  assert.equal(text, "We have 12 apples.");
}
await rm(folder, { recursive: true });
