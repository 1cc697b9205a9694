/** `prefork xray` on recorded bodies in files: its output and its exit codes. */

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { textOfTokens } from "@prefork/simulator";
import { run } from "../../src/main.ts";
import { captured } from "../captured.ts";

const marker = { cache_control: { type: "ephemeral" } };

/** 1,500 tokens of system text that contains the date, and a prompt. */
const request = (date: string, ...more: readonly object[]): object => ({
  model: "claude-sonnet-5",
  max_tokens: 64,
  system: [{ type: "text", text: `Be brief.\nToday is ${date}.\n${textOfTokens(1_490, 1)}`, ...marker }],
  messages: [{ role: "user", content: [{ type: "text", text: textOfTokens(100, 2), ...marker }] }, ...more],
});
const turn = [
  { role: "assistant", content: textOfTokens(20, 3) },
  { role: "user", content: [{ type: "text", text: "Go on.", ...marker }] },
];

const asked = { role: "user", content: textOfTokens(1_500, 1) };
const again = [asked, { role: "assistant", content: "Yes." }, { role: "user", content: "Why?" }];
const chat = { model: "gpt-5.4", messages: [asked] };
const responses = { model: "gpt-5.4", input: [asked] };

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "prefork-xray-"));
  const files: Readonly<Record<string, string>> = {
    "a.json": JSON.stringify(request("2026-03-01")),
    "b.json": JSON.stringify(request("2026-03-02", ...turn), null, 2),
    "next.json": JSON.stringify(request("2026-03-01", ...turn)),
    "all.ndjson": [request("2026-03-01"), request("2026-03-01", ...turn), request("2026-03-02", ...turn)]
      .map((body) => `${JSON.stringify(body)}\n`)
      .join("\n"),
    "wrapped.ndjson": [
      { body: request("2026-03-01"), headers: { "anthropic-beta": "x-1" }, startedAt: "2026-03-01T09:00:00Z" },
      {
        request: { headers: {}, body: JSON.stringify(request("2026-03-01", ...turn)) },
        startedAt: "2026-03-01T09:01:00Z",
      },
    ]
      .map((line) => JSON.stringify(line))
      .join("\n"),
    "usage.json": JSON.stringify([
      { input_tokens: 0, cache_creation_input_tokens: 2_000, cache_read_input_tokens: 0 },
      { usage: { input_tokens: 0, cache_creation_input_tokens: 2_030, cache_read_input_tokens: 0 }, startedAt: 7 },
    ]),
    "hostile.json": JSON.stringify({ ...request("2026-03-01"), model: "\u001b[31mred\u202e" }),
    "wide-a.json": JSON.stringify({ ...request("2026-03-01"), system: "漢字é𝔘🙂 A" }),
    "wide-b.json": JSON.stringify({ ...request("2026-03-01"), system: "漢字é𝔘🙂 B" }),
    "list.json": "[]",
    "cut.json": '{"model":"x","mess',
    "chat.json": JSON.stringify(chat),
    "responses.json": JSON.stringify(responses),
    "unlike.ndjson": `${JSON.stringify(chat)}\n${JSON.stringify(responses)}`,
    "mixed.ndjson": [chat, responses, '{"messages":', {}, { ...responses, input: again }, { ...chat, messages: again }]
      .map((line) => (typeof line === "string" ? line : JSON.stringify(line)))
      .join("\n"),
    "one.ndjson": `${JSON.stringify(request("2026-03-01"))}\n{"messages":`,
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
});
after(() => rm(folder, { recursive: true }));

type Ended = { readonly code: number; readonly out: string; readonly err: string };

const xray = async (...argv: readonly string[]): Promise<Ended> => {
  const io = captured();
  const code = await run(["xray", ...argv.map((word) => (/\.n?d?json$/.test(word) ? join(folder, word) : word))], io);
  return { code, out: io.text().replaceAll(`${folder}/`, ""), err: io.errors().replaceAll(`${folder}/`, "") };
};

test("shows the exact characters that differ, their cost and the fix, and exits with 1", async () => {
  const { code, out, err } = await xray("a.json", "b.json");
  assert.equal(
    out,
    `b.json compared with a.json
Anthropic Messages, claude-sonnet-5

system changed: about 1,598 tokens ($0.00368) paid for again
The system text changed: it contains a date.

  a.json  system[0].text  at byte 105, 1 byte
    Be brief.\\nToday is 2026-03-01.\\nelm oak oak oak oak oak oak oak fig yew oak ash elm ash…
                                 ^
  b.json  system[0].text  at byte 138, 1 byte
    Be brief.\\nToday is 2026-03-02.\\nelm oak oak oak oak oak oak oak fig yew oak ash elm ash…
                                 ^

To fix it: remove a date from the system text; put it in the last message.

tokens, estimated  first  second  in common  read
─────────────────────────────────────────────────
tools                  0       0          0     0
system             1,498   1,498          0     0
messages             100     122          0     0
all                1,598   1,620          0     0
`,
  );
  assert.deepEqual([code, err], [1, ""]);
});

test("exits with 0 if everything was read", async () => {
  const { code, out } = await xray("a.json", "next.json");
  assert.match(
    out,
    /^next.json compared with a.json\nAnthropic Messages, claude-sonnet-5\n\nnothing lost\nEverything that both have in common was read; one is the beginning of the other\.\n/,
  );
  assert.equal(code, 0);
});

