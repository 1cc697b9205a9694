import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesOf, type ClientOptions, createClient, ModelError, type ModelEvent } from "../src/index.ts";
import { Backoff, defaultRetry, systemTiming } from "../src/send/client.ts";
import {
  answers,
  begin,
  done,
  frames,
  type Handler,
  manualTiming,
  refuses,
  request,
  resets,
  startServer,
  steppingTiming,
} from "./local-server.ts";

/** Sends once through the given failures, and says what was waited for and told. */
const sentThrough = async (failures: readonly Handler[], options: Partial<ClientOptions> = {}) => {
  const told: string[] = [];
  const waits: (readonly number[])[] = [];
  for (const stream of [true, false]) {
    await using server = await startServer(...failures, answers);
    const timing = steppingTiming();
    const prepared = request("the same bytes, é", { stream });
    const { send } = createClient({
      baseUrl: server.url,
      timing,
      onRetry: (error, attempt) => told.push(`${attempt}: ${error.message}`),
      ...options,
    });
    assert.deepEqual(await send(prepared), done);
    assert.equal(server.calls.length, failures.length + 1);
    for (const { body } of server.calls) assert.equal(Buffer.compare(body, bytesOf(prepared)), 0);
    waits.push(timing.waits);
  }
  assert.deepEqual(waits[0], waits[1], "a stream and a whole answer wait alike");
  return { waits: waits[0], told: told.slice(0, failures.length) };
};

test("429 and 529 with retry-after are retried after at least that time, with the same bytes", async () => {
  const limited = refuses(429, { "retry-after": "2" });
  const overloaded = refuses(529, { "retry-after": "3" });
  assert.deepEqual(await sentThrough([limited, overloaded]), {
    waits: [2_000, 3_000],
    told: ["1: some_error: told 429", "2: some_error: told 529"],
  });
});

test("retry-after is a floor and never shortens a back-off", async () => {
  const soon = refuses(429, { "retry-after-ms": "1" });
  assert.deepEqual((await sentThrough([soon, soon, soon])).waits, [375, 750, 1_500]);
});

test("retry-after in milliseconds and as a date", async () => {
  const exact = refuses(429, { "retry-after-ms": "1234", "retry-after": "9" });
  const date = refuses(529, {
    date: "Thu, 01 Jan 2026 00:00:00 GMT",
    "retry-after": "Thu, 01 Jan 2026 00:00:45 GMT",
  });
  assert.deepEqual((await sentThrough([exact, date])).waits, [1_234, 45_000]);
});

test("a server error and a reset before the headers are retried with the same bytes", async () => {
  const { waits, told } = await sentThrough([refuses(500), resets]);
  assert.deepEqual(waits, [375, 750]);
  assert.match(told[1] ?? "", /^2: the connection failed: /);
});

test("a stream that breaks before its first content is retried, and starts over", async () => {
  const broken: readonly Handler[] = [
    async (call) => {
      await begin(call, [frames.start]);
      call.response.socket?.resetAndDestroy();
    },
    async (call) => {
      await begin(call, [frames.start, frames.ping, frames.error]);
      call.response.end();
    },
    async (call) => {
      await begin(call, [frames.start]);
      call.response.end();
    },
    async (call) => {
      await begin(call, [frames.start, { event: "ping", data: "{" }]);
      call.response.end();
    },
    ({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).end();
    },
  ];
  await using server = await startServer(...broken, answers);
  const prepared = request();
  const told: string[] = [];
  const { stream } = createClient({
    baseUrl: server.url,
    timing: steppingTiming(),
    onRetry: ({ reason }) => told.push(reason.kind),
  });
  const events: ModelEvent["type"][] = [];
  for await (const { type } of stream(prepared)) events.push(type);
  assert.deepEqual(told, ["connection", "overloaded", "connection", "malformed-response", "connection"]);
  assert.deepEqual(events, [
    ...Array.from({ length: 5 }, () => "response_started"),
    "block_started",
    "text_grew",
    "block_stopped",
    "response_stopped",
  ]);
  for (const { body } of server.calls) assert.equal(Buffer.compare(body, bytesOf(prepared)), 0);
  assert.equal(server.calls.length, 6);
});

