export type { Configuration } from "./configuration.ts";
export { configurationOf, type Grant, grant, readTrust, revoke, stateFolder, type Trust, trustOf } from "./store.ts";
