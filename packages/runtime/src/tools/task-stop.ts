/** TaskStop: ends a task that runs beside the conversation.
 *  Invariant: answers when the task has really ended.
 *  Elsewhere: shells (shells.ts), agents and other tasks (../ports.ts: Delegation). */

import * as z from "zod";
import { outputOf } from "./delegated.ts";
import { defineTool, failed } from "./tool.ts";

const input = z.strictObject({ task_id: z.string().min(1) });

export const taskStopTool = defineTool({
  name: "TaskStop",
  description: "Ends a background shell or an agent. What it has printed or done until then stays.",
  input,
  readOnly: false,
  touches: () => ({}),
  startsPrograms: false,
  run: async ({ task_id }, { shells, delegation, callId, agent, signal }) => {
    if (shells.has(task_id)) {
      const stopped = await shells.stop(task_id);
      return { content: stopped ? `${task_id} was ended.` : `${task_id} had ended before.` };
    }
    if (delegation.taskStop === undefined) return failed(`There is no task ${task_id}.`);
    return outputOf(await delegation.taskStop({ task_id }, { callId, agent, signal }));
  },
});
