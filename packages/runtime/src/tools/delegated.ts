/** Tools whose far side is another room: how their call is passed on, and what they say where nobody takes it.
 *  Invariant: the arguments arrive as the model gave them, checked; who called is told with them.
 *  Elsewhere: the far side (../ports.ts says what it is; tasks, forks and tool servers fill it). */

import type { JsonObject } from "@prefork/wire";
import type { Delegated, DelegatedCall } from "../ports.ts";
import { failed, type ToolContext, type ToolOutput } from "./tool.ts";

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
