/** A process with a session of its own, for tests of what happens between processes and at a process's end.
 *  Says one JSON line for each thing it did; `hold` goes on when a line comes in, `leave` ends by itself.
 *
 *  node session-process.ts hold|leave <url> <folder> */

import { createInterface } from "node:readline";
import { mergeLayers } from "@prefork/guard";
import { anthropicEngine, createSession, type SessionOptions } from "../../src/index.ts";

const [task = "", baseUrl = "", folder = ""] = process.argv.slice(2);

const options: SessionOptions = {
  engine: anthropicEngine({ baseUrl, credential: { kind: "api-key", value: "any" } }),
  cwd: `${folder}/work`,
  home: `${folder}/home`,
  state: `${folder}/state`,
  environment: { PATH: "/usr/bin:/bin" },
  permissions: { policy: { ...mergeLayers([]), sandbox: "off" }, mode: "bypass" },
};

const say = (fact: object): void => {
  process.stdout.write(`${JSON.stringify(fact)}\n`);
};

const tasks: Readonly<Record<string, () => Promise<void>>> = {
  hold: async () => {
    await using session = await createSession(options);
    const { end } = await session.prompt("hello").result();
    say({ id: session.id, pid: process.pid, end });
    const lines = createInterface({ input: process.stdin });
    await lines[Symbol.asyncIterator]().next();
    lines.close();
  },
  /** Nothing here ends the process: that everything was closed does. */
  leave: async () => {
    await using session = await createSession(options);
    const reader = session.events();
    const { text } = await session.prompt("work").result();
    await session.prompt("unread").result();
    const { value } = await reader.next();
    say({ text, first: value?.type });
  },
};

await tasks[task]?.();
