/** What requests cost: the table of models, money, and the arithmetic of forks, lifetimes and stored entries. Pure. */

export {
  type Bill,
  childTtl,
  decideLaunch,
  type FanOut,
  type InFlight,
  type Launch,
  type LaunchDecision,
  type LaunchQuestion,
  type Sender,
  type Sent,
} from "./fan-out.ts";
export {
  decideKeepAlive,
  decideTtl,
  entryLifetimeMs,
  type HeldEntry,
  type KeepAliveBudget,
  type KeepAliveDecision,
  type KeepAliveQuestion,
  keepAliveBudget,
  type TtlDecision,
  type TtlQuestion,
} from "./lifetime.ts";
export {
  DEFAULT_MODEL,
  knownModels,
  type ModelFacts,
  modelFacts,
  type PeakPrices,
  type Prices,
  type PriceTier,
  windowOf,
} from "./models.ts";
export {
  type BreakEven,
  type BreakEvenQuestion,
  breakEven,
  type ForkPlans,
  forkPlans,
  type LaunchPlan,
  type PlanId,
} from "./plans.ts";
export {
  type Cost,
  costOf,
  highestPrices,
  inputUnits,
  type Multipliers,
  multipliersOf,
  type PriceOverride,
  pricesFor,
  type Service,
  serviceOf,
  USUAL_MULTIPLIERS,
  withoutNoise,
  withPrices,
  writeMultiplier,
} from "./prices.ts";
export {
  decideStored,
  type StoredBills,
  type StoredDecision,
  type StoredQuestion,
  storedBills,
  storedBreakEven,
  USUAL_HIT_RATE,
} from "./stored.ts";
