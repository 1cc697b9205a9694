/** The long session, with forks: at some steps the model hands parts of the work to them beside its other calls.
 *  Invariant: as the long session, what the model does follows from the request alone; forks only read.
 *  Elsewhere: the session without them (long-session.ts), its process (forking-session-process.ts). */

import type { SessionOptions } from "@prefork/runtime";
import { callTools, type SimAnswer, type SimScript, say } from "@prefork/simulator";
import { type Seen, seenIn } from "../tasks/model-view.ts";
import { moduleName, type Project } from "./generated-repository.ts";
import { type Calendar, optionsFor, type Place } from "./long-session.ts";
import { asksForSummary, progressIn, scriptedModel } from "./scripted-model.ts";

/** By task and step: the parts that forks look at. Two families before the conversation is summed up, one after it. */
const FAMILIES: Readonly<Record<string, readonly number[]>> = {
  "1.1": [11, 12],
  "3.1": [12, 13, 14],
  "7.1": [11, 14, 15],
};

export const FORKS = Object.values(FAMILIES).flat().length;

const lookAt = (directive: string, { at }: Pick<Project, "at">, { calls }: Seen): SimAnswer => {
  const number = Number(directive.split(" ").at(-1));
  const file_path = at(moduleName(number));
  const [first, second] = calls;
  if (!first) return callTools([{ name: "Read", input: { file_path, limit: 20 } }], `I look at part ${number}.`);
  if (!second) return callTools([{ name: "Grep", input: { pattern: `PART = ${number}`, path: file_path } }]);
  return say(`Scope: part ${number}\nResult: it has its number\nKey files: ${file_path}`);
};

/** `project`: as for the model without forks. */
export const forkingModel = (project: Pick<Project, "at">): SimScript => {
  const alone = scriptedModel(project);
  return async (request) => {
    const seen = seenIn(request);
    if (seen.directive !== undefined) return lookAt(seen.directive, project, seen);
    const answer = await alone(request);
    const { task, answers } = progressIn(request.body);
    const parts = asksForSummary(request.body) ? [] : (FAMILIES[`${task}.${answers}`] ?? []);
    const agents = parts.map((part) => ({
      type: "tool_use" as const,
      id: `toolu_${task}_${answers}_part${part}`,
      name: "Agent",
      input: { description: `part ${part}`, prompt: `look at part ${part}` },
    }));
    return { ...answer, content: [...answer.content, ...agents] };
  };
};

type Opening = Parameters<typeof optionsFor>[1] & { readonly calendar: Calendar };

/** Room for forks, and still one compaction in the later half. */
const WINDOW = 34_000;
const COMPACT_AT = 0.6;
const MAX_TOKENS = 2_000;

export const forkingOptions = (place: Place, opening: Opening): SessionOptions => {
  const { ids: _ids, ...options } = optionsFor(place, opening);
  return {
    ...options,
    window: WINDOW,
    compactAt: COMPACT_AT,
    maxTokens: MAX_TOKENS,
    forking: { interrupted: "resume" },
  };
};
