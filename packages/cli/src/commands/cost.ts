/** `prefork cost`: what N forks cost under every launch plan, before any is sent.
 *  Invariant: nothing is sent and nothing is written; the table and --json state the same figures.
 *  Elsewhere: the arithmetic (economics of @prefork/wire), texts and table (cost-report.ts). */

import {
  type Bill,
  type BreakEven,
  breakEven,
  childTtl,
  DEFAULT_MODEL,
  decideLaunch,
  decideStored,
  decideTtl,
  type FanOut,
  forkPlans,
  keepAliveBudget,
  type ModelFacts,
  modelFacts,
  multipliersOf,
  pricesFor,
  storedBills,
  type Ttl,
  USUAL_HIT_RATE,
  writeMultiplier,
} from "@prefork/wire";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Io, newCommand, UsageError } from "../io.ts";
import { parseCount, parseTokens } from "../numbers.ts";
import { priceTable } from "../price-file.ts";
import { type CostReport, costAsJson, costAsText, type StoredCost } from "./cost-report.ts";

type CostOptions = {
  readonly prefix: number;
  readonly tail: number;
  readonly directive: number;
  readonly trimmedDirective?: number;
  readonly forks: number;
  readonly trailing: number;
  readonly model: string;
  readonly cold?: true;
  readonly singleTurn?: true;
  readonly ttl?: Ttl;
  readonly prices?: string;
  readonly fresh?: number;
  readonly rediscover?: number;
  readonly rediscoverOutput?: number;
  readonly brief?: number;
  readonly json?: true;
};

const LIFETIMES: readonly Ttl[] = ["5m", "30m", "1h", "12h"];

/** A pause that a 1h entry survives and a 5m entry does not. */
const ONE_PAUSE_MS = 30 * 60_000;

const sellsSeveralLifetimes = (facts: ModelFacts | undefined): boolean =>
  facts === undefined || Object.keys(facts.prices.write).length > 1;

const parseTokenCount = (text: string): number => {
  const value = parseTokens(text);
  if (value === undefined) throw new InvalidArgumentError("Expected whole tokens such as 700, 100k or 1.5M.");
  return value;
};

const parseForkCount = (text: string): number => {
  const value = parseCount(text);
  if (value === undefined || value < 1) throw new InvalidArgumentError("Expected a whole number from 1.");
  return value;
};

const breakEvenOf = (options: CostOptions, facts: ModelFacts | undefined): BreakEven | undefined => {
  const { fresh, rediscover = 0, rediscoverOutput = 0, brief = 0, prefix, tail, forks } = options;
  if (fresh === undefined) {
    const stray = (["rediscover", "rediscoverOutput", "brief"] as const).find((name) => options[name] !== undefined);
    if (stray === undefined) return undefined;
    const flag = stray.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    throw new UsageError(
      `option '--${flag}' needs '--fresh <tokens>', the size of a fresh sub-agent's system prompt and tools`,
    );
  }
  const multipliers = multipliersOf(facts, prefix + tail);
  return breakEven({
    fresh,
    rediscover,
    rediscoverOutput,
    brief,
    prefix,
    tail,
    forks,
    warm: !options.cold,
    outputRatio: multipliers.output,
    read: multipliers.read,
    write: writeMultiplier(multipliers, childTtl(facts)),
  });
};

/** The provider caches prompts automatically, and no marker says where an entry ends. */
const cachesAutomatically = (facts: ModelFacts | undefined): boolean =>
  facts !== undefined && Object.keys(facts.prices.write).length === 0 && facts.unmarkedRead === undefined;

const needsMarkers = (id: string): boolean => id === "last-block" || id === "prime";

/** As in a session: how long an entry is stored, and how often a fork reads it. A fork with tools makes at least two
 *  requests. */
const STORED_MS = 10 * 60_000;
const TURNS = 2;

