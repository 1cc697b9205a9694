import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { UsageError } from "../src/io.ts";
import { jsonLine, jsonText, linesOf } from "../src/lines.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

async function* inPieces(bytes: Uint8Array, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  let from = 0;
  for (const cut of [...cuts, bytes.length].filter((at) => at <= bytes.length).sort((a, b) => a - b)) {
    yield bytes.subarray(from, cut);
    from = cut;
  }
}

const linesIn = async (given: string | Uint8Array, ...cuts: readonly number[]): Promise<readonly string[]> => {
  const lines: string[] = [];
  for await (const line of linesOf(inPieces(typeof given === "string" ? bytesOf(given) : given, cuts)))
    lines.push(line);
  return lines;
};

test("only a line feed ends a line; a carriage return before it and a leading byte order mark are dropped", async () => {
  assert.deepEqual(await linesIn("\ufeffa\r\n\r\nb\u2028c\u0085d\re\n\ufefff"), [
    "a",
    "",
    "b\u2028c\u0085d\re",
    "\ufefff",
  ]);
  assert.deepEqual(await linesIn(""), []);
  assert.deepEqual(await linesIn("\n"), [""]);
});

test("however the bytes arrive, the lines are the same", async () => {
  const text = fc.string({ unit: fc.constantFrom("a", "é", "😀", "\n", "\r\n", "\u2028", "\ufeff") });
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat(60)), async (given, cuts) => {
      const whole = await linesIn(given);
      assert.deepEqual(await linesIn(given, ...cuts), whole);
      const ended = given.replace(/^\ufeff/, "").replaceAll("\r\n", "\n");
      assert.equal(whole.join("\n"), ended.replace(/\n$/, ""));
    }),
  );
});

test("bytes that are not text end the input with an error that names their line", async () => {
  await assert.rejects(
    linesIn(Uint8Array.of(0x61, 0x0a, 0x61, 0xff, 0x0a)),
    (error: unknown) => error instanceof UsageError && error.message === "line 2: not valid UTF-8",
  );
});

test("figures leave without the noise of binary fractions, and what a model wrote leaves as it is", () => {
  const noisy = 0.010933499999999999;
  const rows = [0.1, 0.2, 0.000_3].map((usd) => ({ usd: usd * 1.1 }));
  const value = {
    total_cost_usd: noisy,
    money: -noisy,
    rows,
    args: { at: noisy },
    count: 123_456_789_012_345,
    none: null,
    share: 1 / 3,
  };
  const out = {
    total_cost_usd: 0.0109335,
    money: -0.0109335,
    rows: [{ usd: 0.11 }, { usd: 0.22 }, { usd: 0.000_33 }],
    args: { at: noisy },
    count: 123_456_789_012_345,
    none: null,
    share: 0.333333333333,
  };
  assert.equal(jsonLine(value), `${JSON.stringify(out)}\n`);
  assert.equal(jsonText(value), `${JSON.stringify(out, null, 2)}\n`);
});
