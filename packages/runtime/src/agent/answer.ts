/** What of an answer may enter the context, and what has it cost so far? Pure.
 *  Every call that enters has a JSON object as its input and is known to be complete or not. No call of an answer that
 *  was cut off ever runs.
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
  /** Undefined when it contains nothing that a provider would accept again. */
  readonly message: Message | undefined;
  readonly calls: readonly ToolUseBlock[];
  /** Results for those of its calls that may not run. */
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
    if (!isAcceptedBack(block, isComplete)) return [];
    if (block.type !== "tool_use") return [block];
    // A signed turn keeps its ids, and two calls with one id cannot both be answered.
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

/** Providers refuse blank text, and thinking that was cut off before its signature. */
const isAcceptedBack = (block: Block, isComplete: boolean): boolean =>
  block.type === "text"
    ? block.text.trim() !== ""
    : block.type !== "thinking" || block.signature !== "" || (isComplete && block.thinking !== "");

const refusal = (toolUseId: string, why: string): ToolResultBlock => ({
  type: "tool_result",
  toolUseId,
  content: [text(why)],
  isError: true,
});

/** The text of an interrupted answer. Thinking is only accepted with its signature, which comes last, and none of its calls
 *  may run. */
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

/** What attempts at an answer have cost so far. A provider reports what it read when it begins to answer, and what it wrote
 *  only at the end; so an answer that broke off cost the former and at least what was seen of the latter. If the provider
 *  reports both at the end, what it read is estimated. Each attempt is priced by itself. */

/** `usd` is absent if no price is known. */
export type PricedUsage = { readonly usage: Usage; readonly usd?: number };

export class AttemptUsage {
  readonly #promptTokens: number;
  readonly #lost: Usage[] = [];
  #begun: Usage | undefined;
  /** Of everything that arrived, thinking and calls included. */
  #bytes = 0;

  /** `promptTokens`: the size of the prompt, if the provider does not report it. */
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

  /** What earlier attempts cost; undefined if nothing was billed. */
  ofFailedAttempts(facts: ModelFacts | undefined, service?: Service): PricedUsage | undefined {
    return pricedSum(this.#lost, facts, service);
  }

  /** What all attempts cost, including what has arrived of this one. */
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
  // One by one: their sum could exceed the length above which another price applies.
  const usd = attempts.reduce<number | undefined>((sum, each) => {
    const cost = costOf(each, facts, service)?.total;
    return sum === undefined || cost === undefined ? undefined : sum + cost;
  }, 0);
  return { usage, ...(usd === undefined ? {} : { usd }) };
};
