/** Servers at a URL: sessions, both forms of answers, and what is never sent elsewhere. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "@prefork/testing/processes";
import { toolName } from "../../../src/context/index.ts";
import type { HttpServer, Servers } from "../../../src/extensions/mcp/index.ts";
import { opened, still } from "./fixture.ts";
import { described } from "./fixture-tools.ts";
import { type HttpFixture, type HttpFixtureOptions, startHttpServer } from "./http-server.ts";

const SECRET = "Bearer very-secret-token";

const entryFor = ({ url }: Pick<HttpFixture, "url">, more: Partial<HttpServer> = {}): HttpServer => ({
  name: "far",
  transport: "http",
  url,
  headers: { authorization: SECRET },
  ...more,
});

const namesOf = (servers: Servers): readonly string[] =>
  servers.offered().servers.flatMap(({ tools }) => tools.map(toolName));

for (const answers of ["json", "events"] as const)
  test(`a server that answers with ${answers} is listed and called in one session, which ends with ours`, async () => {
    await using far = await startHttpServer({ tools: [described("echo")], answers });
    const open = await opened(() => [entryFor(far)]);
    assert.deepEqual(namesOf(open.servers), ["mcp__far__echo"]);
    assert.equal((await open.call("far", "echo", { a: 1 })).text, '{"a":1}');
    await open[Symbol.asyncDispose]();
    const made = far.requests.map(({ method, headers, body }) => [
      method,
      body === "" ? "" : JSON.parse(body).method,
      headers["mcp-session-id"],
      headers["mcp-protocol-version"],
      headers.authorization,
    ]);
    const listening = made.findIndex(([method]) => method === "GET"); // independent of the others
    assert.deepEqual(made.splice(listening, 1), [["GET", "", "s1", "2025-11-25", SECRET]]);
    assert.deepEqual(made, [
      ["POST", "initialize", undefined, undefined, SECRET],
      ["POST", "notifications/initialized", "s1", "2025-11-25", SECRET],
      ["POST", "tools/list", "s1", "2025-11-25", SECRET],
      ["POST", "tools/call", "s1", "2025-11-25", SECRET],
      ["DELETE", "", "s1", "2025-11-25", SECRET],
    ]);
  });

test("if the server has forgotten the session, a new one is started and the call is repeated", async () => {
  await using far = await startHttpServer({ tools: [described("echo")] });
  await using open = await opened(() => [entryFor(far)]);
  far.forget();
  far.side.tools = [described("echo"), described("new")];
  assert.deepEqual((await open.call("far", "echo", { again: 1 })).text, '{"again":1}');
  assert.deepEqual(namesOf(open.servers), ["mcp__far__echo", "mcp__far__new"]);
  const calls = far.requests.filter(({ body }) => body.includes("tools/call"));
  assert.deepEqual(
    calls.map(({ headers }) => headers["mcp-session-id"]),
    ["s1", "s2"],
  );
});

test("a changed list is announced on the server's own stream", async () => {
  await using far = await startHttpServer({ tools: [described("echo")] });
  await using open = await opened(() => [entryFor(far)]);
  await until(() => far.requests.some(({ method }) => method === "GET"));
  assert.equal((await open.call("far", "become", { tools: [{ name: "other" }] })).text, "changed");
  await until(() => namesOf(open.servers)[0] === "mcp__far__other");
});

test("redirects are not followed, and the secret goes nowhere else", async () => {
  await using elsewhere = await startHttpServer({ tools: [described("echo")] });
  const instead: HttpFixtureOptions["instead"] = (_, response) => {
    response.writeHead(307, { location: elsewhere.url }).end();
    return true;
  };
  await using far = await startHttpServer({ tools: [], instead });
  await using open = await opened(() => [entryFor(far)], { clock: still, times: { waitMs: 1 } });
  assert.deepEqual(await open.call("far", "echo"), {
    text: "Server far is not available: unexpected redirect",
    isError: true,
  });
  assert.deepEqual(elsewhere.requests, []);
});

test("a server that requires a sign-in is reported without the secret, even if the server repeats it", async () => {
  const refusing = async (status: number): Promise<string> => {
    await using far = await startHttpServer({
      tools: [],
      instead: (request, response) => {
        response.writeHead(status).end(`who is ${request.headers.authorization}?`);
        return true;
      },
    });
    await using open = await opened(() => [entryFor(far)], { clock: still, times: { waitMs: 1 } });
    return (await open.call("far", "echo")).text;
  };
  assert.deepEqual(
    [await refusing(401), await refusing(500)],
    [
      "Server far is not available: it answered 401: put what it asks for into headers; OAuth is not supported",
      "Server far is not available: it answered 500: who is ***?",
    ],
  );
});

test("a server that hangs, uses another protocol or does not exist causes an error and nothing else", async () => {
  await using far = await startHttpServer({ tools: [described("hang")] });
  const gone = await startHttpServer({ tools: [] });
  await gone[Symbol.asyncDispose]();
  await using strange = await startHttpServer({ tools: [] });
  Object.assign(strange.side, { version: "1999-01-01" });
  await using open = await opened(
    () => [entryFor(far, { timeoutMs: 200 }), entryFor(gone, { name: "gone" }), entryFor(strange, { name: "strange" })],
    { clock: still, times: { waitMs: 1 } },
  );
  assert.deepEqual(
    [
      (await open.call("far", "hang")).text,
      (await open.call("gone", "echo")).text.replace(/\d{4,5}$/, "PORT"),
      (await open.call("strange", "echo")).text,
    ],
    [
      "Server far: no answer within 0.2 s; what the call had begun may still go on.",
      "Server gone is not available: connect ECONNREFUSED 127.0.0.1:PORT",
      'Server strange is not available: it speaks version "1999-01-01" of the protocol, which is not known here',
    ],
  );
});
