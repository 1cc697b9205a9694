import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import fc from "fast-check";
import {
  bytesOf,
  type ClientOptions,
  createClient,
  InputError,
  ModelError,
  type ModelErrorReason,
  type ModelEvent,
  type Timeouts,
} from "../src/index.ts";
import { asStream } from "./conformance/protocol-suite.ts";
import {
  answers,
  begin,
  beginning,
  done,
  ending,
  frames,
  type Handler,
  refuses,
  request,
  silent,
  startServer,
  steppingTiming,
  streams,
} from "./local-server.ts";

const client = (url: string, options: Partial<ClientOptions> = {}) =>
  createClient({ baseUrl: url, timing: steppingTiming(), ...options });

const failing = async (sent: Promise<unknown>, reason: ModelErrorReason): Promise<ModelError> => {
  const caught = await sent.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(caught instanceof ModelError, `expected a ModelError, got ${caught}`);
  assert.deepEqual(caught.reason, reason);
  return caught;
};

test("the server gets the prepared bytes and their length, streaming or not", async () => {
  await using server = await startServer(answers);
  const { send } = client(server.url);
  for (const stream of [true, false]) {
    const prepared = request('Ünï "cödé" \u0000 😀', { stream });
    assert.deepEqual(await send(prepared), done);
    const call = server.calls.at(-1);
    assert.equal(Buffer.compare(call?.body ?? Buffer.of(), bytesOf(prepared)), 0);
    assert.equal(call?.headers["content-length"], String(prepared.byteLength));
    assert.equal(call?.headers["transfer-encoding"], undefined);
  }
});

test("ten megabytes arrive as they were prepared", async () => {
  await using server = await startServer(streams);
  const prepared = request("oak elm é ".repeat(1_000_000));
  assert.ok(prepared.byteLength > 10_000_000);
  assert.deepEqual(await client(server.url).send(prepared), done);
  assert.equal(Buffer.compare(server.calls[0]?.body ?? Buffer.of(), bytesOf(prepared)), 0);
});

test("events arrive while the answer is in flight, and the whole answer at the end", async () => {
  await using server = await startServer(async (call) => {
    await begin(call, beginning);
    await shown;
    call.response.end(asStream(ending));
  });
  const { promise: shown, resolve: show } = Promise.withResolvers<void>();
  const events = client(server.url).stream(request());
  const seen: ModelEvent[] = [];
  for (;;) {
    const next = await events.next();
    if (next.done) {
      assert.deepEqual(next.value, done);
      break;
    }
    seen.push(next.value);
    if (next.value.type === "text_grew") show();
  }
  assert.deepEqual(
    seen.map(({ type }) => type),
    ["response_started", "block_started", "text_grew", "block_stopped", "response_stopped"],
  );
});

test("an answer gives the same events however the network cuts it", async () => {
  const stream = asStream([frames.ping, ...beginning, frames.ping, ...ending]);
  let cuts: readonly number[] = [];
  await using server = await startServer(async ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.socket?.setNoDelay(true);
    for (const [at, from] of [0, ...cuts].entries()) {
      response.write(stream.subarray(from, cuts[at] ?? stream.length));
      await new Promise(setImmediate);
    }
    response.end();
  });
  const { stream: open, send } = client(server.url);
  const hear = async (): Promise<readonly ModelEvent[]> => {
    const events: ModelEvent[] = [];
    assert.deepEqual(await send(request(), undefined, { onEvent: (event) => void events.push(event) }), done);
    return events;
  };
  const read = async (): Promise<readonly ModelEvent[]> => {
    const events: ModelEvent[] = [];
    for await (const event of open(request())) events.push(event);
    return events;
  };
  const expected = await read();
  assert.equal(expected.length, 5);
  const anyCuts = fc.uniqueArray(fc.integer({ min: 1, max: stream.length - 1 }), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(anyCuts, async (places) => {
      cuts = places.toSorted((a, b) => a - b);
      assert.deepEqual([await read(), await hear()], [expected, expected]);
    }),
    { numRuns: 60, seed: 8 },
  );
});

