/** Which engine answers: flags and environment choose it, and it is named if nobody asked for it. */

import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { say, startSimulator, textOfTokens } from "@prefork/simulator";
import { profiles } from "@prefork/wire";
import { chooseEngine, type EngineFlags } from "../../src/print/index.ts";
import { openGround, parsedLines, resultIn } from "./ground.ts";

const NO_KEY =
  "prefork: no ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY is set, so the built-in rehearsal engine answers: it follows task lists with real tools, without a language model\n";
const keyless = { ANTHROPIC_API_KEY: "", ANTHROPIC_BASE_URL: "" };

test("--model is what is asked for and what is billed", async () => {
  await using ground = await openGround();
  const { code, out } = await ground.prefork(["-p", "--model", "claude-opus-4-6", "--output-format", "json", "speak"]);
  assert.deepEqual([code, resultIn(out).model], [0, "claude-opus-4-6"]);
  assert.deepEqual(
    ground.simulator.ledger().map(({ model }) => model),
    ["claude-opus-4-6"],
  );
});

test("--base-url wins over ANTHROPIC_BASE_URL", async () => {
  await using ground = await openGround(() => say("from the variable"));
  await using other = await startSimulator({ script: () => say("from the flag") });
  assert.equal((await ground.prefork(["-p", "speak"])).out, "from the variable\n");
  assert.equal((await ground.prefork(["-p", "--base-url", other.url, "speak"])).out, "from the flag\n");
  assert.deepEqual([ground.simulator.ledger().length, other.ledger().length], [1, 1]);
});

test("without a key a notice says so, and the rehearsal engine works with real tools", async () => {
  await using ground = await openGround();
  ground.put("notes.txt", "first\nsecond\n");
  const { code, out, err } = await ground.prefork(["-p", "1. count lines in notes.txt\n2. read notes.txt"], {
    env: keyless,
  });
  assert.deepEqual([code, err], [0, NO_KEY]);
  assert.equal(
    out,
    [
      "[rehearsal engine: no language model is behind this answer]",
      "",
      "1. count lines in notes.txt",
      "   Bash `wc -l -- 'notes.txt'`: exit code 0",
      "     2 notes.txt",
      "",
      "2. read notes.txt",
      "   Read notes.txt: lines 1 to 2",
      "     1\tfirst",
      "     2\tsecond",
      "",
    ].join("\n"),
  );
  assert.deepEqual(ground.simulator.ledger(), []);
});

test("the embedded engine that was asked for is not explained, but named in every result", async () => {
  await using ground = await openGround();
  const argv = ["-p", "--provider", "rehearsal", "--output-format", "events", "git status"];
  const { code, out, err } = await ground.prefork(argv);
  assert.deepEqual([code, err], [0, ""]);
  const lines = parsedLines(out);
  assert.deepEqual([lines[0]?.engine, lines.at(-1)?.engine], ["rehearsal", "rehearsal"]);
  assert.deepEqual(ground.simulator.ledger(), []);
});

test("an unusable provider is refused in one line", async () => {
  await using ground = await openGround();
  const wrong: readonly (readonly [readonly string[], string])[] = [
    [
      ["--provider", "anthropic"],
      "--provider anthropic needs ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or --base-url for an endpoint without a key",
    ],
    [
      ["--provider", "oracle"],
      `option '--provider <name>' argument 'oracle' is invalid. Allowed choices are ${[...profiles.keys()].join(", ")}, rehearsal.`,
    ],
    [
      ["--provider", "deepseek"],
      "--provider deepseek needs DEEPSEEK_API_KEY, or --base-url for an endpoint without a key",
    ],
    [["--provider", "vllm"], "--provider vllm has no default model; choose one with --model"],
    [["--base-url", "localhost:1"], '--base-url must start with http:// or https://, not "localhost:1"'],
  ];
  for (const [flags, complaint] of wrong)
    assert.deepEqual(await ground.prefork(["-p", ...flags, "speak"], { env: keyless }), {
      ...{ code: 2, out: "", err: `prefork: ${complaint}\n` },
    });
});

