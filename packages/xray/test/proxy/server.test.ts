/** What the proxy does with a connection: what it passes on, what it says itself, whom it does not let in. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { startProxy } from "@prefork/xray/proxy";
import { dial, startProvider, startTcp } from "./ends.ts";

const HEAD = "Host: 127.0.0.1\r\n";

test("headers are passed on in their order, case and number, except those of one connection", async () => {
  await using provider = await startProvider((response) => {
    response.sendDate = false;
    response.removeHeader("connection");
    response.writeHead(200, "Quite", [
      "x-B",
      "2",
      "X-a",
      "1",
      "X-Hop",
      "here",
      "Connection",
      "X-Hop",
      "x-b",
      "3",
      "Content-Length",
      "2",
    ]);
    response.end("ok");
  });
  await using proxy = await startProxy({ upstream: `${provider.url}/base/` });
  const line = await dial(proxy.url);
  line.send(
    `POST /v1/messages?beta=true&x=%20 HTTP/1.1\r\nx-Two: b\r\nHOST: localhost:1\r\nX-two: a\r\nConnection: x-private, keep-alive\r\n` +
      `X-Private: 1\r\nKeep-Alive: timeout=9\r\nTE: trailers\r\nProxy-Authorization: Basic eA==\r\nAuthorization: Bearer k\r\ncontent-length: 2\r\n\r\n{}`,
  );
  assert.equal(
    await line.until("\r\n\r\nok"),
    "HTTP/1.1 200 Quite\r\nx-B: 2\r\nX-a: 1\r\nx-b: 3\r\nContent-Length: 2\r\n\r\nok",
  );
  const { host } = new URL(provider.url);
  assert.deepEqual(provider.heard, [
    {
      method: "POST",
      url: "/base/v1/messages?beta=true&x=%20",
      headers: [
        ...["x-Two", "b", "HOST", host, "X-two", "a", "Connection", "keep-alive, TE", "TE", "trailers"],
        ...["Authorization", "Bearer k", "content-length", "2"],
      ],
      body: "{}",
      trailers: [],
    },
  ]);
  line.socket.destroy();
});

test("trailers, hints before the answer and the leave to send a body go through", async () => {
  await using provider = await startTcp((socket) => {
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (text.endsWith("Expect: 100-continue\r\n\r\n")) socket.write("HTTP/1.1 100 Continue\r\n\r\n");
      if (text.endsWith("0\r\nX-Sum: 7\r\n\r\n"))
        socket.write(
          "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\nTrailer: X-End\r\n" +
            "Transfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\nX-End: 1\r\nx-end: 2\r\n\r\n",
        );
    });
  });
  await using proxy = await startProxy({ upstream: provider.url });
  const line = await dial(proxy.url);
  line.send(
    `POST /v1/messages HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\nExpect: 100-continue\r\n\r\n`,
  );
  assert.equal(await line.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  line.send("2\r\n{}\r\n0\r\nX-Sum: 7\r\n\r\n");
  assert.equal(
    (await line.until("x-end: 2\r\n\r\n")).slice("HTTP/1.1 100 Continue\r\n\r\n".length),
    "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\nTrailer: X-End\r\n" +
      "Transfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\nX-End: 1\r\nx-end: 2\r\n\r\n",
  );
  line.socket.destroy();
});

test("a client that speaks HTTP/1.0 gets its answer without chunks, and its end with the connection's", async () => {
  await using provider = await startProvider((response) => {
    response.removeHeader("date");
    response.write("one ");
    response.end("two");
  });
  await using proxy = await startProxy({ upstream: provider.url });
  const line = await dial(proxy.url);
  line.send(`GET /v1/models HTTP/1.0\r\n${HEAD}\r\n`);
  assert.equal(await line.until(/never/), "HTTP/1.1 200 OK\r\n\r\none two");
});

test("requests sent one behind the other on one connection are answered in their order, over one connection", async () => {
  await using provider = await startProvider((response, { url }) => response.end(url));
  await using proxy = await startProxy({ upstream: provider.url });
  const line = await dial(proxy.url);
  const asked = ["/a", "/b", "/c"].map((path) => `GET ${path} HTTP/1.1\r\n${HEAD}\r\n`);
  line.send(asked.join(""));
  const text = await line.until("\r\n\r\n/c");
  assert.deepEqual(text.match(/(?<=\r\n\r\n)\/[abc]/g), ["/a", "/b", "/c"]);
  assert.equal(provider.connections(), 1);
  line.socket.destroy();
});

test("when the provider closes an idle connection, the client's is closed; when the client does, the provider's is", async () => {
  const sockets: import("node:net").Socket[] = [];
  await using provider = await startTcp((socket) => {
    sockets.push(socket);
    socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
  });
  await using proxy = await startProxy({ upstream: provider.url });
  const [one, other] = [await dial(proxy.url), await dial(proxy.url)];
  for (const line of [one, other]) {
    line.send(`GET / HTTP/1.1\r\n${HEAD}\r\n`);
    await line.until("\r\n\r\nok");
  }
  sockets[0]?.end();
  await one.closed;
  const gone = once(sockets[1] as import("node:net").Socket, "close");
  other.socket.destroy();
  await gone;
});

test("what the provider resets before it answers is reset for the client", async () => {
  await using provider = await startTcp((socket) => socket.once("data", () => socket.resetAndDestroy()));
  await using proxy = await startProxy({ upstream: provider.url });
  const outgoing = httpRequest(`${proxy.url}/v1/messages`, { method: "POST" });
  outgoing.end("{}");
  const [error] = (await once(outgoing, "error")) as [NodeJS.ErrnoException];
  assert.equal(error.code, "ECONNRESET");
  const { unanswered, passed } = await proxy.close();
  assert.deepEqual([unanswered, passed.unreachable], [1, 0]);
});

test("closing the proxy ends every request under way, also those that wait behind another on their connection", async () => {
  await using provider = await startTcp((socket) => socket.on("data", () => undefined));
  const proxy = await startProxy({ upstream: provider.url });
  const post = `POST /v1/messages HTTP/1.1\r\n${HEAD}Content-Length: 2\r\n\r\n{}`;
  const lines = await Promise.all([dial(proxy.url), dial(proxy.url), dial(proxy.url)]);
  for (const line of lines) line.send(post + post);
  while ((await proxy.report()).open < 6) await delay(5);
  const { open, aborted, passed } = await proxy.close();
  assert.deepEqual([open, aborted, passed.requests], [0, 6, 6]);
});

test("an unreachable provider is reported in the error format that the client understands", async () => {
  const taken = await startTcp(() => undefined);
  const { url } = taken;
  await taken[Symbol.asyncDispose]();
  await using proxy = await startProxy({ upstream: url });
  const message = `prefork proxy: cannot reach ${url}: nothing is listening there (ECONNREFUSED)`;
  const ask = async (path: string): Promise<readonly [number, string | null, unknown]> => {
    const response = await fetch(`${proxy.url}${path}`, { method: "POST", body: "{}" });
    return [response.status, response.headers.get("content-type"), await response.json()];
  };
  assert.deepEqual(await ask("/v1/messages"), [
    502,
    "application/json",
    { type: "error", error: { type: "api_error", message } },
  ]);
  const openai = { error: { message, type: "server_error", param: null, code: null } };
  assert.deepEqual(await ask("/v1/responses"), [502, "application/json", openai]);
  assert.deepEqual(await ask("/v1/chat/completions"), [502, "application/json", openai]);
  assert.equal((await proxy.report()).passed.unreachable, 3);
});

test("only loopback names, no page from elsewhere, and no other address are let in", async () => {
  await using provider = await startProvider();
  await using proxy = await startProxy({ upstream: provider.url });
  const { port } = new URL(proxy.url);
  const statusOf = async (first: string, headers: string): Promise<string> => {
    const line = await dial(proxy.url);
    line.send(`${first} HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`);
    const text = await line.until(/never/);
    return text.slice(9, 12);
  };
  const asked: readonly (readonly [string, string, string])[] = [
    ["GET /v1/models", "Host: evil.example\r\n", "403"],
    ["GET /v1/models", `Host: evil.example:${port}\r\n`, "403"],
    ["GET /v1/models", "Host: 127.0.0.1.evil.example\r\n", "403"],
    ["GET /_proxy/report", "Host: evil.example\r\n", "403"],
    ["GET /_proxy/report", `Host: localhost:${port}\r\nOrigin: https://evil.example\r\n`, "403"],
    ["GET /v1/models", `Host: localhost:${port}\r\nSec-Fetch-Site: cross-site\r\n`, "403"],
    ["GET http://evil.example/v1/models", `Host: localhost:${port}\r\n`, "400"],
    ["POST /_proxy/report", `Host: localhost:${port}\r\nContent-Length: 0\r\n`, "405"],
    ["HEAD /_proxy/report", `Host: localhost:${port}\r\n`, "405"],
    ["GET /_proxy/other", `Host: localhost:${port}\r\n`, "404"],
    ["GET /_proxy/report", `Host: localhost:${port}\r\n`, "200"],
    ["GET /v1/models", `Host: [::1]:${port}\r\n`, "200"],
    ["GET /v1/models", `Host: localhost\r\nOrigin: http://localhost:3000\r\n`, "200"],
  ];
  for (const [first, headers, status] of asked)
    assert.equal(await statusOf(first, headers), status, `${first} ${headers}`);
  assert.equal(provider.heard.length, 2);
  assert.equal((await proxy.report()).passed.refused, 10);
});

test("without an upstream a request is forwarded only if it names its provider", async () => {
  await using proxy = await startProxy();
  const response = await fetch(`${proxy.url}/somewhere`, { headers: { authorization: "Bearer key" } });
  assert.equal(response.status, 404);
  assert.match(await response.text(), /start the proxy with --upstream/);
});

test("it listens on loopback only, and to no address that cannot be passed to", async () => {
  await using other = await startProvider();
  const { port } = new URL(other.url);
  const refusals: readonly (readonly [Parameters<typeof startProxy>[0], RegExp])[] = [
    [{ host: "0.0.0.0" as "localhost" }, /^host 0\.0\.0\.0: the proxy listens on loopback only$/],
    [{ port: Number(port) }, /^port \d+ is already in use on 127\.0\.0\.1$/],
    [{ upstream: "api.anthropic.com" }, /^upstream api\.anthropic\.com: expected an address such as https:/],
    [{ upstream: "ftp://x" }, /expected an address/],
    [{ upstream: "https://user:secret@x" }, /^upstream https:\/\/…@x: must not contain a user or a password$/],
    [{ upstream: "https://x/?key=secret" }, /^upstream https:\/\/x\/\?…: must not have a query or a fragment$/],
  ];
  for (const [options, words] of refusals)
    await assert.rejects(startProxy(options), { name: "InputError", message: words });
});

test("an upgraded connection is between client and provider, both ways and to its end", async () => {
  await using provider = await startTcp((socket) => {
    socket.once("data", (head) => {
      assert.match(
        head.toString(),
        /^GET \/v1\/realtime\?x=1 HTTP\/1\.1\r\n[\s\S]*Upgrade: websocket\r\nConnection: Upgrade\r\n/,
      );
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello");
      socket.on("data", (chunk) => socket.end(`echo ${chunk}`));
    });
  });
  await using proxy = await startProxy({ upstream: provider.url });
  const line = await dial(proxy.url);
  line.send(`GET /v1/realtime?x=1 HTTP/1.1\r\n${HEAD}Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n`);
  const head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello";
  assert.equal(await line.until("hello"), head);
  line.send("\u0000ping\u00ff");
  await line.closed;
  assert.equal(
    await line.until(/never/),
    `${head}echo \u0000ping\u00c3\u00bf`.replace("\u00c3\u00bf", "\u00ef\u00bf\u00bd"),
  );
  assert.equal((await proxy.report()).passed.upgraded, 1);
});

test("a client that offers a later HTTP with its request is answered, body and all", async () => {
  await using provider = await startProvider((response, { body }) => response.end(`got ${body}`));
  await using proxy = await startProxy({ upstream: provider.url });
  const line = await dial(proxy.url);
  line.send(
    `POST /v1/messages HTTP/1.1\r\n${HEAD}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n` +
      "Content-Length: 4\r\n\r\nbody",
  );
  assert.match(await line.until("got body"), /^HTTP\/1\.1 200 OK\r\n/);
  assert.deepEqual(provider.heard[0]?.headers.slice(2), ["Connection", "keep-alive", "Content-Length", "4"]);
  line.socket.destroy();
});

test("an upgrade that the provider refuses is an answer, and one for a foreign name is refused", async () => {
  await using provider = await startProvider((response) => {
    response.writeHead(426, ["Content-Length", "3"]);
    response.end("no!");
  });
  await using proxy = await startProxy({ upstream: provider.url });
  const ask = async (host: string): Promise<string> => {
    const line = await dial(proxy.url);
    line.send(`GET /v1/realtime HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n`);
    return line.until(/never/);
  };
  assert.match(await ask("localhost"), /^HTTP\/1\.1 426 Upgrade Required\r\n[\s\S]*Connection: close\r\n\r\nno!$/);
  assert.match(await ask("evil.example"), /^HTTP\/1\.1 403 /);
});
