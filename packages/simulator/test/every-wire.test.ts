/** What holds on every wire alike: scripts, faults, the ledger, holding a stream open. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  callTools,
  lastUserText,
  type ProviderName,
  type SimRequest,
  type Simulator,
  say,
  textOfTokens,
  think,
  toolNames,
  toolResults,
} from "@prefork/simulator";
import { gemini, messages, responses, spoken } from "./spoken.ts";
import { type Sent, send, started } from "./wire-sending.ts";

/** The events of a stream that came to its end, as far as they are JSON. */
const eventsOf = (stream: string): readonly Record<string, never>[] =>
  stream
    .split("\n\n")
    .flatMap((frame) => frame.split("\n").filter((line) => line.startsWith("data: {")))
    .flatMap((line) => {
      try {
        return [JSON.parse(line.slice("data: ".length)) as Record<string, never>];
      } catch {
        return [];
      }
    });

const asked = async (sim: Simulator, sent: Sent): Promise<string> => (await send(sim, sent)).text();

for (const { wire, provider, ask, textIn } of spoken) {
  test(`${wire}: a script that is written once reads the same words`, async () => {
    const seen: unknown[] = [];
    await using sim = await started(provider, {
      script: (request: SimRequest) => {
        seen.push({
          results: toolResults(request),
          text: lastUserText(request),
          tools: toolNames(request),
          wire: request.wire,
          isSent: request.sent !== undefined,
          maxTokens: request.body.max_tokens,
          roles: (request.body.messages as readonly { role: string }[]).map(({ role }) => role),
        });
        return say("fine");
      },
    });
    for (const turn of ["question", "results", "words"] as const) await asked(sim, ask(turn, false));
    const common = {
      tools: ["Read", "Grep"],
      wire: wire === "messages" ? undefined : wire,
      isSent: wire !== "messages",
      maxTokens: 500,
    };
    const result = { toolUseId: "call_1", text: "42 lines", isError: false };
    const three = ["user", "assistant", "user"];
    assert.deepEqual(seen, [
      { ...common, results: [], text: "read a.ts", roles: ["user"] },
      { ...common, results: [result], text: "", roles: three },
      wire === "messages"
        ? { ...common, results: [], text: "and now?", roles: [...three, "user"] }
        : { ...common, results: [result], text: "and now?", roles: three },
    ]);
  });

  test(`${wire}: answers with thinking, text and calls arrive, streamed and whole, and count the same`, async () => {
    const answer = think("hmm", callTools([{ name: "Read", input: { path: "b" } }], "I look at it. 🌲"));
    await using sim = await started(provider, { script: () => answer });
    const whole = await asked(sim, ask("question", false));
    const events = eventsOf(await asked(sim, ask("question", true)));
    assert.equal(events.map(textIn).join(""), "I look at it. 🌲");
    assert.match(whole, /I look at it\. 🌲/);
    assert.match(whole, /"name":"Read"/);
    const [first, second] = sim.ledger();
    assert.deepEqual([first?.outcome, second?.outcome], ["complete", "complete"]);
    assert.equal(first?.output, 9);
    assert.equal(second?.output, 9);
    assert.ok((second?.promptTokens ?? 0) > 5_000);
  });

  test(`${wire}: every fault breaks an answer in the same way, and the ledger says so`, async () => {
    await using sim = await started(provider, { script: () => say(textOfTokens(40)) });
    const stream = ask("question", true);
    sim.fault({ kind: "status", status: 503 });
    assert.equal((await send(sim, stream)).status, 503);
    sim.fault({ kind: "reset" });
    await assert.rejects(send(sim, stream));
    sim.fault({ kind: "reset-mid-stream", afterEvents: 2 });
    await assert.rejects(asked(sim, stream));
    sim.fault({ kind: "error-mid-stream", moment: "before-content" });
    const before = await asked(sim, stream);
    assert.equal(eventsOf(before).map(textIn).join(""), "");
    assert.match(before, /Overloaded/);
    sim.fault({ kind: "error-mid-stream", moment: "after-content" });
    const after = await asked(sim, stream);
    assert.equal(eventsOf(after).map(textIn).join(""), textOfTokens(40));
    assert.match(after, /Overloaded/);
    sim.fault({ kind: "truncated-json" });
    const lines = (await asked(sim, stream)).trimEnd().split("data: ");
    assert.throws(() => JSON.parse(lines.at(-1) ?? ""), "the last event stops in the middle");
    sim.fault({ kind: "truncated-json" });
    const cut = await asked(sim, ask("question", false));
    assert.throws(() => JSON.parse(cut));
    assert.deepEqual(
      sim.ledger().map(({ outcome, output }) => [outcome, output]),
      [
        ["refused", 0],
        ["interrupted", 0],
        ["interrupted", 0],
        ["interrupted", 0],
        ["interrupted", wire === "messages" || wire === "responses" ? 0 : 40],
        ["interrupted", 0],
        ["interrupted", 40],
      ],
    );
  });

  test(`${wire}: ids that repeat can be asked for`, async () => {
    await using sim = await started(provider, { script: () => callTools([{ name: "Read" }, { name: "Grep" }]) });
    sim.fault({ kind: "wrong-ids" });
    const answer = await asked(sim, ask("question", false));
    assert.equal(answer.match(/"(?:toolu|call)_wrong"/g)?.length, 2);
  });

  test(`${wire}: a stream stays open as long as the script says, and a client that disconnects ends it`, async () => {
    const { promise: hold, resolve } = Promise.withResolvers<void>();
    await using sim = await started(provider, { script: () => ({ ...say("at last"), hold }) });
    const response = await send(sim, ask("question", true));
    assert.equal(response.status, 200, "it has begun");
    resolve();
    assert.equal(
      eventsOf(await response.text())
        .map(textIn)
        .join(""),
      "at last",
    );
    await using other = await started(provider, {
      script: () => ({ ...say("never"), hold: new Promise(() => undefined) }),
    });
    const left = await send(other, ask("question", true));
    await left.body?.cancel();
    while (other.ledger()[0]?.outcome === "open") await new Promise((done) => setImmediate(done));
    assert.equal(other.ledger()[0]?.outcome, "aborted");
  });

  test(`${wire}: without a key, with a body that is not JSON, or on a path of another wire, the provider refuses in its own error format`, async () => {
    await using sim = await started(provider);
    const { path, body } = ask("question", false);
    const post = (to: string, text: string, key?: string) =>
      fetch(`${sim.url}${to}`, {
        method: "POST",
        headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
        body: text,
      });
    const refusals = [
      await post(path, JSON.stringify(body)),
      await post(path, "{", "k"),
      await post(path, "[]", "k"),
      await post("/v1/nothing", "{}", "k"),
    ];
    assert.deepEqual(
      refusals.map(({ status }) => status),
      [wire === "gemini" ? 403 : 401, 400, 400, 404],
    );
    for (const refusal of refusals) {
      const { error } = (await refusal.json()) as { error: { message: string } };
      assert.match(error.message, /^[^\n]+$/);
    }
  });

  test(`${wire}: what the wire cannot say is the script's mistake`, async () => {
    await using sim = await started(provider, {
      script: () => ({ content: [{ type: "web_search_tool_result", content: [] }] }),
    });
    const response = await send(sim, ask("question", false));
    if (wire === "messages") assert.equal(response.status, 200);
    else {
      assert.equal(response.status, 500);
      assert.match(
        await response.text(),
        /script: answer\.content\[0\]\.type: web_search_tool_result cannot be said on this wire/,
      );
    }
  });
}

test("a wire that a provider does not have is not there", async () => {
  await using sim = await started("openai");
  assert.equal((await send(sim, messages.ask("question", false))).status, 404);
  await using other = await started("anthropic");
  assert.equal((await send(other, responses.ask("question", false))).status, 404);
});

test("a key in the address is never stored", async () => {
  await using sim = await started("gemini", { keepBodies: true });
  const { path, body } = gemini.ask("question", false);
  await fetch(`${sim.url}${path}?key=secret&alt=json`, { method: "POST", body: JSON.stringify(body) });
  assert.deepEqual(
    sim.requests().map((request) => request.path),
    [`${path}?alt=json`],
  );
  assert.doesNotMatch(JSON.stringify(sim.requests().map(({ headers }) => headers)), /secret/);
});

test("there are no rules of that name", async () => {
  await assert.rejects(started("acme" as ProviderName), {
    name: "SimulatorError",
    message:
      "provider acme: no such rules; there are anthropic, openai, openai-legacy, gemini, gemini-explicit, deepseek, minimax, dashscope, vllm, llamacpp",
  });
});