const storedCost = ({ prefix, tail, directive, forks, singleTurn, facts }: FanOut, trailing: number): StoredCost => {
  const tokens = prefix + tail;
  if (facts?.storage === undefined) return undefined;
  const reads = forks * (singleTurn ? 1 : TURNS) + 1;
  const decision = decideStored({ tokens, heldMs: STORED_MS, reads, facts, hitRate: USUAL_HIT_RATE });
  const ofChildren = storedBills({ tokens, heldMs: STORED_MS, reads: forks, facts });
  const ofParent = storedBills({ tokens, heldMs: 0, reads: 1, facts })?.reads;
  if (!ofChildren || !ofParent || tokens < facts.minimumPrefix) return { decision };
  const { input } = pricesFor(facts, tokens);
  const withOwn = ({ units, money = 0 }: Bill, own: number): Bill => ({
    units: units + own,
    money: money + (own * input) / 1e6,
  });
  const children = withOwn(ofChildren.total, forks * directive);
  return { decision, bills: { children, parentNext: withOwn(ofParent, trailing) } };
};

const reportOf = async (options: CostOptions): Promise<CostReport> => {
  const { prefix, tail, directive, trimmedDirective, forks, trailing, model } = options;
  const facts = modelFacts(model, await priceTable(options.prices));
  const ttl = options.ttl ?? childTtl(facts);
  if (options.ttl !== undefined && facts !== undefined && facts.prices.write[ttl] === undefined) {
    throw new UsageError(`option '--ttl ${ttl}': ${model} has no price for writing to a ${ttl} cache`);
  }
  const fanOut: FanOut = {
    prefix,
    tail,
    directive,
    forks,
    warm: !options.cold,
    singleTurn: options.singleTurn ?? false,
    parentNext: { trailing },
    parentTtl: ttl,
    facts,
    ...(trimmedDirective === undefined ? {} : { trimmedDirective }),
  };
  const { plans, ...best } = forkPlans(fanOut);
  return {
    model,
    fanOut,
    plans: cachesAutomatically(facts) ? plans.filter(({ id }) => !needsMarkers(id)) : plans,
    ...best,
    stored: storedCost(fanOut, trailing),
    launch: decideLaunch(fanOut),
    breakEven: breakEvenOf(options, facts),
    keepAlive: keepAliveBudget({ tokens: prefix, ttl, facts }),
    pause: sellsSeveralLifetimes(facts)
      ? decideTtl({ owner: "parent", tokens: prefix, gapsMs: [ONE_PAUSE_MS], facts })
      : undefined,
  };
};

export const costCommand = (io: Io): Command =>
  newCommand("cost", io)
    .description("compare the cost of every way to launch N forks, before any is sent")
    .requiredOption("--prefix <tokens>", "P: size of the parent's prompt so far", parseTokenCount)
    .option("--tail <tokens>", "S: the turn in flight and its results, shared by all forks", parseTokenCount, 0)
    .option("--directive <tokens>", "D: one fork's own directive", parseTokenCount, 0)
    .option(
      "--trimmed-directive <tokens>",
      "D′: the directive if the turn in flight is trimmed (default: D)",
      parseTokenCount,
    )
    .requiredOption("--forks <count>", "N: number of forks", parseForkCount)
    .option("--trailing <tokens>", "what the parent's next request adds after S", parseTokenCount, 0)
    .option("--model <id>", "model whose prices apply", DEFAULT_MODEL)
    .option("--cold", "the parent's cache entry has expired")
    .option("--single-turn", "forks answer in one turn, so D gets no marker")
    .addOption(
      new Option("--ttl <lifetime>", "lifetime of the parent's cache entries (default: the shortest)").choices(
        LIFETIMES,
      ),
    )
    .option("--prices <file>", "JSON file with your own prices")
    .option("--fresh <tokens>", "F: a fresh sub-agent's system prompt and tools; adds the break-even", parseTokenCount)
    .option("--rediscover <tokens>", "X: context that the sub-agent would have to find again", parseTokenCount)
    .option("--rediscover-output <tokens>", "O: output that the sub-agent would need to find it", parseTokenCount)
    .option("--brief <tokens>", "B: how much longer its brief is than a fork's directive", parseTokenCount)
    .option("--json", "print one JSON object")
    .allowExcessArguments(false)
    .action(async (options: CostOptions) => {
      const report = await reportOf(options);
      io.out(options.json ? costAsJson(report) : costAsText(report, io.colour));
    });
