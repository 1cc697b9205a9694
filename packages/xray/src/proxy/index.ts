/** A gateway on loopback in front of any agent: it forwards everything unchanged and reports what the cache did. This
 *  is the public entry `@prefork/xray/proxy`; docs/proxy.md shows how to use it. */

export { type ProxyOptions, type RunningProxy, startProxy } from "./proxy.ts";
export type { LoopbackHost } from "./reach.ts";
export type {
  CauseReport,
  Counted,
  FamilyReport,
  LineageReport,
  Loss,
  MissReport,
  Outcome as ProxyOutcome,
  Passed,
  ProxyEvent,
  ProxyReport,
  ProxySpend,
} from "./report.ts";
