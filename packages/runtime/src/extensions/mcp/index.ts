/** Tool servers (MCP): configured, connected, listed and called. */

export {
  type ConfiguredServers,
  editServers,
  MCP_FILE,
  readServers,
  type ServerSources,
  type SkippedServer,
} from "./configured.ts";
export {
  describeTarget,
  type HttpServer,
  readEntry,
  type ServerEntry,
  type StdioServer,
  type WrittenServer,
} from "./entry.ts";
export type { ServerTimes } from "./server.ts";
export { type McpOptions, mcp, Servers, type ServersOptions } from "./servers.ts";
