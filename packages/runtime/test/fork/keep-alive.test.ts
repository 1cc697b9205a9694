/** While a parent waits for its children, its cache entry is kept alive as long as that is cheaper than losing it. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { callTools, type SimRequest, say, startSimulator, textOfTokens, toolResults } from "@prefork/simulator";
import { hideBwrap } from "@prefork/testing/optional";
import { anthropicEngine, createSession, type RuntimeEvent, type SessionOptions } from "../../src/index.ts";

hideBwrap();

const isFork = ({ body }: SimRequest): boolean => JSON.stringify(body.messages).includes("fork-directive:");

const MINUTE_MS = 60_000;

/** Time that passes only while somebody sleeps on it: whoever works, works outside of time, however long it takes. */
const steppedClock = (start: number) => {
  const sleepers = new Set<{ readonly until: number; readonly wake: () => void }>();
  let now = start;
  return {
    now: () => now,
    sleep: (ms: number, signal: AbortSignal): Promise<void> =>
      new Promise((done) => {
        const wake = (): void => {
          sleepers.delete(sleeper);
          done();
        };
        const sleeper = { until: now + ms, wake };
        sleepers.add(sleeper);
        if (signal.aborted) wake();
        else signal.addEventListener("abort", wake, { once: true });
      }),
    pass: (ms: number): void => {
      now += ms;
      for (const { until, wake } of [...sleepers]) if (until <= now) wake();
    },
    isSleptOn: () => sleepers.size > 0,
  };
};

/** A fork takes `minutes` for its one answer; every clock runs at once. */
const waited = async (minutes: number, more: Partial<SessionOptions> = {}) => {
  const folder = mkdtempSync(join(tmpdir(), "prefork-keep-"));
  writeFileSync(join(folder, "AGENTS.md"), textOfTokens(9_000));
  const { pass, isSleptOn, ...clock } = steppedClock(1_760_000_000_000);
  const { keepAlive = true } = more.forking ?? {};
  const parentWaits = Promise.withResolvers<void>();
  const simulator = await startSimulator({
    script: async (request) => {
      if (isFork(request)) {
        if (toolResults(request).every(({ text }) => !text.includes("AGENTS.md")))
          return callTools([{ name: "Bash", input: { command: "ls" } }]);
        await parentWaits.promise;
        for (let passed = 0; passed < minutes; passed += 0.5) {
          while (keepAlive && !isSleptOn()) await sleep(1);
          simulator.clock.advance(MINUTE_MS / 2);
          pass(MINUTE_MS / 2);
        }
        return say("Scope: one\nResult: late");
      }
      if (JSON.stringify(request.body.messages).includes("task-notification")) return say("all told");
      if (toolResults(request).length > 0) return say("I wait.");
      return callTools([{ name: "Agent", input: { description: "one", prompt: "one" } }]);
    },
  });
  try {
    const engine = anthropicEngine({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } });
    const options = { engine, cwd: folder, home: folder, state: join(folder, ".state"), clock };
    await using session = await createSession({ ...options, permissions: { mode: "default" }, ...more });
    const exchange = session.prompt("go");
    const sent: RuntimeEvent[] = [];
    for await (const event of exchange) {
      if (event.type === "keep_alive_sent") sent.push(event);
      if (event.agent === "main" && event.type === "text_entered") parentWaits.resolve();
    }
    const { text, usd } = await exchange.result();
    return { sent, text, usd, ledger: simulator.ledger() };
  } finally {
    await simulator.close();
    rmSync(folder, { recursive: true, force: true });
  }
};

test("a parent that waits longer than its cache entry's lifetime still reads all of it afterwards", async () => {
  const { sent, text, ledger } = await waited(12);
  assert.equal(text, "all told");
  assert.equal(sent.length, 2); // at 4.5 and at 9 of 12 minutes
  const last = ledger.at(-1);
  assert.ok(last);
  assert.equal(last.read, last.expectedRead);
  assert.ok(last.read > 9_000);
});

test("no keep-alive is sent if they are turned off or the wait is short", async () => {
  const off = await waited(12, { forking: { keepAlive: false } });
  assert.deepEqual(off.sent, []);
  assert.equal(off.ledger.at(-1)?.read, 0);
  assert.deepEqual((await waited(2)).sent, []);
});
