/** The conversation of a long parent, and the model's answer to each request of a family.
 *  Invariant: an answer depends only on the end of the request, so equal requests get equal answers; all directives have
 *  the same length.
 *  Elsewhere: who plays the model (provider-process.ts, simulator-process.ts), who has the conversation (clients/). */

import { DEFAULT_MODEL, directiveText, FORK_DIRECTIVE_PREFIX, text } from "@prefork/wire";
import { directiveOf, textOf } from "../wire/history.ts";

export const MODEL = DEFAULT_MODEL;
export const KEY = "no-key-needed";
export const BYTES_PER_TOKEN = 4;

/** The parent's exchanges before it forks: as many for a short parent as for a long one. */
export const EXCHANGES = 40;

export const promptOf = (tokens: number, exchange: number): string => `Part ${exchange}.\n${textOf(tokens, exchange)}`;

/** Starts all forks in one turn. */
export const startPrompt = (forks: number): string => `Start ${forks} forks.`;
/** Starts each fork after the previous one has reported. */
export const chainPrompt = (forks: number): string => `Start ${forks} forks, one by one.`;

export type Wanted =
  | { readonly kind: "start"; readonly calls: readonly AgentCall[] }
  /** Of a fork. */
  | { readonly kind: "report" }
  | { readonly kind: "word" };

/** How much of a request's end is searched: longer than a directive or the notification about one fork. */
export const LOOKED_AT = 2_048;

/** What the request asks for: the last of these markers in it decides. */
export const wantedAt = (end: string): Wanted => {
  const fork = end.lastIndexOf(FORK_DIRECTIVE_PREFIX);
  const notified = Math.max(end.lastIndexOf("async_launched"), end.lastIndexOf("</task-notification>"));
  const start = [...end.matchAll(/Start (\d+) forks(, one by one)?\./g)].at(-1);
  if (start && start.index > Math.max(fork, notified)) {
    const forks = Number(start[1]);
    return { kind: "start", calls: start[2] === undefined ? callsFor(forks) : [linkOf(0, forks)] };
  }
  if (fork > notified) return { kind: "report" };
  const next = end.lastIndexOf("</task-notification>") === notified ? nextLink(end) : undefined;
  return next ? { kind: "start", calls: [next] } : { kind: "word" };
};

export type AgentCall = {
  readonly name: "Agent";
  readonly input: { readonly description: string; readonly prompt: string };
};

/** A directive is as long as one for a small piece of work: about 100 tokens. */
export const callsFor = (forks: number): readonly AgentCall[] =>
  Array.from({ length: forks }, (_, number) => callOf(number, `look at part ${number}`));

const callOf = (number: number, description: string): AgentCall => ({
  name: "Agent",
  input: { description, prompt: directiveOf(number) },
});

/** A fork of a chain names its position, so that its report shows which one comes next. */
const linkOf = (number: number, forks: number): AgentCall => callOf(number, `look at part ${number} of ${forks}`);

const nextLink = (end: string): AgentCall | undefined => {
  const lastPart = [...end.matchAll(/look at part (\d+) of (\d+)/g)].at(-1);
  const [number, forks] = [Number(lastPart?.[1]) + 1, Number(lastPart?.[2])];
  return number < forks ? linkOf(number, forks) : undefined;
};

export const WORD = "Good; go on.";
export const REPORT = "Scope: one part of the store.\nResult: it has one caller, and its test covers the usual case.";

/** The text that only this fork sends, encoded. */
export const ownBytes = (): number => Buffer.byteLength(JSON.stringify(text(directiveText(directiveOf(0)))));
