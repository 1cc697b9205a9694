import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { costCommand } from "../src/commands/cost.ts";
import { type Io, UsageError } from "../src/io.ts";
import { formatMoney, formatTokens, moneyDecimals, parseCount, parseTokens } from "../src/numbers.ts";
import { parsePriceFile } from "../src/price-file.ts";
import { renderTable } from "../src/table.ts";

const runCost = async (line: string, colour = false): Promise<string> => {
  let printed = "";
  const io: Io = {
    out: (text) => {
      printed += text;
    },
    err: (text) => assert.fail(`nothing goes to stderr but main's own line: ${text}`),
    colour,
    isTerminal: colour,
    signal: new AbortController().signal,
    env: {},
    input: async function* () {},
    inputIsTerminal: true,
    exitWith: (code) => assert.fail(`ends by itself, not with ${code}`),
  };
  await costCommand(io).parseAsync(line.split(" "), { from: "user" });
  return printed;
};

const refusal = async (line: string): Promise<string> => {
  const error = await runCost(line).then(
    () => assert.fail(`accepted: ${line}`),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof UsageError, String(error));
  assert.equal(error.exitCode, 2);
  assert.equal(error.message.includes("\n"), false, "one line");
  return error.message;
};

type Bill = { readonly units: number; readonly money: number | null };
type Answer = {
  readonly model: string;
  readonly priced: boolean;
  readonly plans: readonly {
    readonly id: string;
    readonly children: Bill;
    readonly parentNext: Bill;
    readonly total: Bill;
  }[];
  readonly cheapest: string;
  readonly cheapestKept: string;
  readonly launch: { readonly launch: string; readonly waitCapMs: number };
  readonly breakEven: { readonly kind: string; readonly turns: number | null } | null;
  readonly keepAlive: { readonly requests: number };
};

const jsonOf = async (line: string): Promise<Answer> => JSON.parse(await runCost(`${line} --json`)) as Answer;

const childrenOf = async (line: string): Promise<Readonly<Record<string, number>>> =>
  Object.fromEntries((await jsonOf(line)).plans.map((plan) => [plan.id, plan.children.units]));

const THREE = "--prefix 100k --tail 700 --directive 100 --forks 3";
const FIVE = "--prefix 46k --tail 2.5k --directive 200 --forks 5";
const FRESH = "--fresh 15k --rediscover 20k --rediscover-output 3k --brief 500";

test("the worked example is printed as a table with the cheapest plan marked", async () => {
  const expected = `3 forks of a warm 100,000-token prefix on claude-sonnet-5
Input of first requests, in uncached tokens. P 100,000 · S 700 · D 100 · N 3 · w 1.25 · r 0.1 · d 1.25

  plan                                 applies  children  parent's next    total    money
  ───────────────────────────────────────────────────────────────────────────────────────
  no cache                             now       302,400        100,700  403,100  $0.8062
  warm, marker on the last block only  now        33,000         10,875   43,875  $0.0878
  warm, all at once                    now        33,000         10,875   43,875  $0.0878
  warm, leader first                   now        31,390         10,070   41,460  $0.0829
  warm, dedicated prime                now        41,460         10,070   51,530  $0.1031
  cold, all at once                    if cold   378,000        125,875  503,875  $1.0078
  cold, leader first                   if cold   146,390         10,070  156,460  $0.3129
▸ trim, warm                           now        30,375         10,875   41,250  $0.0825
  trim, cold, leader first             if cold   145,375         10,875  156,250  $0.3125

▸ cheapest now: trim, warm. If forks should see the parent's last turn: warm, leader first.
Launch: leader first: at once would cost 5.8 % more (43,875 uncached tokens against 41,460, over 3 forks and the parent's next request); the others follow when the leader's entry is readable, or after 10 s.
Break-even: T* = 8.8 turns; with fewer turns a fork is cheaper than a fresh sub-agent; a fork carries 100,700 tokens, a fresh sub-agent 35,000: the fork saves 57,750 uncached tokens at the start and pays 6,570 more each turn.
Keep-alive: one costs 10,000, a lost entry 115,000, so it pays for at most 11 in a row.
Lifetime if the parent pauses once for 5 to 60 minutes: 1h: it outlives 1 pause between 5 minutes and an hour (210,000 uncached tokens with 1h, 250,000 with 5m).
`;
  assert.equal(await runCost(`${THREE} ${FRESH}`), expected);
});

