/** A client that asks for another protocol on its connection, such as a WebSocket.
 *  Invariant: what both sides agree on is between them: after that every byte goes over as it is, and nobody looks at it.
 *  Elsewhere: requests and answers (server-pass.ts). */

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { pairsOf, type RawHeaders, upgradeHeaders } from "./headers.ts";
import { type Refusal, type Upstream, unreachable } from "./route.ts";
import { open, optionsTo } from "./server-pass.ts";

export type Upgrading = {
  readonly request: IncomingMessage;
  readonly client: Duplex;
  /** What the client sent right behind its request. */
  readonly head: Buffer;
  readonly upstream: Upstream;
  readonly refuse: (refusal: Refusal) => void;
};

export const headText = (status: number, message: string, raw: RawHeaders): string => {
  const lines = pairsOf(raw).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${message}\r\n${lines.join("")}\r\n`;
};

const write = (client: Duplex, { statusCode = 502, statusMessage = "", rawHeaders }: IncomingMessage): void => {
  client.write(headText(statusCode, statusMessage, rawHeaders), "latin1");
};

export const upgrade = ({ request, client, head, upstream, refuse }: Upgrading): void => {
  const headers = upgradeHeaders(request.rawHeaders, upstream.host);
  const outgoing = open(upstream, { ...optionsTo(upstream, request, headers), agent: false });
  let isAnswered = false;
  client.on("error", () => undefined);
  client.once("close", () => outgoing.destroy());
  outgoing.on("error", (error) => {
    if (isAnswered) client.destroy();
    else refuse(unreachable(upstream, error));
  });
  outgoing.on("upgrade", (answer, provider, rest) => {
    isAnswered = true;
    write(client, answer);
    client.write(rest);
    provider.write(head);
    provider.on("error", () => client.destroy());
    client.once("close", () => provider.destroy());
    provider.once("close", () => client.destroy());
    provider.pipe(client);
    client.pipe(provider);
  });
  // No agreement: an answer like any other, and the end of the connection with it.
  outgoing.on("response", (answer) => {
    isAnswered = true;
    const { rawHeaders, statusCode = 502, statusMessage = "" } = answer;
    const kept = pairsOf(rawHeaders).filter(
      ([name]) => !/^(?:connection|transfer-encoding|keep-alive|trailer)$/i.test(name),
    );
    client.write(headText(statusCode, statusMessage, [...kept.flat(), "Connection", "close"]), "latin1");
    answer.on("error", () => client.destroy());
    answer.pipe(client);
  });
  outgoing.end();
};
