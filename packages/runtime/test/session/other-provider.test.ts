/** A session that continues with another provider or model: nothing in the old provider's own encoding is sent. */

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { test } from "node:test";
import { mergeLayers } from "@prefork/guard";
import {
  callTools,
  type ProviderName,
  type SimRequest,
  type Simulator,
  say,
  startSimulator,
  think,
  toolResults,
} from "@prefork/simulator";
import { scratch } from "@prefork/testing/scratch";
import { createSession, engineFor, resumeSession, type SessionOptions } from "../../src/index.ts";

type Side = { readonly rules: ProviderName; readonly profile: string; readonly model: string; readonly path: string };

const SIDES: readonly Side[] = [
  { rules: "anthropic", profile: "anthropic", model: "claude-sonnet-5", path: "" },
  { rules: "anthropic", profile: "anthropic", model: "claude-opus-4-6", path: "" },
  { rules: "openai", profile: "openai", model: "gpt-6.1-sol", path: "/v1" },
  { rules: "openai", profile: "openai", model: "gpt-6-sol", path: "/v1" },
  { rules: "openai", profile: "openai-chat", model: "gpt-6-sol", path: "/v1" },
  { rules: "gemini", profile: "gemini", model: "gemini-3.8-flash", path: "/v1beta" },
  { rules: "minimax", profile: "minimax", model: "MiniMax-M2.7", path: "" },
  { rules: "deepseek", profile: "deepseek", model: "deepseek-flash", path: "/v1" },
];

/** Thinks, reads, and has two parts looked at by forks. */
const script = (request: SimRequest) => {
  const text = JSON.stringify(request.body);
  if (text.includes("fork-directive: part")) return say("Scope: part\nResult: done");
  if (text.includes("and now?")) return say("I go on.");
  if (text.includes("<task-id>")) return say("All is done.");
  const results = toolResults(request);
  if (results.length === 0)
    return think("Where to begin?", callTools([{ name: "Glob", input: { pattern: "*" } }], "I look."));
  if (text.includes("look at part1")) return say("I wait.");
  const agents = ["part1", "part2"].map((part) => ({
    name: "Agent",
    input: { description: `look at ${part}`, prompt: part },
  }));
  return think("Two parts.", callTools(agents, "I have them looked at."));
};

const optionsFor = (side: Side, simulator: Simulator, at: (path: string) => string): SessionOptions => ({
  engine: engineFor(side.profile, {
    baseUrl: simulator.url + side.path,
    model: side.model,
    credential: { kind: "api-key", value: "any-key" },
  }),
  ...{ model: side.model, cwd: at("work"), home: at("home"), state: at("state") },
  environment: { PATH: "/usr/bin:/bin" },
  permissions: { policy: { ...mergeLayers([]), sandbox: "off" }, mode: "bypass" },
});

/** Three of the others, by turns, so that each is moved from and to. DeepSeek's forks wait for seconds: one move is enough
 *  to see that its spelling is left behind. */
const targetsOf = (from: Side): readonly Side[] => {
  const at = SIDES.indexOf(from);
  const steps = from.profile === "deepseek" ? [1] : [1, 3, 6];
  return steps.flatMap((step) => SIDES[(at + step) % SIDES.length] ?? []);
};

for (const from of SIDES)
  test(`a session with forks that began with ${from.profile} (${from.model}) continues with other providers`, async () => {
    const ends: Record<string, string> = {};
    for (const to of targetsOf(from)) {
      using folder = scratch();
      for (const name of ["work", "home"]) mkdirSync(folder.at(name));
      await using first = await startSimulator({ provider: from.rules, script });
      await using second = await startSimulator({ provider: to.rules, script });
      const session = await createSession(optionsFor(from, first, (path) => folder.at(path)));
      const { text } = await session.prompt("Look at all parts.").result();
      await session.close();
      assert.equal(text, "All is done.");
      await using again = await resumeSession(
        session.id,
        optionsFor(to, second, (path) => folder.at(path)),
      );
      const { end, reason, text: said } = await again.prompt("and now?").result();
      ends[`${to.profile} ${to.model}`] = end === "done" ? said : reason;
    }
    const expected = targetsOf(from).map(({ profile, model }) => [`${profile} ${model}`, "I go on."]);
    assert.deepEqual(ends, Object.fromEntries(expected));
  });
