/** The smallest program that sends a family: it reads the requests from files, sends them, reads the answers and exits.
 *  Invariant: it imports only Node's own modules and holds no more than it sends, because its memory is the baseline; its
 *  types are stripped beforehand, so that stripping takes no memory either.
 *  Elsewhere: who writes the files and runs it (headless.ts). */

import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";

const [url = "", parent = "", shared = "", tails = "", headers = "{}"] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true });
const plain = JSON.parse(headers) as Readonly<Record<string, string>>;

const post = (pieces: readonly Buffer[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const size = pieces.reduce((sum, { length }) => sum + length, 0);
    const sent = request(url, { method: "POST", agent, headers: { ...plain, "content-length": size } });
    sent.on("error", reject).once("response", (response) => {
      response.once("end", resolve).once("error", reject).resume();
    });
    for (const piece of pieces) sent.write(piece);
    sent.end();
  });

await post([readFileSync(parent)]);
const start = readFileSync(shared);
const ends = JSON.parse(readFileSync(tails, "utf8")) as readonly string[];
await Promise.all(ends.map((end) => post([start, Buffer.from(end)])));
agent.destroy();
