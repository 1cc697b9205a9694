/** The conversation that was recorded once, and what answers it: one Read, two forks that read, an end.
 *  Elsewhere: recording it (record.ts), going on with the recording (recorded.test.ts). */

import { createHash } from "node:crypto";
import { callTools, lastUserText, type SimScript, type Simulator, say, toolResults } from "@prefork/simulator";
import { FORK_BOILERPLATE_TAG } from "@prefork/wire";
import { anthropicEngine, type Engine, type SessionOptions } from "../../../src/index.ts";
import type { Sent } from "../as-sent.ts";

export const PROMPT = "Look at both parts of the greeting.";
export const GO_ON = "And what was it?";
const REPORT = "Scope: one part\nResult: it says hello\nKey files: greeting.txt\nFiles changed: none\nIssues: none";

const readGreeting = callTools([{ name: "Read", input: { file_path: "greeting.txt" } }]);
const startForks = callTools(
  ["first", "second"].map((part) => ({
    name: "Agent",
    input: { description: `the ${part} part`, prompt: `Look at the ${part} part.` },
  })),
);

export const script: SimScript = (request) => {
  const sees = toolResults(request).some(({ text }) => text.includes("hello"));
  if (JSON.stringify(request.body.messages).includes(FORK_BOILERPLATE_TAG))
    return sees || lastUserText(request).includes(GO_ON) ? say(REPORT) : readGreeting;
  if (sees) return startForks;
  return lastUserText(request) === PROMPT ? readGreeting : say("It says hello.");
};

/** The same place in every life, whatever port the simulator has. */
export const engineAt = (simulator: Simulator): Engine => ({
  ...anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } }),
  address: "http://recorded.invalid",
});

export const optionsIn = (folder: string, simulator: Simulator): SessionOptions => ({
  engine: engineAt(simulator),
  ...{ cwd: `${folder}/work`, home: `${folder}/home`, state: `${folder}/state` },
  permissions: { mode: "default" },
  environment: {},
});

/** What one line of requests had sent at its end: all bytes up to the end of its messages, markers left out. */
export type Line = { readonly bytes: number; readonly sha256: string };

export const lineOf = ({ bytes, messagesEnd }: Sent): Line => ({
  bytes: messagesEnd,
  sha256: createHash("sha256").update(bytes.subarray(0, messagesEnd)).digest("hex"),
});