test("the children's bills are the worked figures to the token", async () => {
  assert.deepEqual(await childrenOf(THREE), {
    "no-cache": 302_400,
    "last-block": 33_000,
    "at-once": 33_000,
    "leader-first": 31_390,
    prime: 41_460,
    "cold-at-once": 378_000,
    "cold-leader-first": 146_390,
    trim: 30_375,
    "trim-cold-leader-first": 145_375,
  });
  assert.equal((await childrenOf(`${THREE} --single-turn`))["leader-first"], 31_315);
  assert.deepEqual(await childrenOf(`${FIVE} --cold`), {
    "no-cache": 243_500,
    "last-block": 39_875,
    "at-once": 39_875,
    "leader-first": 28_375,
    prime: 33_225,
    "cold-at-once": 304_375,
    "cold-leader-first": 81_275,
    trim: 24_250,
    "trim-cold-leader-first": 77_150,
  });
});

test("a cold parent chooses among the cold plans and sends a leader first", async () => {
  const answer = await jsonOf(`${FIVE} --cold`);
  assert.equal(answer.cheapest, "trim-cold-leader-first");
  assert.equal(answer.cheapestKept, "cold-leader-first");
  assert.deepEqual([answer.launch.launch, answer.launch.waitCapMs], ["leader-first", 60_000]);
  assert.match(
    await runCost(`${FIVE} --cold`),
    /\nLaunch: leader first: the prefix is cold, and at once would cost 323\.8 % more/,
  );
});

test("T* is printed to one decimal for each read price", async () => {
  const line = async (model: string, fresh = FRESH) =>
    (await runCost(`${THREE} ${fresh} --model ${model}`)).split("\n").find((text) => text.startsWith("Break-even"));
  assert.match((await line("claude-sonnet-5")) ?? "", /^Break-even: T\* = 8\.8 turns/);
  assert.match((await line("claude-opus-5-5")) ?? "", /^Break-even: T\* = 18\.1 turns/);
  assert.match((await line("claude-fable-5-1")) ?? "", /^Break-even: T\* = 36\.8 turns/);
  assert.match((await line("claude-sonnet-5", "--fresh 15k --brief 500")) ?? "", /^Break-even: T\* = 2\.3 turns/);
  assert.match(
    (await line("claude-sonnet-5", "--fresh 110k")) ?? "",
    /^Break-even: a fork is always cheaper than a fresh sub-agent; .* the fork is never more expensive\.$/,
  );
  assert.equal(await line("claude-sonnet-5", "--tail 700"), undefined);
  assert.deepEqual((await jsonOf(`${THREE} --fresh 110k`)).breakEven, {
    turns: null,
    kind: "always",
    reason: "a fork carries 100,700 tokens, a fresh sub-agent 110,000: the fork is never more expensive",
  });
});

test("an unknown model is planned in tokens, and the missing prices are mentioned", async () => {
  const printed = await runCost(`${THREE} --model unheard-of`);
  assert.match(printed, /The prices of unheard-of are unknown, so costs are in tokens only/);
  assert.equal(printed.includes("$"), false);
  assert.match(printed, /warm, leader first +now +31,390 +10,070 +41,460\n/);
  const answer = await jsonOf(`${THREE} --model unheard-of`);
  assert.equal(answer.priced, false);
  assert.ok(answer.plans.every((plan) => plan.total.money === null && plan.children.money === null));
});

test("the parent's lifetime and trailing block change its own column only", async () => {
  const answer = await jsonOf(`${THREE} --ttl 1h --trailing 40`);
  const leaderFirst = answer.plans.find((plan) => plan.id === "leader-first");
  assert.equal(leaderFirst?.children.units, 31_390);
  assert.equal(leaderFirst?.parentNext.units, 10_150);
  assert.equal(answer.keepAlive.requests, 19);
  assert.equal((await childrenOf(`${THREE} --trimmed-directive 300`)).trim, 31_125);
});

test("notes say what changes the figures: a tier, a minimum, dropped thinking, peak hours", async () => {
  assert.match(
    await runCost(`${THREE} --model deepseek-flash`),
    /Peak hours: 01–04 and 06–10 UTC, Monday to Friday, input costs \$0\.3 per million tokens instead of \$0\.15;/,
  );
  assert.match(await runCost(`${THREE} --model claude-haiku-5-5`), /Price tier: prompts above 100,000 tokens/);
  const short = await runCost("--prefix 2k --tail 10 --forks 2 --model claude-haiku-4-5");
  assert.match(short, /claude-haiku-4-5 caches nothing shorter than 4,096 tokens/);
  assert.match(short, /drops earlier thinking at new user text/);
});