test("ends with 0 where what was lost is negligible, in a pair and in a chain", async () => {
  const usage = (plain: number, read: number) => ({
    usage: { input_tokens: plain, cache_creation_input_tokens: 0, cache_read_input_tokens: read },
  });
  const chain = [
    { body: request("2026-03-01"), ...usage(0, 1_598) },
    { body: request("2026-03-01", ...turn), ...usage(32, 1_588) },
  ];
  for (const more of [[], [{ body: request("2026-03-01", ...turn), ...usage(0, 1_620) }]]) {
    await writeFile(join(folder, "few.ndjson"), [...chain, ...more].map((line) => JSON.stringify(line)).join("\n"));
    const { code, out } = await xray("few.ndjson");
    assert.match(out, /negligible|Lost in total: 10 tokens/);
    assert.equal(code, 0, out);
  }
});

test("JSON has the same figures", async () => {
  const { code, out } = await xray("a.json", "b.json", "--json");
  const { a, b, cause, lost, divergence, tokens } = JSON.parse(out);
  assert.deepEqual(
    { a, b, cause, lost, path: divergence.path, offsets: [divergence.a.offset, divergence.b.offset], tokens, code },
    {
      a: "a.json",
      b: "b.json",
      cause: { kind: "system", change: "edited", volatile: "date" },
      lost: { tokens: 1_598, units: 1_837.7, usd: 0.0036754 },
      path: "system[0].text",
      offsets: [105, 138],
      tokens: { a: 1_598, b: 1_620, shared: 0, kept: 1_598, read: 0, estimated: true },
      code: 1,
    },
  );
});

test("a file with one request per line is a chain", async () => {
  const { code, out } = await xray("all.ndjson");
  assert.equal(
    out.slice(0, out.indexOf("\n\n#3 compared")),
    `3 requests, 1 lineage

#  request       lineage  how           prompt   read   lost  why
────────────────────────────────────────────────────────────────────────────
1  all.ndjson:1        1  starts         1,598      0      0
2  all.ndjson:3        1  continues #1   1,620  1,598      0
3  all.ndjson:5        1  changes #2     1,620      0  1,620  system changed
Lost in total: 1,620 tokens ($0.00373).`,
  );
  assert.equal(code, 1);
});

test("bodies are found in what recorded them, with their betas and times", async () => {
  const { code, out } = await xray("wrapped.ndjson");
  assert.match(out, /\nbetas changed: about 1,598 tokens/);
  assert.match(out, /\nThe parameter betas went from x-1 to none, which is in the cache key\.\n/);
  assert.equal(code, 1);
});

test("stated usage is what is counted with", async () => {
  const { out } = await xray("a.json", "b.json", "--usage", "usage.json");
  assert.match(out, /\nsystem changed: 2,\d{3} tokens \(\$0\.00\d+\) paid for again\n/);
  assert.match(out, /\ntokens {4,}first {2}second/);
  assert.match(out, /\nall {4,}2,000 {3}2,030 {10}0 {5}0\n/);
});

test("marks are under the right letters even if letters are two columns wide", async () => {
  const { out } = await xray("wide-a.json", "wide-b.json");
  assert.match(out, /\n {4}漢字é𝔘🙂 A\n {13}\^\n/);
});

test("no text in a body controls the terminal", async () => {
  const { out } = await xray("hostile.json", "a.json");
  assert.ok(out.includes("\\u001b[31mred\\u202e"));
  assert.doesNotMatch(out.replaceAll("\n", ""), /\p{Cc}|[\u202a-\u202e]/u);
});

test("in a recording of several formats each format is compared separately, and lines that are not requests are named", async () => {
  const { code, out, err } = await xray("mixed.ndjson");
  assert.match(out, /^4 requests, 2 lineages\n/);
  assert.match(out, /Nothing lost\./);
  assert.deepEqual(
    err.split("\n").map((line) => line.replace(/^prefork: /, "").replace(/: .*(?=: skipped)/, ": …")),
    [
      "mixed.ndjson:3 is not valid JSON: …: skipped",
      "mixed.ndjson:4 is not a request that x-ray knows: …: skipped",
      "",
    ],
  );
  assert.equal(code, 0);
});

test("two requests of one recording with different formats are listed side by side", async () => {
  const { code, out } = await xray("unlike.ndjson");
  assert.match(out, /^2 requests, 2 lineages\n/);
  assert.equal(code, 0);
  assert.equal((await xray("chat.json", "responses.json")).err, UNLIKE);
});

const UNLIKE = "prefork: chat.json is an OpenAI Chat body, responses.json an OpenAI Responses body\n";

test("a usage error is one line and exit code 2", async () => {
  const ends = await Promise.all(
    [
      [],
      ["a.json"],
      ["a.json", "none.json"],
      ["a.json", "list.json"],
      ["cut.json", "a.json"],
      ["one.ndjson"],
      ["a.json", "b.json", "--usage", "all.ndjson"],
    ].map((argv) => xray(...argv)),
  );
  assert.deepEqual(
    ends.map(({ code, out, err }) => [code, out, err.replace(/JSON: .*/, "JSON: …")]),
    [
      [2, "", "prefork: missing required argument 'files'\n"],
      [2, "", "prefork: xray needs two requests: give two files, or one file with one request per line\n"],
      [2, "", "prefork: none.json: no such file\n"],
      [2, "", "prefork: list.json must be a JSON object, the body of a request\n"],
      [2, "", "prefork: cut.json is not valid JSON: …\n"],
      [2, "", "prefork: one.ndjson:2 is not valid JSON: …\n"],
      [2, "", "prefork: all.ndjson:1 states no usage and no time\n"],
    ],
  );
});
