/** How are messages exchanged with a server that is a local program? As lines on its standard input and output.
 *  Invariant: the server has its own process group, which ends as a whole when the connection is closed, when its
 *  leader ends, and when this process dies, even by SIGKILL. It sees a few of the user's variables and those it was
 *  configured with. Lines are bounded: an answer that is too long only fails its own call. Only the end of its error
 *  output is kept.
 *  Elsewhere: ending a group (../../tools: process-group.ts), the messages (message.ts), restarting it (server.ts). */

import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { setTimeout as after } from "node:timers/promises";
import { endStragglers, MARK, newMark } from "@prefork/guard/internal";
import type { JsonObject } from "@prefork/wire";
import { ProcessGroup } from "../../tools/index.ts";
import type { OpenTransport, TransportEvents } from "./connection.ts";
import { createSecretFilter, type Environment, type StdioServer } from "./entry.ts";
import { type Message, readMessage, TOO_LONG } from "./message.ts";

export type StdioContext = { readonly cwd: string; readonly environment: Environment };

/** `mark`: put into the server's environment, so that processes it leaves behind are found. */
type MarkedContext = StdioContext & { readonly mark: string };

/** The server replaces this shell. A watcher in a group of its own kills the server's group as soon as the other end
 *  of descriptor 3 is closed. A line on it releases the watcher. */
const WATCHED = 'set -m; { read -r -u 3 || kill -KILL -- "-$$"; } </dev/null >/dev/null 2>&1 & set +m; exec "$@" 3>&-';
const BASH = ["/bin/bash", "--noprofile", "--norc", "-c", WATCHED, "bash"] as const;

export const openStdio =
  (entry: StdioServer, place: StdioContext): OpenTransport =>
  async (events) => {
    const mark = newMark(place.environment);
    const child = await spawnServer(entry, { ...place, mark });
    const process = new ServerProcess(child, { events, hide: createSecretFilter(entry), mark });
    return { send: (message) => process.send(message), close: () => process.close() };
  };

/** Every program needs some of these, and none of them is a secret. */
const PASSED_VARIABLES =
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LC_\w+|TZ|TMPDIR|XDG_(?:CONFIG|CACHE|DATA|STATE|RUNTIME)_\w+)$/;

const spawnServer = ({ command, args = [], env = {} }: StdioServer, place: MarkedContext): Promise<ChildProcess> => {
  const given = Object.entries(place.environment).filter(([name]) => PASSED_VARIABLES.test(name));
  const [program, ...rest] = [...BASH, command, ...args];
  const child = spawn(program, rest, {
    cwd: place.cwd,
    env: { ...Object.fromEntries(given), ...env, [MARK]: place.mark },
    stdio: ["pipe", "pipe", "pipe", "pipe"],
    detached: true,
  });
  return new Promise((resolve, reject) => {
    child.once("spawn", () => resolve(child));
    child.once("error", reject);
  });
};

const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** A line that is too long is skipped up to this size. */
const MAX_PASSED_BYTES = 64 * 1024 * 1024;
const MAX_ERROR_CHARACTERS = 2_000;
/** After its input is closed, a server should end by itself. */
const CLOSE_TIMEOUT_MS = 300;

type ServerProcessOptions = {
  readonly events: TransportEvents;
  readonly hide: (text: string) => string;
  readonly mark: string;
};

class ServerProcess {
  readonly #group: ProcessGroup;
  readonly #input: Writable | null;
  readonly #events: TransportEvents;
  readonly #hide: (text: string) => string;
  readonly #over: Promise<void>;
  readonly #mark: string;
  #line: Buffer[] = [];
  #lineBytes = 0;
  #errors = "";

