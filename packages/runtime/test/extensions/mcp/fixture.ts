/** The servers of a test, on the fixtures: opened, called and closed as a session does. */

import { fileURLToPath } from "node:url";
import { type Scratch, scratch } from "@prefork/testing/scratch";
import type { JsonObject } from "@prefork/wire";
import { Servers, type ServersOptions, type StdioServer } from "../../../src/extensions/mcp/index.ts";
import type { Described } from "./fixture-tools.ts";

const SCRIPT = fileURLToPath(new URL("./stdio-server.ts", import.meta.url));

/** A server on standard input and output. A file says what it offers when it starts, and can be changed. */
export const stdioEntry = (folder: Scratch, name: string, tools: readonly Described[]): StdioServer => {
  const file = folder.put(`${name}.json`, JSON.stringify(tools));
  return { name, transport: "stdio", command: process.execPath, args: [...process.execArgv, SCRIPT, file] };
};

export type Opened = AsyncDisposable & {
  readonly folder: Scratch;
  readonly servers: Servers;
  readonly call: (server: string, tool: string, args?: JsonObject) => ReturnType<Servers["call"]>;
};

const NEVER = new AbortController().signal;

/** A clock that skips pauses. */
export const jumping = { now: () => 0, sleep: async () => {} };

/** A clock on which no pause ends. */
export const still = {
  now: () => 0,
  sleep: (_: number, signal: AbortSignal) =>
    new Promise<void>((done) => signal.addEventListener("abort", () => done(), { once: true })),
};

export const opened = async (
  entries: (folder: Scratch) => ServersOptions["servers"],
  more: Partial<ServersOptions> = {},
): Promise<Opened> => {
  const folder = scratch();
  const servers = await Servers.open({
    servers: entries(folder),
    cwd: folder.path,
    environment: { PATH: process.env.PATH, HOME: folder.path, OTHER_TOKEN: "not for servers" },
    clock: jumping,
    ...more,
    // Nothing depends on how fast a machine starts a program.
    times: { listMs: 60_000, waitMs: 60_000, startMs: 60_000, ...more.times },
  });
  return {
    folder,
    servers,
    call: (server, tool, args = {}) => servers.call({ server, tool }, args, NEVER),
    [Symbol.asyncDispose]: async () => {
      await servers.close();
      folder[Symbol.dispose]();
    },
  };
};
