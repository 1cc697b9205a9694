/** `prefork -p` with every profile, against the rules that are closest to its provider: a conversation of two prompts
 *  with tools, reasoning and forks; the second prompt resumes it without naming an engine. Bill, report and requests are
 *  compared with the provider's own ledger. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  callTools,
  type LedgerRow,
  type ProviderName,
  type SimRequest,
  type SimulatorOptions,
  say,
  startSimulator,
  think,
  toolResults,
} from "@prefork/simulator";
import { type JsonObject, profiles } from "@prefork/wire";
import { type Ground, openGround, resultIn } from "./ground.ts";

type Tried = {
  readonly rules: ProviderName;
  readonly model: string;
  readonly path: string;
  /** How this provider differs from the one whose rules are closest. */
  readonly apart?: SimulatorOptions["rules"];
  /** The provider does not report cache reads. */
  readonly untold?: true;
  /** The field names of the conversation's id and of its reasoning in every request. */
  readonly routed?: "prompt_cache_key" | "session_id";
  readonly reasoning?: "reasoning_content" | "reasoning";
};

const CHAT = "/v1";

const TRIED: Readonly<Record<string, Tried>> = {
  anthropic: { rules: "anthropic", model: "claude-sonnet-5", path: "" },
  openai: { rules: "openai", model: "gpt-6.1-sol", path: CHAT, routed: "prompt_cache_key" },
  "openai-chat": { rules: "openai", model: "gpt-6.1-sol", path: CHAT, routed: "prompt_cache_key" },
  gemini: { rules: "gemini", model: "gemini-3.8-flash", path: "/v1beta" },
  minimax: { rules: "minimax", model: "MiniMax-M2.7", path: "" },
  deepseek: {
    ...{ rules: "deepseek", model: "deepseek-flash", path: CHAT },
    reasoning: "reasoning_content",
  },
  dashscope: { rules: "dashscope", model: "qwen3.7-max", path: CHAT },
  openrouter: {
    ...{ rules: "dashscope", model: "anthropic/claude-sonnet-5", path: CHAT, routed: "session_id" },
    apart: {
      cache: { readable: "first-event" },
      reports: {
        usage: [
          ["prompt_tokens_details.cached_tokens", "read"],
          ["prompt_tokens_details.cache_write_tokens", "written"],
        ],
      },
    },
  },
  kimi: {
    ...{ rules: "minimax", model: "kimi-k3", path: CHAT, routed: "prompt_cache_key", reasoning: "reasoning_content" },
    apart: {
      cache: { markers: "ignored", apart: "prompt_cache_key" },
      accepts: { unknownFields: "ignored" },
      reports: { usage: [["cached_tokens", "read"]] },
    },
  },
  glm: {
    ...{ rules: "minimax", model: "glm-5.5", path: CHAT, reasoning: "reasoning_content" },
    apart: { cache: { markers: "ignored" }, accepts: { unknownFields: "ignored" } },
  },
  vllm: { rules: "vllm", model: "house-model", path: CHAT, reasoning: "reasoning" },
  sglang: {
    ...{ rules: "vllm", model: "house-model", path: CHAT, reasoning: "reasoning_content" },
    apart: {
      cache: { readable: "first-event", automatic: { step: 1 } },
      reports: { reasoning: "reasoning_content" },
    },
  },
  "llama.cpp": { rules: "llamacpp", model: "house-model", path: CHAT, reasoning: "reasoning_content" },
  ollama: {
    ...{ rules: "llamacpp", model: "house-model", path: CHAT, untold: true, reasoning: "reasoning" },
    apart: { cache: { slots: { count: 1 } }, reports: { reasoning: "reasoning", usage: [] } },
  },
};

const PARTS = ["part1", "part2"];

/** Thinks and reads; on the second prompt it starts two forks, which read too. */
const script = (request: SimRequest) => {
  const text = JSON.stringify(request.body);
  const directive = text.lastIndexOf("fork-directive: part");
  if (directive >= 0) {
    if (text.slice(directive).includes("own.txt")) return say("Scope: part\nResult: done");
    return think("My part.", callTools([{ name: "Read", input: { file_path: "own.txt" } }]));
  }
  if (text.includes("<task-id>")) return say("All is done.");
  if (text.includes("look at part1")) return say("I wait.");
  if (text.includes("have it looked at"))
    return think(
      "Two parts.",
      callTools(PARTS.map((part) => ({ name: "Agent", input: { description: `look at ${part}`, prompt: part } }))),
    );
  if (toolResults(request).length === 0)
    return think("Where to begin?", callTools([{ name: "Read", input: { file_path: "a.txt" } }], "I look."));
  return say("I have read it.");
};

