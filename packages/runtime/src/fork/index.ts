/** Forks: who may start one, from which bytes, in which order, and whether it read what it could. */

export {
  FamilyAccounts,
  type FamilyConditions,
  ResumedFamilies,
  resumedMarkers,
  SnapshotGates,
  type UnsentFamily,
} from "./families.ts";
export { type FamilyRequest, type GrownFamily, growFamily } from "./family.ts";
export { KeepAlive, type KeepAliveOptions } from "./keep-alive.ts";
export {
  checkMessages,
  createPlan,
  FORK_SOURCE,
  type ForkConditions,
  type ForkGate,
  type ForkOptions,
  type ForkSettings,
  forkAllowed,
  GENERAL_PURPOSE,
  LEAST_HEADROOM,
  MOST_TURNS,
  type Observer,
  parsePlan,
  planToJson,
  readAgentCall,
} from "./request.ts";
export { type CacheSafeParams, cacheKeyHash, SnapshotSlot } from "./snapshot.ts";
export {
  isStartOf,
  STORED_SLOT,
  type StoredFamily,
  StoredPrefixes,
  type StoredPrefixesOptions,
  type StoreRequest,
  withStoredPrefixes,
} from "./stored-prefixes.ts";
export { type CacheMiss, type Expectation, FamilyAlarm, findCacheMiss, findDivergence } from "./verify.ts";
