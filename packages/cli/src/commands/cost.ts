/** `prefork cost`: what N forks cost under every plan, before any is sent.
 *  Invariant: nothing is sent and nothing is written; the same figures stand in the table and in --json.
 *  Elsewhere: the arithmetic (economics of @prefork/wire), the words and the table (cost-report.ts). */

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

/** Any pause that a 5m entry does not outlive and a 1h entry does. */
const ONE_PAUSE_MS = 30 * 60_000;

const sellsSeveral = (facts: ModelFacts | undefined): boolean =>
  facts === undefined || Object.keys(facts.prices.write).length > 1;

const tokens = (text: string): number => {
  const value = parseTokens(text);
  if (value === undefined) throw new InvalidArgumentError("Expected whole tokens such as 700, 100k or 1.5M.");
  return value;
};

const forkCount = (text: string): number => {
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
      `option '--${flag}' needs '--fresh <tokens>', the system prompt and tools of a fresh sub-agent`,
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

/** Where prompts are kept unasked, and nothing says where an entry ends. */
const keepsByItself = (facts: ModelFacts | undefined): boolean =>
  facts !== undefined && Object.keys(facts.prices.write).length === 0 && facts.unmarkedRead === undefined;

const needsMarkers = (id: string): boolean => id === "last-block" || id === "prime";

/** As a session holds an entry, and counts who reads it: a fork that may use a tool asks at least twice. */
const HELD_MS = 10 * 60_000;
const TURNS = 2;

const storedOf = ({ prefix, tail, directive, forks, singleTurn, facts }: FanOut, trailing: number): StoredCost => {
  const tokens = prefix + tail;
  if (facts?.storage === undefined) return undefined;
  const reads = forks * (singleTurn ? 1 : TURNS) + 1;
  const decision = decideStored({ tokens, heldMs: HELD_MS, reads, facts, hitRate: USUAL_HIT_RATE });
  const ofChildren = storedBills({ tokens, heldMs: HELD_MS, reads: forks, facts });
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
    plans: keepsByItself(facts) ? plans.filter(({ id }) => !needsMarkers(id)) : plans,
    ...best,
    stored: storedOf(fanOut, trailing),
    launch: decideLaunch(fanOut),
    breakEven: breakEvenOf(options, facts),
    keepAlive: keepAliveBudget({ tokens: prefix, ttl, facts }),
    pause: sellsSeveral(facts)
      ? decideTtl({ owner: "parent", tokens: prefix, gapsMs: [ONE_PAUSE_MS], facts })
      : undefined,
  };
};

export const costCommand = (io: Io): Command =>
  newCommand("cost", io)
    .description("what N forks cost under every launch and marker plan, before any is sent")
    .requiredOption("--prefix <tokens>", "P: what the parent has already written", tokens)
    .option("--tail <tokens>", "S: the in-flight turn and its results, shared by all", tokens, 0)
    .option("--directive <tokens>", "D: what one child alone is told", tokens, 0)
    .option(
      "--trimmed-directive <tokens>",
      "D′: the directive where the in-flight turn is trimmed (default: D)",
      tokens,
    )
    .requiredOption("--forks <count>", "N: how many children", forkCount)
    .option("--trailing <tokens>", "what the parent's next request adds after S", tokens, 0)
    .option("--model <id>", "whose prices and multipliers", DEFAULT_MODEL)
    .option("--cold", "the parent's entry has expired")
    .option("--single-turn", "children answer in one turn: no marker on D")
    .addOption(
      new Option("--ttl <lifetime>", "lifetime of the parent's markers (default: the shortest sold)").choices(
        LIFETIMES,
      ),
    )
    .option("--prices <file>", "JSON file with your own prices")
    .option("--fresh <tokens>", "F: system prompt and tools of a fresh sub-agent; adds the break-even", tokens)
    .option("--rediscover <tokens>", "X: context it would have to find again", tokens)
    .option("--rediscover-output <tokens>", "O: what it would write to find it", tokens)
    .option("--brief <tokens>", "B: how much longer its brief is than a directive", tokens)
    .option("--json", "figures for machines")
    .allowExcessArguments(false)
    .action(async (options: CostOptions) => {
      const report = await reportOf(options);
      io.out(options.json ? costAsJson(report) : costAsText(report, io.colour));
    });
