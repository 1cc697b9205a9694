/** Tool servers as an extension of a session. */

import type { Extension, ServingExtension } from "../extension.ts";
import type { ServerEntry } from "./entry.ts";
import { Servers, type ServersOptions } from "./servers.ts";

export type McpOptions = Pick<ServersOptions, "times">;

export const mcp = (servers: readonly ServerEntry[], options: McpOptions = {}): Extension => ({
  name: "mcp",
  open: async (around): Promise<ServingExtension> => {
    const opened = await Servers.open({ ...around, ...options, servers: [...servers] });
    return {
      tools: (earlier) => opened.freeze(earlier),
      offered: opened.offered,
      delegation: () => ({ mcpCall: opened.mcpCall }),
      follow: (emit) => opened.follow(emit),
      close: () => opened.close(),
    };
  },
});
