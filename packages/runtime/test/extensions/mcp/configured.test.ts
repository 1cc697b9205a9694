/** Which servers are configured: what an entry may say, which file wins, and how it is edited. */

import assert from "node:assert/strict";
import { mkdirSync, symlinkSync } from "node:fs";
import { test } from "node:test";
import { scratch } from "@prefork/testing/scratch";
import { createSecretFilter, readEntry } from "../../../src/extensions/mcp/entry.ts";
import { editServers, readServers } from "../../../src/extensions/mcp/index.ts";

const ENVIRONMENT = { HOME: "/home/me", TOKEN: "t0ken-of-mine" };
const variable = (words: string): string => `\${${words}}`;
type Written = Parameters<typeof readEntry>[1];
const read = (written: Written, name = "a") => readEntry(name, written, { environment: ENVIRONMENT });

test("an entry is a program or an address; variables are only filled in where secrets belong", () => {
  const rows: readonly (readonly [Written, unknown])[] = [
    [{ command: "run" }, { name: "a", transport: "stdio", command: "run", args: [], env: {} }],
    [
      {
        command: "run",
        args: ["$x"],
        env: { A: variable("TOKEN"), B: `${variable("NONE:-none")} ${variable("HOME")}` },
        timeoutMs: 5,
      },
      {
        ...{ name: "a", timeoutMs: 5, transport: "stdio", command: "run", args: ["$x"] },
        env: { A: "t0ken-of-mine", B: "none /home/me" },
      },
    ],
    [
      { url: "https://a.example/mcp", headers: { authorization: `Bearer ${variable("TOKEN")}` } },
      {
        ...{ name: "a", transport: "http", url: "https://a.example/mcp" },
        headers: { authorization: "Bearer t0ken-of-mine" },
      },
    ],
    [
      { url: "http://localhost:8080", headers: { a: "b" } },
      { name: "a", transport: "http", url: "http://localhost:8080", headers: { a: "b" } },
    ],
    [{ url: "http://far.example" }, { name: "a", transport: "http", url: "http://far.example", headers: {} }],
    [{}, "it has neither a command nor a url"],
    [{ type: "http", command: "run" }, "it has no url"],
    [{ command: "run", url: "https://a" }, "it has both a command and a url"],
    [
      { command: "run", args: [variable("TOKEN")] },
      `variables are only filled in env and headers, not in ${variable("TOKEN")}`,
    ],
    [{ command: "run", env: { A: variable("NONE") } }, "env: NONE is not set, or is one of our keys"],
    [
      { url: `https://a/${variable("TOKEN")}` },
      "variables are only filled in env and headers, because others can see an address",
    ],
    [{ url: "ftp://a" }, "the url is not an http or https address"],
    [{ url: "https://me:pass@a" }, "the url contains a user name or a password; put it into headers"],
    [
      { url: "http://far.example", headers: { a: "b" } },
      "headers are not sent over plain http to another machine; use https",
    ],
  ];
  for (const [written, expected] of rows) {
    const found = read(written);
    assert.deepEqual(found.ok ? found.entry : found.reason, expected, JSON.stringify(written));
  }
});

test("a name that could be read as another server's tool, or not be part of a tool's name, is invalid", () => {
  const names = ["a", "my-server", "a_b", "A1", "x".repeat(32)];
  const wrong = ["", "a__b", "_a", "a_", "a.b", "a b", "a/b", "ä", "__proto__", "x".repeat(33), "a\n"];
  assert.deepEqual(
    [...names, ...wrong].map((name) => read({ command: "x" }, name).ok),
    [...names.map(() => true), ...wrong.map(() => false)],
  );
});

test("configured values are hidden from texts for people, also in parts", () => {
  const hide = createSecretFilter({
    name: "a",
    transport: "http",
    url: "https://a",
    headers: { a: "Bearer abcdefgh", b: "on" },
  });
  assert.equal(hide("sent Bearer abcdefgh and abcdefgh, on time"), "sent *** and ***, on time");
});

