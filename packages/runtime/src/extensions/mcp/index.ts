/** Tool servers (MCP): configured, reached, listed and called. */

export { type ConfiguredServers, editServers, MCP_FILE, readServers, type ServerPlaces } from "./configured.ts";
export {
  type HttpServer,
  readEntry,
  type ServerEntry,
  type StdioServer,
  targetWords,
  type WrittenServer,
} from "./entry.ts";
export type { ServerTimes } from "./server.ts";
export { type McpOptions, mcp, Servers, type ServersOptions } from "./servers.ts";
