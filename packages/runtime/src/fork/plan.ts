/** What a fork is to do, as data: enough to start it here, in another process, or again after a crash.
 *  Invariant: survives `structuredClone` and JSON; nothing in it is behaviour. What is not said is filled once, here.
 *  Elsewhere: what runs it (../children: runs.ts), its bytes (family.ts), who may start one (gate.ts). */

import { type ChildProtocol, InputError, type Json, type Message } from "@prefork/wire";
import type { SpendLimits } from "../agent/index.ts";
import { oneLine } from "../context/index.ts";

/** `main` and `sdk` write snapshots; all others only read them. */
export const FORK_SOURCE = "agent:builtin:fork";

export type DelegateMode = "sync" | "fire-and-forget";

export type Isolation = "worktree";

export type ForkLimits = SpendLimits & {
  readonly turns?: number; // default: 200
  /** Time that it may work; waiting for an answer of a person does not count. */
  readonly ms?: number;
};

/** How much of the parent's turn under way a child is given. */
export type TailChoice = {
  /** "trim": nothing of it. Default: keep. */
  readonly inFlight?: "keep" | "trim";
  /** "all": constants even where a result is known. Default: forks. */
  readonly placeholders?: "forks" | "all";
};

export type ForkPlan = {
  readonly task: string;
  /** Of this run, for traces. */
  readonly runId: string;
  readonly label: string;
  readonly agentType: string;
  readonly querySource: string;
  readonly mode: DelegateMode;
  readonly directive: string;
  readonly protocol: ChildProtocol;
  /** In place of the directive, where the caller brings messages of its own. */
  readonly messages?: readonly Message[];
  readonly tail: Required<TailChoice>;
  readonly limits: ForkLimits;
  /** Told at the tail, before the directive. */
  readonly reminder?: string;
  /** What tools and traces call it. Default: the task's id. */
  readonly agentId?: string;
  /** Leaves no journal and no row. */
  readonly skipTranscript: boolean;
  /** A filter of the caller's narrows what it may call; it has to be given again to resume it. */
  readonly isFiltered: boolean;
  /** It works in a copy of the checkout. */
  readonly isolation?: Isolation;
  /** The call that waits for it. */
  readonly call?: string;
  /** Where it branched off: the parent's session, the entry, and the chain hash of the prefix. */
  readonly from?: { readonly session: string; readonly seq: number; readonly hash: string };
};

export const MOST_TURNS = 200;
const LABEL_CHARACTERS = 120;

/** Of a caller's words, what a row and a question can show. */
export const labelOf = (words: string): string => oneLine(words, LABEL_CHARACTERS);

/** Messages that a caller brings must leave the turn to the model. */
export const checkMessages = (messages: readonly Message[]): void => {
  if (messages.at(-1)?.role !== "user")
    throw new InputError("the messages of a fork must end with one of the user: the model answers it");
  for (const { content } of messages) {
    if (!Array.isArray(content)) throw new InputError("the content of a fork's message must be a list of blocks");
    if (content.every((block) => block.type === "text" && block.text === ""))
      throw new InputError("a message of the fork is empty");
  }
};

/** As it is kept with its task. */
export const planJson = (plan: ForkPlan): Json => plan as unknown as Json;

/** Undefined where a value is no plan. */
export const planOf = (value: Json | undefined): ForkPlan | undefined => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { task, label, directive, agentType, limits } = value as Readonly<Record<string, Json>>;
  const texts = [task, label, directive, agentType].every((each) => typeof each === "string");
  return texts && typeof limits === "object" ? (value as unknown as ForkPlan) : undefined;
};
