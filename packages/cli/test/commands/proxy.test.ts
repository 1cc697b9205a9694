/** `prefork proxy` as a process between the official SDK and `prefork sim`: its output and its exit. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import Anthropic from "@anthropic-ai/sdk";
import { type LedgerRow, textOfTokens } from "@prefork/simulator";
import { run } from "../../src/main.ts";
import { captured } from "../captured.ts";

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const built = fileURLToPath(new URL("../../bin/prefork.js", import.meta.url));
const KEY = "sk-ant-test-0123456789";

let base = "";
before(() => {
  base = mkdtempSync(join(tmpdir(), "prefork-proxy-command-"));
});
after(() => rmSync(base, { recursive: true }));

type Running = AsyncDisposable & {
  readonly child: ChildProcess;
  readonly firstLine: string;
  readonly out: () => string;
  readonly err: () => string;
  /** Interrupts it and returns its exit code. */
  readonly stop: () => Promise<number | null>;
};

const start = async (program: readonly string[], ...argv: readonly string[]): Promise<Running> => {
  const child = spawn(process.execPath, [...program, ...argv], { stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  child.stderr.on("data", (chunk: Buffer) => {
    err += chunk;
  });
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (line) => {
    out += `${line}\n`;
  });
  const [firstLine] = (await once(lines, "line")) as [string];
  const stop = async (): Promise<number | null> => {
    if (child.exitCode === null) {
      const ended = once(child, "close");
      child.kill("SIGINT");
      await ended;
    }
    return child.exitCode;
  };
  return {
    child,
    firstLine,
    out: () => out,
    err: () => err,
    stop,
    [Symbol.asyncDispose]: async () => void (await stop()),
  };
};

const sources = [...process.execArgv, main];
const marker = { cache_control: { type: "ephemeral" as const } };

/** Three turns, two forks of the last of them side by side, and a turn whose system text contains another time. */
const work = async (url: string): Promise<void> => {
  const client = new Anthropic({ baseURL: url, apiKey: KEY, maxRetries: 0 });
  const user = (text: string, ...more: readonly string[]) => ({
    role: "user" as const,
    content: [text, ...more].map((words) => ({ type: "text" as const, text: words, ...marker })),
  });
  const ask = (time: string, messages: readonly Anthropic.MessageParam[]) =>
    client.messages
      .stream({
        model: "claude-sonnet-5",
        max_tokens: 100,
        system: [{ type: "text", text: `It is ${time}. ${textOfTokens(2_000)}`, ...marker }],
        messages: [...messages],
      })
      .finalMessage();
  const said = { role: "assistant" as const, content: textOfTokens(100, 1) };
  await ask("09:15", [user(textOfTokens(500, 2))]);
  const second = [{ role: "user" as const, content: textOfTokens(500, 2) }, said, user("Go on.")];
  await ask("09:15", second);
  await ask("09:15", [...second, said, user(textOfTokens(200, 3), "schema")]);
  await ask("09:15", [...second, said, user(textOfTokens(200, 3), "service")]);
  await ask("09:17", second);
};

/** 2,004 tokens of system text, 500 of prompt, 100 of answer, 2 of the next prompt: 2,606 are shared by the forks, which
 *  add 100 + 200 + 2 each; the last request is as long as the second, and reads nothing. */
const SUMMARY = `
5 requests to models, 2 lineages, 1 family
59.2 % of 13,532 prompt tokens were read from the cache; re-write factor 1.896
paid $0.0161, of which $0.00599 for cache misses

lineage    client        model            requests    read  tokens read  written  uncached  re-write      cost   lost
─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
1          Anthropic/JS  claude-sonnet-5         3  63.7 %        5,110    2,908         0     1.000  $0.00874      0
2 from #2  Anthropic/JS  claude-sonnet-5         2  52.7 %        2,906    2,608         0     1,304  $0.00740  2,606
all                                              5  59.2 %        8,016    5,516         0     1.896   $0.0161  2,606

family of  members  shared  requests    read  tokens read  written  uncached  re-write      cost  lost
──────────────────────────────────────────────────────────────────────────────────────────────────────
#2               2   2,606         2  94.8 %        5,512      304         0     1.000  $0.00216     0

lost by         times  tokens      cost
───────────────────────────────────────
system changed      1   2,606  $0.00599

#5 (lineage 2, against #4) system changed at system[0].text: 2,606 tokens ($0.00599) paid for again
    the system text changed: it contains a time; to fix it: remove a time from the system text; put it in the last message

Recorded: FILE (5 requests); prefork xray shows what differs.
`;

test("the SDK works through the proxy, the summary reports what happened, and Ctrl-C exits with 0", async () => {
  await using sim = await start(sources, "sim");
  // The built program, if there is one: it loads its threads from another location.
  const program = existsSync(new URL("../../dist/main.js", import.meta.url)) ? [built] : sources;
  await using proxy = await start(program, "proxy", "--upstream", sim.firstLine, "--record", join(base, "kept"));
  const [, url = ""] = /^ANTHROPIC_BASE_URL=(http:\/\/127\.0\.0\.1:\d+)$/.exec(proxy.firstLine) ?? [];
  await work(url);
  const report = (await (await fetch(`${url}/_proxy/report`)).json()) as { readonly answered: number };
  assert.equal(report.answered, 5);
  assert.equal(await proxy.stop(), 0);
  const [anthropic, openai, gemini, ...rest] = proxy.out().split("\n");
  const lines = [`ANTHROPIC_BASE_URL=${url}`, `OPENAI_BASE_URL=${url}/v1`, `GOOGLE_GEMINI_BASE_URL=${url}`];
  assert.deepEqual([anthropic, openai, gemini], lines);
  const out = rest.join("\n");
  assert.equal(out.replace(/Recorded: \S+/, "Recorded: FILE"), SUMMARY);
  const said = proxy.err().split("\n");
  assert.deepEqual(
    said.map((line) => line.slice(0, 60)),
    [
      `prefork: forwarding to ${sim.firstLine}; stop with Ctr`,
      "family: #3, #4 grew from #2 and share its 2,606 tokens",
      "#5 (lineage 2, against #4) system changed at system[0].text:",
      "    the system text changed: it contains a time; to fix it: ",
      "",
    ],
  );
  const { rows } = (await (await fetch(`${sim.firstLine}/_sim/ledger`)).json()) as {
    readonly rows: readonly LedgerRow[];
  };
  const sum = (pick: (row: LedgerRow) => number): number => rows.reduce((total, row) => total + pick(row), 0);
  const figures = [
    sum(({ read }) => read),
    sum(({ written }) => written["5m"]),
    sum(({ promptTokens }) => promptTokens),
  ];
  assert.deepEqual(figures, [8_016, 5_516, 13_532]);
  assert.equal(sum(({ billed }) => billed.usd ?? 0).toFixed(4), "0.0161");
  const kept = readdirSync(join(base, "kept")).map((name) => readFileSync(join(base, "kept", name), "utf8"));
  assert.equal(kept.join("").trimEnd().split("\n").length, 5);
  for (const text of [proxy.out(), proxy.err(), ...kept]) assert.ok(!text.includes(KEY));
});

test("JSON has an object a line: the address, what happens, the report", async () => {
  await using sim = await start(sources, "sim");
  await using proxy = await start(sources, "proxy", "--json", "--upstream", sim.firstLine);
  const { url } = JSON.parse(proxy.firstLine) as { readonly url: string };
  await work(url);
  assert.equal(await proxy.stop(), 0);
  const lines = proxy
    .out()
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    lines.map(({ type, request, from }) => [type, request ?? from].filter((part) => part !== undefined).join(" ")),
    [
      "listening",
      ...["request_ended 1", "request_ended 2", "request_ended 3", "family_grew 2", "request_ended 4"],
      ...["request_missed 5", "request_ended 5", "report"],
    ],
  );
  const { all, misses } = lines.at(-1);
  assert.deepEqual([all.requests, misses.length, misses[0].cause.volatile], [5, 1, "time"]);
});

test("a usage error is one line and exit code 2, and nothing is opened", async () => {
  const folder = join(base, "never");
  const calls: readonly (readonly [readonly string[], RegExp])[] = [
    [["--host", "0.0.0.0"], /^prefork: host 0\.0\.0\.0: the proxy listens on loopback only\n$/],
    [["--port", "70000"], /^prefork: .*Expected a port up to 65535\.\n$/],
    [
      ["--upstream", "nowhere"],
      /^prefork: upstream nowhere: expected an address such as https:\/\/api\.anthropic\.com\n$/,
    ],
    [
      ["--upstream", "https://me:secret@x", "--record", folder],
      /^prefork: upstream https:\/\/…@x: must not contain a user or a password\n$/,
    ],
    [["--record", "/dev/null"], /^prefork: \/dev\/null cannot be made: EEXIST\n$/],
    [["--body-limit", "many"], /^prefork: .*Expected megabytes up to 512\.\n$/],
  ];
  for (const [argv, words] of calls) {
    const io = captured();
    assert.equal(await run(["proxy", ...argv], io), 2);
    assert.equal(io.text(), "");
    assert.match(io.errors(), words);
  }
  assert.equal(existsSync(folder), false);
});
