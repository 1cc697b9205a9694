/** How does one tool server live through a session: started, listed, called, lost, and restarted?
 *  Invariant: its failures are values for the caller and never fail the session. Retries back off and stop after
 *  several attempts, until somebody calls again. Its last list stays known while it is away. After closing, nothing of
 *  it runs.
 *  Elsewhere: one connection (connection.ts), all servers together (servers.ts). */

import { setTimeout as after } from "node:timers/promises";
import type { JsonObject } from "@prefork/wire";
import type { OfferedTool } from "../../context/index.ts";
import type { Clock, Delegated } from "../../ports.ts";
import { Connection, errorMessage, ServerFault } from "./connection.ts";
import { toDelegated, toOfferedTools } from "./content.ts";
import { createSecretFilter, type ServerEntry } from "./entry.ts";
import { openHttp } from "./http.ts";
import { INVALID_PARAMS, TOO_LONG } from "./message.ts";
import { openStdio, type StdioContext } from "./stdio.ts";

export type ServerEvents = {
  readonly listed: (server: Server) => void;
  readonly lost: (server: Server, reason: string) => void;
};

export type ServerTimes = {
  readonly startMs?: number; // for initialization and each page of the list; default: 30,000
  /** How long a call waits for a server that is away. Default: 5,000. */
  readonly waitMs?: number;
  readonly callMs?: number; // default: 120,000
};

export type ServerOptions = StdioContext & {
  readonly clock: Clock;
  readonly events: ServerEvents;
  readonly times?: ServerTimes;
};

type State =
  | { readonly kind: "starting" }
  | { readonly kind: "ready"; readonly connection: Connection }
  | { readonly kind: "away" }
  | { readonly kind: "closed" };

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
const MAX_ATTEMPTS = 6;
/** A server that lived this long was healthy, whatever ended it. */
const HEALTHY_MS = 30_000;

export class Server {
  readonly entry: ServerEntry;
  readonly #options: ServerOptions;
  readonly #hide: (text: string) => string;
  readonly #closing = new AbortController();
  /** Resolved when there is a list, or the first attempt has failed. */
  readonly #first = Promise.withResolvers<void>();
  readonly #running: Promise<void>;
  #state: State = { kind: "starting" };
  #stateChanged = Promise.withResolvers<void>();
  #wakeUp = Promise.withResolvers<void>();
  #tools: readonly OfferedTool[] | undefined;
  #problem: string | undefined;
  #isListing = false;
  #mustList = false;

  constructor(entry: ServerEntry, options: ServerOptions) {
    this.entry = entry;
    this.#options = options;
    this.#hide = createSecretFilter(entry);
    this.#running = this.#run();
  }

  get name(): string {
    return this.entry.name;
  }

  /** What it last offered; undefined until its first list. */
  get tools(): readonly OfferedTool[] | undefined {
    return this.#tools;
  }

  /** Why it is away, from its failure until it is back. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Resolves after the first attempt. */
  get firstAttempt(): Promise<void> {
    return this.#first.promise;
  }