/** As `--output-format json` prints it. */
const usageOf = (rows: readonly LedgerRow[], { untold }: Tried): JsonObject => {
  const sum = (of: (row: LedgerRow) => number): number => rows.reduce((total, row) => total + of(row), 0);
  const [prompt, read] = [sum(({ promptTokens }) => promptTokens), untold ? 0 : sum(({ read: tokens }) => tokens)];
  const written = sum(({ written: by }) => Object.values(by).reduce((total, tokens) => total + tokens, 0));
  return {
    prompt_tokens: prompt,
    input_tokens: prompt - read - written,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    output_tokens: sum(({ output }) => output),
  };
};

/** Providers without prices have no bill, neither from us nor from a self-hosted engine. */
const dollars = (rows: readonly LedgerRow[]): number | null =>
  rows.reduce<number | null>(
    (total, { billed: { usd } }) => (total === null || usd === null ? null : total + usd),
    0,
  ) || null;

const rounded = (usd: unknown): number | null => (typeof usd === "number" ? Math.round(usd * 1e9) / 1e9 : null);

const keysOf = (name: string): Readonly<Record<string, string>> =>
  Object.fromEntries((profiles.get(name)?.keys ?? []).map((variable) => [variable, "any"]));

const asked = async (
  ground: Ground,
  { name, argv }: { readonly name: string; readonly argv: readonly string[] },
): Promise<JsonObject> => {
  const env = { ANTHROPIC_BASE_URL: "", ANTHROPIC_API_KEY: "", ...keysOf(name) };
  const flags = ["--output-format", "json", "--permission-mode", "default"];
  const { code, out, err } = await ground.prefork(["-p", ...flags, ...argv], { env });
  assert.deepEqual([code, err], [0, ""], name);
  return resultIn(out);
};

for (const [name, tried] of Object.entries(TRIED))
  test(`${name}: two prompts with tools and forks are reported and billed as the provider counted them`, async () => {
    await using ground = await openGround();
    ground.put("a.txt", "every line is read by the parent, and known to its forks\n".repeat(300));
    ground.put("own.txt", "own.txt\n");
    const { rules, model, path, apart, routed, reasoning } = tried;
    await using provider = await startSimulator({
      ...{ provider: rules, keepBodies: true, script },
      ...(apart ? { rules: apart } : {}),
    });
    const at = ["--base-url", provider.url + path];
    const first = await asked(ground, { name, argv: ["--provider", name, "--model", model, ...at, "Read it."] });
    const before = provider.ledger().length;
    const second = await asked(ground, { name, argv: ["--continue", ...at, "Now have it looked at."] });
    assert.deepEqual([first.result, second.result], ["I have read it.", "All is done."]);
    assert.deepEqual([second.engine, second.model, second.session_id], [name, model, first.session_id]);
    const rows = provider.ledger();
    assert.deepEqual(
      rows.filter(({ outcome }) => outcome !== "complete"),
      [],
    );
    const own = rows.slice(before);
    assert.deepEqual([first.usage, second.usage], [usageOf(rows.slice(0, before), tried), usageOf(own, tried)]);
    assert.equal(rounded(second.total_cost_usd), rounded(dollars(own)));
    const bodies = provider.requests().map(({ body }) => body.toString("utf8"));
    if (routed)
      assert.deepEqual(
        new Set(bodies.map((body) => (JSON.parse(body) as JsonObject)[routed])),
        new Set([first.session_id]),
      );
    // Reasoning is sent back with the call that it led to, also to forks.
    if (reasoning)
      for (const body of bodies.slice(1))
        assert.ok(body.includes(`"${reasoning}":"Where to begin?"`), body.slice(0, 400));
  });

test("every profile is tried", () => {
  assert.deepEqual(Object.keys(TRIED).toSorted(), [...profiles.keys()].toSorted());
});
