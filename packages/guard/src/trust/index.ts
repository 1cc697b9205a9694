export { type Configuration, isEntryOf } from "./configuration.ts";
export { includedPaths } from "./included.ts";
export type { KeptSettings } from "./kept-settings.ts";
export {
  type AcceptedRule,
  type Agreement,
  configurationOf,
  draftsIn,
  type Grant,
  grant,
  readTrust,
  revoke,
  stateFolder,
  type Trust,
  trustOf,
} from "./store.ts";
