/** What a tool is: a name, a few words for the model, the shape of its input, and what it does.
 *  Invariant: whether a call may run was decided before `run`; a tool answers with a result the model can act on, and
 *  throws only for a defect or an abort. What it learned about the session (files read, todos) it gives back as data.
 *  Elsewhere: may it run (@prefork/guard), when and beside what (../agent), all tools of a session (registry.ts). */

import type { Plan, PlanCell, Sandbox, Touches } from "@prefork/guard";
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
  /** Set when the call did not do what it was for. */
  readonly fault?: CallFault;
};

export type ToolContext = {
  readonly callId: string;
  /** `main`, or the id of a task. */
  readonly agent: string;
  readonly signal: AbortSignal;
  /** Where relative names start. Canonical. */
  readonly cwd: string;
  /** Set for a command that was judged read-only: it is run in place of the text. */
  readonly plan?: Plan;
  readonly cell?: PlanCell;
  /** What approved commands run in, where there is one. */
  readonly sandbox?: Sandbox;
  /** Environment of approved commands; keys and tokens of ours are not in it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Told before the text of a command runs: from then on something of it may be left behind. */
  readonly commandStarted?: () => void;
  readonly files: ToolFiles;
  readonly reads: ReadState;
  readonly shells: Shells;
  readonly todos: TodoSlot;
  readonly delegation: Delegation;
  readonly now: () => number;
  /** A person said yes to exactly this call, so names that run something later may be written too. */
  readonly approved?: boolean;
  /** Keeps a whole output that is too long to show; gives the name of its file. */
  readonly keep: (name: string, content: string | Uint8Array) => Promise<string>;
  /** The same for an output that is still growing. */
  readonly keepStream: KeepStream;
  /** For whoever looks on while it runs. */
  readonly progress: (text: string) => void;
};

/** The list of things to do: the session owns it, a tool may put another in its place. */
export type TodoSlot = { readonly get: () => readonly Todo[]; readonly set: (todos: readonly Todo[]) => void };

export type Tool<Input extends z.ZodType = z.ZodType> = {
  readonly name: string;
  readonly description: string;
  readonly input: Input;
  /** What the model is told of the input where somebody else wrote it and checks it. Default: what `input` says. */
  readonly schema?: JsonObject;
  /** Changes nothing: may run beside others, and again after a crash. Bash asks the guard's verdict instead. */
  readonly readOnly: boolean;
  /** What a call with this input reads, writes, runs or reaches. Permissions, write claims, audits and displays go by it.
   *  Default: it may touch anything, so a person is asked. */
  touches?(input: z.output<Input>): Touches;
  /** False: it runs nothing, so nothing is tried out that programs would run in. Default: true. */
  readonly startsPrograms?: boolean;
  /** What to say of arguments that it does not have but is often given, by their names. */
  readonly refuses?: Readonly<Record<string, string>>;
  /** A method, so that tools of different inputs fit into one list; only what `input` has checked is ever given. */
  run(input: z.output<Input>, context: ToolContext): Promise<ToolOutput>;
};

/** For tools of a user's own: types of the input follow from its schema. */
export const defineTool = <Input extends z.ZodType>(tool: Tool<Input>): Tool<Input> => tool;

export const failed = (content: string, fault: CallFault = "failed"): ToolOutput => ({ content, fault });
