/** A server between a session and the simulator that does to single answers what a network or a provider might.
 *  Invariant: a request that is not twisted passes both ways as it is, streamed; disposal closes every connection. */

import { createServer, type IncomingMessage, request as openRequest, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What is done instead of passing the request on. `whole` asks the simulator and gives its answer's text. */
export type Twist = (given: { readonly response: ServerResponse; readonly whole: () => Promise<string> }) => unknown;

export type TwistingProxy = AsyncDisposable & {
  readonly url: string;
  /** For the next requests that arrive, in this order. */
  readonly twist: (...twists: readonly Twist[]) => void;
  /** Requests that arrived so far. */
  readonly arrived: () => number;
};

export const startProxy = async (target: string): Promise<TwistingProxy> => {
  const waiting: Twist[] = [];
  let arrived = 0;
  const server = createServer({ keepAliveTimeout: 60_000 }, async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    arrived += 1;
    const ask = (): Promise<IncomingMessage> => forward(target, request, { body: Buffer.concat(chunks), response });
    const twist = waiting.shift();
    if (twist) await twist({ response, whole: async () => textOf(await ask()) });
    else await passOn(ask, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    twist: (...twists) => void waiting.push(...twists),
    arrived: () => arrived,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

const forward = (
  target: string,
  { url = "/", headers }: IncomingMessage,
  { body, response }: { readonly body: Buffer; readonly response: ServerResponse },
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const asked = openRequest(new URL(url, target), { method: "POST", headers }, resolve);
    asked.on("error", reject);
    response.once("close", () => asked.destroy());
    asked.end(body);
  });

/** Whichever side leaves takes the other with it. */
const passOn = async (ask: () => Promise<IncomingMessage>, response: ServerResponse): Promise<void> => {
  try {
    const answer = await ask();
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    for await (const chunk of answer as AsyncIterable<Buffer>) response.write(chunk);
    response.end();
  } catch {
    response.socket?.destroySoon();
  }
};

const textOf = async (message: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of message as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
};

// --- twists ----------------------------------------------------------------------------------------------------------

const STREAM = { "content-type": "text/event-stream; charset=utf-8" };

/** An error of the provider's own making. */
export const refuses =
  (
    status: number,
    error: { readonly type: string; readonly message: string },
    headers: Record<string, string> = {},
  ): Twist =>
  ({ response }) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify({ type: "error", error }));
  };

/** The stream as it should be up to an event, then `then` in its place and a proper end. */
export const endsBefore =
  (event: string, then = ""): Twist =>
  async ({ response, whole }) => {
    const stream = await whole();
    response.writeHead(200, STREAM);
    response.end(stream.slice(0, stream.indexOf(`event: ${event}\n`)) + then);
  };

/** As far as an event, and then nothing more, without an end. */
export const stallsBefore =
  (event: string): Twist =>
  async ({ response, whole }) => {
    const stream = await whole();
    response.writeHead(200, STREAM);
    response.write(stream.slice(0, stream.indexOf(`event: ${event}\n`)));
  };

/** Never a byte. */
export const staysSilent: Twist = () => undefined;

export const resets: Twist = ({ response }) => response.socket?.resetAndDestroy();
