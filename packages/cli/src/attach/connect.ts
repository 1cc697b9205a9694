/** A session that runs in another process, as a SessionControl.
 *  Invariant: what a caller awaits always settles: when the connection ends, open requests are rejected, subscriptions end
 *  and `ended` says why. After a new connection, `subscribe(last seq + 1)` continues without a gap and without repeating
 *  an event, as far back as the session keeps them.
 *  Elsewhere: the frames (frames.ts), the other end (serve.ts), finding the socket (sockets.ts, running.ts). */

import { createConnection, type Socket } from "node:net";
import type { Question, RuntimeEvent, SessionControl } from "@prefork/runtime";
import {
  encodeFrame,
  FrameSplitter,
  type Goodbye,
  MAX_REPLY_BYTES,
  PROTOCOL_VERSION,
  type Request,
  type RequestBody,
  type ServerFrame,
  type SessionAbout,
} from "./frames.ts";

type Subscription = ReturnType<SessionControl["subscribe"]>;
type Tree = Awaited<ReturnType<SessionControl["tree"]>>;
type RewindResult = Awaited<ReturnType<SessionControl["rewind"]>>;
type PromptEnd = Awaited<ReturnType<SessionControl["prompt"]>>;

export type ConnectOptions = {
  /** Sends nothing that changes the session. Default: false. */
  readonly readOnly?: boolean;
  /** How long the session's process may take to greet. Default: 5 seconds. */
  readonly timeoutMs?: number;
};

/** Why a connection is over. `lost`: the other process is gone, or its socket is. `left`: we closed it. */
export type ConnectionEnd = { readonly kind: Goodbye["reason"] | "lost" | "left"; readonly message: string };

export type ConnectedControl = SessionControl &
  Disposable & { readonly about: SessionAbout; readonly ended: Promise<ConnectionEnd> };

/** `dead`: nothing listens there. */
export class ConnectError extends Error {
  override readonly name = "ConnectError";
  readonly reason: "dead" | "silent" | "version" | "refused";