test("who answers is found by name, by address, and by whose key is there", () => {
  const found = (flags: EngineFlags, env: Readonly<Record<string, string>> = {}): string => {
    const choice = chooseEngine({ model: "m", ...flags }, env);
    if (choice.kind === "rehearsal") return "rehearsal";
    const { profile, baseUrl = "", credential } = choice;
    return [profile.name, baseUrl, credential?.value ?? ""].join(" ").trim();
  };
  const all = { ANTHROPIC_API_KEY: "a", OPENAI_API_KEY: "o", DEEPSEEK_API_KEY: "d" };
  assert.deepEqual(
    [
      found({}, all),
      found({}, { OPENAI_API_KEY: "o" }),
      found({}, { OPENAI_API_KEY: "o", OPENAI_BASE_URL: "http://127.0.0.1:8000/v1" }),
      found({}, { OPENAI_API_KEY: "o", OPENAI_BASE_URL: "https://openrouter.ai/api/v1" }),
      found({}, { OPENAI_API_KEY: "o", OPENAI_BASE_URL: "https://api.openai.com/v1" }),
      found({ provider: "deepseek" }, all),
      found({ provider: "openai" }, all),
      found({ provider: "vllm" }, all),
      found({ baseUrl: "https://api.deepseek.com" }, all),
      found({ baseUrl: "https://api.deepseek.com/anthropic" }, all),
      found({ baseUrl: "http://127.0.0.1:1" }, all),
      found({ baseUrl: "http://127.0.0.1:1" }, { OPENAI_API_KEY: "o" }),
      found({ baseUrl: "http://127.0.0.1:1/v1beta" }, { GEMINI_API_KEY: "g" }),
      found({ baseUrl: "http://127.0.0.1:1" }, { GEMINI_API_KEY: "g" }),
      found({ baseUrl: "http://127.0.0.1:1/v1beta" }, { ...all, GEMINI_API_KEY: "g" }),
      found({ baseUrl: "https://generativelanguage.googleapis.com/v1beta/openai" }, { GEMINI_API_KEY: "g" }),
      found({ baseUrl: "http://127.0.0.1:1/gateway/anthropic" }, { OPENAI_API_KEY: "o" }),
      found({ baseUrl: "http://127.0.0.1:1" }),
      found({}, { OPENAI_API_KEY: " " }),
      found({}, { GEMINI_API_KEY: "g", GOOGLE_GEMINI_BASE_URL: "http://127.0.0.1:1" }),
      found({}, { GEMINI_API_KEY: "g", GEMINI_BASE_URL: "http://127.0.0.1:2" }),
      found(
        {},
        {
          GEMINI_API_KEY: "g",
          GOOGLE_GEMINI_BASE_URL: "http://127.0.0.1:1/v1beta/",
          GEMINI_BASE_URL: "http://127.0.0.1:2",
        },
      ),
    ],
    [
      "anthropic  a",
      "openai  o",
      "openai-chat http://127.0.0.1:8000/v1 o",
      "openrouter https://openrouter.ai/api/v1 o",
      "openai https://api.openai.com/v1 o",
      "deepseek  d",
      "openai  o",
      "vllm",
      "deepseek https://api.deepseek.com d",
      "anthropic https://api.deepseek.com/anthropic d",
      "anthropic http://127.0.0.1:1 a",
      "openai-chat http://127.0.0.1:1 o",
      "gemini http://127.0.0.1:1/v1beta g",
      "gemini http://127.0.0.1:1 g",
      "gemini http://127.0.0.1:1/v1beta g",
      "openai-chat https://generativelanguage.googleapis.com/v1beta/openai g",
      "anthropic http://127.0.0.1:1/gateway/anthropic",
      "anthropic http://127.0.0.1:1",
      "rehearsal",
      "gemini http://127.0.0.1:1/v1beta g",
      "gemini http://127.0.0.1:2 g",
      "gemini http://127.0.0.1:1/v1beta/ g",
    ],
  );
});

test("if neither URL nor keys identify the provider, the error names the flag that does", () => {
  const keys = { OPENAI_API_KEY: "o", GEMINI_API_KEY: "g" };
  assert.throws(() => chooseEngine({ baseUrl: "http://127.0.0.1:1" }, keys), {
    message: `--base-url http://127.0.0.1:1 does not identify the provider; add --provider (${[...profiles.keys()].join(", ")}, rehearsal)`,
  });
});

