/** Forks: who may start one, from which bytes, in which order, and whether it read what it could. */

export { type Around, FamiliesAgain, type LeftFamily, markersAgain } from "./again.ts";
export { type FamilyStart, type GrownFamily, growFamily } from "./family.ts";
export { FamilyAccounts } from "./family-accounts.ts";
export { FamilyAlarm } from "./family-alarm.ts";
export { type ForkGate, type ForkQuestion, forkAllowed, LEAST_HEADROOM } from "./gate.ts";
export { KeepAlive, type KeepAliveOptions } from "./keep-alive.ts";
export {
  checkMessages,
  FORK_SOURCE,
  MOST_TURNS,
  planJson,
  planOf,
} from "./plan.ts";
export { askedFor, type ForkOptions, type ForkSettings, GENERAL_PURPOSE, type Observer, planFor } from "./request.ts";
export { type CacheSafeParams, cacheKeyHash, SnapshotSlot } from "./snapshot.ts";
export { SnapshotGates } from "./snapshot-gates.ts";
export {
  beginsWith,
  namingClient,
  STORED_SLOT,
  type Store,
  StoredPrefixes,
  type StoredPrefixesOptions,
  type Storing,
} from "./stored-prefixes.ts";
export { type CacheMiss, divergenceOf, type Expectation, missOf } from "./verify.ts";
