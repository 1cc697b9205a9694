/** Whatever either side sends, the proxy goes on for everybody else. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { startProxy } from "@prefork/xray/proxy";
import fc from "fast-check";
import { dial, startTcp } from "./ends.ts";

const GOOD = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\nContent-Length: 4\r\n\r\nbody";
const GOOD_ANSWER = "HTTP/1.1 200 OK\r\nX-B: 2\r\nContent-Length: 2\r\n\r\nok";

/** A message with some of its bytes replaced, left out or doubled; and messages that are known to be odd. */
const anyMutated = (good: string, odd: readonly string[]): fc.Arbitrary<string> =>
  fc.oneof(
    fc.constantFrom(...odd),
    fc
      .array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }), fc.nat(2)), { minLength: 1, maxLength: 4 })
      .map((edits) =>
        edits.reduce((text, [place, byte, how]) => {
          const at = place % (text.length + 1);
          const letter = String.fromCharCode(byte);
          return text.slice(0, at) + (how === 1 ? "" : letter) + text.slice(how === 0 ? at : at + 1);
        }, good),
      ),
  );

const ODD_REQUESTS = [
  "",
  "\r\n\r\n\r\n",
  "CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "GET //evil.example/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "GET /_proxy/../v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "GET /v1/\u00ff\u0080?\u00e9 HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
  "GET / HTTP/1.1\r\n\r\n",
  "GET / HTTP/2.0\r\nHost: localhost\r\n\r\n",
  "GET / HTTP/1.1\r\nHost: localhost\r\nX: \u007f\u0001\r\n\r\n",
  "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: host, content-length, authorization\r\n\r\n",
  "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
  "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
  "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
  "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\nContent-Length: 5\r\nX: \u007f\r\n\r\n",
  "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
  "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
  "POST / HTTP/1.1\r\nHost: localhost\r\nTrailer: X\r\nContent-Length: 1\r\n\r\nx",
  `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${"y".repeat(400_000)}\r\n\r\n`,
  `GET / HTTP/1.1\r\nHost: localhost\r\n${"X: y\r\n".repeat(5_000)}\r\n`,
  "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\u0000\u0001",
  "GET / HTTP/1.1\r\nHost: localhost\r\nExpect: nonsense\r\n\r\n",
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

const ODD_ANSWERS = [
  "",
  "nonsense\r\n\r\n",
  "HTTP/1.1 200\r\n\r\n",
  "HTTP/1.1 000 Zero\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 101 Switching Protocols\r\n\r\nbytes",
  "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nbytes",
  "HTTP/1.1 100 Continue\r\n\r\n",
  "HTTP/1.1 102 Processing\r\nX: \u0001\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
  "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nlonger",
  "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
  "HTTP/1.1 200 OK\r\nTrailer: X\r\nContent-Length: 1\r\n\r\na",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: \u007f\r\nTransfer-Encoding: x\r\n\r\n",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n1\r\na\r\n0\r\n\r\n",
  "HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  "HTTP/1.1 304 Not\r\nContent-Length: 5\r\n\r\n",
  "HTTP/1.0 200 OK\r\n\r\nold",
  "HTTP/1.1 200 \u00e9\u0001\r\nContent-Length: 0\r\n\r\n",
  `HTTP/1.1 200 OK\r\nX: ${"y".repeat(400_000)}\r\n\r\n`,
  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno",
];

test("no bytes of a client and no bytes of a provider end it", async () => {
  let answer = GOOD_ANSWER;
  await using provider = await startTcp((socket) => {
    socket.on("data", () => {
      socket.end(answer, "latin1");
      answer = GOOD_ANSWER;
    });
  });
  await using proxy = await startProxy({ upstream: provider.url });
  let answered = 0;
  /** A client that waits for an end, and one that leaves when it has been heard. */
  const wait = async (text: string): Promise<void> => {
    const line = await dial(proxy.url);
    line.send(text);
    if ((await line.until(/never/)) !== "") answered += 1;
  };
  const leave = async (text: string): Promise<void> => {
    const line = await dial(proxy.url);
    line.send(text);
    await Promise.race([line.closed, line.until("ok"), delay(10)]);
    line.socket.destroy();
  };
  const isAlive = async (): Promise<void> => {
    const response = await fetch(`${proxy.url}/v1/messages`, { method: "POST", body: "body" });
    assert.deepEqual([response.status, await response.text()], [200, "ok"]);
  };
  await fc.assert(
    fc.asyncProperty(anyMutated(GOOD, ODD_REQUESTS), anyMutated(GOOD_ANSWER, ODD_ANSWERS), async (asked, odd) => {
      await leave(asked);
      answer = odd;
      await wait(GOOD);
      answer = GOOD_ANSWER;
      await isAlive();
    }),
    { numRuns: 150, seed: 9 },
  );
  for (const text of ODD_REQUESTS) await leave(text);
  for (const text of ODD_ANSWERS) {
    answer = text;
    await wait(GOOD);
  }
  answer = GOOD_ANSWER;
  await isAlive();
  assert.ok(answered > 25, "most odd answers are answers");
  const report = await proxy.close();
  assert.deepEqual([report.analysis, report.open], ["runs", 0]);
});
