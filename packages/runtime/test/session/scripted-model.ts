/** The model of the long session: what it does next follows from the request alone.
 *  Invariant: the same request gets the same answer, call ids included, whoever asks and however often; so a run that
 *  was killed and a run that was not agree for as long as their requests do.
 *  Elsewhere: what it is asked to do (tasks.ts). */

import { callTools, type SimRequest, type SimScript, say, toolResults } from "@prefork/simulator";
import type { Json, JsonObject } from "@prefork/wire";
import type { Project } from "./generated-repository.ts";
import { tasks } from "./tasks.ts";

/** How far the work has come, as the request tells. Task 0: nothing was asked yet. */
export type Progress = { readonly task: number; readonly answers: number };

const TASK = /^Task (\d+): /;
const SUMMED_UP = /<earlier-conversation>\s*Task (\d+) was asked for, and (\d+) answers were given to it\./;

type Seen = { readonly role: string; readonly texts: readonly string[] };

const messagesOf = (body: JsonObject): readonly Seen[] =>
  listOf(body.messages).map((message) => ({
    role: String(message.role),
    texts: listOf(message.content).flatMap(({ type, text }) => (type === "text" ? [String(text)] : [])),
  }));

const listOf = (value: Json | undefined): readonly JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);

const isObject = (value: Json): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const progressIn = (body: JsonObject): Progress => {
  let progress: Progress = { task: 0, answers: 0 };
  for (const { role, texts } of messagesOf(body)) {
    const { task, answers } = progress;
    progress = role === "assistant" ? { task, answers: answers + 1 } : texts.reduce(hearing, progress);
  }
  return progress;
};

const hearing = (before: Progress, words: string): Progress => {
  const asked = TASK.exec(words);
  const summed = SUMMED_UP.exec(words);
  if (asked) return { task: Number(asked[1]), answers: 0 };
  return summed ? { task: Number(summed[1]), answers: Number(summed[2]) } : before;
};

/** Is this the question for a summary? It is the only one that speaks of such a pair of tags. */
export const asksForSummary = (body: JsonObject): boolean =>
  messagesOf(body).at(-1)?.texts.at(-1)?.includes("<summary> and </summary>") === true;

export const doneWith = (task: number): string => `Task ${task} is done.`;

/** The task whose end these words tell. */
export const taskDoneIn = (words: string): number => Number(/Task (\d+) is done\./.exec(words)?.[1] ?? 0);

export const scriptedModel =
  (project: Pick<Project, "at">): SimScript =>
  (request: SimRequest) => {
    const { task, answers } = progressIn(request.body);
    if (asksForSummary(request.body))
      return say(`<summary>Task ${task} was asked for, and ${answers} answers were given to it.</summary>`);
    const step = tasks[task - 1]?.steps[answers];
    if (!step) return say(doneWith(task));
    const results = toolResults(request).map(({ text }) => text);
    const made = step(project, results).map((call, index) => ({ ...call, id: `toolu_${task}_${answers}_${index}` }));
    return callTools(made, `Task ${task}, step ${answers + 1}.`);
  };
