/** Lets other processes of this user take part in a session, through a socket.
 *  Invariant: serving keeps the process alive only where questions must wait for a client. A socket appears under its name only
 *  when it accepts connections, so one that refuses is dead. It is removed before the session's lock is released.
 *  Elsewhere: one client (attached-client.ts), where the socket is (sockets.ts), when it is opened (../print). */

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, rename, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { finished } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { SessionControl } from "@prefork/runtime";
import { AttachedClient } from "./attached-client.ts";
import type { Goodbye, SessionAbout } from "./frames.ts";
import { placeSocket, type SocketPlace } from "./sockets.ts";

const MAX_CLIENTS = 16;

/** How long the end of a session may wait for clients to take its last events. */
const LAST_EVENTS_MS = 500;

const FULL: Goodbye = { type: "goodbye", reason: "full", message: `${MAX_CLIENTS} clients are attached already` };
const ENDED: Goodbye = { type: "goodbye", reason: "ended", message: "the session has ended" };

export type ServeOptions = SocketPlace & {
  readonly about: () => Pick<SessionAbout, "cwd" | "title" | "openedAt">;
  /** Folders that the session's commands see even in the sandbox. */
  readonly workspaces: readonly string[];
  /** The process waits for clients: nobody else can answer the session's questions. Default: false. */
  readonly keepsAlive?: boolean;
};

/** Disposing it says goodbye to all clients. */
export type ServedControl = AsyncDisposable & {
  readonly path: string;
  /** Removes the socket. Clients that are attached stay. */
  readonly stopAccepting: () => Promise<void>;
};

/** Throws if there is no safe folder for the socket. */
export const serveControl = async (control: SessionControl, options: ServeOptions): Promise<ServedControl> => {
  const placed = await placeSocket(options, control.session, options.workspaces);
  if (!placed.ok) throw new Error(placed.reason);
  const clients = new Map<Socket, AttachedClient>();
  const parts = {
    control,
    about: (): SessionAbout => ({ ...options.about(), session: control.session, pid: process.pid }),
  };
  const server = createServer((socket) => {
    socket.unref();
    const client = new AttachedClient(socket, parts);
    if (clients.size >= MAX_CLIENTS) {
      client.close(FULL);
      return;
    }
    clients.set(socket, client);
    socket.once("close", () => clients.delete(socket));
  });
  server.on("error", () => undefined); // a failed accept concerns only who wanted to connect
  if (!options.keepsAlive) server.unref();
  await listen(server, placed.path);
  const stopAccepting = async (): Promise<void> => {
    server.close();
    await rm(placed.path, { force: true });
  };
  return {
    path: placed.path,
    stopAccepting,
    [Symbol.asyncDispose]: async () => {
      await stopAccepting();
      for (const client of clients.values()) client.close(ENDED);
      await sent([...clients.keys()].filter(({ writableLength }) => writableLength > 0));
      for (const socket of clients.keys()) socket.destroy();
    },
  };
};

/** Waits until the sockets have sent everything, but not for clients that do not read. */
const sent = async (sockets: readonly Socket[]): Promise<void> => {
  if (sockets.length === 0) return;
  const over = new AbortController();
  const patience = sleep(LAST_EVENTS_MS, undefined, { signal: over.signal }).catch(() => undefined);
  await Promise.race([
    Promise.all(sockets.map((socket) => finished(socket, { readable: false }).catch(() => undefined))),
    patience,
  ]);
  over.abort();
};

/** Under another name first: a socket that is bound but does not listen yet would look dead to others. */
const listen = async (server: Server, path: string): Promise<void> => {
  const draft = join(dirname(path), `.${randomBytes(6).toString("hex")}`);
  server.listen(draft);
  await once(server, "listening");
  try {
    await chmod(draft, 0o600); // its folder is private, whatever the umask
    await rename(draft, path);
  } catch (error) {
    server.close();
    throw error;
  }
};
