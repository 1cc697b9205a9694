export type { Configuration } from "./configuration.ts";
export {
  type AcceptedRule,
  type Agreement,
  configurationOf,
  type Grant,
  grant,
  readTrust,
  revoke,
  stateFolder,
  type Trust,
  trustOf,
} from "./store.ts";
