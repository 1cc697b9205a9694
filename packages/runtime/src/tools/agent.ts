/** Agent: work handed to a fork or a named agent.
 *  Invariant: declared in every session from the first request, because a tool list that changes costs the whole cache.
 *  Elsewhere: what happens then (../ports.ts: Delegation). */

import * as z from "zod";
import { passOn } from "./delegated.ts";
import { defineTool } from "./tool.ts";

const input = z.strictObject({
  description: z.string().min(1).describe("Three to five words that name the work"),
  prompt: z.string().min(1).describe("What to do, its limits, and what to report"),
  subagent_type: z.string().min(1).optional().describe("A named agent; without it a fork that knows this conversation"),
  isolation: z.enum(["worktree"]).optional().describe("worktree: work on a copy of the repository, merged back later"),
});

export const agentTool = defineTool({
  name: "Agent",
  description:
    "Starts an agent on a piece of work. Without subagent_type it is a fork: it knows everything said so far, so the " +
    "prompt needs only its task. A named agent knows nothing but the prompt. Start several in one message to let them " +
    "work side by side, each with a scope of its own. Each reports once; until then do not guess what it found.",
  input,
  readOnly: false,
  run: (args, context) => passOn({ call: context.delegation.agent, what: "Agents are" }, args, context),
});