  constructor(reason: ConnectError["reason"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

const GREETING_MS = 5_000;

export const connectControl = async (path: string, options: ConnectOptions = {}): Promise<ConnectedControl> => {
  const connection = new Connection(createConnection(path));
  const { timeoutMs = GREETING_MS } = options;
  const timer = setTimeout(
    () => connection.fail(new ConnectError("silent", "the session's process does not answer")),
    timeoutMs,
  );
  try {
    const hello = await connection.greeted;
    return controlOver(connection, hello, options);
  } finally {
    clearTimeout(timer);
  }
};

type Hello = Extract<ServerFrame, { type: "hello" }>;
type Pending = { readonly resolve: (result: unknown) => void; readonly reject: (error: Error) => void };

class Connection {
  readonly #socket: Socket;
  readonly #greeted = Promise.withResolvers<Hello>();
  readonly #ended = Promise.withResolvers<ConnectionEnd>();
  readonly #pending = new Map<number, Pending>();
  readonly #readers = new Map<number, EventQueue>();
  #questions: readonly Question[] = [];
  #lastId = 0;
  #end: ConnectionEnd | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.#greeted.promise.catch(() => undefined);
    const frames = new FrameSplitter(MAX_REPLY_BYTES, (line) => this.#read(line));
    socket.on("data", (chunk: Buffer) => {
      if (!frames.push(chunk))
        this.finish({ kind: "lost", message: "the session's process sent a line that is too long" });
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      const isDead = error.code === "ECONNREFUSED" || error.code === "ENOENT";
      const reason = isDead ? "dead" : "refused";
      this.#greeted.reject(new ConnectError(reason, error.message, { cause: error }));
      this.finish({ kind: "lost", message: error.message });
    });
    socket.on("close", () => this.finish({ kind: "lost", message: "the connection was lost" }));
  }

  get greeted(): Promise<Hello> {
    return this.#greeted.promise;
  }
  get ended(): Promise<ConnectionEnd> {
    return this.#ended.promise;
  }
  get questions(): readonly Question[] {
    return this.#questions;
  }

  fail(error: ConnectError): void {
    this.#greeted.reject(error);
    this.finish({ kind: "lost", message: error.message });
  }

  /** The id of the request, and its result. */
  request(body: RequestBody): { readonly id: number; readonly result: Promise<unknown> } {
    this.#lastId += 1;
    const id = this.#lastId;
    if (this.#end) return { id, result: Promise.reject(new Error(this.#end.message)) };
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#pending.set(id, { resolve, reject });
    this.#socket.write(encodeFrame({ ...body, id } as Request));
    return { id, result: promise };
  }

  subscribe(body: Extract<RequestBody, { method: "subscribe" }>, keptFrom: number): Subscription {
    const queue = new EventQueue(keptFrom, () => {
      this.#readers.delete(id);
      if (!this.#end) this.request({ method: "unsubscribe", of: id }).result.catch(() => undefined);
    });
    const { id, result } = this.request(body);
    if (this.#end) queue.end();
    else this.#readers.set(id, queue);
    result.then(
      (reply) => queue.setKeptFrom((reply as { readonly keptFrom: number }).keptFrom),
      () => queue.end(),
    );
    return queue;
  }

  finish(end: ConnectionEnd): void {
    if (this.#end) return;
    this.#end = end;
    this.#socket.destroy();
    this.#greeted.reject(new ConnectError("refused", end.message));
    for (const { reject } of this.#pending.values()) reject(new Error(end.message));
    this.#pending.clear();
    for (const reader of this.#readers.values()) reader.end();
    this.#readers.clear();
    this.#ended.resolve(end);
  }

  #read(line: string): void {
    let frame: ServerFrame;
    try {
      frame = JSON.parse(line) as ServerFrame;
    } catch {
      this.finish({ kind: "lost", message: "the session's process sent something that is not JSON" });
      return;
    }
    switch (frame.type) {
      case "hello":
        this.#questions = frame.questions;
        if (frame.version === PROTOCOL_VERSION) this.#greeted.resolve(frame);
        else {
          const versions = `version ${frame.version} of the attach protocol, and this command speaks ${PROTOCOL_VERSION}`;
          this.fail(new ConnectError("version", `process ${frame.pid} speaks ${versions}`));
        }
        return;
      case "questions":
        this.#questions = frame.questions;
        return;
      case "event":
        this.#readers.get(frame.id)?.give(frame.event);
        return;
      case "reply":
        this.#pending.get(frame.id)?.resolve(frame.result);
        this.#pending.delete(frame.id);
        return;
      case "error":
        if (frame.id === undefined) return;
        this.#pending.get(frame.id)?.reject(new Error(frame.message));
        this.#pending.delete(frame.id);
        return;
      case "goodbye":
        this.finish({ kind: frame.reason, message: frame.message });
    }
  }
}

const OVER: IteratorResult<RuntimeEvent> = { value: undefined, done: true };

/** The events of one subscription. The other end drops a client that does not read, so this need not be limited. */
class EventQueue implements AsyncIterableIterator<RuntimeEvent>, Disposable {
  readonly #leave: () => void;
  #keptFrom: number;
  #waiting: RuntimeEvent[] = [];
  #waiters: ((result: IteratorResult<RuntimeEvent>) => void)[] = [];
  #isDone = false;

  constructor(keptFrom: number, leave: () => void) {
    this.#keptFrom = keptFrom;
    this.#leave = leave;
  }

  get keptFrom(): number {
    return this.#keptFrom;
  }

  setKeptFrom(seq: number): void {
    this.#keptFrom = seq;
  }

  give(event: RuntimeEvent): void {
    const waiter = this.#waiters.shift();
    if (waiter) waiter({ value: event, done: false });
    else if (!this.#isDone) this.#waiting.push(event);
  }

  /** What has arrived can still be read. */
  end(): void {
    this.#isDone = true;
    for (const waiter of this.#waiters.splice(0)) waiter(OVER);
  }

  next(): Promise<IteratorResult<RuntimeEvent>> {
    const value = this.#waiting.shift();
    if (value) return Promise.resolve({ value, done: false });
    if (this.#isDone) return Promise.resolve(OVER);
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  return(): Promise<IteratorResult<RuntimeEvent>> {
    if (!this.#isDone) this.#leave();
    this.#waiting = [];
    this.end();
    return Promise.resolve(OVER);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  [Symbol.dispose](): void {
    void this.return();
  }
}

const controlOver = (connection: Connection, hello: Hello, { readOnly = false }: ConnectOptions): ConnectedControl => {
  const { session, pid, cwd, title, openedAt, keptFrom } = hello;
  const act = async (body: RequestBody): Promise<unknown> => {
    if (readOnly) throw new Error("this client only watches (--read-only)");
    return await connection.request(body).result;
  };
  const named = (taskId: string | undefined) => (taskId === undefined ? {} : { taskId });
  return {
    session,
    about: { session, pid, cwd, title, openedAt },
    ended: connection.ended,
    subscribe: (fromSeq) =>
      connection.subscribe({ method: "subscribe", ...(fromSeq === undefined ? {} : { fromSeq }) }, keptFrom),
    prompt: async (prompt, { signal, tasks } = {}) => {
      if (readOnly) throw new Error("this client only watches (--read-only)");
      signal?.throwIfAborted();
      const body = { method: "prompt", prompt, ...(tasks === undefined ? {} : { tasks }) } as RequestBody;
      const { id, result } = connection.request(body);
      const cancel = (): void => void connection.request({ method: "cancel", of: id }).result.catch(() => undefined);
      signal?.addEventListener("abort", cancel, { once: true });
      try {
        return (await result) as PromptEnd;
      } finally {
        signal?.removeEventListener("abort", cancel);
      }
    },
    questions: () => connection.questions,
    answer: async (questionId, answer) => (await act({ method: "answer", questionId, answer })) === true,
    steer: async (text, taskId) => void (await act({ method: "steer", text, ...named(taskId) })),
    stop: async (taskId) => void (await act({ method: "stop", ...named(taskId) })),
    background: (taskId) => void act({ method: "background", ...named(taskId) }).catch(() => undefined),
    tree: async () => (await connection.request({ method: "tree" }).result) as Tree,
    rewind: async (options) => (await act({ method: "rewind", options })) as RewindResult,
    [Symbol.dispose]: () => connection.finish({ kind: "left", message: "the connection was closed" }),
  };
};
