/** What is kept, where, and what is never kept: every byte of it is searched. */

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { readRequests, xrayChain } from "@prefork/xray";
import { startProxy } from "@prefork/xray/proxy";
import { a, b, type Request } from "../compare/corpus/conversation.ts";
import { startProvider } from "./ends.ts";
import { openGround } from "./ground.ts";

let base = "";
before(() => {
  base = mkdtempSync(join(tmpdir(), "prefork-proxy-"));
});
after(() => rmSync(base, { recursive: true }));

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

test("recorded requests equal those that were sent, in a folder and a file that no other user can read", async () => {
  const folder = join(base, "new", "folder");
  const before = process.umask(0);
  try {
    await using ground = await openGround({ proxy: { record: folder } });
    await ground.send(a);
    await ground.send(b, { headers: { "anthropic-beta": "one-2026-01-01" } });
    const { record } = await ground.proxy.close();
    const file = ground.proxy.recordedTo ?? "";
    assert.deepEqual(record, { file, requests: 2 });
    assert.deepEqual([modeOf(folder), modeOf(file), readdirSync(folder).length], ["700", "600", 1]);
    const requests = readRequests(readFileSync(file), "file");
    assert.deepEqual(
      requests.map(({ body }) => body.toString()),
      [a, b].map((body) => JSON.stringify({ ...body, stream: true })),
    );
    const { steps } = xrayChain(requests);
    assert.deepEqual(
      steps.map(({ relation, xray }) => [relation, xray?.cause.kind]),
      [
        ["starts", undefined],
        ["changes", "parameter"],
      ],
    );
    const lines = readFileSync(file, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      lines.map(({ request, lineage, path, outcome, response, usage }) => [
        request,
        lineage,
        path,
        outcome,
        response.status,
        usage.output,
      ]),
      [
        [1, 1, "/v1/messages", "complete", 200, 7],
        [2, 1, "/v1/messages", "complete", 200, 7],
      ],
    );
    assert.match(lines[0].response.body, /^event: message_start\n/);
  } finally {
    process.umask(before);
  }
});

test("a folder that others can look into, a link and a file are refused before anything is opened", async () => {
  const open = join(base, "open");
  mkdirSync(open);
  chmodSync(open, 0o755);
  const link = join(base, "link");
  symlinkSync(base, link);
  await assert.rejects(startProxy({ record: open }), {
    message: `${open} can be read by others: choose another folder, or close it (chmod 700)`,
  });
  await assert.rejects(startProxy({ record: link }), { message: `${link} is not a folder` });
  await assert.rejects(startProxy({ record: "/dev/null" }), { message: "/dev/null cannot be made: EEXIST" });
  assert.deepEqual(readdirSync(open), []);
});

const SECRETS = {
  bearer: "bearer-token-0123456789",
  key: "sk-ant-api03-0123456789",
  cookie: "cookie-value-0123456789",
  query: "query-key-0123456789",
  other: "gateway-key-0123456789",
  answer: "set-cookie-0123456789",
  server: "mcp-token-0123456789",
};

test("no credential is in a record, a report or an event, not even where a body repeats it", async () => {
  const folder = join(base, "secrets");
  const told: string[] = [];
  await using provider = await startProvider((response) => {
    response.writeHead(200, { "content-type": "application/json", "set-cookie": `session=${SECRETS.answer}` });
    response.end(
      JSON.stringify({
        content: [{ type: "text", text: `your key is ${SECRETS.key}` }],
        usage: { input_tokens: 1, cache_creation_input_tokens: 5_000, cache_read_input_tokens: 0, output_tokens: 1 },
      }),
    );
  });
  const proxy = await startProxy({
    upstream: provider.url,
    record: folder,
    onEvent: (event) => told.push(JSON.stringify(event)),
  });
  const env = `ANTHROPIC_API_KEY=${SECRETS.key}\nTOKEN="${SECRETS.bearer}"`;
  const leaky: Request = {
    ...a,
    messages: [...a.messages, { role: "assistant", content: "Look:" }, { role: "user", content: env }],
  };
  const servers = [SECRETS.server, "another"].map((token) => ({
    mcp_servers: [{ type: "url", name: "wiki", url: "https://wiki.invalid", authorization_token: token }],
  }));
  for (const body of [a, leaky, { ...a, ...servers[0] }, { ...a, ...servers[1] }])
    await fetch(`${proxy.url}/v1/messages?api_key=${SECRETS.query}&beta=true`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${SECRETS.bearer}`,
        "x-api-key": SECRETS.key,
        cookie: `a=1; session=${SECRETS.cookie}`,
        "x-gateway-api-key": SECRETS.other,
      },
      body: JSON.stringify(body),
    }).then((response) => response.text());
  const report = await proxy.close();
  const recorded = readdirSync(folder).map((name) => readFileSync(join(folder, name), "latin1"));
  const { server, ...sent } = SECRETS;
  assert.equal(recorded.join("").match(/\n/g)?.length, 4);
  for (const secret of Object.values(sent)) assert.ok(!recorded.join("").includes(secret), secret);
  const shown = [JSON.stringify(report), ...told].join("\n");
  for (const secret of [...Object.values(sent), server]) assert.ok(!shown.includes(secret), secret);
  // What a body itself says is kept with it: only what proves who sends it is blanked out.
  assert.ok(recorded.join("").includes(server));
  // And all of it reached the provider.
  assert.ok(
    provider.heard.every(({ url, headers }) => url.includes(SECRETS.query) && headers.join().includes(SECRETS.cookie)),
  );
});

test("without being asked to it keeps nothing", async () => {
  await using ground = await openGround();
  await ground.send(a);
  const { record } = await ground.proxy.close();
  assert.deepEqual([record, ground.proxy.recordedTo], [undefined, undefined]);
});
