/** Forks: who may start one, and what one reports. */

export { type FamilyStart, type GrownFamily, growFamily } from "./family.ts";
export { type ForkGate, type ForkQuestion, forkAllowed, LEAST_HEADROOM } from "./gate.ts";
export { type Child, type ChildStart, ForkHost, type ForkHostOptions } from "./host.ts";
export { type ReadReport, type Report, readReport } from "./report.ts";
