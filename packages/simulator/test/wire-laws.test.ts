/** What no body and no conversation may break, whoever is simulated. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type ProviderName, providerRules, providers } from "@prefork/simulator";
import fc from "fast-check";
import { spoken } from "./spoken.ts";
import {
  assistant,
  type Body,
  chat,
  geminiPath,
  paths,
  rowOf,
  type Sent,
  send,
  started,
  system,
  user,
} from "./wire-sending.ts";

/** Places of all values in a body, the body itself left out. */
const placesIn = (value: unknown, at: readonly string[] = []): readonly (readonly string[])[] =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([key, item]) => [[...at, key], ...placesIn(item, [...at, key])]);

const replaced = (value: unknown, [key = "", ...below]: readonly string[], by: unknown): unknown => {
  const copy = Array.isArray(value) ? [...value] : { ...(value as object) };
  const fields = copy as Record<string, unknown>;
  if (below.length > 0) fields[key] = replaced(fields[key], below, by);
  else if (by === undefined) delete fields[key];
  else fields[key] = by;
  return copy;
};

const strange = fc.oneof(
  fc.constant(undefined),
  fc.constantFrom(null, "", 0, -1, 1e308, true, [], {}, "call_1", "user", { type: "text" }, [[]], [null]),
  fc.jsonValue({ maxDepth: 2 }),
);

for (const { wire, provider, ask } of spoken)
  test(`${wire}: any body is answered or refused in one line, and never breaks the provider`, async () => {
    await using sim = await started(provider);
    const { path, body } = ask("words", false);
    const places = placesIn(body);
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...places), strange, async (place, by) => {
        const response = await send(sim, { path, body: replaced(body, place, by) as Body });
        const said = await response.text();
        assert.ok(response.status === 200 || response.status === 400, `${place.join(".")}: ${response.status} ${said}`);
        if (response.status === 400) assert.match(JSON.parse(said).error.message, /^[^\n\r]+$/);
      }),
      { numRuns: 250, seed: 11 },
    );
  });

/** A conversation as numbers, on the wire that the provider speaks first. */
const turn = fc.record({ tokens: fc.integer({ min: 1, max: 3_000 }), seed: fc.integer({ min: 0, max: 2 }) });
type Turn = typeof turn extends fc.Arbitrary<infer T> ? T : never;

const sentTo: Readonly<Record<string, (provider: ProviderName, head: Turn, turns: readonly Turn[]) => Sent>> = {
  messages: (provider, head, turns) => ({
    path: paths.messages,
    body: {
      model: modelOf(provider),
      max_tokens: 64,
      cache_control: { type: "ephemeral" },
      system: [{ type: "text", text: system(head.tokens, head.seed).content }],
      messages: spokenTurns(turns),
    },
  }),
  chat: (provider, head, turns) => chat(modelOf(provider))([system(head.tokens, head.seed), ...spokenTurns(turns)]),
  responses: (provider, head, turns) => ({
    path: paths.responses,
    body: { model: modelOf(provider), input: [system(head.tokens, head.seed), ...spokenTurns(turns)] },
  }),
  gemini: (provider, head, turns) => ({
    path: geminiPath(modelOf(provider)),
    body: {
      systemInstruction: { parts: [{ text: system(head.tokens, head.seed).content }] },
      contents: spokenTurns(turns).map(({ role, content }) => ({
        role: role === "user" ? "user" : "model",
        parts: [{ text: content }],
      })),
    },
  }),
};

const modelOf = (name: ProviderName): string => providers.find((each) => each.name === name)?.defaultModel ?? "";

/** The user speaks first and last. */
const spokenTurns = (turns: readonly Turn[]): readonly Body[] =>
  turns
    .slice(0, turns.length % 2 === 1 ? turns.length : -1)
    .map(({ tokens, seed }, index) => (index % 2 === 0 ? user(tokens, seed) : assistant(tokens, seed)));

const steps = fc.array(
  fc.record({
    head: turn,
    turns: fc.array(turn, { minLength: 1, maxLength: 5 }),
    grows: fc.boolean(),
    advanceMs: fc.integer({ min: 0, max: 400_000 }),
  }),
  { minLength: 2, maxLength: 6 },
);

for (const { name, wires } of providers)
  test(`${name}: parts sum to the prompt, no read exceeds what could be read, and each loss has a cause`, async () => {
    await using sim = await started(name);
    const { cache } = providerRules(name, modelOf(name));
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        sim.reset();
        let [head, turns]: [Turn, readonly Turn[]] = [{ tokens: 1, seed: 0 }, []];
        for (const step of sequence) {
          [head, turns] = step.grows && turns.length > 0 ? [head, [...turns, ...step.turns]] : [step.head, step.turns];
          if (turns.length % 2 === 0) turns = turns.slice(0, -1);
          const row = await rowOf(sim, (sentTo[wires[0]] as (typeof sentTo)[string])(name, head, turns));
          const written = Object.values(row.written).reduce((total, tokens) => total + tokens, 0);
          assert.equal(row.read + written + row.plain, row.promptTokens);
          assert.ok(row.read <= row.expectedRead && row.expectedRead <= row.promptTokens);
          assert.ok(row.read === 0 || row.read >= Math.min(cache.minimumPrefix, row.promptTokens));
          assert.ok(row.nextRead <= row.promptTokens && row.nextRead >= row.read);
          if (row.read < row.expectedRead) assert.notEqual(row.missCause, null);
          sim.clock.advance(step.advanceMs);
        }
      }),
      { numRuns: 25, seed: 12 },
    );
  });

for (const { name, wires } of providers)
  test(`${name}: the same request again reads what the first one said it would`, async () => {
    await using sim = await started(name);
    await fc.assert(
      fc.asyncProperty(turn, fc.array(turn, { minLength: 1, maxLength: 3 }), async (head, turns) => {
        sim.reset();
        const odd = turns.length % 2 === 1 ? turns : turns.slice(0, -1);
        const sent = (sentTo[wires[0]] as (typeof sentTo)[string])(name, head, odd);
        const { nextRead } = await rowOf(sim, sent);
        sim.clock.advance(10_000);
        assert.equal((await rowOf(sim, sent)).read, nextRead);
      }),
      { numRuns: 25, seed: 13 },
    );
  });