test("a key is sent as x-api-key or as bearer, with betas and the caller's own headers", async () => {
  await using server = await startServer(answers);
  const sent = async (options: Partial<ClientOptions>) => {
    await client(server.url, options).send(request());
    const {
      authorization,
      "x-api-key": key,
      "anthropic-version": version,
      "x-own": own,
    } = server.calls.at(-1)?.headers ?? {};
    return { authorization, key, version, own };
  };
  const version = "2023-06-01";
  assert.deepEqual(await sent({ credential: { kind: "api-key", value: "k" } }), {
    authorization: undefined,
    key: "k",
    version,
    own: undefined,
  });
  assert.deepEqual(await sent({ credential: { kind: "bearer", value: "t" }, headers: { "x-own": "1" } }), {
    authorization: "Bearer t",
    key: undefined,
    version,
    own: "1",
  });
});

test("the base URL may have a path, a query and trailing slashes", async () => {
  await using server = await startServer(answers);
  for (const [suffix, path] of [
    ["", "/v1/messages"],
    ["/", "/v1/messages"],
    ["//", "/v1/messages"],
    ["/anthropic", "/anthropic/v1/messages"],
    ["/gate/way/?tenant=7", "/gate/way/v1/messages?tenant=7"],
  ]) {
    await client(server.url + suffix).send(request());
    assert.equal(server.calls.at(-1)?.path, path);
  }
});

test("an invalid base URL, and a key that no header can carry, are input errors of one line", async () => {
  for (const baseUrl of ["", "api.example.com", "ftp://example.com", "http://"])
    assert.throws(() => createClient({ baseUrl }), {
      name: "InputError",
      message: "the base URL must start with http:// or https://",
    });
  assert.throws(() => createClient({ baseUrl: "https://user:secret@example.com" }), {
    name: "InputError",
    message: "the base URL must not contain a user or a password",
  });
  await using server = await startServer(answers);
  const { send } = client(server.url, { credential: { kind: "api-key", value: "secret\nline" } });
  await assert.rejects(send(request()), (error: unknown) => {
    assert.ok(error instanceof InputError);
    assert.match(error.message, /x-api-key/);
    assert.doesNotMatch(error.message, /secret|\n/);
    return true;
  });
  assert.equal(server.calls.length, 0);
});

test("consecutive streams reuse one connection, and so do whole answers", async () => {
  await using server = await startServer(answers);
  const { send } = client(server.url);
  for (const stream of [true, true, false, true]) await send(request("again", { stream }));
  assert.equal(server.connections(), 1);
});

// --- refusals --------------------------------------------------------------------------------------------------------

test("a failure that a retry cannot fix is reported once, with the provider's message", async () => {
  const kinds = [
    [400, "invalid-request"],
    [401, "authentication"],
    [403, "permission"],
    [404, "not-found"],
    [413, "too-large"],
  ] as const;
  for (const [status, kind] of kinds) {
    await using server = await startServer(refuses(status));
    const error = await failing(client(server.url).send(request()), { kind, status });
    assert.deepEqual(
      [error.message, error.requestId, error.retryable, error.afterContent],
      [`some_error: told ${status}`, "req_1", false, false],
    );
    assert.equal(server.calls.length, 1);
  }
});

test("an error after the first content is not retried and says so", async () => {
  const cases: readonly (readonly [Handler, ModelErrorReason])[] = [
    [
      async (call) => {
        await begin(call, [...beginning, frames.error]);
        call.response.end();
      },
      { kind: "overloaded", status: 529 },
    ],
    [
      async (call) => {
        await begin(call, beginning);
        call.response.socket?.resetAndDestroy();
      },
      { kind: "connection" },
    ],
    [
      async (call) => {
        await begin(call, beginning);
        call.response.end();
      },
      { kind: "connection" },
    ],
    [
      async (call) => {
        await begin(call, [...beginning, frames.end]);
        call.response.end();
      },
      { kind: "malformed-response" },
    ],
  ];
  for (const [handler, reason] of cases) {
    await using server = await startServer(handler);
    const told: string[] = [];
    const sent = client(server.url).send(request(), undefined, { onEvent: ({ type }) => void told.push(type) });
    const error = await failing(sent, reason);
    assert.deepEqual([error.afterContent, error.retryable], [true, false]);
    assert.deepEqual(told, ["response_started", "block_started", "text_grew"]);
    assert.equal(server.calls.length, 1);
  }
});