  constructor(child: ChildProcess, { events, hide, mark }: ServerProcessOptions) {
    this.#mark = mark;
    this.#group = new ProcessGroup(child, { isGated: false });
    this.#events = events;
    this.#hide = hide;
    this.#input = child.stdin;
    this.#input?.on("error", () => {}); // it may be gone before us; its exit is reported
    child.stdout?.on("data", (chunk: Buffer) => this.#read(chunk));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-MAX_ERROR_CHARACTERS);
    });
    this.#over = this.#follow([child.stdout, child.stderr]);
  }

  send(message: JsonObject): Promise<"sent"> {
    return new Promise((resolve, reject) => {
      if (!this.#input?.writable) return void this.#orOver().then(() => reject(new Error("its input is closed")));
      // The exit of a program says more than its broken pipe, so the exit is waited for first.
      const failed = (error: Error): void => void this.#orOver().then(() => reject(error));
      this.#input.write(`${JSON.stringify(message)}\n`, (error) => (error ? failed(error) : resolve("sent")));
    });
  }

  async #orOver(): Promise<void> {
    await Promise.race([this.#over, after(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
  }

  async close(): Promise<void> {
    this.#input?.end();
    await Promise.race([this.#group.exited, after(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
    this.#group.stop();
    await this.#over;
  }

  async #follow(outputs: readonly (Readable | null)[]): Promise<void> {
    const { exitCode, signal } = await this.#group.exited;
    await this.#group.end();
    this.#group.release();
    await endStragglers(this.#mark);
    for (const output of outputs) output?.destroy();
    const outcome = signal === undefined ? `it ended with exit code ${exitCode}` : `it was ended by ${signal}`;
    const lastErrors = this.#hide(this.#errors.trim()).split("\n").slice(-3).join(" ").replace(/\s+/g, " ");
    this.#events.ended(lastErrors === "" ? outcome : `${outcome}: ${lastErrors}`);
  }

  #read(chunk: Buffer): void {
    let rest = chunk;
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      this.#take(rest.subarray(0, end));
      const message = this.#lineBytes > MAX_LINE_BYTES ? toTooLongError(this.#line) : this.#whole();
      this.#line = [];
      this.#lineBytes = 0;
      rest = rest.subarray(end + 1);
      if (message) this.#events.received(message);
      else this.#giveUp(MAX_LINE_BYTES); // it is unknown which request this answers
    }
    this.#take(rest);
  }

  #whole(): Message {
    return readMessage(Buffer.concat(this.#line).toString("utf8"));
  }

  /** Only both ends of a line that is too long are kept. If the line never ends, the server is stopped. */
  #take(part: Buffer): void {
    if (part.length === 0) return;
    this.#line.push(part);
    this.#lineBytes += part.length;
    if (this.#lineBytes <= MAX_LINE_BYTES) return;
    if (this.#line.length > 2) this.#line = bothEnds(this.#line);
    if (this.#lineBytes > MAX_PASSED_BYTES) this.#giveUp(MAX_PASSED_BYTES);
  }

  #giveUp(most: number): void {
    this.#line = [];
    this.#events.ended(`it sent a message of more than ${most} bytes`);
    this.#group.stop();
  }
}

const NEWLINE = 0x0a;
const END_BYTES = 256;

/** The first and the last bytes of a line, as two parts. */
const bothEnds = (line: readonly Buffer[]): Buffer[] => {
  const [first = Buffer.alloc(0)] = line;
  const tail = Buffer.concat(line.slice(-2)).subarray(-END_BYTES);
  return [Buffer.from(first.subarray(0, END_BYTES)), Buffer.from(tail)];
};

/** JSON writers put the id of a request before or after its result. */
const ID_FIRST = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*,/;
const ID_LAST = /,\s*"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;

/** The error for the request that an overlong line answers; undefined if its id cannot be found. */
const toTooLongError = (line: readonly Buffer[]): Message | undefined => {
  const [first = "", last = ""] = bothEnds(line).map((end) => end.toString("latin1"));
  const id = (ID_FIRST.exec(first) ?? ID_LAST.exec(last))?.[1];
  if (id === undefined) return undefined;
  return {
    kind: "error",
    id: Number(id),
    code: TOO_LONG,
    message: `its answer has more than ${MAX_LINE_BYTES} bytes`,
  };
};
