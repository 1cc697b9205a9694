/** The provider of this benchmark, in its own process: it asks for one Read, or for five forks.
 *  Elsewhere: the sessions that ask it (session-process.ts). */

import { callTools, lastUserText, type SimRequest, say, startSimulator, toolResults } from "@prefork/simulator";
import { FORKS, PROMPTS } from "./session-process.ts";

const REPORT = "Scope: one part\nResult: done\nKey files: none\nFiles changed: none\nIssues: none";

const answer = (request: SimRequest) => {
  const said = lastUserText(request);
  if (said === PROMPTS.read) return callTools([{ name: "Read", input: { file_path: "greeting.txt" } }]);
  if (said === PROMPTS.forks)
    return callTools(
      Array.from({ length: FORKS }, (_, part) => ({
        name: "Agent",
        input: { description: `part ${part}`, prompt: `Look at part ${part}.` },
      })),
    );
  return say(toolResults(request).length > 0 ? "done" : REPORT);
};

const simulator = await startSimulator({ script: answer });
process.send?.({ url: simulator.url });
