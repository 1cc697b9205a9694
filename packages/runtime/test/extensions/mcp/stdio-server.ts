/** A tool server on standard input and output. `argv[2]`: a JSON file with the tools that it offers when it starts. */

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { respond, type Side } from "./fixture-tools.ts";

const send = (message: object): void => void process.stdout.write(`${JSON.stringify(message)}\n`);

const toolsOf = (file: string): Side["tools"] => {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    process.stderr.write("its tools\n cannot be read\n");
    process.exit(1);
  }
};

const side: Side = {
  tools: toolsOf(process.argv[2] ?? ""),
  notify: (method) => send({ jsonrpc: "2.0", method }),
  heard: [],
  exit: (code) => {
    process.stderr.write(`dying with ${process.env.FIXTURE_TOKEN ?? "nothing"}\n`);
    process.exit(code);
  },
};

process.stdout.write("a line that is no message\n");
for await (const line of createInterface({ input: process.stdin })) {
  const answer = await respond(side, JSON.parse(line));
  if (answer) send(answer);
}
