/** TodoWrite: replaces the session's todo list as a whole.
 *  Invariant: the session owns the list; this tool only replaces it.
 *  Elsewhere: keeping and showing it (../session, and readers of events). */

import * as z from "zod";
import { defineTool } from "./tool.ts";

const STATUS = ["pending", "in_progress", "completed"] as const;

const input = z.strictObject({
  todos: z.array(z.strictObject({ content: z.string().min(1), status: z.enum(STATUS) })).describe("The whole list"),
});

export const todoWriteTool = defineTool({
  name: "TodoWrite",
  description:
    "Replaces your list of things to do. Use it for work of three or more steps: one entry in_progress at a time, " +
    "marked completed as soon as it is done and checked.",
  input,
  readOnly: false,
  touches: () => ({}),
  startsPrograms: false,
  run: async ({ todos }, context) => {
    context.todos.set(todos);
    if (todos.length === 0) return { content: "The list is empty." };
    const count = (status: (typeof STATUS)[number]): number => todos.filter((todo) => todo.status === status).length;
    return {
      content: `${count("completed")} completed, ${count("in_progress")} in progress, ${count("pending")} pending.`,
    };
  },
});
