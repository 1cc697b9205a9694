/** What is a tool? A name, a description for the model, the schema of its input, and what it does.
 *  Invariant: the guard has decided whether a call may run before `run` is called. A tool answers with a result that
 *  the model can act on, and throws only for a bug or an abort. What it learned about the session (files read, todos)
 *  it returns as data.
 *  Elsewhere: permissions (@prefork/guard), scheduling of calls (../agent), all tools of a session (registry.ts). */

import type { CommandPlan, ReadOnlySandbox, Sandbox, Touches } from "@prefork/guard";
import type { ImageBlock, JsonObject, TextBlock } from "@prefork/wire";
import type * as z from "zod";
import type { CallFault, Todo } from "../events.ts";
import type { Delegation } from "../ports.ts";
import type { KeepStream } from "./long-output.ts";
import type { ReadState } from "./read-state.ts";
import type { Shells } from "./shells.ts";
import type { ToolFiles } from "./tool-files.ts";

export type ToolOutput = {
  readonly content: string | readonly (TextBlock | ImageBlock)[];
  /** Set when the call did not do its job. */
  readonly fault?: CallFault;
};

export type ToolContext = {
  readonly callId: string;
  /** `main`, or the id of a task. */
  readonly agent: string;
  readonly signal: AbortSignal;
  /** Relative paths start here. Canonical. */
  readonly cwd: string;
  /** Set for a command that was classified as read-only: this plan runs instead of the command's text. */
  readonly plan?: CommandPlan;
  readonly readOnlySandbox?: ReadOnlySandbox;
  /** The sandbox that approved commands run in, if there is one. */
  readonly sandbox?: Sandbox;
  /** Environment of approved commands, without our keys and tokens. */
  readonly environment: Readonly<Record<string, string>>;
  /** Called before the text of a command runs. From then on the command may leave something behind. */
  readonly onCommandStart?: () => void;
  readonly files: ToolFiles;
  readonly reads: ReadState;
  readonly shells: Shells;
  readonly todos: TodoSlot;
  readonly delegation: Delegation;
  readonly now: () => number;
  /** A person approved exactly this call, so it may also write files that are executed later. */
  readonly approved?: boolean;
  /** Keeps a whole output that is too long to show. Returns the name of its file. */
  readonly keep: (name: string, content: string | Uint8Array) => Promise<string>;
  /** The same for an output that is still growing. */
  readonly keepStream: KeepStream;
  /** Progress for whoever watches the call. */
  readonly progress: (text: string) => void;
};

/** The todo list. The session owns it; a tool may replace it. */
export type TodoSlot = { readonly get: () => readonly Todo[]; readonly set: (todos: readonly Todo[]) => void };

export type Tool<Input extends z.ZodType = z.ZodType> = {
  readonly name: string;
  readonly description: string;
  readonly input: Input;
  /** The schema shown to the model, where somebody else wrote and checks it. Default: derived from `input`. */
  readonly schema?: JsonObject;
  /** True: it changes nothing, so it may run in parallel and be repeated after a crash. For Bash the guard's verdict
   *  decides instead. */
  readonly readOnly: boolean;
  /** What a call with this input reads, writes, runs or reaches. Permissions, file claims, audits and displays rely
   *  on it. Default: it may touch anything, so a person is asked. */
  touches?(input: z.output<Input>): Touches;
  /** False: it starts no programs, so no sandbox is probed for it. Default: true. */
  readonly startsPrograms?: boolean;
  /** Explanations for arguments that models often pass although the tool has no such argument, by argument name. */
  readonly unsupportedArguments?: Readonly<Record<string, string>>;
  /** A method, so that tools with different inputs fit into one list. It only ever receives what `input` has
   *  checked. */
  run(input: z.output<Input>, context: ToolContext): Promise<ToolOutput>;
};

/** For a user's own tools: infers the type of the input from its schema. */
export const defineTool = <Input extends z.ZodType>(tool: Tool<Input>): Tool<Input> => tool;

export const failed = (content: string, fault: CallFault = "failed"): ToolOutput => ({ content, fault });