test("a truncated whole answer is retried", async () => {
  const cut: Handler = ({ response }) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": "500" });
    response.write(`{"id":"msg_1"`, () => response.socket?.resetAndDestroy());
  };
  const nonsense: Handler = ({ response }) => {
    response.writeHead(200, { "content-type": "application/json" }).end(`{"id":"msg_1"`);
  };
  assert.deepEqual((await sentThrough([cut, nonsense])).waits, [375, 750]);
});

test("after the last attempt the error is thrown unchanged", async () => {
  await using server = await startServer(refuses(500));
  const timing = steppingTiming(1);
  const { send } = createClient({ baseUrl: server.url, timing, retry: { capMs: 1_000 } });
  await assert.rejects(send(request()), { name: "ModelError", message: "some_error: told 500", afterContent: false });
  assert.equal(server.calls.length, defaultRetry.attempts);
  // Full jitter on top: each wait is a quarter longer than the time the door is shut.
  assert.deepEqual(timing.waits, [625, 1_250, 1_250, 1_250, 1_250]);
});

test("what the provider calls final is not retried", async () => {
  await using server = await startServer(refuses(529, { "x-should-retry": "false" }));
  const timing = steppingTiming();
  const { send } = createClient({ baseUrl: server.url, timing });
  await assert.rejects(send(request()), { reason: { kind: "overloaded", status: 529 }, retryable: false });
  assert.deepEqual([server.calls.length, timing.waits], [1, []]);
});

test("abort during the back-off ends the wait and sends nothing more", async () => {
  await using server = await startServer(refuses(429, { "retry-after": "300" }));
  const { promise: waiting, resolve: waits } = Promise.withResolvers<void>();
  const abort = new AbortController();
  const timing = {
    ...systemTiming,
    wait: (ms: number, signal: AbortSignal | undefined) => {
      waits();
      return systemTiming.wait(ms, signal);
    },
  };
  const sent = createClient({ baseUrl: server.url, timing }).send(request(), abort.signal);
  await waiting;
  abort.abort();
  await assert.rejects(sent, { name: "ModelError", reason: { kind: "aborted" } });
  assert.equal(server.calls.length, 1);
});

// --- one door for all ------------------------------------------------------------------------------------------------

const turns = async (count = 20): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await new Promise(setImmediate);
};

test("fifty requests on one key wait behind one back-off", async () => {
  const first = 5;
  const { promise: gathered, resolve: gather } = Promise.withResolvers<void>();
  await using server = await startServer(
    ...Array.from(
      { length: first },
      (): Handler => async (call) => {
        if (call.number === first - 1) gather();
        await gathered;
        return refuses(429, { "retry-after": "1" })(call);
      },
    ),
    answers,
  );
  const chances = Array.from({ length: 50 }, (_, index) => index / 50);
  const timing = manualTiming(() => chances.shift() ?? 0);
  const { send } = createClient({ baseUrl: server.url, timing });
  const early = Array.from({ length: first }, (_, index) => send(request(`early ${index}`)));
  await timing.waited(first);
  const late = Array.from({ length: 50 - first }, (_, index) => send(request(`late ${index}`)));
  await timing.waited(50);
  timing.advance(999);
  await turns();
  assert.equal(server.calls.length, first, "nobody knocks before the time is up");
  assert.equal(timing.waiting(), 50);
  timing.advance(1);
  await turns();
  assert.ok(server.calls.length < 50, "they do not all go in the same instant");
  timing.advance(250);
  assert.deepEqual(
    await Promise.all([...early, ...late]),
    Array.from({ length: 50 }, () => done),
  );
  assert.equal(server.calls.length, 50 + first, "each is sent once more at most");
  assert.equal(timing.waiting(), 0);
});

