/** A tool call as the guard sees it, and what the guard can answer.
 *  Invariant: arguments are flat and already unwrapped; an answer always says why.
 *  Elsewhere: reaching an answer (decide.ts), running what was allowed (../workspace). */

import type { JsonObject } from "@prefork/wire";
import type { Plan } from "./bash/index.ts";

export type ToolCall = { readonly tool: string; readonly args: JsonObject };

export type Decision =
  /** `plan`: the parsed form of a read-only command; it is run in place of the text. */
  | { readonly kind: "allow"; readonly reason: string; readonly plan?: Plan }
  | { readonly kind: "deny"; readonly reason: string }
  /** `rule`: what would allow this and little more. `notes`: what a person should know before saying yes. */
  | { readonly kind: "ask"; readonly reason: string; readonly rule?: string; readonly notes: readonly string[] };
