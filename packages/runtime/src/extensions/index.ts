/** What a session has beside its own tools: tool servers and skills, each an extension. */

export {
  type ConfiguredServers,
  editServers,
  type HttpServer,
  MCP_FILE,
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
export { type Extensions, openExtensions } from "./open.ts";
export {
  type FoundSkills,
  readSkills,
  type Skill,
  type SkillPlaces,
  skillCall,
  skillsSection,
  startsFork,
} from "./skills/index.ts";
