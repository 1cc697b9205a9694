/** A tool call as the guard sees it, and what the guard can answer.
 *  Invariant: arguments are flat and already unwrapped; an answer always has a reason.
 *  Elsewhere: deciding (decide.ts), running what was allowed (../run). */

import type { CommandPlan } from "../bash/index.ts";
import type { JsonObject } from "../json.ts";

/** What a call touches outside the agent, as its tool declares it. Paths are absolute, or relative to the working folder; a
 *  path that ends in a slash stands for everything below it. A missing list is empty: `{}` touches nothing. A tool that
 *  declares nothing may touch anything. */
export type Touches = {
  readonly reads?: readonly string[];
  readonly writes?: readonly string[];
  /** Commands. */
  readonly runs?: readonly string[];
  /** Hosts, and tools of tool servers as `mcp__server__tool`. */
  readonly reaches?: readonly string[];
};

/** `touches`: used for tools that the guard does not know; for the others it reads the arguments itself. */
export type ToolCall = { readonly tool: string; readonly args: JsonObject; readonly touches?: Touches };

/** Whether a call that touches this only reads. */
export const onlyReads = ({ writes = [], runs = [], reaches = [] }: Touches): boolean =>
  writes.length + runs.length + reaches.length === 0;

export type Decision =
  /** `plan`: the parsed form of a read-only command; it runs in place of the text. */
  | { readonly kind: "allow"; readonly reason: string; readonly plan?: CommandPlan }
  | { readonly kind: "deny"; readonly reason: string }
  /** `rule`: a rule that would allow this and little more. `notes`: what a person should know before approving. */
  | { readonly kind: "ask"; readonly reason: string; readonly rule?: string; readonly notes: readonly string[] };
