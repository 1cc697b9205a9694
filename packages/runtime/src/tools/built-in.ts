/** The tools of every session, in the order in which the model reads of them.
 *  Invariant: the order and every word are part of the prefix; a change re-writes every session's cache, and the golden
 *  test says so.
 *  Elsewhere: one file a tool; turning them into what is sent (registry.ts). */

import { bashTool } from "./bash.ts";
import { agentTool, mcpCallTool, sendMessageTool, skillTool } from "./delegated.ts";
import { editTool } from "./edit.ts";
import { globTool } from "./glob.ts";
import { grepTool } from "./grep.ts";
import { readTool } from "./read.ts";
import { taskOutputTool, taskStopTool } from "./tasks.ts";
import { todoWriteTool } from "./todo-write.ts";
import type { Tool } from "./tool.ts";
import { writeTool } from "./write.ts";

export const builtInTools: readonly Tool[] = [
  bashTool,
  readTool,
  editTool,
  writeTool,
  globTool,
  grepTool,
  todoWriteTool,
  agentTool,
  taskOutputTool,
  taskStopTool,
  sendMessageTool,
  mcpCallTool,
  skillTool,
];
