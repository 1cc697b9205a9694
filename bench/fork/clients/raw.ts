/** The bare requests of a family: the least possible work.
 *  Invariant: the shared bytes are one buffer and each fork's own bytes another, both built beforehand; answers are read to
 *  the end and ignored.
 *  Elsewhere: the same in a program that does nothing else (../raw-process.ts). */

import { readFile } from "node:fs/promises";
import { Agent, type IncomingMessage, request } from "node:http";
import { anthropic } from "@prefork/wire";
import { directiveOf } from "../../wire/history.ts";
import { KEY } from "../conversation.ts";
import { type ForkClient, keptRequests, numbers } from "./client.ts";

const escaped = (number: number): string => JSON.stringify(directiveOf(number)).slice(1, -1);

/** A fork's request in two parts: the bytes that all share, and the rest, which starts with its own text. */
export const cutFork = (first: Buffer): { readonly shared: Buffer; readonly own: (number: number) => Buffer } => {
  const cut = first.lastIndexOf(escaped(0));
  if (cut < 0) throw new Error("the kept request is not that of the first fork");
  const after = first.toString("utf8", cut + Buffer.byteLength(escaped(0)));
  return {
    shared: Buffer.from(first.subarray(0, cut)),
    own: (number) => Buffer.from(escaped(number) + after),
  };
};

export const rawOf = (baseUrl: string, folder: string): ForkClient => {
  const url = new URL(baseUrl + anthropic.path);
  const agent = new Agent({ keepAlive: true });
  const post = (pieces: readonly Buffer[]): Promise<void> => {
    const size = pieces.reduce((sum, { length }) => sum + length, 0);
    const headers = { ...anthropic.headers({ kind: "api-key", value: KEY }, []), "content-length": size };
    return new Promise((resolve, reject) => {
      const sent = request(url, { method: "POST", agent, headers });
      sent.on("error", reject).once("response", (response: IncomingMessage) => {
        response.once("end", resolve).once("error", reject).resume();
      });
      for (const piece of pieces) sent.write(piece);
      sent.end();
    });
  };
  return async (forks) => {
    const { parent, fork } = keptRequests(folder, forks);
    const [start, first] = await Promise.all([readFile(parent), readFile(fork)]);
    const { shared, own } = cutFork(first);
    return {
      run: async () => {
        await post([start]);
        await Promise.all(numbers(forks).map((number) => post([shared, own(number)])));
      },
      [Symbol.asyncDispose]: async () => undefined, // its connections stay open for the next family
    };
  };
};
