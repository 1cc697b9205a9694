import assert from "node:assert/strict";
import { request as httpRequest } from "node:http";
import { test } from "node:test";
import { ManualClock, type Simulator, startSimulator } from "@prefork/simulator";
import { cpuSecondsOf } from "./cpu-time.ts";
import { type Body, model, post, refusal, request } from "./sending.ts";

const inherited = ["constructor", "toString", "__proto__", "hasOwnProperty", "valueOf", "isPrototypeOf"];

/** As JSON text: an object literal would take `__proto__` for something else. */
const withField = (name: string): string =>
  `{"model":"${model}","max_tokens":9,"messages":[{"role":"user","content":"x"}],"${name}":{}}`;

const withBlock = (block: string): string =>
  `{"model":"${model}","max_tokens":9,"messages":[{"role":"user","content":[${block}]}]}`;

for (const name of inherited)
  test(`${name} is not a key of any table`, async () => {
    await using sim = await startSimulator();
    const refused = async (body: string): Promise<string> => {
      const line = await refusal(sim, body);
      assert.ok(line.startsWith("400 invalid_request_error: "), line);
      return line.slice("400 invalid_request_error: ".length);
    };
    assert.equal(await refused(withField(name)), `${name}: Extra inputs are not permitted`);
    assert.equal(
      await refused(withBlock(`{"type":"text","text":"x","${name}":{}}`)),
      `messages.0.content.0.${name}: Extra inputs are not permitted`,
    );
    assert.match(await refused(withBlock(`{"type":"${name}"}`)), /^messages\.0\.content\.0: Input tag '/);
    assert.match(
      await refused(withBlock(`{"type":"tool_result","tool_use_id":"t","content":[{"type":"${name}"}]}`)),
      /^messages\.0\.content\.0\.content\.0: Input tag '/,
    );
    assert.deepEqual([...new Set(sim.ledger().map(({ outcome }) => outcome))], ["refused"]);
    assert.equal((await post(sim, request({ model: name, messages: [{ role: "user", content: "x" }] }))).status, 200);
    const faults: readonly (readonly [string, RegExp])[] = [
      [`{"kind":"${name}"}`, /^fault\.kind: expected one of status, /],
      [`{"kind":"reset","${name}":1}`, /^fault\.\w+: unknown field for reset$/],
    ];
    for (const [fault, complaint] of faults) {
      const response = await fetch(`${sim.url}/_sim/faults`, { method: "POST", body: fault });
      assert.equal(response.status, 400);
      assert.match(((await response.json()) as { error: { message: string } }).error.message, complaint);
    }
  });

test("a name with a line break still gives one line", async () => {
  await using sim = await startSimulator();
  assert.equal(
    await refusal(sim, withField("a\\nb")),
    "400 invalid_request_error: a b: Extra inputs are not permitted",
  );
});

const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
const deep: readonly (readonly [string, string, string])[] = [
  ["a tool's schema", `"tools":[{"name":"R","input_schema":${nested(100_000)}}]`, "tools.0.input_schema.a.a"],
  ["context_management", `"context_management":${nested(100_000)}`, "context_management.a.a.a.a"],
  ["a field nobody knows", `"other":${nested(201)}`, "other.a.a.a.a"],
];

for (const [what, field, place] of deep)
  test(`endless nesting in ${what} is refused with a message naming the location`, async () => {
    await using sim = await startSimulator();
    const start = `{"model":"${model}","max_tokens":9,"messages":[{"role":"user","content":"x"}]`;
    assert.equal(
      await refusal(sim, `${start},${field}}`),
      `400 invalid_request_error: ${place}: Input should not be nested deeper than 200 levels`,
    );
    assert.deepEqual([sim.ledger()[0]?.outcome, sim.ledger()[0]?.status], ["refused", 400]);
    const shallow = `"tools":[{"name":"R","input_schema":${nested(190)}}]`;
    assert.equal((await post(sim, `${start},${shallow}}`)).status, 200);
  });

const times = <T>(count: number, make: (index: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, index) => make(index));

const large: readonly (readonly [string, Body, number])[] = [
  ["60,000 messages of one word", { messages: times(60_000, () => ({ role: "user", content: "word" })) }, 200],
  [
    "100,000 tools",
    {
      tools: times(100_000, (index) => ({ name: `tool_${index}`, input_schema: {} })),
      messages: [{ role: "user", content: "x" }],
    },
    200,
  ],
  [
    "200,000 calls that nobody answers",
    {
      messages: [
        { role: "user", content: "x" },
        {
          role: "assistant",
          content: times(200_000, (index) => ({ type: "tool_use", id: `t${index}`, name: "R", input: {} })),
        },
      ],
    },
    400,
  ],
];

// A second or two of linear work; comparing each with each takes half a minute.
for (const [what, body, status] of large)
  test(`${what} take time in proportion`, async () => {
    await using sim = await startSimulator();
    const seconds = await cpuSecondsOf(async () => assert.equal((await post(sim, request(body))).status, status));
    assert.ok(seconds < 15, `${seconds} s`);
  });

type Sent = { readonly path: string; readonly headers?: Record<string, string>; readonly body?: string };

/** By hand: fetch neither sends a foreign Host nor a path that is no path. */
const send = (sim: Simulator, { path, headers = {}, body }: Sent): Promise<{ status: number; type: string }> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(sim.url);
    const sent = httpRequest({ hostname, port, path, method: body === undefined ? "GET" : "POST", headers });
    sent.on("response", async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      const answer = JSON.parse(text) as { error?: { type: string } };
      resolve({ status: response.statusCode ?? 0, type: answer.error?.type ?? "none" });
    });
    sent.on("error", reject);
    sent.end(body);
  });

test("a path that is not a valid URL is not found", async () => {
  await using sim = await startSimulator();
  for (const path of ["//[", "//evil.example/v1/messages", "*", "/v1/messages/"])
    assert.deepEqual(await send(sim, { path, body: "{}" }), { status: 404, type: "not_found_error" });
});

test("under a name that is not loopback nothing is served", async () => {
  await using sim = await startSimulator();
  const foreign = { host: "evil.example:80" };
  for (const path of ["/v1/messages", "/v1/messages/count_tokens", "/_sim/reset", "/"])
    assert.deepEqual(await send(sim, { path, headers: foreign, body: "{}" }), {
      status: 403,
      type: "permission_error",
    });
  assert.deepEqual(sim.ledger(), []);
});

test("a web page from elsewhere cannot steer the simulator; one from loopback can", async () => {
  await using sim = await startSimulator({ clock: new ManualClock(0) });
  const clock = async (headers: Record<string, string>): Promise<number> =>
    (await send(sim, { path: "/_sim/clock", headers, body: '{"advanceMs":1}' })).status;
  for (const headers of [
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: "http://localhost.evil.example" },
    { "sec-fetch-site": "cross-site" },
  ])
    assert.equal(await clock(headers), 403);
  assert.equal(sim.clock.now(), 0);
  assert.equal(await clock({ origin: "http://localhost:3000", "sec-fetch-site": "same-site" }), 200);
  assert.equal(await clock({}), 200);
  assert.equal(sim.clock.now(), 2);
});
