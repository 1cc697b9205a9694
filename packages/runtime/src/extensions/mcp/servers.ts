/** What do the tool servers of a session offer, and how are they called?
 *  Invariant: the tool list is created once, sorted, and never changes. A call goes to the server as it is now. A
 *  server's failure is an error result.
 *  Elsewhere: one server (server.ts), how changes are announced (../../context), closing them (../../session). */

import { setTimeout as after } from "node:timers/promises";
import { eraseKeysFromBlock } from "@prefork/guard/internal";
import type { JsonObject, ToolSpec } from "@prefork/wire";
import * as z from "zod";
import { type OfferedTool, type OfferedTools, type ToolHashes, toolName } from "../../context/index.ts";
import type { EventBody } from "../../events.ts";
import type { Clock, Delegated, DelegatedCall } from "../../ports.ts";
import { defineTool, type Tool, toToolOutput } from "../../tools/index.ts";
import type { Extension, ServingExtension } from "../extension.ts";
import { hashTool, isListable } from "./content.ts";
import type { Environment, ServerEntry } from "./entry.ts";
import { Server, type ServerTimes } from "./server.ts";

export type ServersOptions = {
  readonly servers: readonly ServerEntry[];
  readonly cwd: string;
  /** Without keys. */
  readonly environment: Environment;
  readonly clock: Clock;
  readonly times?: ServerTimes & { readonly listMs?: number }; // listMs: how long to wait for the lists; default: 5,000
};

export type McpOptions = Pick<ServersOptions, "times">;

/** Tool servers as an extension of a session. */
export const mcp = (servers: readonly ServerEntry[], options: McpOptions = {}): Extension => ({
  name: "mcp",
  open: async (context): Promise<ServingExtension> => {
    const opened = await Servers.open({ ...context, ...options, servers: [...servers] });
    return {
      tools: (earlier) => opened.freeze(earlier),
      offered: opened.offered,
      delegation: () => ({ mcpCall: opened.mcpCall }),
      follow: (emit) => opened.follow(emit),
      close: () => opened.close(),
    };
  },
});

/** More would spend more tokens on tools than on anything else. */
const MAX_LISTED = 128;

export class Servers {
  readonly #servers: ReadonlyMap<string, Server>;
  #listed: ToolHashes = {};
  #emit: (event: EventBody) => void = () => {};

  private constructor(options: ServersOptions) {
    const events = {
      listed: (server: Server) => this.#emit(listedEvent(server)),
      lost: ({ name }: Server, reason: string) => this.#emit({ type: "server_lost", server: name, reason }),
    };
    const { cwd, environment, clock, times = {} } = options;
    this.#servers = new Map(
      options.servers.map((entry) => [entry.name, new Server(entry, { cwd, environment, clock, times, events })]),
    );
  }

  /** Starts all servers and waits for their lists, up to a common time limit. */
  static async open(options: ServersOptions): Promise<Servers> {
    eraseKeysFromBlock();
    const servers = new Servers(options);
    const { listMs = 5_000 } = options.times ?? {};
    const waiting = new AbortController();
    const tried = Promise.all([...servers.#servers.values()].map(({ firstAttempt: tried }) => tried));
    await Promise.race([tried, after(listMs, undefined, { signal: waiting.signal }).catch(() => undefined)]);
    waiting.abort();
    return servers;
  }

  /** The final tools for the tool list: as the servers offer them now, or as an earlier run of the session had them. */
  freeze(earlier?: readonly ToolSpec[]): readonly Tool[] {
    const tools = earlier === undefined ? this.#listable() : earlier.flatMap(asOffered);
    this.#listed = Object.fromEntries(tools.map((tool) => [toolName(tool), tool.hash]));
    return tools.map((tool) => this.#tool(tool));
  }

  /** Everything that is offered now, in addition to the tool list. */
  readonly offered = (): OfferedTools => ({
    listed: this.#listed,
    servers: [...this.#servers.values()].flatMap(({ name, tools }) => (tools ? [{ name, tools }] : [])),
  });

  /** Handles McpCall. */
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

  /** From now on events are passed to `emit`. Returns what has happened so far. */
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
      readOnly: false, // whatever the server says about itself
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

/** A server's tool from a tool list that was sent before. */
const asOffered = (spec: ToolSpec): readonly OfferedTool[] => {
  if (spec.type !== "function") return [];
  const [, server, tool] = /^mcp__([A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*?)__(.+)$/.exec(spec.name) ?? [];
  if (server === undefined || tool === undefined) return [];
  const { description = "", inputSchema: schema } = spec;
  return [{ server, tool, description, schema, hash: hashTool(description, schema) }];
};
