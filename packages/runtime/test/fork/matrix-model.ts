/** The model of the fork matrix: what a parent does before it forks, what it calls beside its forks, what its children do.
 *  Invariant: it decides by the request alone.
 *  Elsewhere: the session that it drives (matrix-family.ts), which cells there are (matrix-cells.ts). */

import {
  callTools,
  type SimAnswer,
  type SimRequest,
  say,
  type ToolCall,
  textOfTokens,
  think,
} from "@prefork/simulator";
import type { JsonObject } from "@prefork/wire";
import type { SessionOptions } from "../../src/index.ts";
import type { Cell, Kind } from "./matrix-cells.ts";

export const read = (name: string): ToolCall => ({ name: "Read", input: { file_path: name } });
const bash = (command: string): ToolCall => ({ name: "Bash", input: { command } });
/** More than a result may be: what enters is a preview of it. */
const LONG = bash("seq 1 15000");

export type Story = {
  readonly model?: string;
  readonly settings?: SessionOptions["settings"];
  readonly thinks?: boolean;
  /** What the parent calls in a turn before it forks. */
  readonly before?: readonly ToolCall[];
  /** What it calls beside its forks. */
  readonly beside?: (forks: number) => readonly ToolCall[];
  /** What a child calls in the first of two turns. */
  readonly child?: readonly ToolCall[];
  /** How the conversation that forks is come to. */
  readonly opening?: "compacted" | "resumed";
  /** Who forks: the model, or the program that talks to it, between two prompts or right after something else. */
  readonly by?: "the model" | "the program" | "the program, resumed" | "the program, compacted"; // default: the model
};

export const stories: Readonly<Record<Kind, Story>> = {
  "one tool call": { before: [bash("cat small.txt")] },
  "mixed tools": {
    beside: () => [read("small.txt"), bash("cat small.txt"), { name: "Glob", input: { pattern: "*" } }],
  },
  "thinking with signatures": {
    model: "claude-sonnet-5-5", // its thinking is valid behind the same conversation only
    settings: { thinking: { type: "adaptive" } },
    thinks: true,
    before: [read("small.txt")],
  },
  images: { before: [read("picture.png")] },
  "60 blocks in one turn": {
    before: Array.from({ length: 60 }, () => read("small.txt")),
    beside: (forks) => Array.from({ length: 60 - forks }, () => read("small.txt")),
  },
  "replaced tool results": { before: [LONG], beside: () => [LONG] },
  "after compaction": { opening: "compacted" },
  "after resume": { opening: "resumed" },
  "a thinking-strip model": {
    model: "claude-sonnet-4-5",
    settings: { thinking: { type: "enabled", budgetTokens: 2_000 } },
    thinks: true,
    before: [read("small.txt")],
  },
};

/** Forks and other calls in turn, as a model mixes them. Time passes with the last fork, and no call is to be cut short
 *  by that: then none follows it. */
const mixed = (forks: readonly ToolCall[], others: readonly ToolCall[], passes: boolean): readonly ToolCall[] => {
  const all = Array.from({ length: Math.max(forks.length, others.length) }, (_, at) => [forks[at], others[at]])
    .flat()
    .filter((call) => call !== undefined);
  const last = forks.at(-1);
  return passes && last ? [...all.filter((call) => call !== last), last] : all;
};

const agentCall = (part: number): ToolCall => ({
  name: "Agent",
  input: { description: `part ${part}`, prompt: promptOf(part) },
});

const DIRECTIVE = "fork-directive: ";
export const GO = "Fork now.";
export const BEGIN = "Begin.";
export const NEXT = "And now?";
export const SUMMARY = "Nothing but a beginning.";

export type Spoken = { readonly content: readonly JsonObject[] };

/** All text of a message, that of its results included. */
const wordsOf = (message: Spoken | undefined): string => JSON.stringify(message?.content ?? []);
export const isDirected = (message: Spoken | undefined): boolean => wordsOf(message).includes(DIRECTIVE);

/** The parent's first words after its forks were started. */
export const isNext = (message: Spoken | undefined): boolean =>
  wordsOf(message).includes(STARTED) || wordsOf(message).includes(NEXT);
const STARTED = '<note kind=\\"tasks\\">';

export const promptOf = (part: number): string => `See to part ${part} and say what is there.`;

const answerTo = (cell: Cell, story: Story, { body }: SimRequest): SimAnswer => {
  const messages = body.messages as unknown as readonly Spoken[];
  const last = wordsOf(messages.at(-1));
  if (isDirected(messages.at(-1)) && cell.turns === 2) return callTools(story.child ?? [read("small.txt")]);
  if (messages.some(isDirected)) return say("Scope: one part\nResult: it is there");
  if (last.includes("<summary>")) return say(`<summary>${story.by ? textOfTokens(cell.tokens, 3) : SUMMARY}</summary>`);
  if (last.includes("<task-notification>")) return say("All have told.");
  if (isNext(messages.at(-1))) return say("I wait for them.");
  if (last.includes(BEGIN)) return say("Begun.");
  if (story.before && !last.includes('"type":"tool_result"')) return callTools(story.before, "First I look.");
  if (story.by?.startsWith("the program")) return say(textOfTokens(200, 5));
  const forks = Array.from({ length: cell.forks }, (_, part) => agentCall(part));
  return callTools(mixed(forks, story.beside?.(cell.forks) ?? [], cell.entry !== "warm"), "Now I fork.");
};

/** So long the first child waits for its answer, in real time: others who do not wait for it would be seen. */
const LED_MS = 20;

export class Leader {
  isAnswered: "not yet" | "never asked" | "yes" = "never asked";
  beside = 0;

  async arrived(isFirstOfChild: boolean): Promise<void> {
    if (this.isAnswered === "not yet") this.beside += 1;
    if (this.isAnswered !== "never asked" || !isFirstOfChild) return;
    this.isAnswered = "not yet";
    await new Promise((resolve) => setTimeout(resolve, LED_MS));
    this.isAnswered = "yes";
  }
}

type Scripted = { readonly story: Story; readonly leader: Leader; readonly answering: () => void };

/** `answering`: the parent's answer that forks is being made. */
export const scriptOf =
  (cell: Cell, { story, leader, answering }: Scripted) =>
  async (request: SimRequest): Promise<SimAnswer> => {
    const answer = answerTo(cell, story, request);
    await leader.arrived(isDirected((request.body.messages as unknown as readonly Spoken[]).at(-1)));
    if (answer.content.some((block) => block.type === "tool_use" && block.name === "Agent")) answering();
    return story.thinks ? think("What is to be done follows from what was said.", answer) : answer;
  };