// --- abort -----------------------------------------------------------------------------------------------------------

const aborted: ModelErrorReason = { kind: "aborted" };

test("a request aborted before it is sent is not sent", async () => {
  await using server = await startServer(answers);
  const error = await failing(client(server.url).send(request(), AbortSignal.abort("no need")), aborted);
  assert.equal(error.cause, "no need");
  assert.equal(server.connections(), 0);
});

test("abort while waiting for the first byte closes the connection", async () => {
  await using server = await startServer(silent);
  const abort = new AbortController();
  const sent = failing(client(server.url).send(request(), abort.signal), aborted);
  await server.arrived(1);
  abort.abort();
  await sent;
  await server.calls[0]?.closed;
  assert.equal(server.calls.length, 1);
});

test("abort in the middle of a stream closes the connection and gives no further event", async () => {
  for (const sent of [beginning, [...beginning, ...ending]]) {
    await using server = await startServer((call) => begin(call, sent));
    const abort = new AbortController();
    const events = client(server.url).stream(request(), abort.signal);
    assert.equal((await events.next()).done, false);
    abort.abort();
    await failing(events.next(), aborted);
    await server.calls[0]?.closed;
    assert.equal(server.calls.length, 1);
  }
});

test("a listener that aborts at the first event gets no more events", async () => {
  await using server = await startServer(streams);
  const abort = new AbortController();
  const told: string[] = [];
  const hear = ({ type }: ModelEvent): void => {
    told.push(type);
    abort.abort();
  };
  await failing(client(server.url).send(request(), abort.signal, { onEvent: hear }), aborted);
  assert.deepEqual(told, ["response_started"]);
});

test("abort of an answer that had already arrived completely is still an abort", async () => {
  await using server = await startServer(streams);
  const abort = new AbortController();
  const events = client(server.url).stream(request(), abort.signal);
  assert.equal((await events.next()).done, false);
  await server.calls[0]?.closed;
  abort.abort();
  await failing(events.next(), aborted);
});

test("leaving the loop early closes the connection", async () => {
  await using server = await startServer((call) => begin(call, beginning));
  for await (const event of client(server.url).stream(request())) {
    assert.equal(event.type, "response_started");
    break;
  }
  await server.calls[0]?.closed;
});

test("fifty requests on one signal leave no listener behind and cause no warning", async () => {
  const warnings: Error[] = [];
  const warned = (warning: Error): unknown => warnings.push(warning);
  process.on("warning", warned);
  const { promise: all, resolve: go } = Promise.withResolvers<void>();
  await using server = await startServer(async (call) => {
    if (call.number === 49) go();
    await all;
    return streams(call);
  });
  const abort = new AbortController();
  const { send } = client(server.url);
  const sent = await Promise.all(Array.from({ length: 50 }, () => send(request(), abort.signal)));
  assert.equal(sent.length, 50);
  await new Promise(setImmediate);
  process.off("warning", warned);
  assert.deepEqual(warnings, []);
});

// --- time-outs: the limits are real, so they are tiny, and only the kind of end is asserted ----------------------------

const timedOut = async (url: string, limits: Partial<Timeouts>, phase: keyof typeof phases): Promise<void> => {
  const error = await failing(client(url, { timeouts: limits, retry: { attempts: 1 } }).send(request()), {
    kind: "timeout",
    phase,
  });
  assert.equal(error.message, phases[phase]);
};
const phases = {
  connect: "no connection within 40 ms",
  "first-byte": "no first byte within 40 ms",
  idle: "no more of the answer within 40 ms",
  total: "no end within 40 ms",
};

