/** OpenAI's formats over real HTTP: the client sends what was prepared and reads what comes, however it is cut. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bytesOf,
  createClient,
  FrozenPrefix,
  type ModelError,
  openaiChat,
  openaiResponses,
  type Prepared,
  type Protocol,
  prepare,
  userText,
} from "../src/index.ts";
import { chatWords } from "./conformance/chat-fixtures.ts";
import { type AnswerFixture, asStream } from "./conformance/protocol-suite.ts";
import { answers, started } from "./conformance/responses-answers.ts";
import { type Handler, startServer, steppingTiming } from "./local-server.ts";

const model = "gpt-6-sol";
const { opening, chunk, ending, frame } = chatWords(model);

const requestOf = (protocol: Protocol, stream: boolean): Prepared => {
  const prefix = FrozenPrefix.open(protocol.encoder, { model, tools: [], system: [], settings: {} });
  return prepare({ protocol, prefix: prefix.append(userText("Hi")), markers: [], closing: { maxTokens: 64, stream } });
};

const inPieces =
  (stream: Buffer, size: number): Handler =>
  async ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    for (let at = 0; at < stream.length; at += size)
      await new Promise<void>((written) => response.write(stream.subarray(at, at + size), () => written()));
    response.end();
  };

const isFixture = (fixture: object): fixture is AnswerFixture => "frames" in fixture;

test("openai-responses: every answer arrives over HTTP as it was streamed, in pieces of any size, and not streamed", async () => {
  for (const fixture of Object.values(answers).filter(isFixture)) {
    const handlers = [1_000, 61].map((size) => inPieces(asStream(fixture.frames), size));
    const whole: Handler = ({ response }) =>
      response.writeHead(200, { "content-type": "application/json" }).end(fixture.whole);
    await using server = await startServer(...handlers, whole);
    const client = createClient({ baseUrl: `${server.url}/v1`, credential: { kind: "api-key", value: "key" } });
    for (const stream of [true, true, false]) {
      const prepared = requestOf(openaiResponses, stream);
      assert.deepEqual(await client.send(prepared), fixture.response);
      const call = server.calls.at(-1);
      assert.deepEqual([call?.path, call?.headers.authorization], ["/v1/responses", "Bearer key"]);
      assert.equal(Buffer.compare(call?.body ?? Buffer.of(), bytesOf(prepared)), 0);
    }
    client.close();
  }
});

test("openai-responses: an error event before any content is retried, with the same bytes", async () => {
  const broken = asStream([
    started,
    { event: "error", data: `{"type":"error","code":"server_is_overloaded","message":"busy","param":null}` },
  ]);
  const { text } = answers;
  assert.ok(isFixture(text));
  await using server = await startServer(inPieces(broken, 500), inPieces(asStream(text.frames), 500));
  const retried: ModelError[] = [];
  const client = createClient({
    baseUrl: `${server.url}/v1`,
    timing: steppingTiming(),
    onRetry: (error) => retried.push(error),
  });
  assert.deepEqual(await client.send(requestOf(openaiResponses, true)), text.response);
  assert.deepEqual(
    retried.map(({ reason }) => reason),
    [{ kind: "overloaded", status: 503 }],
  );
  assert.deepEqual(server.calls[0]?.body, server.calls[1]?.body);
  client.close();
});

test("openai-chat: a stream ends with its last line, and one that is cut off after content is not retried", async () => {
  const said = chunk(`"content":"Hello"`);
  await using server = await startServer(
    inPieces(asStream([opening, said, ...ending("stop")]), 77),
    inPieces(asStream([opening, said]), 77),
    inPieces(asStream([opening, said, frame(`{"error":{"code":502,"message":"upstream died"}}`)]), 77),
  );
  const client = createClient({ baseUrl: `${server.url}/v1/`, timing: steppingTiming() });
  const { message, stop } = await client.send(requestOf(openaiChat, true));
  assert.deepEqual(
    { message, stop },
    {
      message: { role: "assistant", content: [{ type: "text", text: "Hello" }] },
      stop: "end",
    },
  );
  assert.equal(server.calls[0]?.path, "/v1/chat/completions");
  for (const reason of [{ kind: "connection" }, { kind: "server", status: 502 }])
    await assert.rejects(client.send(requestOf(openaiChat, true)), (error: ModelError) => {
      assert.deepEqual([error.reason, error.afterContent, error.retryable], [reason, true, false]);
      return true;
    });
  assert.equal(server.calls.length, 3);
  client.close();
});
