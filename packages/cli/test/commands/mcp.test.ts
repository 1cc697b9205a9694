/** `prefork mcp`, and the servers it configures in a headless session. */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { callTools, say, toolResults } from "@prefork/simulator";
import type { JsonObject } from "@prefork/wire";
import { type Ground, openGround, type Ran } from "../print/ground.ts";

/** A minimal server: its one tool returns its arguments and an environment variable. */
const SERVER = `
import { createInterface } from "node:readline";
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  const answers = {
    initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: {} }),
    "tools/list": () => ({ tools: [{ name: "tell", description: "Tells.", inputSchema: { type: "object" } }] }),
    "tools/call": () => ({ content: [{ type: "text", text: JSON.stringify([params.arguments, process.env.TOKEN]) }] }),
  };
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method]() }));
}
`;

const prefork = async ({ start }: Ground, argv: readonly string[], env: Record<string, string> = {}): Promise<Ran> => {
  const { code, out, err } = await start(argv, { env }).ended;
  return { code, out, err };
};

/** The same in this process, which has another working folder. */
const here = ({ prefork: run }: Ground, argv: readonly string[], env: Record<string, string> = {}): Promise<Ran> =>
  run(argv, { env });

const done = (out: string, err = ""): Ran => ({ code: 0, out, err });

test("a server is added to the user's own settings with its secrets by name, listed without them, tried and removed", async () => {
  await using ground = await openGround();
  const script = ground.put("server.mjs", SERVER);
  const file = join(ground.home, ".prefork/settings.json");
  const TOKEN = "secret-of-mine";
  rmSync(file, { force: true });
  assert.deepEqual(
    await here(ground, ["mcp", "add", "teller", "--env", "TOKEN", "--", process.execPath, script]),
    done(
      `Added server teller to ${file}.\n`,
      "prefork: teller cannot start yet: env: TOKEN is not set, or is one of our keys\n",
    ),
  );
  const { mcpServers } = JSON.parse(readFileSync(file, "utf8")) as JsonObject;
  assert.deepEqual(mcpServers, {
    teller: { command: process.execPath, args: [script], env: { TOKEN: "$" + "{TOKEN}" } },
  });
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const listed = await here(ground, ["mcp", "list", "--json"], { TOKEN });
  assert.deepEqual(
    [JSON.parse(listed.out), listed.err],
    [{ name: "teller", transport: "stdio", command: process.execPath, args: [script], env: ["TOKEN"], from: file }, ""],
  );
  assert.deepEqual(
    await here(ground, ["mcp", "test", "teller"], { TOKEN }),
    done("Server teller offers 1 tool.\n  tell: Tells.\n"),
  );
  assert.deepEqual(await here(ground, ["mcp", "remove", "teller"]), done(`Removed server teller from ${file}.\n`));
  assert.deepEqual(await here(ground, ["mcp"]), done("No tool server is configured. To add one: prefork mcp add\n"));
});

test("an entry that would not be used is refused in one line, and nothing is written", async () => {
  await using ground = await openGround();
  const rows: readonly (readonly [readonly string[], string])[] = [
    [["add", "a"], "name a program after --, or give a URL with --url"],
    [["add", "a__b", "--", "x"], "server a__b: a name has at most 32 letters, digits, - and single _"],
    [["add", "a", "--url", "ftp://x"], "server a: the url is not an http or https address"],
    [["add", "a", "--url", "https://x", "--header", "no colon"], "--header takes 'Name: value'"],
    [["add", "a", "--env", "=x", "--", "x"], "--env takes NAME or NAME=value"],
    [
      ["add", "a", "--env", "ANTHROPIC_API_KEY", "--", "x"],
      "server a: ANTHROPIC_API_KEY is never passed to a server, because it is a key of a model provider or a variable that makes shells run code; use a variable with another name",
    ],
    [["remove", "a", "--scope", "project"], `${resolve(".mcp.json")}: there is no server a`],
    [["test", "a"], "there is no server a here (prefork mcp lists them)"],
  ];
  for (const [argv, reason] of rows)
    assert.deepEqual(await here(ground, ["mcp", ...argv]), { code: 2, out: "", err: `prefork: ${reason}\n` });
  assert.throws(() => statSync(resolve(".mcp.json")), { code: "ENOENT" });
});

test("testing a skipped server says why it is skipped, and what to do", async () => {
  await using ground = await openGround();
  const file = join(ground.home, ".prefork/settings.json");
  await prefork(ground, ["mcp", "add", "mine", "--env", "TOKEN", "--", "x"]);
  await prefork(ground, ["mcp", "add", "theirs", "--scope", "project", "--", "x"]);
  const refused = (reason: string): Ran => ({ code: 2, out: "", err: `prefork: ${reason}\n` });
  assert.deepEqual(
    await prefork(ground, ["mcp", "test", "mine"]),
    refused(
      `${file}: server "mine" is skipped: env: TOKEN is not set, or is one of our keys; set it before you start prefork`,
    ),
  );
  assert.deepEqual(
    await prefork(ground, ["mcp", "test", "theirs"]),
    refused("server theirs is configured in this folder, which is not trusted, so it is skipped (prefork trust)"),
  );
  assert.deepEqual(
    await prefork(ground, ["mcp", "test", "nobodys"]),
    refused("there is no server nobodys here (prefork mcp lists them)"),
  );
});

test("testing a skipped server only says to set a variable if a variable is missing", async () => {
  await using ground = await openGround();
  const file = join(ground.home, ".prefork/settings.json");
  const argument = `TOKEN is not set: $${"{TOKEN}"}`;
  mkdirSync(join(ground.home, ".prefork"), { recursive: true });
  writeFileSync(file, JSON.stringify({ mcpServers: { mine: { command: "x", args: [argument] } } }));
  assert.deepEqual(await prefork(ground, ["mcp", "test", "mine"]), {
    ...{ code: 2, out: "" },
    err: `prefork: ${file}: server "mine" is skipped: variables are only filled in env and headers, not in ${argument}\n`,
  });
});

test("a server that fails is reported, with exit code 1", async () => {
  await using ground = await openGround();
  await here(ground, ["mcp", "add", "none", "--", "no-such-program-anywhere"]);
  const { code, out, err } = await here(ground, ["mcp", "test", "none"]);
  assert.deepEqual([code, out], [1, ""]);
  assert.match(err, /^prefork: server none failed: it ended with exit code 127: .*not found\n$/);
});

test("a project's server is used in a session once the folder is trusted, and not before", async () => {
  const model = (request: Parameters<typeof toolResults>[0]) => {
    const names = (request.body.tools as readonly JsonObject[]).map(({ name }) => name);
    if (!names.includes("mcp__teller__tell")) return say("no such tool");
    const [result] = toolResults(request);
    return result ? say(result.text) : callTools([{ name: "mcp__teller__tell", input: { a: 1 } }]);
  };
  await using ground = await openGround(model);
  const script = ground.put("server.mjs", SERVER);
  await prefork(ground, ["mcp", "add", "teller", "--scope", "project", "--", process.execPath, script]);
  const ask = ["-p", "go", "--allow", "mcp__teller"];
  const unused = "prefork: settings of this folder are not used: .mcp.json is not trusted (prefork trust)\n";
  assert.deepEqual(await prefork(ground, ask), done("no such tool\n", unused));
  assert.match((await prefork(ground, ["mcp"])).err, /\.mcp\.json is not used: the folder is not trusted/);
  assert.equal((await prefork(ground, ["trust"])).code, 0);
  assert.deepEqual(await prefork(ground, ask, { TOKEN: "not for it" }), done('[{"a":1},null]\n'));
});