  async call(tool: string, args: JsonObject, signal: AbortSignal): Promise<Delegated> {
    try {
      return toDelegated(await this.#callTool({ tool, args, signal, mayRetry: true }));
    } catch (error) {
      if (!(error instanceof ServerFault)) throw error;
      return { text: this.#hide(this.#describeFault(tool, error)), isError: true };
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#wakeUp.resolve();
    await this.#running;
  }

  async #callTool({ tool, args, signal, mayRetry }: ToolCall): Promise<JsonObject> {
    const connection = await this.#ready(signal);
    const { callMs = 120_000 } = this.#options.times ?? {};
    try {
      return await connection.call(tool, args, { timeoutMs: this.entry.timeoutMs ?? callMs, signal });
    } catch (error) {
      // If the server has forgotten the session, it has not run the call, so the call is repeated in a new session.
      const isForgotten = error instanceof ServerFault && error.kind === "lost" && error.hasNotRun;
      if (!isForgotten || !mayRetry || signal.aborted) throw error;
      return this.#callTool({ tool, args, signal, mayRetry: false });
    }
  }

  #describeFault(tool: string, { kind, message, code }: ServerFault): string {
    switch (kind) {
      case "refused": {
        if (code === TOO_LONG) return `Server ${this.name} has run the call, but ${message} and was left out.`;
        const schema = this.#tools?.find((offered) => offered.tool === tool)?.schema;
        const takes = code === INVALID_PARAMS && schema ? `\nIt takes: ${JSON.stringify(schema)}` : "";
        return `Server ${this.name} refused the call: ${message}${takes}`;
      }
      case "timeout":
        return `Server ${this.name}: ${message}; what the call had begun may still go on.`;
      case "lost":
        return `Server ${this.name} is not available: ${message}`;
      case "aborted":
        return `The call of server ${this.name} was ${message}.`;
    }
  }

  /** Waits a little for a server that is starting, or about to. */
  async #ready(signal: AbortSignal): Promise<Connection> {
    const { waitMs = 5_000 } = this.#options.times ?? {};
    // This timer keeps the process alive: while the server is away, nothing else may do so.
    const tooLate = new AbortController();
    const timer = setTimeout(() => tooLate.abort(), waitMs);
    const patience = AbortSignal.any([tooLate.signal, this.#closing.signal, signal]);
    const over = Promise.withResolvers<void>();
    const onAbort = (): void => over.resolve();
    patience.addEventListener("abort", onAbort, { once: true });
    this.#wakeUp.resolve();
    try {
      for (let wasTried = false; ; ) {
        const { kind } = this.#state;
        if (this.#state.kind === "ready" && !this.#state.connection.isLost) return this.#state.connection;
        if (kind === "closed" || patience.aborted || (wasTried && kind === "away")) break;
        wasTried ||= kind === "starting";
        await Promise.race([this.#stateChanged.promise, over.promise]);
      }
    } finally {
      clearTimeout(timer);
      patience.removeEventListener("abort", onAbort);
    }
    if (signal.aborted) throw new ServerFault("aborted", "interrupted before it began");
    throw new ServerFault("lost", this.#problem ?? "it has not started yet");
  }

  async #run(): Promise<void> {
    const { clock, events } = this.#options;
    for (let failures = 0; !this.#closing.signal.aborted; ) {
      this.#setState({ kind: "starting" });
      const startedAt = clock.now();
      const reason = this.#hide(await this.#runOnce());
      this.#first.resolve();
      this.#wakeUp = Promise.withResolvers();
      if (this.#closing.signal.aborted) break;
      failures = clock.now() - startedAt >= HEALTHY_MS ? 1 : failures + 1;
      this.#problem = reason;
      this.#setState({ kind: "away" });
      events.lost(this, reason);
      await this.#pause(failures);
    }
    this.#first.resolve();
    this.#setState({ kind: "closed" });
  }

  /** One connection, from start to end. Returns why it ended. */
  async #runOnce(): Promise<string> {
    const { startMs = 30_000 } = this.#options.times ?? {};
    const { signal } = this.#closing;
    let connection: Connection | undefined;
    try {
      connection = await Connection.open({
        openTransport: this.entry.transport === "stdio" ? openStdio(this.entry, this.#options) : openHttp(this.entry),
        timeoutMs: startMs,
        signal,
        onListChanged: () => this.#list(connection),
      });
      await this.#listAll(connection);
      this.#problem = undefined;
      this.#setState({ kind: "ready", connection });
      return await Promise.race([connection.lost, aborted(signal)]);
    } catch (error) {
      return errorMessage(error);
    } finally {
      await connection?.close();
    }
  }

  /** After a failure. After too many, waits until somebody calls. */
  async #pause(failures: number): Promise<void> {
    if (failures >= MAX_ATTEMPTS) return this.#wakeUp.promise;
    const { sleep = realSleep } = this.#options.clock;
    const ms = Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS);
    await sleep(ms, this.#closing.signal).catch(() => undefined);
  }

  #setState(state: State): void {
    this.#state = state;
    this.#stateChanged.resolve();
    this.#stateChanged = Promise.withResolvers();
  }

  /** Reads the list once at a time, and again if it changed in the meantime. */
  #list(connection: Connection | undefined): void {
    this.#mustList = true;
    if (this.#isListing || !connection) return;
    void this.#listAll(connection).catch(() => undefined); // it keeps the list it had
  }

  async #listAll(connection: Connection): Promise<void> {
    this.#isListing = true;
    try {
      do {
        this.#mustList = false;
        this.#tools = toOfferedTools(this.name, await connection.list());
        this.#first.resolve();
        this.#options.events.listed(this);
      } while (this.#mustList);
    } finally {
      this.#isListing = false;
    }
  }
}

type ToolCall = {
  readonly tool: string;
  readonly args: JsonObject;
  readonly signal: AbortSignal;
  readonly mayRetry: boolean;
};

const aborted = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve("it was closed");
    else signal.addEventListener("abort", () => resolve("it was closed"), { once: true });
  });

const realSleep = async (ms: number, signal: AbortSignal): Promise<void> => {
  await after(ms, undefined, { signal, ref: false });
};
