import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  contentTokens,
  echo,
  loadScript,
  ManualClock,
  type Simulator,
  SimulatorError,
  startSimulator,
  textOfTokens,
} from "@prefork/simulator";
import { type Body, marked, post, request, row, textBlock } from "./sending.ts";

const control = async (sim: Simulator, path: string, body?: unknown): Promise<unknown> => {
  const response = await fetch(
    `${sim.url}/_sim/${path}`,
    body === undefined ? {} : { method: "POST", body: JSON.stringify(body) },
  );
  const answer = (await response.json()) as { error?: { message: string } };
  return answer.error === undefined ? answer : `${response.status} ${answer.error.message}`;
};

const body: Body = request({ messages: [{ role: "user", content: [textBlock(2_000, 1, marked)] }] });

test("another process moves the clock, queues faults, reads the ledger and resets", async () => {
  await using sim = await startSimulator({ clock: new ManualClock(1_000) });
  assert.deepEqual(await control(sim, "clock"), { nowMs: 1_000 });
  assert.deepEqual(await control(sim, "clock", { advanceMs: 300_000 }), { nowMs: 301_000 });
  assert.deepEqual(await control(sim, "clock", { setMs: 5_000 }), { nowMs: 5_000 });
  assert.deepEqual(
    await control(sim, "faults", [
      { kind: "status", status: 529 },
      { kind: "latency", latencyMs: 1 },
    ]),
    { queued: 2 },
  );
  assert.equal((await post(sim, body)).status, 529);
  await row(sim, body);
  const { rows } = (await control(sim, "ledger?since=1")) as { rows: unknown[] };
  assert.deepEqual(rows, JSON.parse(JSON.stringify(sim.ledger(1))));
  assert.deepEqual(await control(sim, "reset", {}), { reset: true });
  assert.deepEqual(await control(sim, "ledger"), { rows: [] });
  assert.equal((await row(sim, body)).read, 0);
});

test("a stream that is open at a reset ends properly and leaves no trace in what follows", async () => {
  const { promise: hold, resolve: letGo } = Promise.withResolvers<void>();
  const answers = [{ content: [{ type: "text" as const, text: "old" }], hold }];
  await using sim = await startSimulator({ script: () => answers.shift() ?? { content: [], outputTokens: 0 } });
  const open = post(sim, { ...body, stream: true });
  while (sim.ledger().length === 0) await new Promise(setImmediate);
  sim.reset();
  const fresh = await row(sim, body);
  letGo();
  assert.match(await (await open).text(), /message_stop/);
  assert.deepEqual(sim.ledger(), [fresh]);
  assert.equal(fresh.read, 0);
});

test("an invalid control request is refused in one line that says what is wrong", async () => {
  await using sim = await startSimulator();
  assert.equal(await control(sim, "clock", { advanceMs: "soon" }), "400 clock.advanceMs: expected milliseconds from 0");
  assert.equal(await control(sim, "clock", {}), '400 clock: expected {"advanceMs": n} or {"setMs": n}');
  assert.match(
    String(await control(sim, "faults", { kind: "flood" })),
    /^400 fault\.kind: expected one of status, reset, /,
  );
  assert.equal(await control(sim, "faults", { kind: "status" }), "400 fault.status: required for status");
  assert.equal(
    await control(sim, "faults", { kind: "status", status: 200 }),
    "400 fault.status: expected a status from 400 to 599",
  );
  assert.equal(
    await control(sim, "faults", { kind: "reset", often: true }),
    "400 fault.often: unknown field for reset",
  );
  assert.equal(await control(sim, "ledger?since=x"), "400 ledger.since: expected a sequence number");
  assert.equal(await control(sim, "nothing"), "404 control: no such endpoint: GET /_sim/nothing");
});

test("it listens on loopback only, and a port in use is one line", async () => {
  await using sim = await startSimulator();
  const port = Number(new URL(sim.url).port);
  await assert.rejects(
    startSimulator({ port }),
    (error: unknown) =>
      error instanceof SimulatorError &&
      error.kind === "port-in-use" &&
      error.message === `port ${port} is already in use on 127.0.0.1`,
  );
  const host = "0.0.0.0" as "127.0.0.1";
  await assert.rejects(startSimulator({ host }), {
    kind: "not-loopback",
    message: "host 0.0.0.0: the simulator listens on loopback only",
  });
  await assert.rejects(
    startSimulator({ port: 70_000 }),
    (error: unknown) => error instanceof SimulatorError && error.kind === "listen",
  );
});

