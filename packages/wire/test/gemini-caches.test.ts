/** Entries that Gemini stores by name: what stands in one and what is left to say, and the calls over real HTTP. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  bytesOf,
  type CachedContentPlan,
  createCachedContents,
  createClient,
  type Family,
  FrozenPrefix,
  forkFamily,
  gemini,
  type Head,
  InputError,
  type Json,
  type Message,
  ModelError,
  nextMarkers,
  type Prepared,
  planCachedContent,
  prepare,
  sendFamily,
  text,
  toolResult,
  userText,
  withCachedContent,
} from "../src/index.ts";
import { creationBody } from "../src/protocols/index.ts";
import { anyCharacter } from "./any-character.ts";
import { wholeBody } from "./conformance/gemini-answers.ts";
import { geminiConformance } from "./conformance/gemini-conformance.ts";
import { type Call, type Handler, startServer, steppingTiming } from "./local-server.ts";

const head: Head = {
  model: "gemini-3.8-flash",
  tools: [{ type: "function", name: "Agent", description: "Forks.", inputSchema: { type: "object" } }],
  system: [text("You are a test.")],
  settings: { toolChoice: { type: "auto" }, serviceTier: "flex" },
};

const inFlight: Message = {
  role: "assistant",
  content: [
    text("I split it."),
    {
      type: "tool_use",
      id: "a",
      name: "Agent",
      input: "{}",
      raw: `{"functionCall":{"id":"a","name":"Agent","args":{}},"thoughtSignature":"Cg=="}`,
    },
    {
      type: "tool_use",
      id: "b",
      name: "Agent",
      input: "{}",
      raw: `{"functionCall":{"id":"b","name":"Agent","args":{}}}`,
    },
  ],
};

const parentOf = (given: Head = head): Prepared => {
  const prefix = FrozenPrefix.open(gemini.encoder, given).append(userText("Do both."));
  return prepare({ protocol: gemini, prefix, markers: nextMarkers(prefix), closing: { maxTokens: 64, stream: false } });
};

const familyOf = (parent = parentOf()): Family =>
  forkFamily(parent, ["one", "two", "three"], { inFlight, parentNote: "launched", protocol: "none" });

const linesOf = ({ members, parentNext }: Family): readonly Prepared[] => [
  ...members,
  ...(parentNext ? [parentNext] : []),
];

const planOf = (family: Family): CachedContentPlan => planCachedContent(linesOf(family).map(({ prefix }) => prefix));
const bodyOf = (prepared: Pick<Prepared, "chunks">): Record<string, Json> =>
  JSON.parse(bytesOf(prepared as Prepared).toString());

test("a family's entry ends where S does, and each request keeps its own content", () => {
  const family = familyOf();
  const plan = planOf(family);
  assert.deepEqual(JSON.parse(JSON.stringify(plan)), structuredClone(plan));
  const [one] = family.members;
  assert.ok(one);
  assert.deepEqual(
    { ...plan, hash: "" },
    {
      model: "gemini-3.8-flash",
      segments: 9,
      hash: "",
      contents: 3,
      ttlSeconds: 600,
    },
  );
  assert.equal(
    Buffer.concat([...creationBody({ ...plan, displayName: "family" }, one.prefix)]).toString(),
    `{"model":"models/gemini-3.8-flash","ttl":"600s","displayName":"family","toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},` +
      `"tools":[{"functionDeclarations":[{"name":"Agent","description":"Forks.","parametersJsonSchema":{"type":"object"}}]}],` +
      `"systemInstruction":{"parts":[{"text":"You are a test."}]},` +
      `"contents":[{"parts":[{"text":"Do both."}],"role":"user"},` +
      `{"role":"model","parts":[{"text":"I split it."},{"functionCall":{"id":"a","name":"Agent","args":{}},"thoughtSignature":"Cg=="},{"functionCall":{"id":"b","name":"Agent","args":{}}}]},` +
      `{"role":"user","parts":[{"functionResponse":{"id":"a","name":"Agent","response":{"output":"No result stands here: this call is handled in the background."}}},` +
      `{"functionResponse":{"id":"b","name":"Agent","response":{"output":"No result stands here: this call is handled in the background."}}}]}]}`,
  );
  const named = linesOf(family).map((line) =>
    bytesOf(withCachedContent(line, { plan, name: "cachedContents/x1" })).toString(),
  );
  assert.deepEqual(
    named,
    ["one", "two", "three", "launched"].map(
      (words) =>
        `{"cachedContent":"cachedContents/x1","contents":[{"parts":[{"text":"${words}"}],"role":"user"}],"generationConfig":{"maxOutputTokens":64},"serviceTier":"flex"}`,
    ),
  );
});

test("a child's later turns name the same entry, and send everything since", () => {
  const family = familyOf();
  const plan = planOf(family);
  const [one] = family.members;
  assert.ok(one);
  const prefix = one.prefix
    .append({ role: "assistant", content: [text("Looking."), ...inFlight.content.slice(2)] })
    .append({ role: "user", content: [toolResult("b", "found")] });
  const later = prepare({ protocol: gemini, prefix, markers: [], closing: { maxTokens: 64, stream: false } });
  const { cachedContent, contents } = bodyOf(withCachedContent(later, { plan, name: "cachedContents/x1" }));
  assert.equal(cachedContent, "cachedContents/x1");
  assert.deepEqual(contents, (bodyOf(later).contents as readonly Json[]).slice(3));
});

test("entry and request together contain what the request alone would have contained, whatever the content", () => {
  const anyWords = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(
      geminiConformance.anyContent,
      fc.array(anyWords, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      (content, directives, hasTools) => {
        const given = hasTools ? geminiConformance.head : { ...head, tools: [], system: [], settings: {} };
        const family = forkFamily(parentOf(given), directives, {
          inFlight: { role: "assistant", content: [...content, text(".")] },
        });
        const plan = planCachedContent(family.members.map(({ prefix }) => prefix));
        for (const member of family.members) {
          const whole = bodyOf(member);
          const held = bodyOf({ chunks: creationBody(plan, member.prefix) });
          const named = bodyOf(withCachedContent(member, { plan, name: "cachedContents/x1" }));
          const { tools, toolConfig, systemInstruction } = whole;
          assert.deepEqual(
            { tools: held.tools, toolConfig: held.toolConfig, systemInstruction: held.systemInstruction },
            { tools, toolConfig, systemInstruction },
          );
          assert.deepEqual([...((held.contents as Json[]) ?? []), ...(named.contents as Json[])], whole.contents);
          assert.deepEqual(Object.keys(named), ["cachedContent", "contents", "generationConfig"]);
          assert.ok((named.contents as Json[]).length > 0);
        }
      },
    ),
    { numRuns: 60, seed: 12 },
  );
});

test("what an entry cannot serve is refused in one line", () => {
  const family = familyOf();
  const plan = planOf(family);
  const other = familyOf(parentOf({ ...head, system: [text("Another.")] }));
  const [one, foreign] = [family.members[0], other.members[0]];
  assert.ok(one && foreign);
  const refused = (made: () => unknown, words: RegExp) =>
    assert.throws(
      made,
      (error: Error) => error instanceof InputError && words.test(error.message) && !error.message.includes("\n"),
    );
  refused(
    () => withCachedContent(foreign, { plan, name: "cachedContents/x1" }),
    /does not begin with what the entry holds/,
  );
  // It begins with the same bytes, but goes on inside the content that the entry ends with.
  const open = parentOf().prefix;
  const short = planCachedContent([open.append(userText("one"))]);
  const longer = prepare({
    protocol: gemini,
    prefix: open.extend([text("and more")]),
    markers: [],
    closing: { maxTokens: 64, stream: false },
  });
  refused(() => withCachedContent(longer, { plan: short, name: "cachedContents/x1" }), /does not begin with/);
  refused(() => withCachedContent(one, { plan, name: "cachedContents/../models/x" }), /an entry's name/);
  refused(() => planCachedContent([one.prefix, foreign.prefix]), /no entry can serve them all/);
  refused(() => planCachedContent([]), /at least one/);
  refused(() => planCachedContent([one.prefix], { ttlSeconds: 0.5 }), /whole seconds/);
});

// --- over HTTP -------------------------------------------------------------------------------------------------------

const told = ({ response }: Call, status: number, body: string): void => {
  response.writeHead(status, { "content-type": "application/json" }).end(body);
};
const gone = `{"error":{"code":403,"message":"CachedContent not found (or permission denied)","status":"PERMISSION_DENIED"}}`;
const stored = (until: string): string =>
  `{"name":"cachedContents/x1","model":"models/gemini-3.8-flash","expireTime":"${until}","usageMetadata":{"totalTokenCount":48700}}`;

const credential = { kind: "api-key", value: "key" } as const;
const methodOf = ({ response }: Call): string | undefined => response.req.method;

test("an entry is created, named by a family that is sent at once, extended and deleted", async () => {
  const family = familyOf();
  const plan = planOf(family);
  const [one] = family.members;
  assert.ok(one);
  const answersAll: Handler = (call) => {
    if (methodOf(call) === "DELETE") return told(call, 200, "{}");
    if (methodOf(call) === "PATCH") return told(call, 200, stored("2026-11-15T10:30:00Z"));
    if (call.path === "/v1beta/cachedContents") return told(call, 200, stored("2026-11-15T10:10:00Z"));
    const usage = `{"promptTokenCount":48800,"cachedContentTokenCount":48700,"candidatesTokenCount":8,"totalTokenCount":48808}`;
    return told(call, 200, wholeBody([`{"text":"Done."}`], { usage }));
  };
  await using server = await startServer(answersAll);
  const baseUrl = `${server.url}/v1beta`;
  const caches = createCachedContents({ baseUrl, credential });
  const client = createClient({ baseUrl, credential });
  const held = await caches.create(plan, one.prefix);
  assert.deepEqual(held, { name: "cachedContents/x1", plan, expireTime: "2026-11-15T10:10:00Z", tokens: 48_700 });
  const byName = { ...family, members: family.members.map((member) => withCachedContent(member, held)) };
  const outcome = await sendFamily(client, {
    ...byName,
    ...(family.parentNext ? { parentNext: withCachedContent(family.parentNext, held) } : {}),
  });
  for (const member of [...outcome.members, outcome.parentNext]) {
    assert.ok(member?.status === "answered");
    assert.deepEqual(member.response.usage, { plain: 100, read: 48_700, written: {}, output: 8 });
  }
  const longer = await caches.extend(held, 1_800);
  assert.deepEqual([longer.expireTime, longer.plan.ttlSeconds], ["2026-11-15T10:30:00Z", 1_800]);
  assert.equal(await caches.remove(longer), "removed");
  assert.deepEqual(
    server.calls.map((call) => [methodOf(call), call.path, call.headers["x-goog-api-key"]]),
    [
      ["POST", "/v1beta/cachedContents", "key"],
      ...[1, 2, 3, 4].map(() => ["POST", "/v1beta/models/gemini-3.8-flash:generateContent", "key"]),
      ["PATCH", "/v1beta/cachedContents/x1", "key"],
      ["DELETE", "/v1beta/cachedContents/x1", "key"],
    ],
  );
  assert.equal(server.calls[0]?.body.toString(), Buffer.concat([...creationBody(plan, one.prefix)]).toString());
  assert.deepEqual(
    server.calls.slice(-2).map(({ body }) => body.toString()),
    [`{"ttl":"1800s"}`, ""],
  );
  caches.close();
  client.close();
});

test("an entry is not created twice: creation is retried after a refusal, but not after a lost answer", async () => {
  const [one] = familyOf().members;
  assert.ok(one);
  const plan = planCachedContent([one.prefix]);
  const busy: Handler = (call) => told(call, 503, `{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}`);
  const answers: Handler = (call) => told(call, 200, stored("2026-11-15T10:10:00Z"));
  const lost: Handler = ({ response }) => response.socket?.resetAndDestroy();
  await using server = await startServer(busy, answers, lost, answers);
  const retried: string[] = [];
  const caches = createCachedContents({
    baseUrl: server.url,
    timing: steppingTiming(),
    onRetry: ({ reason }) => retried.push(reason.kind),
  });
  assert.equal((await caches.create(plan, one.prefix)).name, "cachedContents/x1");
  await assert.rejects(caches.create(plan, one.prefix), (error: ModelError) => error.reason.kind === "connection");
  assert.deepEqual([retried, server.calls.length], [["overloaded"], 3]);
  caches.close();
});

test("deleting an expired entry is not a failure; naming it is a recognisable one", async () => {
  const [one] = familyOf().members;
  assert.ok(one);
  const held = { name: "cachedContents/x1", plan: planCachedContent([one.prefix]) };
  await using server = await startServer((call) => told(call, 403, gone));
  const caches = createCachedContents({ baseUrl: server.url });
  assert.equal(await caches.remove(held), "gone");
  const client = createClient({ baseUrl: server.url });
  await assert.rejects(client.send(withCachedContent(one, held)), (error: ModelError) => {
    assert.deepEqual([error.reason, error.retryable], [{ kind: "not-found", status: 403 }, false]);
    return true;
  });
  caches.close();
  client.close();
});

test("an answer without an entry's name is malformed, and no entry name can lead elsewhere", async () => {
  const [one] = familyOf().members;
  assert.ok(one);
  await using server = await startServer((call) => told(call, 200, `{"name":"cachedContents/../models/x"}`));
  const caches = createCachedContents({ baseUrl: server.url });
  await assert.rejects(
    caches.create(planCachedContent([one.prefix]), one.prefix),
    (error) => error instanceof ModelError && error.reason.kind === "malformed-response",
  );
  await assert.rejects(caches.remove({ name: "cachedContents/x?force=1" }), InputError);
  assert.equal(server.calls.length, 1);
  caches.close();
});
