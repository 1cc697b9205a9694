/** Four ways to send the same forks of the same parent.
 *  Invariant: all four put the same bytes on the wire (sending.ts checks it), and each builds them in its own
 *  natural way.
 *  Elsewhere: the process that a client runs in (client-process.ts), the answers (server-process.ts). */

import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import Anthropic from "@anthropic-ai/sdk";
import { anthropic, bytesOf, createClient, directiveText, forkFamily, type Prepared, shareTail } from "@prefork/wire";
import { directiveOf, inFlight, parentOf } from "./history.ts";

export const CLIENT_NAMES = ["ours", "raw two-chunk POST", "JSON.stringify client", "official SDK"] as const;
export type ClientName = (typeof CLIENT_NAMES)[number];

/** An answer whose first event has been read; `rest` reads it to its end. */
export type Opened = { readonly rest: () => Promise<void> };

/** Builds and sends one fork for each number, all at once. */
export type BenchClient = (numbers: readonly number[]) => readonly Promise<Opened>[];

const PARENT_TOKENS = 200_000;
const KEY = "no-key-needed";

export const clientOf = (name: ClientName, baseUrl: string): BenchClient => {
  const parent = parentOf(PARENT_TOKENS);
  switch (name) {
    case "ours":
      return ours(parent, baseUrl);
    case "raw two-chunk POST":
      return raw(parent, baseUrl);
    case "JSON.stringify client":
      return stringifying(parent, baseUrl);
    case "official SDK":
      return sdk(parent, baseUrl);
  }
};

const forksOf = (parent: Prepared, numbers: readonly number[]): readonly Prepared[] =>
  forkFamily(parent, numbers.map(directiveOf), { inFlight }).members;

/** The fork's own text: its bytes after the end of the shared tail. */
export const ownBytes = (): number => {
  const parent = parentOf(10_000);
  const shared = shareTail(parent.prefix, { inFlight });
  return forksOf(parent, [0]).reduce((sum, { prefix }) => sum + prefix.byteLength - shared.prefix.byteLength, 0);
};

const ours = (parent: Prepared, baseUrl: string): BenchClient => {
  const client = createClient({ baseUrl, credential: { kind: "api-key", value: KEY } });
  return (numbers) => forksOf(parent, numbers).map((fork) => openStream(client.stream(fork)));
};

const openStream = async (events: AsyncIterator<unknown>): Promise<Opened> => {
  await events.next();
  return {
    rest: async () => {
      while (!(await events.next()).done);
    },
  };
};

// --- node:http, with the body in two pieces or in one ----------------------------------------------------------------

type Target = { readonly url: URL; readonly agent: Agent };

const target = (baseUrl: string): Target => ({
  url: new URL(baseUrl + anthropic.path),
  agent: new Agent({ keepAlive: true }),
});

/** Nothing here outlives the request: no closure holds the pieces. */
const post = ({ url, agent }: Target, pieces: readonly Buffer[]): Promise<Opened> => {
  const size = pieces.reduce((sum, { length }) => sum + length, 0);
  const headers = { ...anthropic.headers({ kind: "api-key", value: KEY }, []), "content-length": size };
  const sent = request(url, { method: "POST", agent, headers });
  for (const piece of pieces) sent.write(piece);
  sent.end();
  return answered(sent);
};

const answered = (sent: ClientRequest): Promise<Opened> =>
  new Promise((resolve, reject) => {
    sent.on("error", reject).once("response", (response) => {
      const end = ended(response);
      response.once("data", () => resolve({ rest: () => end }));
    });
  });

const ended = (response: IncomingMessage): Promise<void> =>
  new Promise((resolve, reject) => {
    response.once("end", resolve).once("error", reject);
  });

/** The least possible work: all bytes are built beforehand, the shared ones in one buffer, each fork's own in another. */
const raw = (parent: Prepared, baseUrl: string): BenchClient => {
  const to = target(baseUrl);
  const escaped = (number: number): string => JSON.stringify(directiveOf(number)).slice(1, -1);
  const bytes = Buffer.concat(forksOf(parent, [0]).map(bytesOf));
  const cut = bytes.lastIndexOf(escaped(0));
  const shared = Buffer.from(bytes.subarray(0, cut));
  const after = bytes.toString("utf8", cut + Buffer.byteLength(escaped(0)));
  return (numbers) => numbers.map((number) => post(to, [shared, Buffer.from(escaped(number) + after)]));
};

// --- from an object --------------------------------------------------------------------------------------------------

type Body = Anthropic.MessageCreateParamsStreaming;

/** A fork's body as most programs keep it: an object with a reference to the history and its own last message. */
const bodyMaker = (parent: Prepared): ((number: number) => Body) => {
  const body = JSON.parse(Buffer.concat(forksOf(parent, [0]).map(bytesOf)).toString()) as Body;
  const last = body.messages.at(-1);
  const blocks = Array.isArray(last?.content) ? last.content : [];
  const directive = blocks.at(-1);
  if (directive?.type !== "text") throw new Error("a fork's last block is its directive");
  return (number) => {
    const own = { ...directive, text: directiveText(directiveOf(number)) };
    return {
      ...body,
      messages: [...body.messages.slice(0, -1), { role: "user", content: [...blocks.slice(0, -1), own] }],
    };
  };
};

const stringifying = (parent: Prepared, baseUrl: string): BenchClient => {
  const to = target(baseUrl);
  const make = bodyMaker(parent);
  return (numbers) => numbers.map((number) => post(to, [Buffer.from(JSON.stringify(make(number)))]));
};

const sdk = (parent: Prepared, baseUrl: string): BenchClient => {
  const client = new Anthropic({ baseURL: baseUrl, apiKey: KEY, maxRetries: 0 });
  const make = bodyMaker(parent);
  const open = async (number: number): Promise<Opened> => {
    const events = await client.messages.create(make(number));
    return openStream(events[Symbol.asyncIterator]());
  };
  return (numbers) => numbers.map(open);
};
