/** Ten simulated providers on one machine: the same script, each with its own wire format, cache and bill. */

import assert from "node:assert/strict";
import { GoogleGenAI } from "@google/genai";
import {
  ManualClock,
  type ProviderName,
  providers,
  type Simulator,
  say,
  startSimulator,
  textOfTokens,
} from "@prefork/simulator";
import OpenAI from "openai";

const start = (provider: ProviderName): Promise<Simulator> =>
  startSimulator({ provider, clock: new ManualClock(), script: () => say("Hello from the script.") });

const post = async (url: string, body: object): Promise<void> => {
  const headers = { "content-type": "application/json", authorization: "Bearer any" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(response.status, 200, await response.text());
};

const reads = (sim: Simulator): readonly number[] => sim.ledger().map(({ read }) => read);

{
  // #region openai
  await using sim = await start("openai");
  const client = new OpenAI({ baseURL: `${sim.url}/v1`, apiKey: "any" });
  const ask = () => client.responses.create({ model: "gpt-6-sol", instructions: textOfTokens(2_000), input: "Hello?" });
  await ask();
  const { usage } = await ask(); // the end of the user's message was written, at 1.25 of the input price
  assert.deepEqual(usage?.input_tokens_details.cached_tokens, 2_002);
  // #endregion
}

{
  // #region openai-legacy
  await using sim = await start("openai-legacy");
  const client = new OpenAI({ baseURL: `${sim.url}/v1`, apiKey: "any" });
  const messages = [{ role: "user" as const, content: textOfTokens(2_000) }];
  for (let turn = 0; turn < 2; turn += 1) await client.chat.completions.create({ model: "gpt-5.4", messages });
  assert.deepEqual(reads(sim), [0, 1_920]); // whole steps of 128 tokens, from 1,024 on
  // #endregion
}

{
  // #region gemini
  await using sim = await start("gemini");
  const ai = new GoogleGenAI({ apiKey: "any", httpOptions: { baseUrl: sim.url } });
  const ask = () => ai.models.generateContent({ model: "gemini-3.8-flash", contents: textOfTokens(5_000) });
  await ask();
  assert.equal((await ask()).usageMetadata?.cachedContentTokenCount, 5_000); // cached automatically, from 4,096 on
  // #endregion
}

{
  // #region gemini-explicit
  await using sim = await start("gemini-explicit");
  const ai = new GoogleGenAI({ apiKey: "any", httpOptions: { baseUrl: sim.url } });
  const model = "gemini-3.8-flash";
  const held = await ai.caches.create({ model, config: { contents: textOfTokens(5_000), ttl: "3600s" } });
  const config = { cachedContent: held.name ?? "" };
  const { usageMetadata } = await ai.models.generateContent({ model, contents: "Hello?", config });
  assert.equal(usageMetadata?.cachedContentTokenCount, 5_000); // read from the first turn on; an hour costs 0.0025 dollars
  // #endregion
}

{
  // #region deepseek
  await using sim = await start("deepseek");
  for (const seed of [1, 2, 3]) {
    const messages = [
      { role: "system", content: textOfTokens(1_000) },
      { role: "user", content: textOfTokens(100, seed) },
    ];
    await post(`${sim.url}/chat/completions`, { model: "deepseek-flash", messages });
    sim.clock.advance(2_000); // a unit takes seconds to be built
  }
  assert.deepEqual(reads(sim), [0, 0, 960]); // what two prompts share is kept for the third, in units of 64 tokens
  // #endregion
}

{
  // #region minimax
  await using sim = await start("minimax");
  const messages = [{ role: "user", content: textOfTokens(600) }];
  const body = { model: "MiniMax-M3", max_tokens: 100, messages };
  for (let turn = 0; turn < 2; turn += 1) await post(`${sim.url}/anthropic/v1/messages`, body);
  assert.deepEqual(reads(sim), [0, 600]); // cached automatically, from 512 tokens on; M2 takes markers
  // #endregion
}

{
  // #region dashscope
  await using sim = await start("dashscope");
  const marked = { type: "text", text: textOfTokens(2_000), cache_control: { type: "ephemeral" } };
  const body = { model: "qwen3.7-max", messages: [{ role: "user", content: [marked] }] };
  sim.fault({ kind: "together", times: 2 });
  const url = `${sim.url}/compatible-mode/v1/chat/completions`;
  await Promise.all([post(url, body), post(url, body)]); // neither has completed: both write
  await post(url, body);
  assert.deepEqual(reads(sim), [0, 0, 2_000]);
  // #endregion
}

{
  // #region vllm
  await using sim = await start("vllm");
  sim.fault({ kind: "together", times: 2 });
  const messages = [{ role: "user", content: textOfTokens(1_000) }];
  const url = `${sim.url}/v1/chat/completions`;
  await Promise.all([1, 2].map(() => post(url, { model: "local", messages })));
  assert.deepEqual(reads(sim), [0, 992]); // siblings of one batch share full blocks of 16 tokens
  // #endregion
}

{
  // #region llamacpp
  await using sim = await start("llamacpp");
  sim.fault({ kind: "together", times: 2 });
  const messages = [{ role: "user", content: textOfTokens(1_000) }];
  const url = `${sim.url}/v1/chat/completions`;
  await Promise.all([1, 2].map(() => post(url, { model: "local", messages })));
  assert.deepEqual(reads(sim), [0, 0]); // two slots, which share nothing
  await post(url, { model: "local", messages });
  assert.equal(reads(sim)[2], 999); // the same slot again: all but the last token
  // #endregion
}

console.table(providers.map(({ name, wires, words }) => ({ rules: name, wires: wires.join(", "), words })));
