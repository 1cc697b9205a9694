/** What a family of forks would cost, before anything is sent, and whether to wait for a leader. */

import assert from "node:assert/strict";
import { breakEven, decideLaunch, forkPlans, modelFacts } from "@prefork/wire";

const facts = modelFacts("claude-sonnet-5");
const family = { prefix: 100_000, tail: 700, directive: 100, forks: 3, warm: true, facts };

const { plans } = forkPlans(family);
for (const { title, children, parentNext } of plans) console.log(children.units, parentNext.units, title);
assert.equal(plans.find(({ id }) => id === "leader-first")?.children.units, 31_390);
assert.equal(plans.find(({ id }) => id === "cold-at-once")?.children.units, 378_000);

const { launch, reason } = decideLaunch(family);
console.log(reason);
assert.equal(launch, "leader-first");

const fresh = { fresh: 15_000, rediscover: 20_000, rediscoverOutput: 3_000, brief: 500, outputRatio: 5 };
const worth = breakEven({ ...fresh, prefix: 100_000, tail: 700, read: 0.1, write: 1.25 });
console.log(worth.reason);
assert.equal(worth.kind === "until" && worth.turns.toFixed(1), "8.8");
