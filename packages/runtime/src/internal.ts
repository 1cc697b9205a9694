/** @prefork/runtime/internal: what our own command line shares with this package. No promise is made about these names. */

export { toolEnvironment } from "./agent/index.ts";
export { levelOf } from "./events.ts";
export {
  type ConfiguredServers,
  type Contribution,
  describeTarget,
  type ExtensionContext,
  type ExtensionSources,
  editServers,
  type HookTimes,
  type HttpServer,
  type LiveExtension,
  MCP_FILE,
  readEntry,
  readExtensions,
  readServers,
  type ServerSources,
  Servers,
  type ServersOptions,
  type ServerTimes,
  type StdioServer,
  type WrittenServer,
} from "./extensions/index.ts";
export { cacheKeyHash } from "./fork/index.ts";
export { REHEARSAL_SCHEME } from "./journal/index.ts";
export type {
  Budget,
  ChildEnding,
  ChildEntry,
  ChildHost,
  ChildParent,
  ChildPlan,
  ChildResult,
  ForkPlan,
  HookNote,
  Isolation,
  Mail,
  OpenChild,
  Reservation,
  Shortage,
  Siblings,
} from "./ports.ts";
export { addressIn, requestStop } from "./session/index.ts";
export { createRegistry, hasForkAncestor } from "./tools/index.ts";