test("bodies are stored as received, without credentials, and only on request", async () => {
  await using keeping = await startSimulator({ keepBodies: true });
  const sent = '{ "model":"claude-sonnet-5",  "max_tokens":1.0e1, "messages":[{"role":"user","content":"\\u00e9"}] }';
  await post(keeping, sent, { headers: { "x-custom": "yes" } });
  const [kept] = keeping.requests();
  assert.equal(kept?.body.toString(), sent);
  assert.equal(kept?.headers["x-custom"], "yes");
  assert.equal(kept?.headers["x-api-key"], undefined);
  await using usual = await startSimulator();
  await post(usual, sent);
  assert.deepEqual(usual.requests(), []);
});

test("a script comes from a file by name or by default; what is wrong with the file is one line", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "sim-script-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = async (name: string, source: string): Promise<string> => {
    await writeFile(join(folder, name), source);
    return join(folder, name);
  };
  const named = await file(
    "named.mjs",
    'export const script = () => ({ content: [{ type: "text", text: "named" }] });',
  );
  const byDefault = await file(
    "default.ts",
    'export default (): object => ({ content: [{ type: "text", text: "default" }] });',
  );
  for (const [path, text] of [
    [named, "named"],
    [byDefault, "default"],
  ] as const) {
    await using sim = await startSimulator({ script: await loadScript(path) });
    const answer = (await (await post(sim, body)).json()) as { content: { text: string }[] };
    assert.equal(answer.content[0]?.text, text);
  }
  const nothing = await file("nothing.mjs", "export const other = 1;");
  const broken = await file("broken.mjs", "export const script = (");
  const wrong = [
    [nothing, "exports no function named `script` and no default function"],
    [broken, "Unexpected end of input"],
    [join(folder, "absent.mjs"), "no such file"],
    [join(folder, "script.txt"), "expected a .ts, .js or .mjs file"],
  ] as const;
  for (const [path, reason] of wrong)
    await assert.rejects(
      loadScript(path),
      (error: unknown) =>
        error instanceof SimulatorError &&
        error.message.startsWith(`script ${path}: `) &&
        error.message.includes(reason) &&
        !error.message.includes("\n"),
    );
});

test("the default rule counts four bytes a token, and text of n tokens has n", () => {
  const count = (text: string): number => contentTokens({ kind: "text", text, images: 0, documents: 0 });
  assert.deepEqual(["", "a", "abcd", "abcde", "é€"].map(count), [0, 1, 1, 2, 2]);
  for (const tokens of [0, 1, 7, 700, 100_000]) assert.equal(count(textOfTokens(tokens, 3)), tokens);
  assert.equal(textOfTokens(50, 4), textOfTokens(50, 4));
  assert.notEqual(textOfTokens(50, 4), textOfTokens(50, 5));
  assert.throws(() => textOfTokens(-1), RangeError);
});

test("another token rule can be injected", async () => {
  await using sim = await startSimulator({ tokenRule: (block) => (block.kind === "text" ? 7 : 11) });
  assert.equal((await row(sim, { ...body, tools: [{ name: "t", input_schema: {} }] })).promptTokens, 18);
});

test("echo answers with the last user text", async () => {
  await using sim = await startSimulator({ script: echo });
  const answer = (await (await post(sim, request({ messages: [{ role: "user", content: "say this" }] }))).json()) as {
    content: { text: string }[];
  };
  assert.equal(answer.content[0]?.text, "say this");
});

test("a thousand streams can be open at once", async () => {
  const { promise: hold, resolve: letGo } = Promise.withResolvers<void>();
  await using sim = await startSimulator({ script: () => ({ content: [{ type: "text", text: "done" }], hold }) });
  const streams = Array.from({ length: 1_000 }, async () => {
    const response = await post(sim, { ...body, stream: true });
    return response.text();
  });
  while (sim.ledger().length < 1_000) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(sim.ledger().every(({ outcome }) => outcome === "open"));
  letGo();
  const texts = await Promise.all(streams);
  assert.ok(texts.every((text) => text.endsWith('data: {"type":"message_stop"}\n\n')));
  assert.ok(sim.ledger().every(({ outcome }) => outcome === "complete"));
});