test("with automatic caching no plan needs a marker, and storing by name is listed next to the others", async () => {
  const titles = async (model: string): Promise<readonly string[]> =>
    (await runCost(`${THREE} --model ${model}`)).split("\n").flatMap((line) => {
      const title = /^[ ▸] (\S.*?) {2,}(?:now|if cold)/.exec(line)?.[1];
      return title === undefined ? [] : [title];
    });
  const unasked = ["no cache", "warm, all at once", "warm, leader first", "cold, all at once", "cold, leader first"];
  const trimmed = ["trim, warm", "trim, cold, leader first"];
  assert.deepEqual(await titles("gemini-3.8-flash"), [...unasked, ...trimmed, "stored by name"]);
  assert.deepEqual(await titles("gemini-3.5-flash"), [...unasked, ...trimmed]);
  const printed = await runCost(`${THREE} --model gemini-3.8-flash`);
  // Created once as input, stored for ten minutes, read by three forks and their parent; each fork adds its own text.
  const children = Math.round(100_700 * (1 + 0.5 / 0.75 / 6 + 3 * 0.1) + 3 * 100);
  assert.match(printed, new RegExp(`stored by name +now +${formatTokens(children)} +10,070 +`));
  assert.match(
    printed,
    /\nStored by name, compared with automatic caching that hits 80 % of the time: stored: with 7 reads .*; it takes 7 reads to be worth it\.\n/,
  );
  assert.match(
    await runCost("--prefix 1k --forks 3 --model gemini-3.8-flash"),
    /\nStored by name, .*: not stored: 1,000 tokens are below the minimum of 4,096\.\n/,
  );
});

