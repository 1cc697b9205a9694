/** Is what a tool returned a valid output, and how long do we wait for it after an abort?
 *  Types end where a tool of another author begins, so nothing is assumed: an invalid output is a failure of that one
 *  call, worded so that the tool's author can act on it, and never `undefined` in a request. After an abort and a
 *  grace period there is always an outcome.
 *  Elsewhere: which tools run when (dispatch.ts), results that are too long (../context). */

import type { ToolOutput } from "../tools/index.ts";
import type { Content } from "./options.ts";

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isBlock = (value: unknown): boolean =>
  isObject(value) &&
  (value.type === "text" ? typeof value.text === "string" : value.type === "image" && isObject(value.source));

/** Describes the kind of a value in a word. */
const kindOf = (value: unknown): string => {
  if (value === undefined || value === null) return String(value);
  return Array.isArray(value) ? "an array" : isObject(value) ? "an object" : `a ${typeof value}`;
};

const problemOf = (output: unknown): string | undefined => {
  if (!isObject(output)) return `returned ${kindOf(output)}`;
  const { content } = output;
  if (typeof content === "string") return undefined;
  if (!Array.isArray(content)) return `returned ${kindOf(content)} as its content`;
  return content.every(isBlock) ? undefined : "returned content with a block that is neither text nor an image";
};

/** What a tool returned, or a failure that says why that is not an output. */
export const checkOutput = (output: ToolOutput): ToolOutput => {
  const problem = problemOf(output);
  if (problem === undefined) return output;
  return { content: `The tool failed: it ${problem}. A tool returns { content: text or blocks }.`, fault: "failed" };
};

export const toContent = ({ content }: ToolOutput): Content => {
  const blocks = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
  // A provider refuses a result without anything in it.
  return blocks.some((block) => block.type !== "text" || block.text !== "")
    ? blocks
    : [{ type: "text", text: "(no output)" }];
};

/** Waits for work that may not notice an abort. Once there is an outcome nothing keeps listening or ticking, and a late
 *  failure of abandoned work is ignored. */

export type AbortedWait<T> = {
  readonly signal: AbortSignal;
  /** Between the abort and giving up. */
  readonly graceMs: number;
  /** The outcome after giving up. */
  readonly ifGivenUp: T;
};

export const waitUntilAborted = <T>(work: Promise<T>, { signal, graceMs, ifGivenUp }: AbortedWait<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    let grace: NodeJS.Timeout | undefined;
    const wait = (): void => {
      grace = setTimeout(() => resolve(ifGivenUp), graceMs);
    };
    const done = (): void => {
      clearTimeout(grace);
      signal.removeEventListener("abort", wait);
    };
    if (signal.aborted) wait();
    else signal.addEventListener("abort", wait, { once: true });
    work.then(
      (outcome) => {
        done();
        resolve(outcome);
      },
      (error: unknown) => {
        done();
        reject(error);
      },
    );
  });