test("a trusted folder's file is read with whatever other programs write into it; the user's own entry wins", async () => {
  using place = scratch();
  place.put(
    "project/.mcp.json",
    `{ // comments are fine
      "mcpServers": {
        "mine": { "command": "theirs" },
        "web": { "type": "streamable-http", "url": "https://a.example/mcp", "alwaysAllow": ["x"] },
        "old": { "type": "sse", "url": "https://a.example/sse" },
        "off": { "command": "x", "disabled": true },
        "bad name": { "command": "x" },
        "broken": { "command": 7 },
        "tool": { "command": "run", "args": ["--fast"], "env": { "TOKEN": "${variable("TOKEN")}" } }
      }, "inputs": [] }`,
  );
  const [project, settings] = [
    place.at("project"),
    [{ path: "~/settings.json", servers: { mine: { command: "own" } } }],
  ];
  const file = place.at("project/.mcp.json");
  const skipped = [
    ["old", `${file}: server "old" is skipped: it uses the old HTTP+SSE transport; only streamable HTTP is supported`],
    ["broken", `${file}: server "broken" is skipped: Invalid input: expected string, received number`],
    ["mine", `${file}: server mine is skipped: ~/settings.json has one with the same name`],
    ["bad name", `${file}: server "bad name" is skipped: a name has at most 32 letters, digits, - and single _`],
  ].map(([name, notice]) => ({ name, notice }));
  assert.deepEqual(await readServers({ project, trusted: true, settings, environment: ENVIRONMENT }), {
    servers: [
      { name: "mine", from: "~/settings.json", transport: "stdio", command: "own", args: [], env: {} },
      { name: "web", from: file, transport: "http", url: "https://a.example/mcp", headers: {} },
      {
        name: "tool",
        from: file,
        transport: "stdio",
        command: "run",
        args: ["--fast"],
        env: { TOKEN: "t0ken-of-mine" },
      },
    ],
    notices: skipped.map(({ notice }) => notice),
    skipped,
  });
});

test("an untrusted folder is not read, and a link or a malformed file is skipped with the reason", async () => {
  using place = scratch();
  const asked = { settings: [], environment: {} };
  const file = place.put("a/.mcp.json", "{ nope");
  mkdirSync(place.at("b"));
  symlinkSync(place.put("outside.json", '{"mcpServers":{"x":{"command":"y"}}}'), place.at("b/.mcp.json"));
  mkdirSync(place.at("c"));
  const none = { servers: [], notices: [], skipped: [] };
  assert.deepEqual(await readServers({ ...asked, project: place.at("a"), trusted: false }), none);
  assert.deepEqual(await readServers({ ...asked, project: place.at("c"), trusted: true }), none);
  assert.deepEqual(await readServers({ ...asked, project: place.at("a"), trusted: true }), {
    servers: [],
    notices: [`${file} is skipped: not JSON: InvalidSymbol at character 2`],
    skipped: [],
  });
  assert.deepEqual(await readServers({ ...asked, project: place.at("b"), trusted: true }), {
    servers: [],
    notices: [`${place.at("b/.mcp.json")} is skipped: this is a link, and links are not followed`],
    skipped: [],
  });
});

test("a file that is nested too deeply is skipped, and is not edited", async () => {
  using place = scratch();
  const deep = `${"[".repeat(300_000)}${"]".repeat(300_000)}`;
  const text = `{"mcpServers":{"a":{"command":"x","args":${deep}}}}`;
  const file = place.put("a/.mcp.json", text);
  assert.deepEqual(await readServers({ settings: [], environment: {}, project: place.at("a"), trusted: true }), {
    servers: [],
    notices: [`${file} is skipped: it is nested too deeply`],
    skipped: [],
  });
  assert.deepEqual(editServers(text, "b", { command: "run" }), { ok: false, reason: "the file is not valid JSON" });
});

test("a server is added and removed without touching anything else in the file", () => {
  const before = '{\n  // mine\n  "permissions": {\n    "mode": "plan" // always\n  }\n}\n';
  const added = editServers(before, "a", { command: "run", args: ["x"] });
  assert.ok(added.ok);
  assert.equal(
    added.text,
    '{\n  // mine\n  "permissions": {\n    "mode": "plan" // always\n  },\n  "mcpServers": {\n    "a": {\n      "command": "run",\n      "args": [\n        "x"\n      ]\n    }\n  }\n}\n',
  );
  const removed = editServers(added.text, "a", undefined);
  assert.deepEqual(removed, {
    ok: true,
    text: '{\n  // mine\n  "permissions": {\n    "mode": "plan" // always\n  },\n  "mcpServers": {\n  }\n}\n',
  });
  assert.deepEqual(
    [
      editServers(undefined, "a", { url: "https://a" }),
      editServers(added.text, "a", { url: "https://a" }),
      editServers(before, "b", undefined),
      editServers("{ broken", "b", { command: "x" }),
      editServers("[]", "b", { command: "x" }),
    ],
    [
      { ok: true, text: '{\n  "mcpServers": {\n    "a": {\n      "url": "https://a"\n    }\n  }\n}\n' },
      { ok: false, reason: "there is a server a already; remove it first" },
      { ok: false, reason: "there is no server b" },
      { ok: false, reason: "the file is not valid JSON" },
      { ok: false, reason: "the file is not valid JSON" },
    ],
  );
});
