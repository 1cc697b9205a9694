/** McpCall: a tool of another server, called by its name.
 *  Invariant: one constant tool reaches every server that comes late or changes, so the tool list never does.
 *  Elsewhere: the servers (../ports.ts: Delegation), rules about the tool inside (@prefork/guard). */

import * as z from "zod";
import { passOn } from "./delegated.ts";
import { defineTool } from "./tool.ts";

const input = z.strictObject({
  server: z.string().min(1),
  tool: z.string().min(1),
  args: z.record(z.string(), z.unknown()).describe("The tool's own arguments"),
});

export const mcpCallTool = defineTool({
  name: "McpCall",
  description:
    "Calls a tool of a connected tool server that is not in this list. Servers, their tools and arguments are announced " +
    "in the conversation.",
  input,
  readOnly: false,
  touches: ({ server, tool }) => ({ reaches: [`mcp__${server}__${tool}`] }),
  startsPrograms: false,
  run: (args, context) => passOn({ call: context.delegation.mcpCall, what: "Tool servers are" }, args, context),
});
