/** The tool servers of one session: their tools for the list, what they offer beside it, and calls.
 *  Invariant: the list is made once, sorted, and never changes; a call goes to the server as it is now; a failure of a
 *  server is an error result.
 *  Elsewhere: one server (server.ts), what the model is told of changes (../context), who closes them (../session). */

import { setTimeout as after } from "node:timers/promises";
import { eraseKeysFromBlock } from "@prefork/guard/internal";
import type { JsonObject, ToolSpec } from "@prefork/wire";
import * as z from "zod";
import { type OfferedTool, type OfferedTools, type ToolHashes, toolName } from "../../context/index.ts";
import type { EventBody } from "../../events.ts";
import type { Clock, Delegated, DelegatedCall } from "../../ports.ts";
import { defineTool, type Tool, toToolOutput } from "../../tools/index.ts";
import type { Extension, ServingExtension } from "../extension.ts";
import { hashOf, isListable } from "./content.ts";
import type { Environment, ServerEntry } from "./entry.ts";
import { Server, type ServerTimes } from "./server.ts";

export type ServersOptions = {
  readonly servers: readonly ServerEntry[];
  readonly cwd: string;
  /** Without keys. */
  readonly environment: Environment;
  readonly clock: Clock;
  readonly times?: ServerTimes & { readonly listMs?: number }; // listMs: how long lists are awaited; default: 5,000
};

export type McpOptions = Pick<ServersOptions, "times">;

/** Tool servers as an extension of a session. */
export const mcp = (servers: readonly ServerEntry[], options: McpOptions = {}): Extension => ({
  name: "mcp",
  open: async (around): Promise<ServingExtension> => {
    const opened = await Servers.open({ ...around, ...options, servers: [...servers] });
    return {
      tools: (earlier) => opened.freeze(earlier),
      offered: opened.offered,
      delegation: () => ({ mcpCall: opened.mcpCall }),
      follow: (emit) => opened.follow(emit),
      close: () => opened.close(),
    };
  },
});

/** More would be more words about tools than a conversation has of anything else. */
const MAX_LISTED = 128;

export class Servers {
  readonly #servers: ReadonlyMap<string, Server>;
  #listed: ToolHashes = {};
  #emit: (event: EventBody) => void = () => {};

  private constructor(options: ServersOptions) {
    const told = {
      listed: (server: Server) => this.#emit(listedEvent(server)),
      lost: ({ name }: Server, reason: string) => this.#emit({ type: "server_lost", server: name, reason }),
    };
    const { cwd, environment, clock, times = {} } = options;
    this.#servers = new Map(
      options.servers.map((entry) => [entry.name, new Server(entry, { cwd, environment, clock, times, told })]),
    );
  }

  /** Starts all of them and waits for their lists, each for itself and all no longer than the time says. */
  static async open(options: ServersOptions): Promise<Servers> {
    eraseKeysFromBlock();
    const servers = new Servers(options);
    const { listMs = 5_000 } = options.times ?? {};
    const waiting = new AbortController();
    const tried = Promise.all([...servers.#servers.values()].map(({ tried }) => tried));
    await Promise.race([tried, after(listMs, undefined, { signal: waiting.signal }).catch(() => undefined)]);
    waiting.abort();
    return servers;
  }

  /** The tools for the list, for good: as the servers offer them now, or as an earlier life of the session had them. */
  freeze(earlier?: readonly ToolSpec[]): readonly Tool[] {
    const tools = earlier === undefined ? this.#listable() : earlier.flatMap(asOffered);
    this.#listed = Object.fromEntries(tools.map((tool) => [toolName(tool), tool.hash]));
    return tools.map((tool) => this.#tool(tool));
  }

  /** All that is offered now, beside what stands in the list. */
  readonly offered = (): OfferedTools => ({
    listed: this.#listed,
    servers: [...this.#servers.values()].flatMap(({ name, tools }) => (tools ? [{ name, tools }] : [])),
  });

  /** The far side of McpCall. */
  readonly mcpCall: DelegatedCall = async ({ server, tool, args }, { signal }) =>
    this.call({ server: String(server), tool: String(tool) }, args as JsonObject, signal);

  async call(
    { server: name, tool }: Pick<OfferedTool, "server" | "tool">,
    args: JsonObject,
    signal: AbortSignal,
  ): Promise<Delegated> {
    const server = this.#servers.get(name);
    const known = [...this.#servers.keys()].join(", ") || "none";
    if (!server) return { text: `There is no server ${JSON.stringify(name)} here. Servers: ${known}.`, isError: true };
    return server.call(tool, args, signal);
  }

  /** From now on what happens is told; what has happened so far is given back. */
  follow(emit: (event: EventBody) => void): readonly EventBody[] {
    this.#emit = emit;
    return [...this.#servers.values()].flatMap((server): readonly EventBody[] => [
      ...(server.tools ? [listedEvent(server)] : []),
      ...(server.problem === undefined ? [] : [lostEvent(server, server.problem)]),
    ]);
  }

  async close(): Promise<void> {
    this.#emit = () => {};
    await Promise.all([...this.#servers.values()].map((server) => server.close()));
  }

  #listable(): readonly OfferedTool[] {
    return [...this.#servers.values()]
      .flatMap(({ tools = [] }) => tools.filter(isListable))
      .sort((a, b) => (toolName(a) < toolName(b) ? -1 : 1))
      .slice(0, MAX_LISTED);
  }

  #tool(offered: OfferedTool): Tool {
    return defineTool({
      name: toolName(offered),
      description: offered.description,
      input: z.record(z.string(), z.unknown()),
      schema: offered.schema,
      readOnly: false, // whatever the server says of itself
      touches: () => ({ reaches: [toolName(offered)] }),
      run: async (args, { signal }) => toToolOutput(await this.call(offered, args as JsonObject, signal)),
    });
  }
}

const listedEvent = ({ name, tools = [] }: Server): EventBody => ({
  type: "server_listed",
  server: name,
  tools: tools.length,
});

const lostEvent = ({ name }: Server, reason: string): EventBody => ({ type: "server_lost", server: name, reason });

/** A tool of a server as it stands in a list that was sent before. */
const asOffered = (spec: ToolSpec): readonly OfferedTool[] => {
  if (spec.type !== "function") return [];
  const [, server, tool] = /^mcp__([A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*?)__(.+)$/.exec(spec.name) ?? [];
  if (server === undefined || tool === undefined) return [];
  const { description = "", inputSchema: schema } = spec;
  return [{ server, tool, description, schema, hash: hashOf(description, schema) }];
};
