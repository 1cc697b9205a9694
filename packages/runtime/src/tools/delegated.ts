/** Tools whose far side is another room: how their call is passed on, and what they say where nobody takes it.
 *  Invariant: the arguments arrive as the model gave them, checked; who called is told with them.
 *  Elsewhere: the far side (../ports.ts says what it is; tasks, forks and tool servers fill it). */

import type { JsonObject } from "@prefork/wire";
import * as z from "zod";
import type { Delegated, DelegatedCall } from "../ports.ts";
import { defineTool, failed, type Tool, type ToolContext, type ToolOutput } from "./tool.ts";

export const outputOf = ({ text, content, isError = false }: Delegated): ToolOutput =>
  isError ? { content: content ?? text, fault: "failed" } : { content: content ?? text };

type Passing = {
  readonly call: DelegatedCall | undefined;
  /** What is not available, as the subject of a sentence. */
  readonly what: string;
};

export const passOn = async ({ call, what }: Passing, args: object, context: ToolContext): Promise<ToolOutput> => {
  if (call === undefined) return failed(`${what} not available in this session.`);
  const { callId, agent, signal } = context;
  return outputOf(await call(args as JsonObject, { callId, agent, signal }));
};

/** Agent: work handed to a fork or another agent.
 *  Invariant: declared in every session from the first request, because a tool list that changes costs the whole cache;
 *  which of the two forms it has is fixed for the epoch.
 *  Elsewhere: what happens then (../ports.ts: Delegation). */

const agentInput = z.strictObject({
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
  input: agentInput,
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
  input: agentInput.extend({
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

/** SendMessage: words for an agent that was started before.
 *  Invariant: declared in every session from the first request, as every tool is.
 *  Elsewhere: delivering it (../ports.ts: Delegation). */

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
    passOn({ call: context.delegation.sendMessage, what: "Messages to agents are" }, args, context),
});

/** McpCall: a tool of another server, called by its name.
 *  Invariant: one constant tool reaches every server that comes late or changes, so the tool list never does.
 *  Elsewhere: the servers (../ports.ts: Delegation), rules about the tool inside (@prefork/guard). */

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
  run: (args, context) => passOn({ call: context.delegation.mcpCall, what: "Tool servers are" }, args, context),
});

/** Skill: instructions that somebody wrote down for a kind of work, read when they are needed.
 *  Invariant: one constant tool, declared in every session whether it has skills or not: the list of tools is then the
 *  same in every folder, and skills that come later need no other list. Which there are is said in the conversation.
 *  Elsewhere: the skills (../ports.ts: Delegation), what is said of them (../extensions/skills). */

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
  run: (args, context) => passOn({ call: context.delegation.skill, what: "Skills are" }, args, context),
});
