/** While a parent waits for its children, its cache entry is held as long as that is cheaper than losing it. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { callTools, type SimRequest, say, startSimulator, textOfTokens, toolResults } from "@prefork/wire/simulator";
import { anthropicEngine, createSession, type RuntimeEvent, type SessionOptions } from "../../src/index.ts";

const isFork = ({ body }: SimRequest): boolean => JSON.stringify(body.messages).includes("fork-directive:");

const MINUTE_MS = 60_000;

/** A fork takes `minutes` for its one answer; every clock runs at once. */
const waited = async (minutes: number, more: Partial<SessionOptions> = {}) => {
  const folder = mkdtempSync(join(tmpdir(), "prefork-keep-"));
  writeFileSync(join(folder, "AGENTS.md"), textOfTokens(9_000));
  let now = 1_760_000_000_000;
  let passed = 0;
  const pass = (): void => {
    now += MINUTE_MS / 2;
    simulator.clock.advance(MINUTE_MS / 2);
    passed += 0.5;
  };
  const simulator = await startSimulator({
    script: async (request) => {
      if (isFork(request)) {
        if (toolResults(request).every(({ text }) => !text.includes("AGENTS.md")))
          return callTools([{ name: "Bash", input: { command: "ls" } }]);
        while (passed < minutes) {
          await sleep(10);
          pass();
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
    // Looks at the time in small steps, as the other clocks run by themselves.
    const sleeping = async (ms: number, signal: AbortSignal): Promise<void> => {
      for (const until = now + ms; now < until && !signal.aborted; ) await sleep(1);
    };
    const clock = { now: () => now, sleep: sleeping };
    const options = { engine, cwd: folder, home: folder, state: join(folder, ".state"), clock };
    await using session = await createSession({ ...options, permissions: { mode: "default" }, ...more });
    const exchange = session.prompt("go");
    const sent: RuntimeEvent[] = [];
    for await (const event of exchange) if (event.type === "keep_alive_sent") sent.push(event);
    const { text, usd } = await exchange.result();
    return { sent, text, usd, ledger: simulator.ledger() };
  } finally {
    await simulator.close();
    rmSync(folder, { recursive: true, force: true });
  }
};

test("a parent that waits longer than its entry lives still reads all of it afterwards", async () => {
  const { sent, text, ledger } = await waited(12);
  assert.equal(text, "all told");
  assert.ok(sent.length >= 2, `${sent.length} keep-alives`);
  const last = ledger.at(-1);
  assert.ok(last);
  assert.equal(last.read, last.expectedRead);
  assert.ok(last.read > 9_000);
});

test("switched off, or where nobody waits long, nothing is sent", async () => {
  const off = await waited(12, { forking: { keepAlive: false } });
  assert.deepEqual(off.sent, []);
  assert.equal(off.ledger.at(-1)?.read, 0);
  assert.deepEqual((await waited(2)).sent, []);
});