test("a conversation stays with the provider that answered it, if its key is set or none is needed", () => {
  const found = (protocol: string, env: Readonly<Record<string, string>>, flags: EngineFlags = {}): string => {
    const choice = chooseEngine(flags, env, { protocol, model: "its-own" });
    return choice.kind === "rehearsal" ? "rehearsal" : `${choice.profile.name} ${choice.model} ${choice.baseUrl ?? ""}`;
  };
  const keys = { ANTHROPIC_API_KEY: "a", DEEPSEEK_API_KEY: "d" };
  assert.deepEqual(
    [
      found("deepseek", keys),
      found("deepseek", { ANTHROPIC_API_KEY: "a" }),
      found("deepseek", keys, { provider: "anthropic" }),
      found("deepseek", keys, { baseUrl: "http://127.0.0.1:1" }),
      found("vllm", {}, { provider: "vllm" }),
      found("vllm", {}),
      found("vllm", {}, { baseUrl: "http://127.0.0.1:1/v1" }),
      found("vllm", keys),
      found("minimax", {}),
    ],
    [
      "deepseek its-own ",
      "anthropic claude-sonnet-5 ",
      "anthropic claude-sonnet-5 ",
      "deepseek its-own http://127.0.0.1:1",
      "vllm its-own ",
      "vllm its-own ",
      "vllm its-own http://127.0.0.1:1/v1",
      "anthropic claude-sonnet-5 ",
      "rehearsal",
    ],
  );
});

/** An endpoint that needs no key, and records the keys that it received. */
const refusing = async (): Promise<
  AsyncDisposable & { readonly url: string; readonly seen: IncomingHttpHeaders[] }
> => {
  const seen: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    seen.push(request.headers);
    request.resume();
    response.writeHead(401, { "content-type": "application/json" });
    response.end('{"type":"error","error":{"type":"authentication_error","message":"this key opens nothing"}}');
  });
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  return {
    seen,
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () => new Promise((done) => void server.close(() => done())),
  };
};

test("keys come from the environment, go into the header of their kind, and are never shown", async () => {
  await using ground = await openGround();
  await using endpoint = await refusing();
  const given: readonly Readonly<Record<string, string>>[] = [
    { ANTHROPIC_API_KEY: "sk-one", ANTHROPIC_AUTH_TOKEN: "" },
    { ANTHROPIC_API_KEY: "", ANTHROPIC_AUTH_TOKEN: "token-two" },
    { ANTHROPIC_API_KEY: " sk-one ", ANTHROPIC_AUTH_TOKEN: "token-two" },
    { ANTHROPIC_API_KEY: "", ANTHROPIC_AUTH_TOKEN: "" },
  ];
  for (const env of given) {
    const { code, out, err } = await ground.prefork(["-p", "speak"], {
      env: { ...env, ANTHROPIC_BASE_URL: endpoint.url },
    });
    assert.deepEqual([code, out], [1, ""]);
    assert.match(err, /^prefork: stopped: .*this key opens nothing.* \(to resume: --resume [0-9a-f]{10}\)\n$/);
    assert.doesNotMatch(err, /sk-one|token-two/);
  }
  assert.deepEqual(
    endpoint.seen.map(({ "x-api-key": key, authorization }) => [key, authorization]),
    [
      ["sk-one", undefined],
      [undefined, "Bearer token-two"],
      ["sk-one", undefined],
      [undefined, undefined],
    ],
  );
});

test("a conversation that moves between a provider and the rehearsal engine prints a notice, and explain knows why the cache was cold", async () => {
  await using ground = await openGround();
  ground.put("AGENTS.md", textOfTokens(8_000));
  const told = async (argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> => {
    const { code, err } = await ground.prefork(["-p", ...argv], { env });
    assert.equal(code, 0);
    return err;
  };
  const rehearsal = ["--provider", "rehearsal"];
  assert.equal(await told([...rehearsal, "1. list files"]), "");
  assert.equal(await told([...rehearsal, "-c", "1. list files"]), "");
  assert.equal(
    await told(["-c", "go on"]),
    "prefork: this conversation was with the rehearsal engine and continues with anthropic (claude-sonnet-5): its cache is cold, so the next request pays for the whole conversation\n",
  );
  assert.equal(
    await told(["-c", "1. list files"], keyless),
    `${NO_KEY}prefork: this conversation was with anthropic (claude-sonnet-5) and continues with the rehearsal engine: from now on no language model answers\n`,
  );
  const { session_id: id } = resultIn((await ground.prefork(["-p", "-c", "--output-format", "json", "end"])).out);
  const { rows } = resultIn((await ground.prefork(["explain", String(id), "--json"])).out) as {
    readonly rows: readonly { readonly turn: number; readonly cause: { readonly kind: string } }[];
  };
  const causes = rows.map(({ cause }) => cause.kind);
  assert.deepEqual(
    causes.filter((kind) => kind !== "none"),
    // The last request goes to the provider again, whose cache entry is still alive.
    ["first-request", "rehearsal-ended", "other-address", "other-address"],
  );
});
