/** What a fork is to do, as data: enough to start it here, in another process, or again after a crash.
 *  Invariant: survives `structuredClone` and JSON; nothing in it is behaviour. What is not said is filled once, here.
 *  Elsewhere: what runs it (../children: runs.ts), its bytes (family.ts), who may start one (gate.ts). */

import { InputError, type Json, type Message } from "@prefork/wire";
import { oneLine } from "../context/index.ts";
import type { ForkPlan } from "../ports.ts";

/** `main` and `sdk` write snapshots; all others only read them. */
export const FORK_SOURCE = "agent:builtin:fork";

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
