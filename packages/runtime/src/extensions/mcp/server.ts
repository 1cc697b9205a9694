/** One tool server over the life of a session: started, listed, called, lost, and started again.
 *  Invariant: its failures are values for whoever calls, never the session's; attempts come further and further apart and
 *  end after some, until somebody calls again; its last list stays known while it is away; after closing nothing of it
 *  runs.
 *  Elsewhere: one connection (connection.ts), all servers together (servers.ts). */

import { setTimeout as after } from "node:timers/promises";
import type { JsonObject } from "@prefork/wire";
import type { OfferedTool } from "../../context/index.ts";
import type { Clock, Delegated } from "../../ports.ts";
import { Connection, ServerFault, wordsOf } from "./connection.ts";
import { delegatedOf, offeredBy } from "./content.ts";
import { hiding, type ServerEntry } from "./entry.ts";
import { openHttp } from "./http.ts";
import { INVALID_PARAMS, TOO_LONG } from "./message.ts";
import { openStdio, type StdioPlace } from "./stdio.ts";

export type ServerTold = {
  readonly listed: (server: Server) => void;
  readonly lost: (server: Server, reason: string) => void;
};

export type ServerTimes = {
  readonly startMs?: number; // for the greeting and each page of the list; default: 30,000
  /** How long a call waits for a server that is not there. Default: 5,000. */
  readonly waitMs?: number;
  readonly callMs?: number; // default: 120,000
};

