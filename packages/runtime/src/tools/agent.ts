/** Agent: work handed to a fork or another agent.
 *  Invariant: declared in every session from the first request, because a tool list that changes costs the whole cache;
 *  which of the two forms it has is fixed for the epoch.
 *  Elsewhere: what happens then (../ports.ts: Delegation). */

import * as z from "zod";
import { passOn } from "./delegated.ts";
import { defineTool, type Tool } from "./tool.ts";

const input = z.strictObject({
  description: z.string().min(1).describe("Three to five words that name the work"),
  prompt: z.string().min(1).describe("What to do, its limits, and what to report"),
  subagent_type: z.string().min(1).optional().describe("A named agent; without it a fork that knows this conversation"),
  isolation: z.enum(["worktree"]).optional().describe("worktree: work on a copy of the repository, merged back later"),
});

const SHARES = "a fork shares its parent's cache, which another one would lose; leave it out, or use a named agent";

const refuses = {
  model: SHARES,
  effort: SHARES,
  thinking: SHARES,
  tools: SHARES,
  allowed_tools: SHARES,
  system: SHARES,
  system_prompt: SHARES,
  run_in_background: "every agent runs in the background here and reports by a task notification; leave it out",
} as const;

export const agentTool = defineTool({
  name: "Agent",
  description:
    "Starts an agent on a piece of work. Without subagent_type it is a fork: it knows everything said so far, so the " +
    "prompt needs only its task. A named agent knows nothing but the prompt. Start several in one message to let them " +
    "work side by side, each with a scope of its own. Each reports once; until then do not guess what it found.",
  input,
  readOnly: false,
  touches: () => ({}),
  startsPrograms: false,
  refuses,
  run: (args, context) => passOn({ call: context.delegation.agent, what: "Agents are" }, args, context),
});

const { run_in_background: _inBackground, ...others } = refuses;

/** Where forks are switched off: the call waits for its agent, unless it says otherwise. */
export const waitingAgentTool = defineTool({
  name: "Agent",
  description:
    "Starts an agent on a piece of work and gives its report. It knows nothing but the prompt, so put everything it " +
    "needs there. With run_in_background it reports later, by a task notification; until then do not guess what it found.",
  input: input.extend({
    subagent_type: z.string().min(1).optional().describe("A named agent; without it a general-purpose one"),
    run_in_background: z.boolean().optional().describe("Do not wait for its report"),
  }),
  readOnly: false,
  touches: () => ({}),
  startsPrograms: false,
  refuses: others,
  run: (args, context) => passOn({ call: context.delegation.agent, what: "Agents are" }, args, context),
});

/** The tools of a session whose Agent calls wait. */
export const withWaitingAgent = (tools: readonly Tool[]): readonly Tool[] =>
  tools.map((tool) => (tool === agentTool ? waitingAgentTool : tool));
