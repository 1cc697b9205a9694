/** SendMessage: words for an agent that was started before.
 *  Invariant: declared in every session from the first request, as every tool is.
 *  Elsewhere: delivering it (../ports.ts: Delegation). */

import * as z from "zod";
import { passOn } from "./delegated.ts";
import { defineTool } from "./tool.ts";

const input = z.strictObject({
  to: z.string().min(1).describe("Task id of the agent"),
  message: z.string().min(1),
});

export const sendMessageTool = defineTool({
  name: "SendMessage",
  description: "Sends a message to an agent that you started, for example to correct it or to have it go on.",
  input,
  readOnly: false,
  touches: () => ({}),
  startsPrograms: false,
  run: (args, context) =>
    passOn({ call: context.delegation.sendMessage, what: "Messages to agents are" }, args, context),
});
