/** What a session has in addition to its own tools: tool servers, skills and a user's own code, each an extension. */

export type {
  Contribution,
  Extension,
  ExtensionApi,
  ExtensionContext,
  ExtensionFactory,
  LiveExtension,
} from "./extension.ts";
export {
  type ConfiguredServers,
  describeTarget,
  editServers,
  type HttpServer,
  MCP_FILE,
  type McpOptions,
  mcp,
  readEntry,
  readServers,
  type ServerEntry,
  type ServerSources,
  Servers,
  type ServersOptions,
  type ServerTimes,
  type SkippedServer,
  type StdioServer,
  type WrittenServer,
} from "./mcp/index.ts";
export { type ExtensionSources, readExtensions } from "./modules.ts";
export { type Extensions, openExtensions } from "./open.ts";
export type { HookTimes } from "./run-hooks.ts";
export { type FoundSkills, readSkills, type Skill, type SkillSources, skills } from "./skills/index.ts";
