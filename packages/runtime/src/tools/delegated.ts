/** Which tools hand their work to another module: agents, messages, tool servers and skills?
 *  Invariant: all of them are declared in every session from the first request, because changing the tool list costs
 *  the whole cache. The arguments arrive as the model gave them, checked, together with who called.
 *  Elsewhere: who does the work (../ports.ts: Delegation; tasks, forks and tool servers implement it). */

import type { JsonObject } from "@prefork/wire";
import * as z from "zod";
import type { Delegated, DelegatedCall } from "../ports.ts";
import { defineTool, failed, type Tool, type ToolContext, type ToolOutput } from "./tool.ts";

export const toToolOutput = ({ text, content, isError = false }: Delegated): ToolOutput =>
  isError ? { content: content ?? text, fault: "failed" } : { content: content ?? text };

type DelegationTarget = {
  readonly call: DelegatedCall | undefined;
  /** What is not available: the subject and verb of a sentence. */
  readonly what: string;
};

export const delegate = async (
  { call, what }: DelegationTarget,
  args: object,
  context: ToolContext,
): Promise<ToolOutput> => {
  if (call === undefined) return failed(`${what} not available in this session.`);
  const { callId, agent, signal } = context;
  return toToolOutput(await call(args as JsonObject, { callId, agent, signal }));
};

/** Agent: hands work to a fork or another agent. Which of its two forms a session has is fixed for the epoch. */

const agentInput = z.strictObject({
  description: z.string().min(1).describe("Three to five words that name the work"),
  prompt: z.string().min(1).describe("What to do, its limits, and what to report"),
  subagent_type: z.string().min(1).optional().describe("A named agent; without it a fork that knows this conversation"),
  isolation: z.enum(["worktree"]).optional().describe("worktree: work on a copy of the repository, merged back later"),
});

const SHARES_CACHE =
  "a fork shares its parent's cache, which another one would lose; leave it out, or use a named agent";

const refuses = {
  model: SHARES_CACHE,
  effort: SHARES_CACHE,
  thinking: SHARES_CACHE,
  tools: SHARES_CACHE,
  allowed_tools: SHARES_CACHE,
  system: SHARES_CACHE,
  system_prompt: SHARES_CACHE,
  run_in_background: "every agent runs in the background here and reports by a task notification; leave it out",
} as const;

export const agentTool = defineTool({
  name: "Agent",
  description:
    "Starts an agent on a piece of work. Without subagent_type it is a fork: it knows everything said so far, so the " +
    "prompt needs only its task. A named agent knows nothing but the prompt. Start several in one message to let them " +
    "work side by side, each with a scope of its own. Each reports once; until then do not guess what it found.",
  input: agentInput,
  readOnly: false,
  touches: () => ({}),
  startsPrograms: false,
  unsupportedArguments: refuses,
  run: (args, context) => delegate({ call: context.delegation.agent, what: "Agents are" }, args, context),
});

const { run_in_background: _inBackground, ...others } = refuses;

/** The form for sessions without forks: the call waits for its agent unless it says otherwise. */
export const blockingAgentTool = defineTool({
  name: "Agent",
  description:
    "Starts an agent on a piece of work and gives its report. It knows nothing but the prompt, so put everything it " +
    "needs there. With run_in_background it reports later, by a task notification; until then do not guess what it found.",
  input: agentInput.extend({
    subagent_type: z.string().min(1).optional().describe("A named agent; without it a general-purpose one"),
    run_in_background: z.boolean().optional().describe("Do not wait for its report"),
  }),
  readOnly: false,
  touches: () => ({}),
  startsPrograms: false,
  unsupportedArguments: others,
  run: (args, context) => delegate({ call: context.delegation.agent, what: "Agents are" }, args, context),
});

/** The tools of a session whose Agent calls wait. */
export const withBlockingAgent = (tools: readonly Tool[]): readonly Tool[] =>
  tools.map((tool) => (tool === agentTool ? blockingAgentTool : tool));

/** SendMessage: a message to an agent that was started before. */

const sendMessageInput = z.strictObject({
  to: z.string().min(1).describe("Task id of the agent"),
  message: z.string().min(1),
});

export const sendMessageTool = defineTool({
  name: "SendMessage",
  description: "Sends a message to an agent that you started, for example to correct it or to have it go on.",
  input: sendMessageInput,
  readOnly: false,
  touches: () => ({}),
  startsPrograms: false,
  run: (args, context) =>
    delegate({ call: context.delegation.sendMessage, what: "Messages to agents are" }, args, context),
});

/** McpCall: calls a tool of a tool server by name. One constant tool reaches every server that connects late or
 *  changes, so the tool list never changes. Rules judge the server's tool by its own name. */

const mcpCallInput = z.strictObject({
  server: z.string().min(1),
  tool: z.string().min(1),
  args: z.record(z.string(), z.unknown()).describe("The tool's own arguments"),
});

export const mcpCallTool = defineTool({
  name: "McpCall",
  description:
    "Calls a tool of a connected tool server that is not in this list. Servers, their tools and arguments are announced " +
    "in the conversation.",
  input: mcpCallInput,
  readOnly: false,
  touches: ({ server, tool }) => ({ reaches: [`mcp__${server}__${tool}`] }),
  startsPrograms: false,
  run: (args, context) => delegate({ call: context.delegation.mcpCall, what: "Tool servers are" }, args, context),
});

/** Skill: instructions for a kind of work, read when they are needed. One constant tool, declared whether or not
 *  there are skills, so the tool list is the same in every folder. The conversation says which skills there are. */

const skillInput = z.strictObject({
  name: z.string().min(1),
  args: z.string().optional().describe("What to apply it to, in words"),
});

export const skillTool = defineTool({
  name: "Skill",
  description:
    "Gives the instructions of a skill that the conversation lists. Call it before work that a skill is for, then do " +
    "what it says.",
  input: skillInput,
  readOnly: false,
  touches: () => ({}),
  run: (args, context) => delegate({ call: context.delegation.skill, what: "Skills are" }, args, context),
});
