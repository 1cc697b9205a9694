/** What a session has beside its own tools: tool servers, skills and a user's own code, each an extension. */

export type {
  Contribution,
  Extension,
  ExtensionApi,
  ExtensionAround,
  ExtensionFactory,
  LiveExtension,
} from "./extension.ts";
export {
  type ConfiguredServers,
  editServers,
  type HttpServer,
  MCP_FILE,
  type McpOptions,
  mcp,
  readEntry,
  readServers,
  type ServerEntry,
  type ServerPlaces,
  Servers,
  type ServersOptions,
  type ServerTimes,
  type StdioServer,
  targetWords,
  type WrittenServer,
} from "./mcp/index.ts";
export { type ExtensionPlaces, readExtensions } from "./modules.ts";
export { type Extensions, openExtensions } from "./open.ts";
export type { HookTimes } from "./run-hooks.ts";
export { type FoundSkills, readSkills, type Skill, type SkillPlaces, skills } from "./skills/index.ts";
