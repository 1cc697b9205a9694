/** Is what a tool returned an output, and what of it enters the conversation? Pure.
 *  Invariant: types end where a tool of somebody else begins, so nothing is taken for granted: what is no output is a
 *  failure of that one call, in words that its author can act on, and never `undefined` in a request.
 *  Elsewhere: running tools (dispatch.ts), results that are too long (../context). */

import type { ToolOutput } from "../tools/index.ts";
import type { Content } from "./options.ts";

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isBlock = (value: unknown): boolean =>
  isObject(value) &&
  (value.type === "text" ? typeof value.text === "string" : value.type === "image" && isObject(value.source));

/** A word for a value of any kind. */
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

/** What a tool returned, or a failure that says why it is none. */
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

/** How long is something waited for that may not hear of an abort?
 *  Invariant: after an abort and a moment of grace there is always an outcome; nothing is left listening or ticking once
 *  there is one, and a late failure of what was given up is nobody's.
 *  Elsewhere: what is waited for (dispatch.ts). */

export type GivenUp<T> = {
  readonly signal: AbortSignal;
  /** Between the abort and giving up. */
  readonly graceMs: number;
  /** The outcome then. */
  readonly instead: T;
};

export const waitUntilAborted = <T>(work: Promise<T>, { signal, graceMs, instead }: GivenUp<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    let grace: NodeJS.Timeout | undefined;
    const wait = (): void => {
      grace = setTimeout(() => resolve(instead), graceMs);
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
