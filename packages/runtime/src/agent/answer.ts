/** An answer as it may enter the context. Pure.
 *  Invariant: every call in it has an input that is a JSON object, and is known to be whole or not; nothing of an answer
 *  that was cut is ever run.
 *  Elsewhere: running the calls (dispatch.ts), what follows an answer (run.ts). */

import {
  addUsage,
  type Block,
  BYTES_PER_TOKEN,
  completeUsage,
  costOf,
  type Message,
  type ModelEvent,
  type ModelFacts,
  type ModelResponse,
  noUsage,
  promptTokens as promptTokensOf,
  type Service,
  type ToolResultBlock,
  type ToolUseBlock,
  text,
  type Usage,
  withUniqueIds,
} from "@prefork/wire";

export type AcceptedAnswer = {
  /** Undefined when there is nothing in it that a provider would take back. */
  readonly message: Message | undefined;
  readonly calls: readonly ToolUseBlock[];
  /** The answers to those of its calls that may not run. */
  readonly refused: readonly ToolResultBlock[];
  readonly text: string;
};

const CUT =
  "Not run: the answer was cut at its length limit before this call was complete. Send smaller calls, fewer at a time.";
const UNFINISHED = "Not run: the answer ended before it was complete.";
const BROKEN = "Not run: the input of this call was no complete JSON object.";
const TWICE = "Not run: another call of the same answer has the same id.";

/** `isTaken`: does an earlier answer of the conversation have a call with this id? */
export const readAnswer = (
  { message, stop }: Pick<ModelResponse, "message" | "stop">,
  isTaken: (id: string) => boolean = () => false,
): AcceptedAnswer => {
  const isComplete = stop === "tool-use" || stop === "end" || stop === "stop-sequence";
  const refusals = new Map<string, string>();
  const seen = new Set<string>();
  const content = withUniqueIds(message.content, isTaken).flatMap((block): readonly Block[] => {
    if (!isTakenBack(block, isComplete)) return [];
    if (block.type !== "tool_use") return [block];
    // In a signed turn, where ids stay as they are: two calls with one id cannot both be answered.
    if (seen.has(block.id)) {
      refusals.set(block.id, TWICE);
      return [];
    }
    seen.add(block.id);
    const isWhole = isJsonObject(block.input);
    if (!isWhole) refusals.set(block.id, BROKEN);
    if (!isComplete) refusals.set(block.id, stop === "max-tokens" ? CUT : UNFINISHED);
    return [isWhole ? block : emptied(block)];
  });
  return {
    message: content.length > 0 ? { role: "assistant", content } : undefined,
    calls: content.filter((block) => block.type === "tool_use"),
    refused: [...refusals].map(([id, why]) => refusal(id, why)),
    text: textOf(content),
  };
};

/** Providers refuse text without a letter in it, and thinking that was cut before its signature. */
const isTakenBack = (block: Block, isComplete: boolean): boolean =>
  block.type === "text"
    ? block.text.trim() !== ""
    : block.type !== "thinking" || block.signature !== "" || (isComplete && block.thinking !== "");

const refusal = (toolUseId: string, why: string): ToolResultBlock => ({
  type: "tool_result",
  toolUseId,
  content: [text(why)],
  isError: true,
});

/** What had arrived of an answer that was interrupted: its text alone. Thinking is only taken back with its signature,
 *  which comes last, and no call of it may run. */
export const readPartial = (shown: string): Message | undefined =>
  shown.trim() === "" ? undefined : { role: "assistant", content: [text(shown.trimEnd())] };

export const textOf = (content: readonly Block[]): string =>
  content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("");

const emptied = ({ id, name }: ToolUseBlock): ToolUseBlock => ({ type: "tool_use", id, name, input: "{}" });

const isJsonObject = (json: string): boolean => {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
};

/** What has an answer taken, by what was heard of it so far?
 *  Invariant: a provider says what it read when it begins to answer and what it wrote only at the end, so an answer that
 *  broke off took the one and, at the least, all that was seen of the other. Where it says both only at the end, what it
 *  read is estimated. Each attempt has a price of its own.
 *  Elsewhere: who listens (turn.ts, compacting.ts), what is held back for it (account.ts). */

/** Without a price where none is known. */
export type PricedUsage = { readonly usage: Usage; readonly usd?: number };

export class AttemptUsage {
  readonly #promptTokens: number;
  readonly #lost: Usage[] = [];
  #begun: Usage | undefined;
  /** Of all kinds, thinking and calls included. */
  #bytes = 0;

  /** `promptTokens`: what the prompt takes, where the provider has not said. */
  constructor(promptTokens: number) {
    this.#promptTokens = promptTokens;
  }

  observe(event: ModelEvent): void {
    if (event.type === "response_started") {
      this.#lost.push(this.#now);
      this.#begun = event.usage;
      this.#bytes = 0;
    } else if (event.type === "text_grew" || event.type === "thinking_grew")
      this.#bytes += Buffer.byteLength(event.text);
    else if (event.type === "input_grew") this.#bytes += Buffer.byteLength(event.json);
  }

  /** Of the attempts before this one; undefined where nothing was billed. */
  ofFailedAttempts(facts: ModelFacts | undefined, service?: Service): PricedUsage | undefined {
    return pricedSum(this.#lost, facts, service);
  }

  /** Also includes this attempt, as far as it came. */
  ofAllAttempts(facts: ModelFacts | undefined, service?: Service): PricedUsage | undefined {
    return pricedSum([...this.#lost, this.#now], facts, service);
  }

  get #now(): Usage {
    if (!this.#begun) return noUsage;
    const seen = Math.ceil(this.#bytes / BYTES_PER_TOKEN);
    const usage = { ...this.#begun, output: Math.max(this.#begun.output, seen) };
    return completeUsage(usage, { prompt: this.#promptTokens, content: 0 });
  }
}

const pricedSum = (
  attempts: readonly Usage[],
  facts: ModelFacts | undefined,
  service?: Service,
): PricedUsage | undefined => {
  const usage = attempts.reduce(addUsage, noUsage);
  if (promptTokensOf(usage) + usage.output === 0) return undefined;
  // One by one: together they may be longer than a prompt of another price.
  const usd = attempts.reduce<number | undefined>((sum, each) => {
    const cost = costOf(each, facts, service)?.total;
    return sum === undefined || cost === undefined ? undefined : sum + cost;
  }, 0);
  return { usage, ...(usd === undefined ? {} : { usd }) };
};
