/** Answers with something wrong about them, on every wire: what is still an answer counts, what is none is shown and not
 *  asked for again, and none is free of charge or without an end. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  callTools,
  type Fault,
  type ProviderName,
  type SimScript,
  type Simulator,
  say,
  startSimulator,
} from "@prefork/simulator";
import {
  anthropic,
  createClient,
  FrozenPrefix,
  gemini,
  ModelError,
  type ModelErrorReason,
  type ModelResponse,
  openaiChat,
  openaiResponses,
  type Prepared,
  type Protocol,
  prepare,
  promptTokens,
  text,
  userText,
} from "@prefork/wire";
import { type Handler, request as localRequest, startServer, steppingTiming } from "./local-server.ts";

type Subject = {
  readonly name: string;
  readonly protocol: Protocol;
  readonly provider: ProviderName;
  readonly model: string;
  readonly base: string;
};

const subjects: readonly Subject[] = [
  { name: "messages", protocol: anthropic, provider: "anthropic", model: "claude-sonnet-5", base: "" },
  { name: "responses", protocol: openaiResponses, provider: "openai", model: "gpt-6.1-sol", base: "/v1" },
  { name: "chat", protocol: openaiChat, provider: "openai", model: "gpt-6.1-sol", base: "/v1" },
  { name: "gemini", protocol: gemini, provider: "gemini", model: "gemini-3.8-flash", base: "/v1beta" },
];

const requestOf = ({ protocol, model }: Subject, { stream = true, maxTokens = 64 } = {}): Prepared => {
  const tools = [{ type: "function", name: "Read", description: "Reads.", inputSchema: { type: "object" } }] as const;
  const head = { model, tools, system: [text("You are a test. ".repeat(60))], settings: {} };
  const prefix = FrozenPrefix.open(protocol.encoder, head).append(userText("Hi"));
  return prepare({ protocol, prefix, markers: [], closing: { maxTokens, stream } });
};

const HELLO = say("Hello there, this is an answer.");

type Ground = AsyncDisposable & {
  readonly sim: Simulator;
  readonly waits: readonly number[];
  readonly send: (prepared?: Prepared) => Promise<ModelResponse>;
};

const ground = async (subject: Subject, script: SimScript = () => HELLO): Promise<Ground> => {
  const sim = await startSimulator({ provider: subject.provider, script });
  const timing = { ...steppingTiming(), date: () => Date.UTC(2026, 10, 15, 9, 30) };
  const client = createClient({
    baseUrl: `${sim.url}${subject.base}`,
    credential: { kind: "api-key", value: "key-of-nobody" },
    timing,
  });
  return {
    sim,
    waits: timing.waits,
    send: (prepared = requestOf(subject)) => client.send(prepared),
    [Symbol.asyncDispose]: async () => {
      client.close();
      await sim[Symbol.asyncDispose]();
    },
  };
};

const failing = async (sent: Promise<unknown>): Promise<ModelError> => {
  const error = await sent.then(
    () => assert.fail("it was answered"),
    (caught: unknown) => caught,
  );
  assert.ok(error instanceof ModelError, String(error));
  return error;
};

const textOf = ({ message }: ModelResponse): string =>
  message.content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("");

for (const subject of subjects) {
  const { name } = subject;

  // Gemini has no event of its own at the end: its last chunk has the last words.
  if (name !== "gemini")
    // On Responses the reason to stop is in the last event: after a reset nobody knows whether more was to come.
    for (const end of ["closed", "reset"] as const)
      if (name !== "responses" || end === "closed")
        test(`${name}: an answer that only lacks its last event counts, the stream ${end}`, async () => {
          await using at = await ground(subject);
          at.sim.fault({ kind: "no-last-event", end });
          const response = await at.send();
          assert.deepEqual([textOf(response), response.stop], ["Hello there, this is an answer.", "end"]);
          assert.ok(promptTokens(response.usage) > 0 && response.usage.output > 0, JSON.stringify(response.usage));
          assert.equal(at.sim.ledger().length, 1);
        });

  const forms: readonly (Fault & { readonly kind: "usage" })["form"][] = [
    "missing",
    "null",
    "text",
    "negative",
    "zero",
    "prompt-only",
    "output-only",
  ];
  test(`${name}: figures that the provider does not send as numbers are estimated, and marked as estimated`, async () => {
    await using at = await ground(subject);
    const { usage: right } = await at.send();
    assert.equal(right.estimated, undefined);
    for (const stream of [true, false])
      for (const form of forms) {
        at.sim.fault({ kind: "usage", form });
        const { usage } = await at.send(requestOf(subject, { stream }));
        const close = (counted: number, real: number): boolean => counted >= real * 0.5 && counted <= real * 3;
        assert.ok(close(promptTokens(usage), promptTokens(right)), `${form}: ${JSON.stringify(usage)}`);
        assert.ok(close(usage.output, right.output), `${form}: ${JSON.stringify(usage)}`);
        assert.ok((usage.estimated ?? 0) > 0, `${form} is not marked: ${JSON.stringify(usage)}`);
      }
  });

  test(`${name}: a page, other JSON or plain text with status 200 is quoted and not retried`, async () => {
    await using at = await ground(subject);
    const shown = {
      html: /web page \(text\/html.*check the base URL; it begins with "<!DOCTYPE html> <html><head><title>Sign in \[31m/,
      json: /something other than a model's answer \(application\/json\); it begins with "\{\\"code\\":0/,
      text: /something other than a model's answer \(text\/plain\); it begins with "upstream is being updated"/,
    } as const;
    for (const form of ["html", "json", "text"] as const) {
      at.sim.fault({ kind: "not-an-answer", form, times: 6 });
      const { message, requestId, reason } = await failing(at.send());
      assert.match(message, shown[form]);
      assert.match(message, /\(request id req_sim/);
      assert.deepEqual([reason.kind, requestId?.startsWith("req_sim")], ["malformed-response", true]);
      at.sim.reset();
    }
    assert.deepEqual(at.waits, []);
  });

  test(`${name}: an answer in an encoding that Node knows is read, any other is quoted and not retried`, async () => {
    await using at = await ground(subject);
    for (const stream of [true, false])
      for (const encoding of ["gzip", "deflate", "br", "zstd"] as const) {
        at.sim.fault({ kind: "encoded", encoding });
        assert.equal(textOf(await at.send(requestOf(subject, { stream }))), "Hello there, this is an answer.");
      }
    const before = at.sim.ledger().length;
    for (const encoding of ["damaged", "unknown"] as const) {
      at.sim.fault({ kind: "encoded", encoding, times: 6 });
      const { message } = await failing(at.send());
      assert.match(
        message,
        /cannot be decoded \(content-encoding: (gzip|x-own)\); it begins with the bytes [0-9a-f]+ \(request id/,
      );
      at.sim.reset();
    }
    assert.deepEqual([before, at.waits], [8, []]);
  });

  for (const what of ["content", "line"] as const)
    test(`${name}: endless ${what} is cut and not retried`, async () => {
      await using at = await ground(subject);
      at.sim.fault({ kind: "endless", of: what, times: 6 });
      const error = await failing(at.send());
      assert.match(error.message, /^the answer was cut after .* did not stop/);
      assert.deepEqual([error.isFinal, at.sim.ledger().length], [true, 1]);
    });

  test(`${name}: a wait beyond the limit is not slept through, and the error says when to come back`, async () => {
    await using at = await ground(subject);
    const day = 86_400_000;
    for (const status of [429, 503])
      for (const retryAfterForm of ["seconds", "date"] as const) {
        at.sim.fault({ kind: "status", status, retryAfterMs: day, retryAfterForm, message: "later" });
        const { message, retryAfterMs = 0 } = await failing(at.send());
        assert.match(
          message,
          /later \(the provider asks to wait (1 d|1 d 1 s|23 h 59 min), longer than the limit of 5 min\. Try again after 2026-11-1[56] \d\d:\d\d UTC\.\)$/,
        );
        assert.ok(Math.abs(retryAfterMs - day) <= 2_000);
      }
    // Whoever comes back earlier is not kept out by us.
    assert.equal(textOf(await at.send()), "Hello there, this is an answer.");
    assert.deepEqual([at.waits, at.sim.ledger().length], [[], 5]);
  });

  test(`${name}: a used-up plan is not retried, whatever the status`, async () => {
    await using at = await ground(subject);
    const told = [
      [429, "You have insufficient_quota"],
      [400, "Your credit balance is too low to access the API."],
      [429, "billing_hard_limit_reached"],
      [403, "Insufficient Balance"],
      [429, "Your team has used all available credits"],
      [429, "You have reached your monthly spending limit"],
      [503, "payment required"],
    ] as const;
    for (const [status, message] of told) {
      at.sim.fault({ kind: "status", status, message, times: 6 });
      const error = await failing(at.send());
      assert.ok(error.message.includes(message) && error.message.includes("(request id req_sim"), error.message);
      at.sim.reset();
    }
    assert.deepEqual(at.waits, []);
  });
}

test("responses: an answer that was reset before its last event may have had more to say, and fails", async () => {
  const [, subject] = subjects;
  assert.ok(subject);
  await using at = await ground(subject);
  at.sim.fault({ kind: "no-last-event", end: "reset" });
  const { reason, afterContent } = await failing(at.send());
  assert.deepEqual([reason, afterContent], [{ kind: "connection" } satisfies ModelErrorReason, true]);
});

for (const subject of subjects)
  test(`${subject.name}: calls of an answer without its last event are complete`, async () => {
    await using at = await ground(subject, () => callTools([{ name: "Read", input: { path: "a" }, id: "call_0" }]));
    if (subject.name !== "gemini") at.sim.fault({ kind: "no-last-event" });
    const { message, stop } = await at.send();
    const calls = message.content.map((block) => (block.type === "tool_use" ? [block.name, block.input] : block.type));
    assert.deepEqual([calls, stop], [[["Read", `{"path":"a"}`]], "tool-use"]);
  });

// --- frame by frame --------------------------------------------------------------------------------------------------

const sse = (...datas: readonly string[]): string => datas.map((data) => `data: ${data}\n\n`).join("");

const sends =
  (body: string, type = "text/event-stream"): Handler =>
  ({ response }) =>
    void response.writeHead(200, { "content-type": type }).end(body);

const started = `{"type":"message_start","message":{"id":"msg_1","model":"m","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`;
const callStart = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"Read","input":{}}}`;
const callGrowth = (json: string): string =>
  JSON.stringify({ type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: json } });
const stopped = `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`;

test("a call that was not closed keeps its name and has an input that cannot run", async () => {
  for (const json of [`{"path":"a"}`, `{"path":"a`, ""]) {
    await using server = await startServer(sends(sse(started, callStart, callGrowth(json), stopped)));
    const client = createClient({ baseUrl: server.url, timing: steppingTiming() });
    const { message } = await client.send(localRequest());
    const [call] = message.content;
    assert.ok(call?.type === "tool_use" && call.name === "Read");
    assert.throws(() => JSON.parse(call.input), json);
    client.close();
  }
});

test("events with the wrong label, and a last event without its blank line, are read", async () => {
  const whole = sse(started, stopped.replace("tool_use", "end_turn"), `{"type":"message_stop"}`);
  for (const body of [whole, whole.trimEnd()])
    for (const type of ["text/plain", "application/json", "text/event-stream"]) {
      await using server = await startServer(sends(body, type));
      const client = createClient({ baseUrl: server.url, timing: steppingTiming() });
      assert.equal((await client.send(localRequest())).stop, "end");
      client.close();
    }
});

test("a page labelled as a stream is quoted and not retried", async () => {
  await using server = await startServer(sends("<html><body>Sign in</body></html>"));
  const client = createClient({ baseUrl: server.url, timing: steppingTiming() });
  const { message } = await failing(client.send(localRequest()));
  assert.match(message, /web page .* it begins with "<html><body>Sign in<\/body><\/html>"$/);
  assert.equal(server.calls.length, 1);
  client.close();
});

test("endless comments are stopped by the total timeout", async () => {
  const [subject] = subjects;
  assert.ok(subject);
  await using sim = await startSimulator({ script: () => HELLO });
  sim.fault({ kind: "endless", of: "comments" });
  const client = createClient({
    baseUrl: sim.url,
    credential: { kind: "api-key", value: "any-key" },
    timeouts: { totalMs: 300 },
  });
  const { reason } = await failing(client.send(requestOf(subject)));
  assert.ok(
    reason.kind === "malformed-response" || (reason.kind === "timeout" && reason.phase === "total"),
    JSON.stringify(reason),
  );
  client.close();
});

test("a retry reports how long it will wait", async () => {
  await using server = await startServer(
    ({ response }) => void response.writeHead(429, { "retry-after": "90" }).end("{}"),
    sends(sse(started, stopped.replace("tool_use", "end_turn"))),
  );
  const waits: number[] = [];
  const client = createClient({
    baseUrl: server.url,
    timing: steppingTiming(),
    onRetry: (_error, _attempt, waitMs) => void waits.push(waitMs),
  });
  await client.send(localRequest());
  assert.deepEqual(waits, [90_000]);
  client.close();
});
