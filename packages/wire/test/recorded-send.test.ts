/** Families of recorded OpenAI bodies over real HTTP: the bytes that arrive, and who is sent when. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesOf, createClient, forkRequests, profiles, sendFamily } from "../src/index.ts";
import { chatWords } from "./conformance/chat-fixtures.ts";
import { type AnswerFixture, asStream } from "./conformance/protocol-suite.ts";
import { answers, started } from "./conformance/responses-answers.ts";
import { type Call, type Handler, startServer } from "./local-server.ts";

const { text } = answers;
const fixture = text as AnswerFixture;
const words = "word ".repeat(4_000);

const request = `{"model":"gpt-6-sol","instructions":"${words}","input":"Migrate it.","stream":true}`;
const call = `{"type":"function_call","call_id":"c","name":"Agent","arguments":"{}"}`;
const response = `{"id":"resp_1","output":[${call},{"type":"function_call","call_id":"d","name":"Agent","arguments":"${words}"}]}`;

const eventStream = { "content-type": "text/event-stream; charset=utf-8" };
const streams = ({ response }: Call, frames: AnswerFixture["frames"]): void => {
  response.writeHead(200, eventStream).end(asStream(frames));
};

test("openai-responses: followers are sent when the leader's answer begins, and every body arrives unchanged", async () => {
  let begun = false;
  const leader: Handler = async ({ response, number }) => {
    assert.equal(number, 0);
    begun = true;
    response.writeHead(200, eventStream).write(asStream([started]));
    await server.arrived(4);
    response.end(asStream(fixture.frames.slice(1)));
  };
  const follower: Handler = (received) => {
    assert.ok(begun, "nobody is sent beside an unanswered leader");
    streams(received, fixture.frames);
  };
  await using server = await startServer(leader, follower);
  const client = createClient({ baseUrl: `${server.url}/v1` });
  const family = forkRequests(request, ["one", "two", "three"], { answer: response, parentNote: "launched" });
  const outcome = await sendFamily(client, family);
  assert.equal(outcome.launch.launch, "leader-first");
  assert.deepEqual(
    [...outcome.members, outcome.parentNext],
    Array.from({ length: 4 }, () => ({ status: "answered", response: fixture.response })),
  );
  const made = [...family.members, ...(family.parentNext ? [family.parentNext] : [])].map((body) =>
    String(bytesOf(body)),
  );
  assert.deepEqual(server.calls.map(({ body }) => String(body)).sort(), made.sort());
  assert.deepEqual([...new Set(server.calls.map(({ path }) => path))], ["/v1/responses"]);
  client.close();
});

const chatBody = (model: string): string =>
  `{"model":"${model}","messages":[{"role":"system","content":"${words}"},{"role":"user","content":"Go."}],"stream":true}`;
const said = `{"role":"assistant","content":"${words}"}`;

test("chat at an unknown endpoint: followers are sent when the leader's answer is complete", async () => {
  const { opening, chunk, ending } = chatWords("deepseek-chat");
  const frames = [opening, chunk(`"content":"Hello"`), ...ending("stop")];
  let complete = false;
  const leader: Handler = async ({ response }) => {
    response.writeHead(200, eventStream);
    await new Promise<void>((written) => response.write(asStream(frames.slice(0, 2)), () => written()));
    complete = true;
    response.end(asStream(frames.slice(2)));
  };
  const follower: Handler = (received) => {
    assert.ok(complete, "an entry that is not complete cannot be read");
    streams(received, frames);
  };
  await using server = await startServer(leader, follower);
  const client = createClient({ baseUrl: `${server.url}/v1` });
  const { members } = await sendFamily(
    client,
    forkRequests(chatBody("deepseek-chat"), ["one", "two"], { answer: said }),
  );
  assert.deepEqual(
    members.map((member) => member.status === "answered" && member.response.message.content),
    [[{ type: "text", text: "Hello" }], [{ type: "text", text: "Hello" }]],
  );
  assert.deepEqual([...new Set(server.calls.map(({ path }) => path))], ["/v1/chat/completions"]);
  client.close();
});

test("a named endpoint has its own readable moment: if blocks are shared at once, nobody waits", async () => {
  const { opening, ending } = chatWords("qwen");
  const handler: Handler = async (received) => {
    await server.arrived(3);
    streams(received, [opening, ...ending("stop")]);
  };
  await using server = await startServer(handler);
  const client = createClient({ baseUrl: `${server.url}/v1` });
  const format = profiles.get("vllm")?.protocol;
  const family = forkRequests(chatBody("Qwen/Qwen3-32B"), ["one", "two", "three"], {
    answer: said,
    format,
    cold: true,
  });
  const { members } = await sendFamily(client, family);
  assert.deepEqual(
    members.map(({ status }) => status),
    ["answered", "answered", "answered"],
  );
  client.close();
});
