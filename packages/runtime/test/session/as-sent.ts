/** What the simulator received, as bytes: which request goes on from which, and what it had to pay for.
 *  Invariant: works on the received bytes alone, without our own encoder; markers are taken out, since they are in no
 *  cache key. */

import { createHash } from "node:crypto";
import type { KeptRequest, LedgerRow, Simulator } from "@prefork/simulator";
import type { JsonObject } from "@prefork/wire";

/** A request beside what it was billed. */
export type Sent = {
  readonly row: LedgerRow;
  readonly body: JsonObject;
  /** The body without markers. */
  readonly bytes: Buffer;
  /** Where its last message ends, and where the last block in it does. */
  readonly messagesEnd: number;
  readonly blocksEnd: number;
};

const MARKER = `,"cache_control":{"type":"ephemeral"}`;
/** What closes the last message and the list of them. Inside a text every quote is escaped, so this stands there once. */
const CLOSING = `]}],"max_tokens":`;

/** Every request that was taken in, with its row. */
export const sentTo = (simulator: Simulator): readonly Sent[] => {
  const rows = new Map(simulator.ledger().map((row) => [row.sequence, row]));
  return simulator.requests().flatMap((request) => {
    const row = rows.get(request.sequence);
    return row ? [asSent(request, row)] : [];
  });
};

const asSent = ({ body }: KeptRequest, row: LedgerRow): Sent => {
  const bytes = Buffer.from(body.toString("latin1").replaceAll(MARKER, ""), "latin1");
  const blocksEnd = bytes.lastIndexOf(CLOSING);
  if (blocksEnd < 0) throw new TypeError(`request ${row.sequence} has no messages where they were expected`);
  return { row, body: JSON.parse(body.toString("utf8")), bytes, blocksEnd, messagesEnd: blocksEnd + 2 };
};

/** Did the provider begin to answer, so that what it was sent is in its cache? */
export const wasTaken = ({ row }: Sent): boolean => row.promptTokens > 0;

const hashOf = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

/** Does `later` begin with every message of `earlier`, byte for byte? */
export const extendsMessages = (later: Sent, earlier: Sent): boolean =>
  hashOf(later.bytes.subarray(0, earlier.messagesEnd)) === hashOf(earlier.bytes.subarray(0, earlier.messagesEnd));

/** The same up to the last block: `later` may say more in the message that was still open. */
export const extendsBlocks = (later: Sent, earlier: Sent): boolean =>
  hashOf(later.bytes.subarray(0, earlier.blocksEnd)) === hashOf(earlier.bytes.subarray(0, earlier.blocksEnd));

/** Tokens of tools and system, as the simulator counts them: a prompt with one four-letter word, less that one token. */
export const headTokens = async (simulator: Simulator, { body }: Sent): Promise<number> => {
  const { model, tools, system } = body;
  const messages = [{ role: "user", content: "four" }];
  const answer = await fetch(`${simulator.url}/v1/messages/count_tokens`, {
    method: "POST",
    headers: { "x-api-key": "test", "content-type": "application/json" },
    body: JSON.stringify({ model, tools, system, messages }),
  });
  const counted = (await answer.json()) as { readonly input_tokens: number };
  return counted.input_tokens - 1;
};

/** What the provider's rules allow a request to read: all of the longest earlier prompt that it begins with. Where it
 *  begins with none, as the first one of an epoch does, the head, if that was sent before. */
export const readable = (sent: Sent, earlier: readonly Sent[], head: number): number => {
  const taken = earlier.filter(wasTaken);
  const begins = taken.filter((before) => extendsBlocks(sent, before)).map(({ row }) => row.promptTokens - row.plain);
  return Math.max(taken.length > 0 ? head : 0, ...begins);
};

/** The re-write factor: tokens written, by the ledger, over tokens that had to be written.
 *  A request's marked prompt (all of it but what it leaves plain) must end up in the cache. What some earlier request put
 *  there is readable and need not be written again; everything else must be, once. So a request had to write its marked
 *  prompt less what was readable, and a session that re-writes nothing has the factor 1. A token that was written, lost
 *  and written again counts twice above the line and once below it. */
export const rewriteFactor = (requests: readonly Sent[], head: number): number => {
  const written = sum(requests.map(({ row }) => row.written["5m"] + row.written["1h"]));
  const needed = requests.map((sent, at) => {
    const marked = sent.row.promptTokens - sent.row.plain;
    return Math.max(0, marked - readable(sent, requests.slice(0, at), head));
  });
  return written / sum(needed);
};

const sum = (figures: readonly number[]): number => figures.reduce((total, figure) => total + figure, 0);
