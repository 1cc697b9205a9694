/** Forks: who may start one, and what one reports. */

export { type ForkGate, type ForkQuestion, forkAllowed, LEAST_HEADROOM } from "./gate.ts";
export { type ReadReport, type Report, readReport } from "./report.ts";
