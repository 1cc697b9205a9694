/** OpenAI up to GPT-5.5: prefixes are kept by themselves, in steps, and writing is free. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { textOfTokens } from "@prefork/simulator";
import { assistant, type Body, figures, refusalOf, responses, rowOf, started, user } from "./wire-sending.ts";

const HOUR = 3_600_000;
const ask = responses("gpt-5.4");

const steps: readonly (readonly [prompt: number, read: number])[] = [
  [1_023, 0],
  [1_024, 1_024],
  [1_151, 1_024],
  [1_152, 1_152],
  [5_000, 4_992],
];

for (const [prompt, read] of steps)
  test(`a prompt of ${prompt} tokens is read as ${read} when it is sent again`, async () => {
    await using sim = await started("openai");
    const first = await rowOf(sim, ask([user(prompt)]));
    assert.deepEqual([figures(first), first.nextRead], [{ read: 0, written: 0, plain: prompt }, read]);
    assert.deepEqual(figures(await rowOf(sim, ask([user(prompt)]))), { read, written: 0, plain: prompt - read });
  });

test("prompts that part inside a text share it in steps of 128 tokens", async () => {
  await using sim = await started("openai");
  const parted = (end: string): readonly Body[] => [{ role: "user", content: textOfTokens(1_300) + end }];
  await rowOf(sim, ask(parted("one end")));
  const second = await rowOf(sim, ask(parted("another end")));
  assert.deepEqual([second.read, second.expectedRead], [1_280, 1_280]);
});

test("writing is free and reading costs a tenth", async () => {
  await using sim = await started("openai");
  const first = await rowOf(sim, ask([user(2_048)]));
  assert.deepEqual(
    [first.written, first.billed],
    [
      { "5m": 0, "1h": 0 },
      { inputUnits: 2_048, usd: 0.005135 },
    ],
  );
  assert.deepEqual((await rowOf(sim, ask([user(2_048)]))).billed, { inputUnits: 204.8, usd: 0.000527 });
});

test("GPT-5.5 has intervals of 2,048 tokens", async () => {
  await using sim = await started("openai");
  const later = responses("gpt-5.5");
  await rowOf(sim, later([user(5_000)]));
  assert.equal((await rowOf(sim, later([user(5_000)]))).read, 4_096);
  assert.equal((await rowOf(sim, later([user(2_000, 9)]))).nextRead, 0);
});

test("a prefix is cached for a day unless in-memory caching is requested, for which no lifetime is published", async () => {
  await using sim = await started("openai");
  const day = ask([user(2_048, 1)]);
  const memory = ask([user(2_048, 2)], { prompt_cache_retention: "in_memory" });
  await rowOf(sim, day);
  await rowOf(sim, memory);
  sim.clock.advance(HOUR);
  assert.deepEqual([(await rowOf(sim, day)).read, (await rowOf(sim, memory)).read], [2_048, 0]);
  sim.clock.advance(24 * HOUR);
  assert.equal((await rowOf(sim, day)).missCause, "expired");
});

test("options of later models are refused, and so is keeping in memory on GPT-5.5", async () => {
  await using sim = await started("openai");
  assert.deepEqual(await refusalOf(sim, ask([user(10)], { prompt_cache_options: { mode: "explicit" } })), {
    status: 400,
    error: {
      message: "Unsupported parameter: 'prompt_cache_options' is not supported with this model.",
      type: "invalid_request_error",
      param: "prompt_cache_options",
      code: "unsupported_parameter",
    },
  });
  const kept = await refusalOf(sim, responses("gpt-5.5")([user(10)], { prompt_cache_retention: "in_memory" }));
  assert.deepEqual(kept.error, {
    message: "Invalid value: 'in_memory'. Supported values are: '24h'.",
    type: "invalid_request_error",
    param: "prompt_cache_retention",
    code: "invalid_value",
  });
});

test("earlier reasoning leaves the prompt at new words of the user, where a model keeps the current turn's only", async () => {
  const reasoning: Body = {
    type: "reasoning",
    id: "rs_1",
    summary: [{ type: "summary_text", text: textOfTokens(500) }],
  };
  const opening = [user(2_048), reasoning, assistant(128)];
  const readOf = async (context: string): Promise<readonly [number, number]> => {
    await using sim = await started("openai");
    const more = { reasoning: { context } };
    await rowOf(sim, ask([...opening, user(128, 5)], more));
    const next = await rowOf(sim, ask([...opening, user(128, 5), assistant(1), user(1)], more));
    return [next.read, next.promptTokens];
  };
  assert.deepEqual(await readOf("all_turns"), [2_688, 2_806]);
  assert.deepEqual(await readOf("auto"), [2_304, 2_306]);
});

test("the older rules can be had for every model", async () => {
  await using sim = await started("openai-legacy");
  const ask6 = responses("gpt-6-sol");
  await rowOf(sim, ask6([user(2_000)]));
  assert.deepEqual(figures(await rowOf(sim, ask6([user(2_000)]))), { read: 1_920, written: 0, plain: 80 });
});
