/** A session with forks, made by `prefork -p` on the simulator, for the commands that inspect sessions. */

import assert from "node:assert/strict";
import {
  callTools,
  lastUserText,
  type SimRequest,
  type SimScript,
  say,
  textOfTokens,
  toolResults,
} from "@prefork/simulator";
import { type Ground, openGround, resultIn } from "../print/ground.ts";

export const directiveIn = ({ body }: SimRequest): string | undefined =>
  /fork-directive: ([^"\\]*)/.exec(JSON.stringify(body.messages))?.[1];

const lastMessage = ({ body }: SimRequest): string =>
  JSON.stringify(Array.isArray(body.messages) ? body.messages.at(-1) : undefined);

/** Terminal control characters, in every text that a model can choose. */
export const HOSTILE = "\u001b[2J";

/** The parent starts one fork per part; a fork reads its part's file and reports. */
export const forking =
  (parts: readonly string[]): SimScript =>
  (request) => {
    const directive = directiveIn(request);
    if (directive !== undefined) {
      const hasRead = toolResults(request).some(({ text }) => text.includes("content of"));
      if (hasRead) return say(`Scope: ${directive}\nResult: all is well${HOSTILE}`);
      return callTools([{ name: "Bash", input: { command: `cat ${directive}.txt` } }]);
    }
    if (lastMessage(request).includes("task-notification")) return say("All have reported.");
    if (toolResults(request).length > 0) return say("I wait for them.");
    if (!lastUserText(request).startsWith("Look")) return say("heard");
    return callTools(parts.map((part) => ({ name: "Agent", input: { description: `look at ${part}`, prompt: part } })));
  };

export const PARTS: readonly string[] = ["schema", "service"];

export const openForking = async (script: SimScript = forking(PARTS)): Promise<Ground> => {
  const ground = await openGround(script);
  ground.put("AGENTS.md", textOfTokens(8_000));
  for (const part of PARTS) ground.put(`${part}.txt`, `content of ${part}\n`);
  return ground;
};

export const LOOK: readonly string[] = [
  "-p",
  "--permission-mode",
  "default",
  "--output-format",
  "json",
  "Look at all.",
];

/** Returns the session's id. */
export const looked = async (ground: Ground): Promise<string> => {
  const { code, out, err } = await ground.prefork(LOOK);
  assert.deepEqual([code, err], [0, ""]);
  return String(resultIn(out).session_id);
};
