/** Nobody is read faster than the other side reads, and nobody who looks on can hold anything up. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { startProxy } from "@prefork/xray/proxy";

const MEGABYTE = Buffer.alloc(1024 * 1024, "x");
const WHOLE = 256;
/** What the kernel and the streams of three processes in one may hold between two ends; far less than the whole. */
const MOST_HELD = 48;

/** Writes until nobody takes any more; tells how many megabytes were taken when that had lasted for a while. */
const pushed = async (
  stream: ServerResponse | ReturnType<typeof httpRequest>,
  counted: { written: number },
): Promise<void> => {
  while (counted.written < WHOLE) {
    counted.written += 1;
    if (!stream.write(MEGABYTE)) await once(stream, "drain");
  }
  stream.end();
};

/** No progress over some turns of the event loop means that it stands still. */
const standsStill = async (counted: { written: number }): Promise<number> => {
  for (;;) {
    const before = counted.written;
    for (let turn = 0; turn < 300; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    if (counted.written === before && before > 0) return before;
  }
};

const sizeOf = async (message: IncomingMessage): Promise<number> => {
  let size = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) size += chunk.length;
  return size;
};

const serve = async (
  served: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<AsyncDisposable & { readonly url: string }> => {
  const server = createServer((request, response) => void served(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

test("an answer that its client does not read is not read from the provider either, and is whole when it does", async () => {
  const counted = { written: 0 };
  await using provider = await serve((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    void pushed(response, counted);
  });
  await using proxy = await startProxy({ upstream: provider.url });
  const outgoing = httpRequest(`${proxy.url}/v1/messages`, { method: "POST" });
  outgoing.end("{}");
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  const held = await standsStill(counted);
  assert.ok(held < MOST_HELD, `${held} MB were taken from the provider`);
  assert.equal(await sizeOf(answer), WHOLE * MEGABYTE.length);
});

test("a body that the provider does not read is not read from the client either, and is whole when it does", async () => {
  const counted = { written: 0 };
  let size: Promise<number> | undefined;
  let read = (): void => undefined;
  await using provider = await serve((request, response) => {
    read = () => {
      size = sizeOf(request);
      void size.then(() => response.end("ok"));
    };
  });
  await using proxy = await startProxy({ upstream: provider.url });
  const outgoing = httpRequest(`${proxy.url}/v1/messages`, { method: "POST" });
  void pushed(outgoing, counted);
  const held = await standsStill(counted);
  assert.ok(held < MOST_HELD, `${held} MB were taken from the client`);
  read();
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  answer.resume();
  assert.equal(await size, WHOLE * MEGABYTE.length);
  const { notLookedAt } = await proxy.close();
  assert.deepEqual(notLookedAt, [{ name: "too long", times: 1 }]);
});

test("the head of a stream and each of its events arrive while the provider still waits with the next", async () => {
  let go = (): void => undefined;
  const step = (): Promise<void> =>
    new Promise((resolve) => {
      go = resolve;
    });
  await using provider = await serve(async (_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    for (const text of ["data: 1\n\n", "data: 2\n\n"]) {
      await step();
      response.write(text);
    }
    await step();
    response.end();
  });
  await using proxy = await startProxy({ upstream: provider.url });
  const outgoing = httpRequest(`${proxy.url}/v1/messages`, { method: "POST" });
  outgoing.end("{}");
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  const heard: string[] = [];
  answer.on("data", (chunk: Buffer) => heard.push(chunk.toString()));
  for (const expected of [["data: 1\n\n"], ["data: 1\n\n", "data: 2\n\n"]]) {
    go();
    await once(answer, "data");
    assert.deepEqual(heard, expected);
  }
  go();
  await once(answer, "end");
});
