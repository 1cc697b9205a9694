/** What a family of forks costs, when to wait for its leader, and how long to hold what it shares: pure arithmetic.
 *  Elsewhere: prices and multipliers (../prices.ts), the model table (../models.ts). */

export { type BreakEven, type BreakEvenQuestion, breakEven } from "./break-even.ts";
export { type Bill, childTtl, type FanOut, type InFlight, type Launch, type Sender, type Sent } from "./fan-out.ts";
export { decideLaunch, type LaunchDecision, type LaunchQuestion } from "./launch.ts";
export {
  decideKeepAlive,
  decideTtl,
  type HeldEntry,
  type KeepAliveBudget,
  type KeepAliveDecision,
  type KeepAliveQuestion,
  keepAliveBudget,
  livesMs,
  type TtlDecision,
  type TtlQuestion,
} from "./lifetime.ts";
export { type ForkPlans, forkPlans, type LaunchPlan, type PlanId } from "./plans.ts";
export {
  decideStored,
  type StoredBills,
  type StoredDecision,
  type StoredQuestion,
  storedBills,
  storedBreakEven,
  USUAL_HIT_RATE,
} from "./stored.ts";
