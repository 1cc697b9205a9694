/** Forks: who may start one, from which bytes, how it runs, and what one reports. */

export { checkClaims, editedIn } from "./claims.ts";
export { type Entering, type FamilyStart, type GrownFamily, growFamily } from "./family.ts";
export type { AgentStart, ForkStart, Siblings } from "./family-starts.ts";
export { type ForkGate, type ForkQuestion, forkAllowed, LEAST_HEADROOM } from "./gate.ts";
export { ForkHandle, type ForkOutcome } from "./handle.ts";
export { ForkHost, type ForkHostOptions, type WakeStart } from "./host.ts";
export { KeepAlive, type KeepAliveOptions } from "./keep-alive.ts";
export {
  type DelegateMode,
  FORK_SOURCE,
  type ForkLimits,
  type ForkPlan,
  MOST_TURNS,
  planOf,
  type TailChoice,
} from "./plan.ts";
export { type ReadReport, type Report, readReport } from "./report.ts";
export { type ForkOptions, type ForkSettings, GENERAL_PURPOSE } from "./request.ts";
export type { Child, ChildTold, Observer } from "./running.ts";
export { Runs } from "./runs.ts";
export { type CacheSafeParams, cacheKeyHash, SnapshotSlot } from "./snapshot.ts";
export {
  beginsWith,
  namingClient,
  STORED_SLOT,
  StoredPrefixes,
  type StoredPrefixesOptions,
  type Storing,
} from "./stored-prefixes.ts";
export { TaskTools, type TaskToolsOptions } from "./task-tools.ts";
export { type CacheMiss, type Expectation, missOf } from "./verify.ts";