test("a burst of refusals counts once", async () => {
  const { promise: gathered, resolve: gather } = Promise.withResolvers<void>();
  await using server = await startServer(
    ...Array.from(
      { length: 50 },
      (): Handler => async (call) => {
        if (call.number === 49) gather();
        await gathered;
        return refuses(529)(call);
      },
    ),
    answers,
  );
  const timing = manualTiming();
  const { send } = createClient({ baseUrl: server.url, timing });
  const sent = Array.from({ length: 50 }, () => send(request()));
  await timing.waited(50);
  assert.equal(server.calls.length, 50);
  timing.advance(374);
  await turns();
  assert.equal(server.calls.length, 50);
  timing.advance(1);
  await Promise.all(sent);
  assert.equal(server.calls.length, 100);
});

const limited = (retryAfterMs?: number): ModelError =>
  new ModelError("limited", {
    kind: "rate-limited",
    status: 429,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });

test("waits grow up to the cap while failures continue, and start over after a success", async () => {
  const timing = steppingTiming();
  const door = new Backoff({ ...defaultRetry, attempts: 9, capMs: 3_000 }, timing);
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    assert.equal(door.failed(limited(), attempt), true);
    await door.waitUntilOpen(undefined);
  }
  assert.deepEqual(timing.waits, [375, 750, 1_500, 2_250, 2_250]);
  door.succeeded();
  assert.equal(door.failed(limited(), 6), true);
  await door.waitUntilOpen(undefined);
  assert.equal(timing.waits.at(-1), 375);
});

test("failures of requests that were already in flight do not lengthen the next wait", async () => {
  const timing = steppingTiming();
  const door = new Backoff(defaultRetry, timing);
  for (let request = 0; request < 50; request += 1) door.failed(limited(), 1);
  await door.waitUntilOpen(undefined);
  door.failed(limited(), 2);
  await door.waitUntilOpen(undefined);
  assert.deepEqual(timing.waits, [375, 750]);
});

test("a longer wait that is requested during a back-off also applies to those already waiting", async () => {
  const timing = manualTiming();
  const door = new Backoff(defaultRetry, timing);
  const passed: string[] = [];
  door.failed(limited(1_000), 1);
  const first = door.waitUntilOpen(undefined).then(() => passed.push("first"));
  door.failed(limited(5_000), 1);
  timing.advance(1_000);
  await turns(2);
  assert.deepEqual(passed, []);
  timing.advance(4_000);
  await first;
  assert.deepEqual(passed, ["first"]);
});

test("a wait that the provider asked for applies to the others even if the request itself gives up", async () => {
  const timing = steppingTiming();
  const door = new Backoff({ ...defaultRetry, attempts: 1 }, timing);
  assert.equal(door.failed(limited(2_000), 1), false);
  await door.waitUntilOpen(undefined);
  assert.deepEqual(timing.waits, [2_000]);
  assert.equal(door.failed(limited(), 1), false);
  assert.equal(door.failed(new ModelError("bad", { kind: "invalid-request", status: 400 }), 1), false);
  await door.waitUntilOpen(undefined);
  assert.deepEqual(timing.waits, [2_000]);
});

test("a wait longer than any timer does not fire at once", async () => {
  const warnings: Error[] = [];
  const warned = (warning: Error): unknown => warnings.push(warning);
  process.on("warning", warned);
  const abort = new AbortController();
  const waiting = systemTiming.wait(2 ** 40, abort.signal);
  const first = await Promise.race([waiting.then(() => "woke"), new Promise((go) => setTimeout(go, 30, "sleeps"))]);
  assert.equal(first, "sleeps");
  abort.abort();
  await assert.rejects(waiting, { reason: { kind: "aborted" } });
  process.off("warning", warned);
  assert.deepEqual(warnings, []);
});
