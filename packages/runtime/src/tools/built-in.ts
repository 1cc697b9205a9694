/** Which tools does every session have, and in which order does the model read them?
 *  Invariant: the order and every word are part of the prefix. A change makes every session's cache cold, and the
 *  golden test fails.
 *  Elsewhere: the tools, one file each unless they only delegate; converting them for the wire (registry.ts). */

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
