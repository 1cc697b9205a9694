import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, say, startSimulator, textOfTokens } from "@prefork/simulator";
import {
  anthropic,
  createClient,
  type Family,
  FORK_PLACEHOLDER_RESULT,
  FrozenPrefix,
  forkFamily,
  type Message,
  nextMarkers,
  prepare,
  sendFamily,
  text,
  userText,
} from "../src/index.ts";

type Figures = { readonly prefix: number; readonly tail: number; readonly directive: number; readonly forks: number };
type Way = { readonly cold?: boolean; readonly singleTurn?: boolean; readonly launch: "leader-first" | "at-once" };

const tokensOf = (words: string): number => Math.ceil(Buffer.byteLength(words) / 4);

/** An assistant turn that calls Agent `forks` times and, with its placeholders, is exactly `tokens` long. */
const turnOf = (forks: number, tokens: number): Message => {
  const calls = Array.from({ length: forks }, (_, index) => ({
    ...{ type: "tool_use" as const, id: `toolu_${index}`, name: "Agent", input: "{}" },
  }));
  const spent = forks * (tokensOf(FORK_PLACEHOLDER_RESULT) + tokensOf("{}"));
  return { role: "assistant", content: [text(textOfTokens(tokens - spent, 7)), ...calls] };
};

/** What the children of a family are billed when this library makes and sends their requests. */
const childrenBill = async (figures: Figures, { cold = false, singleTurn = false, launch }: Way): Promise<number> => {
  const { prefix: length, tail, directive, forks } = figures;
  const clock = new ManualClock();
  await using simulator = await startSimulator({ script: () => say("ok"), clock });
  const client = createClient({ baseUrl: simulator.url, credential: { kind: "api-key", value: "any" } });
  const head = { model: "claude-sonnet-5", tools: [], system: [text(textOfTokens(length - 10))], settings: {} };
  const prefix = FrozenPrefix.open(anthropic.encoder, head).append(userText(textOfTokens(10, 1)));
  const sent = prepare({
    protocol: anthropic,
    prefix,
    markers: nextMarkers(prefix),
    closing: { maxTokens: 9, stream: true },
  });
  await client.send(sent);
  if (cold) clock.advance(6 * 60_000);
  const directives = Array.from({ length: forks }, (_, index) => textOfTokens(directive, 100 + index));
  const family: Family = forkFamily(sent, directives, {
    inFlight: turnOf(forks, tail),
    protocol: "none",
    cold,
    singleTurn,
  });
  if (launch === "at-once") simulator.fault({ kind: "together", times: forks });
  const outcome = await sendFamily(client, family, { launch });
  client.close();
  assert.deepEqual(
    outcome.members.map(({ status }) => status),
    directives.map(() => "answered"),
  );
  return simulator.ledger(1).reduce((sum, { billed }) => sum + (billed.inputUnits ?? Number.NaN), 0);
};

const cases: readonly (readonly [Figures, Way, number])[] = [
  [{ prefix: 100_000, tail: 700, directive: 100, forks: 3 }, { launch: "leader-first" }, 31_390],
  [{ prefix: 100_000, tail: 700, directive: 100, forks: 3 }, { launch: "leader-first", singleTurn: true }, 31_315],
  [{ prefix: 100_000, tail: 700, directive: 100, forks: 3 }, { launch: "at-once" }, 33_000],
  [{ prefix: 100_000, tail: 700, directive: 100, forks: 3 }, { launch: "leader-first", cold: true }, 146_390],
  [{ prefix: 100_000, tail: 700, directive: 100, forks: 3 }, { launch: "at-once", cold: true }, 378_000],
  [{ prefix: 46_000, tail: 2_500, directive: 200, forks: 5 }, { launch: "leader-first" }, 28_375],
  [{ prefix: 46_000, tail: 2_500, directive: 200, forks: 5 }, { launch: "at-once" }, 39_875],
  [{ prefix: 46_000, tail: 2_500, directive: 200, forks: 5 }, { launch: "leader-first", cold: true }, 81_275],
  [{ prefix: 46_000, tail: 2_500, directive: 200, forks: 5 }, { launch: "at-once", cold: true }, 304_375],
];

for (const [figures, way, bill] of cases) {
  const words = `${figures.forks} of ${figures.prefix}, ${way.cold ? "cold" : "warm"}, ${way.launch}${way.singleTurn ? ", one turn" : ""}`;
  test(`forks that this library makes and sends are billed to the token: ${words}`, async () => {
    const billed = await childrenBill(figures, way);
    assert.ok(Math.abs(billed - bill) < 1e-6, `billed ${billed}, expected ${bill}`);
  });
}
