/** Gemini over real HTTP: the client sends what was prepared and reads what comes, however it is cut. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bytesOf,
  createClient,
  FrozenPrefix,
  gemini,
  type ModelError,
  type Prepared,
  prepare,
  userText,
} from "../src/index.ts";
import { answers, chunk, ended, frame } from "./conformance/gemini-answers.ts";
import { type AnswerFixture, asStream } from "./conformance/protocol-suite.ts";
import { type Handler, startServer, steppingTiming } from "./local-server.ts";

const model = "gemini-3.8-flash";

const requestOf = (stream: boolean): Prepared => {
  const prefix = FrozenPrefix.open(gemini.encoder, { model, tools: [], system: [], settings: {} });
  return prepare({
    protocol: gemini,
    prefix: prefix.append(userText("Hi")),
    markers: [],
    closing: { maxTokens: 64, stream },
  });
};

const inPieces =
  (stream: Buffer, size: number): Handler =>
  async ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let at = 0; at < stream.length; at += size)
      await new Promise<void>((written) => response.write(stream.subarray(at, at + size), () => written()));
    response.end();
  };

const isFixture = (fixture: object): fixture is AnswerFixture => "frames" in fixture;

test("gemini: every answer arrives over HTTP as it was streamed, in pieces of any size, and not streamed", async () => {
  for (const fixture of Object.values(answers).filter(isFixture)) {
    const handlers = [1_000, 61].map((size) => inPieces(asStream(fixture.frames), size));
    const whole: Handler = ({ response }) =>
      response.writeHead(200, { "content-type": "application/json" }).end(fixture.whole);
    await using server = await startServer(...handlers, whole);
    const client = createClient({ baseUrl: `${server.url}/v1beta`, credential: { kind: "api-key", value: "key" } });
    for (const stream of [true, true, false]) {
      const prepared = requestOf(stream);
      assert.deepEqual(await client.send(prepared), fixture.response);
      const call = server.calls.at(-1);
      const method = stream ? "streamGenerateContent?alt=sse" : "generateContent";
      assert.deepEqual([call?.path, call?.headers["x-goog-api-key"]], [`/v1beta/models/${model}:${method}`, "key"]);
      assert.equal(Buffer.compare(call?.body ?? Buffer.of(), bytesOf(prepared)), 0);
    }
    client.close();
  }
});

test("gemini: the query of the base URL is kept", async () => {
  await using server = await startServer(inPieces(asStream([ended({}, `{"text":"Ok."}`)]), 500));
  const client = createClient({ baseUrl: `${server.url}/v1beta/?tenant=a` });
  await client.send(requestOf(true));
  assert.equal(server.calls[0]?.path, `/v1beta/models/${model}:streamGenerateContent?tenant=a&alt=sse`);
  client.close();
});

test("gemini: a rate limit is waited for as long as its details ask, and the same bytes are sent again", async () => {
  const limited: Handler = ({ response }) =>
    response
      .writeHead(429, { "content-type": "application/json" })
      .end(
        `{"error":{"code":429,"message":"slower","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}`,
      );
  const { text } = answers;
  assert.ok(isFixture(text));
  await using server = await startServer(limited, inPieces(asStream(text.frames), 500));
  const timing = steppingTiming();
  const client = createClient({ baseUrl: server.url, timing });
  assert.deepEqual(await client.send(requestOf(true)), text.response);
  assert.deepEqual(timing.waits, [34_500]);
  assert.deepEqual(server.calls[0]?.body, server.calls[1]?.body);
  client.close();
});

test("gemini: a stream that ends without a stop reason is not an answer, and is retried only before content", async () => {
  const empty = asStream([
    frame(`{"usageMetadata":{"promptTokenCount":10},"modelVersion":"${model}","responseId":"a"}`),
  ]);
  const cut = asStream([chunk(`{"text":"Hel"}`)]);
  const { text } = answers;
  assert.ok(isFixture(text));
  const broken: Handler = async ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    // The reason to stop has come: nothing of the answer is missing but the end of the connection.
    await new Promise<void>((written) => response.write(asStream([ended({}, `{"text":"Hel"}`)]), () => written()));
    response.socket?.destroy();
  };
  await using server = await startServer(
    inPieces(empty, 99),
    inPieces(asStream(text.frames), 99),
    inPieces(cut, 99),
    broken,
  );
  const client = createClient({ baseUrl: server.url, timing: steppingTiming() });
  assert.deepEqual(await client.send(requestOf(true)), text.response);
  await assert.rejects(client.send(requestOf(true)), (error: ModelError) => {
    assert.deepEqual([error.reason.kind, error.afterContent, error.retryable], ["connection", true, false]);
    return true;
  });
  assert.deepEqual((await client.send(requestOf(true))).message.content, [{ type: "text", text: "Hel" }]);
  assert.equal(server.calls.length, 4);
  client.close();
});