test("a server that accepts the connection but not the handshake times out", async () => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(address && typeof address === "object");
  await timedOut(`https://127.0.0.1:${address.port}`, { connectMs: 40 }, "connect");
  server.close();
});

test("a server that sends nothing, or only its headers, times out", async () => {
  await using server = await startServer(silent, ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
  });
  await timedOut(server.url, { firstByteMs: 40 }, "first-byte");
  await server.calls[0]?.closed;
  await timedOut(server.url, { firstByteMs: 40 }, "first-byte");
  await server.calls[1]?.closed;
});

test("a server that stalls in the middle times out", async () => {
  await using server = await startServer((call) => begin(call, beginning));
  await timedOut(server.url, { idleMs: 40 }, "idle");
  await server.calls[0]?.closed;
});

test("a server that never stalls and never ends times out, and is not retried", async () => {
  await using server = await startServer(async (call) => {
    await begin(call, [frames.start]);
    while (!call.response.destroyed) {
      call.response.write(asStream([frames.ping]));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  });
  const sent = client(server.url, { timeouts: { totalMs: 400, idleMs: 20_000 } }).send(request());
  await failing(sent, { kind: "timeout", phase: "total" });
  assert.equal(server.calls.length, 1);
});

test("a slow reader is not mistaken for a stalled server", async () => {
  await using server = await startServer(async (call) => {
    await begin(call, beginning);
    await slept;
    call.response.end(asStream(ending));
  });
  const { promise: slept, resolve: wake } = Promise.withResolvers<void>();
  const events = client(server.url, { timeouts: { firstByteMs: 10_000, idleMs: 500 } }).stream(request());
  for (;;) {
    const next = await events.next();
    if (next.done) {
      assert.deepEqual(next.value, done);
      return;
    }
    if (next.value.type !== "text_grew") continue;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    wake();
  }
});

test("a server that never ends a finished answer is not waited for, even if it keeps sending", async () => {
  const idle = { timeouts: { idleMs: 20_000, totalMs: 20_000 } };
  await using server = await startServer(
    (call) => begin(call, [...beginning, ...ending]),
    async (call) => {
      await begin(call, [...beginning, ...ending]);
      while (!call.response.destroyed) {
        call.response.write(asStream([frames.ping]));
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
  );
  const { send } = client(server.url, idle);
  const answered = await Promise.all([send(request()), send(request())]);
  assert.deepEqual(answered, [done, done]);
  await Promise.all(server.calls.map(({ closed }) => closed));
});

test("an error frame without its label is still the provider's error", async () => {
  await using server = await startServer(({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`data: {"type":"error","error":{"type":"invalid_request_error","message":"no"}}\n\n`);
  });
  const error = await failing(client(server.url).send(request()), { kind: "invalid-request", status: 400 });
  assert.equal(error.message, "invalid_request_error: no");
});

test("a key that a provider repeats in its error does not reach our error", async () => {
  await using server = await startServer(({ response }) => {
    response.writeHead(401, { "content-type": "application/json" });
    response.end(`{"type":"error","error":{"type":"authentication_error","message":"bad key sk-secret-123"}}`);
  });
  const { send } = client(server.url, { credential: { kind: "api-key", value: "sk-secret-123" } });
  const error = await failing(send(request()), { kind: "authentication", status: 401 });
  assert.equal(error.message, "authentication_error: bad key [key]");
});

test("an empty retry-after-ms does not override retry-after", async () => {
  const waits: number[] = [];
  const timing = steppingTiming();
  await using server = await startServer(({ response }) => {
    response.writeHead(429, { "retry-after": "2", "retry-after-ms": "" });
    response.end("{}");
  }, answers);
  const wait: typeof timing.wait = (ms, signal) => {
    waits.push(ms);
    return timing.wait(ms, signal);
  };
  await client(server.url, { timing: { ...timing, wait } }).send(request());
  assert.ok((waits[0] ?? 0) >= 2_000, `waited ${waits}`);
});