export type ServerOptions = StdioPlace & {
  readonly clock: Clock;
  readonly told: ServerTold;
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
/** A server that lived so long was well, whatever ended it. */
const WELL_MS = 30_000;

export class Server {
  readonly entry: ServerEntry;
  readonly #options: ServerOptions;
  readonly #hide: (text: string) => string;
  readonly #closing = new AbortController();
  /** Resolved when there is a list, or it is clear that there is none yet. */
  readonly #first = Promise.withResolvers<void>();
  readonly #keeping: Promise<void>;
  #state: State = { kind: "starting" };
  #turned = Promise.withResolvers<void>();
  #poked = Promise.withResolvers<void>();
  #tools: readonly OfferedTool[] | undefined;
  #problem: string | undefined;
  #isListing = false;
  #mustList = false;

  constructor(entry: ServerEntry, options: ServerOptions) {
    this.entry = entry;
    this.#options = options;
    this.#hide = hiding(entry);
    this.#keeping = this.#keep();
  }

  get name(): string {
    return this.entry.name;
  }

  /** What it has offered last; undefined until it was heard for the first time. */
  get tools(): readonly OfferedTool[] | undefined {
    return this.#tools;
  }

  /** Why it is not there, from its failure until it is there again. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Settled once it has been tried. */
  get tried(): Promise<void> {
    return this.#first.promise;
  }

  async call(tool: string, args: JsonObject, signal: AbortSignal): Promise<Delegated> {
    try {
      return delegatedOf(await this.#calling({ tool, args, signal, again: true }));
    } catch (error) {
      if (!(error instanceof ServerFault)) throw error;
      return { text: this.#hide(this.#words(tool, error)), isError: true };
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#poked.resolve();
    await this.#keeping;
  }

  async #calling({ tool, args, signal, again }: Calling): Promise<JsonObject> {
    const connection = await this.#ready(signal);
    const { callMs = 120_000 } = this.#options.times ?? {};
    try {
      return await connection.call(tool, args, { timeoutMs: this.entry.timeoutMs ?? callMs, signal });
    } catch (error) {
      // A session that the server has forgotten has run nothing, so the same call is made in a new one.
      const isForgotten = error instanceof ServerFault && error.kind === "lost" && error.hasNotRun;
      if (!isForgotten || !again || signal.aborted) throw error;
      return this.#calling({ tool, args, signal, again: false });
    }
  }

  #words(tool: string, { kind, message, code }: ServerFault): string {
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

  /** Waits a little for one that is starting, or about to. */
  async #ready(signal: AbortSignal): Promise<Connection> {
    const { waitMs = 5_000 } = this.#options.times ?? {};
    // A timer that the process waits for: while the server is away, nothing else may keep it alive.
    const tooLate = new AbortController();
    const timer = setTimeout(() => tooLate.abort(), waitMs);
    const patience = AbortSignal.any([tooLate.signal, this.#closing.signal, signal]);
    const over = Promise.withResolvers<void>();
    const onAbort = (): void => over.resolve();
    patience.addEventListener("abort", onAbort, { once: true });
    this.#poked.resolve();
    try {
      for (let wasTried = false; ; ) {
        const { kind } = this.#state;
        if (this.#state.kind === "ready" && !this.#state.connection.isLost) return this.#state.connection;
        if (kind === "closed" || patience.aborted || (wasTried && kind === "away")) break;
        wasTried ||= kind === "starting";
        await Promise.race([this.#turned.promise, over.promise]);
      }
    } finally {
      clearTimeout(timer);
      patience.removeEventListener("abort", onAbort);
    }
    if (signal.aborted) throw new ServerFault("aborted", "interrupted before it began");
    throw new ServerFault("lost", this.#problem ?? "it has not started yet");
  }

  async #keep(): Promise<void> {
    const { clock, told } = this.#options;
    for (let failures = 0; !this.#closing.signal.aborted; ) {
      this.#turn({ kind: "starting" });
      const begun = clock.now();
      const reason = this.#hide(await this.#live());
      this.#first.resolve();
      this.#poked = Promise.withResolvers();
      if (this.#closing.signal.aborted) break;
      failures = clock.now() - begun >= WELL_MS ? 1 : failures + 1;
      this.#problem = reason;
      this.#turn({ kind: "away" });
      told.lost(this, reason);
      await this.#pause(failures);
    }
    this.#first.resolve();
    this.#turn({ kind: "closed" });
  }

  /** One connection, from its beginning to its end. Gives why it is over. */
  async #live(): Promise<string> {
    const { startMs = 30_000 } = this.#options.times ?? {};
    const { signal } = this.#closing;
    let connection: Connection | undefined;
    try {
      connection = await Connection.open({
        openWire: this.entry.transport === "stdio" ? openStdio(this.entry, this.#options) : openHttp(this.entry),
        timeoutMs: startMs,
        signal,
        changed: () => this.#list(connection),
      });
      await this.#listAll(connection);
      this.#problem = undefined;
      this.#turn({ kind: "ready", connection });
      return await Promise.race([connection.lost, aborted(signal)]);
    } catch (error) {
      return wordsOf(error);
    } finally {
      await connection?.close();
    }
  }

  /** After a failure; after too many, until somebody calls. */
  async #pause(failures: number): Promise<void> {
    if (failures >= MAX_ATTEMPTS) return this.#poked.promise;
    const { sleep = realSleep } = this.#options.clock;
    const ms = Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS);
    await sleep(ms, this.#closing.signal).catch(() => undefined);
  }

  #turn(state: State): void {
    this.#state = state;
    this.#turned.resolve();
    this.#turned = Promise.withResolvers();
  }

  /** One reading of the list at a time, and one more where it changed meanwhile. */
  #list(connection: Connection | undefined): void {
    this.#mustList = true;
    if (this.#isListing || !connection) return;
    void this.#listAll(connection).catch(() => undefined); // the list it had stays
  }

  async #listAll(connection: Connection): Promise<void> {
    this.#isListing = true;
    try {
      do {
        this.#mustList = false;
        this.#tools = offeredBy(this.name, await connection.list());
        this.#first.resolve();
        this.#options.told.listed(this);
      } while (this.#mustList);
    } finally {
      this.#isListing = false;
    }
  }
}

type Calling = {
  readonly tool: string;
  readonly args: JsonObject;
  readonly signal: AbortSignal;
  readonly again: boolean;
};

const aborted = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve("it was closed");
    else signal.addEventListener("abort", () => resolve("it was closed"), { once: true });
  });

const realSleep = async (ms: number, signal: AbortSignal): Promise<void> => {
  await after(ms, undefined, { signal, ref: false });
};