test("colour changes no character of the text", async () => {
  const plain = await runCost(`${THREE} ${FRESH}`);
  const coloured = await runCost(`${THREE} ${FRESH}`, true);
  assert.notEqual(coloured, plain);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminal styles are control characters
  assert.equal(coloured.replace(/\u001b\[\d+m/g, ""), plain);
});

test("bad arguments are one line that names the option", async () => {
  assert.equal(await refusal("--tail 700"), "required option '--prefix <tokens>' not specified");
  assert.equal(
    await refusal("--prefix 12q --forks 3"),
    "option '--prefix <tokens>' argument '12q' is invalid. Expected whole tokens such as 700, 100k or 1.5M.",
  );
  assert.match(await refusal("--prefix -5 --forks 3"), /--prefix/);
  assert.match(await refusal("--prefix 1k --forks 0"), /'--forks <count>' argument '0' is invalid/);
  assert.match(await refusal("--prefix 1k --forks 2.5"), /'--forks <count>' argument '2.5' is invalid/);
  assert.match(await refusal(`${THREE} --ttl 9m`), /'--ttl <lifetime>' argument '9m' is invalid/);
  assert.equal(await refusal(`${THREE} --prefixes 3`), "unknown option '--prefixes' (Did you mean --prefix?)");
  assert.match(await refusal(`${THREE} extra`), /too many arguments/);
  assert.match(
    await refusal(`${THREE} --rediscover-output 3k`),
    /^option '--rediscover-output' needs '--fresh <tokens>'/,
  );
});

test("other providers' models are counted by what they charge for a write", async () => {
  const leaderFirst = async (model: string) => (await childrenOf(`${THREE} --model ${model}`))["leader-first"];
  assert.equal(await leaderFirst("gpt-6-sol"), 31_390);
  assert.equal(await leaderFirst("gemini-3.8-flash"), 31_140);
  assert.equal(
    await refusal(`${THREE} --model gpt-6-sol --ttl 1h`),
    "option '--ttl 1h': gpt-6-sol has no price for writing to a 1h cache",
  );
});

test("a price file changes known models in part and adds new ones whole", async () => {
  const folder = await mkdtemp(join(tmpdir(), "prefork-prices-"));
  try {
    const path = join(folder, "prices.json");
    const models = {
      "claude-sonnet-5-5": { read: 0.2 },
      "gemini-4-argon": { storage: 1 },
      house: {
        input: 1,
        write: { "5m": 1 },
        read: 0,
        output: 1,
        minimumPrefix: 0,
        tiers: [{ above: 200_000, input: 2, write: { "5m": 2 }, read: 0, output: 2 }],
      },
    };
    await writeFile(path, JSON.stringify({ models }));
    assert.equal((await childrenOf(`${THREE} --model claude-sonnet-5-5`))["leader-first"], 16_320);
    assert.equal((await childrenOf(`${THREE} --model claude-sonnet-5-5 --prices ${path}`))["leader-first"], 31_390);
    const house = await jsonOf(`${THREE} --model house --prices ${path}`);
    assert.deepEqual(house.plans.find((plan) => plan.id === "leader-first")?.children, { units: 1_000, money: 0.001 });
    const long = await jsonOf(`--prefix 300k --tail 700 --forks 2 --model house --prices ${path}`);
    assert.deepEqual(long.plans.find((plan) => plan.id === "leader-first")?.children, { units: 700, money: 0.0014 });
    assert.equal(
      await refusal(`${THREE} --model house --ttl 1h --prices ${path}`),
      "option '--ttl 1h': house has no price for writing to a 1h cache",
    );

    // A provider without a write fee, and one that only offers another lifetime.
    await writeFile(
      path,
      JSON.stringify({
        models: {
          free: { input: 1, write: {}, read: 0.1, output: 1 },
          slow: { input: 1, write: { "30m": 1.25 }, read: 0.1, output: 1 },
        },
      }),
    );
    await chmod(path, 0o666);
    assert.equal(
      await refusal(`${THREE} --model free --prices ${path}`),
      `${path} is not used: ${path} can be changed by others (mode 0666)`,
    );
    await chmod(path, 0o644);
    assert.equal((await childrenOf(`${THREE} --model free --prices ${path}`))["leader-first"], 31_140);
    assert.equal((await childrenOf(`${THREE} --model slow --prices ${path}`))["leader-first"], 31_390);
    assert.equal((await runCost(`${THREE} --model slow --prices ${path}`)).includes("Lifetime if"), false);

    const broken = join(folder, "broken.json");
    await writeFile(broken, '{ "models": {\n  "house": { "input": 1, }\n} }');
    const message = await refusal(`${THREE} --prices ${broken}`);
    assert.ok(message.startsWith(`${broken}: not JSON: `), message);
    assert.match(message, /line 2/);
    assert.equal(await refusal(`${THREE} --prices ${folder}/none.json`), `${folder}/none.json: no such file`);
    assert.equal(await refusal(`${THREE} --prices ${folder}`), `${folder}: is a directory`);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("errors in a price file name the file and the JSON path", () => {
  const complaint = (value: unknown): string => {
    try {
      parsePriceFile(JSON.stringify(value), "p.json");
    } catch (error) {
      assert.ok(error instanceof UsageError, String(error));
      return error.message;
    }
    return assert.fail("accepted");
  };
  const house = { input: 1, write: {}, read: 0.1, output: 5 };
  assert.equal(complaint([]), "p.json: expected object, received array");
  assert.equal(complaint({}), "p.json: models: missing");
  assert.equal(complaint({ models: {}, currency: "EUR" }), "p.json: currency: unknown field");
  assert.equal(complaint({ models: { house: 3 } }), "p.json: models.house: expected object, received number");
  assert.equal(
    complaint({ models: { house: { input: 1, write: {}, read: 0.1 } } }),
    "p.json: models.house.output: missing",
  );
  assert.equal(
    complaint({ models: { "my.house": { ...house, read: "0.1" } } }),
    'p.json: models["my.house"].read: expected number, received string',
  );
  assert.match(complaint({ models: { "claude-sonnet-5": { read: -1 } } }), /^p\.json: models\.claude-sonnet-5\.read: /);
  assert.equal(
    complaint({ models: { house: { ...house, write: { "2h": 1 } } } }),
    'p.json: models.house.write["2h"]: unknown field',
  );
  assert.match(
    complaint({ models: { house: { ...house, tiers: [{ above: 1.5, ...house }] } } }),
    /^p\.json: models\.house\.tiers\[0\]\.above: /,
  );
});

test("figures are read as people type them and printed as they read them", () => {
  const typed = { "700": 700, "100k": 100_000, "1.5M": 1_500_000, "1.1k": 1_100, "31,390": 31_390, "31_390": 31_390 };
  for (const [text, tokens] of Object.entries(typed)) assert.equal(parseTokens(text), tokens, text);
  for (const text of ["", "k", "-1", "1.5", "1.2345k", "1e5", "12q", "1,2", "0x10", "NaN", "9999999999M"]) {
    assert.equal(parseTokens(text), undefined, text);
  }
  assert.deepEqual([parseCount("12"), parseCount("1k"), parseCount("")], [12, undefined, undefined]);
  assert.deepEqual([formatTokens(31_390), formatTokens(31_315.25), formatTokens(0)], ["31,390", "31,315.25", "0"]);
  assert.deepEqual(
    [0, 0.00464, 0.0829, 1.2, 1234.5].map((amount) => formatMoney(amount)),
    ["$0.00", "$0.00464", "$0.0829", "$1.20", "$1,234.50"],
  );
  assert.equal(moneyDecimals([12, 0.0829, 0]), 4);
});

test("tables align by column, with an optional rule and gutter", () => {
  const columns = [{ title: "fork" }, { title: "read", align: "right" } as const];
  const rows = [{ cells: ["a", "1,000"] }, { cells: ["longer", "7"] }];
  assert.equal(renderTable({ columns, rows, rule: false }), "fork     read\na       1,000\nlonger      7\n");
  assert.equal(
    renderTable({ columns, rows: [...rows, { cells: ["b"], mark: "best" }] }),
    "  fork     read\n  ─────────────\n  a       1,000\n  longer      7\n▸ b\n",
  );
  assert.equal(renderTable({ columns, rows: [], rule: false }), "fork  read\n");
});
