/** How much of a prompt had some earlier request put into the cache, in a session whose requests branch off each other?
 *  Invariant: works on what the simulator received; a token counts as known as soon as any request before marked a prompt
 *  that agrees up to there, block by block, whoever sent it.
 *  Elsewhere: a session that only goes on (as-sent.ts). */

import type { Simulator } from "@prefork/simulator";
import type { Json, JsonObject } from "@prefork/wire";
import { headTokens, type Sent, wasTaken } from "./as-sent.ts";

/** The blocks of all messages, each with its role, without markers. */
const blocksOf = ({ body }: Sent): readonly string[] =>
  listOf(body.messages).flatMap(({ role, content }) =>
    listOf(content).map(({ cache_control: _marker, ...block }) => JSON.stringify([role, block])),
  );

const listOf = (value: Json | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? (value as JsonObject[]) : [];

/** The first blocks of a request as a request. */
const beginning = ({ body }: Sent, blocks: number): JsonObject => {
  let left = blocks;
  const messages = listOf(body.messages).flatMap((message) => {
    const content = listOf(message.content).slice(0, left);
    left -= content.length;
    return content.length === 0 ? [] : [{ ...message, content }];
  });
  const { model, tools = [], system = [] } = body;
  return { model: String(model), tools, system, messages };
};

const count = async (simulator: Simulator, body: JsonObject): Promise<number> => {
  const answer = await fetch(`${simulator.url}/v1/messages/count_tokens`, {
    method: "POST",
    headers: { "x-api-key": "test", "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (answer.status !== 200) throw new Error(await answer.text());
  return ((await answer.json()) as { readonly input_tokens: number }).input_tokens;
};

const agreeing = (one: readonly string[], other: readonly string[]): number => {
  const differ = one.findIndex((block, at) => block !== other[at]);
  return differ < 0 ? one.length : differ;
};

const marked = ({ row }: Sent): number => row.promptTokens - row.plain;

export type Rewriting = { readonly written: number; readonly needed: number; readonly factor: number };

/** Tokens written, by the ledger, over tokens that had to be written: of each marked prompt what no request before it had
 *  marked. What siblings share is needed once, whoever of them is first. */
export const rewritingOf = async (simulator: Simulator, requests: readonly Sent[]): Promise<Rewriting> => {
  const taken = requests.filter(wasTaken);
  const [first] = taken;
  const head = first ? await headTokens(simulator, first) : 0;
  const blocks = taken.map(blocksOf);
  let [written, needed] = [0, 0];
  for (const [at, sent] of taken.entries()) {
    const earlier = taken.slice(0, at).map((before, index) => {
      const own = blocks[index] ?? [];
      const same = agreeing(own, blocks[at] ?? []);
      return { before, same, isWhole: same === own.length };
    });
    // Whole prompts first: their tokens are known, and most of the others then have nothing to add.
    let known = Math.max(at === 0 ? 0 : head, ...earlier.map(({ before, isWhole }) => (isWhole ? marked(before) : 0)));
    for (const { before, same } of earlier.toSorted((one, other) => other.same - one.same)) {
      if (same === 0 || marked(before) <= known) continue;
      known = Math.max(known, Math.min(marked(before), await count(simulator, beginning(sent, same))));
    }
    written += sent.row.written["5m"] + sent.row.written["1h"];
    needed += Math.max(0, marked(sent) - known);
  }
  return { written, needed, factor: written / needed };
};
