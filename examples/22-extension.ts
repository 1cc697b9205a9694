/** Your own extension: a tool, a section of the first message, and hooks around calls. A module named in your settings
 *  exports the same function by default. */

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  anthropicEngine,
  createSession,
  defineTool,
  type Extension,
  type ExtensionApi,
  failed,
} from "@prefork/runtime";
import { callTools, lastUserText, say, startSimulator, toolResults } from "@prefork/simulator";
import * as z from "zod";

// #region extension
const houseRules = ({ z, defineTool }: ExtensionApi): Extension => ({
  name: "house-rules",
  tools: [
    defineTool({
      name: "Deadline",
      description: "When a milestone is due.",
      input: z.strictObject({ milestone: z.string() }),
      readOnly: true,
      touches: () => ({}), // nothing outside: it runs unasked
      run: async ({ milestone }) => ({ content: `${milestone} is due on Friday.` }),
    }),
  ],
  sections: [{ name: "house-rules", text: "Files under generated/ are made by a program." }],
  on: {
    beforeCall: ({ touches }) =>
      touches?.writes?.some((path) => path.includes("/generated/"))
        ? { kind: "deny", reason: "generated/ is made by a program; change its source" }
        : undefined,
    afterCall: ({ touches, fault }) =>
      touches?.writes && fault === undefined ? { note: "remember to run the tests" } : undefined,
  },
});
// #endregion

const folder = await mkdtemp(join(tmpdir(), "prefork-example-"));
const write = (path: string) => ({ name: "Write", input: { file_path: join(folder, path), content: "text\n" } });

await using simulator = await startSimulator({
  keepBodies: true,
  script: (request) => {
    const results = toolResults(request);
    if (results.length > 0) return say(results.map(({ text }) => text).join("\n"));
    return lastUserText(request).includes("when")
      ? callTools([{ name: "Deadline", input: { milestone: "1.0" } }])
      : callTools([write("generated/api.ts"), write("notes.md")]);
  },
});
const engine = anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } });
{
  // #region session
  await using session = await createSession({
    engine,
    cwd: folder,
    state: join(folder, ".state"),
    permissions: { mode: "accept-edits" },
    extensions: [
      houseRules({ cwd: folder, z, defineTool, failed }),
      { name: "broken", open: () => Promise.reject(new Error("its server is away")) }, // skipped with a warning
    ],
  });
  // #endregion
  const due = await session.prompt("when is 1.0 due?").result();
  console.log(due.text);
  assert.equal(due.text, "1.0 is due on Friday.");

  const { text } = await session.prompt("write both files").result();
  console.log(text);
  assert.equal(
    text.replaceAll(`${folder}/`, ""),
    [
      "Not allowed: house-rules: generated/ is made by a program; change its source",
      "Made notes.md (1 line).[house-rules: remember to run the tests]",
    ].join("\n"),
  );
  assert.equal(await readFile(join(folder, "notes.md"), "utf8"), "text\n");
}
const [first, ...later] = simulator.requests().map(({ body }) => JSON.parse(body.toString("utf8")));
assert.match(JSON.stringify(first.messages[0]), /Files under generated\/ are made by a program\./);
for (const { tools } of later) assert.deepEqual(tools, first.tools, "the list of tools never changes");
await rm(folder, { recursive: true });
