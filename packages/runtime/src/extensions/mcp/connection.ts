/** An open connection to one server: the greeting, its list of tools, and calls.
 *  Invariant: a server that speaks no version of ours, or does not greet in time, is no connection and nothing of it is
 *  left; the list is read to its end or to a bound.
 *  Elsewhere: requests (peer.ts), what a listed tool may look like (offered.ts), what a result means (result.ts). */

import type { Json, JsonObject } from "@prefork/wire";
import { isObject } from "./message.ts";
import { type Asking, type OpenWire, Peer, ServerFault } from "./peer.ts";

/** The newest first; all of them have the same greeting, list and call. */
const VERSIONS: readonly string[] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const MOST_PAGES = 40;

export type ConnectionOptions = {
  readonly openWire: OpenWire;
  /** For the greeting and each page of the list. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** The list has changed. */
  readonly changed: () => void;
};

export class Connection {
  readonly #peer: Peer;
  readonly #options: ConnectionOptions;
  readonly #offersTools: boolean;

  private constructor(peer: Peer, options: ConnectionOptions, offersTools: boolean) {
    this.#peer = peer;
    this.#options = options;
    this.#offersTools = offersTools;
  }

  static async open(options: ConnectionOptions): Promise<Connection> {
    const peer = await Peer.open(options.openWire, (method) => {
      if (method === "notifications/tools/list_changed") options.changed();
    });
    try {
      return new Connection(peer, options, await greet(peer, options));
    } catch (error) {
      await peer.close();
      throw error;
    }
  }

  get lost(): Promise<string> {
    return this.#peer.lost;
  }

  get isLost(): boolean {
    return this.#peer.isLost;
  }

  /** The tools as the server describes them. */
  async list(): Promise<readonly Json[]> {
    if (!this.#offersTools) return [];
    const tools: Json[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MOST_PAGES; page++) {
      const answer = await this.#peer.request("tools/list", cursor === undefined ? {} : { cursor }, this.#options);
      if (Array.isArray(answer.tools)) tools.push(...answer.tools);
      if (typeof answer.nextCursor !== "string") break;
      cursor = answer.nextCursor;
    }
    return tools;
  }

  call(name: string, args: JsonObject, asking: Asking): Promise<JsonObject> {
    return this.#peer.request("tools/call", { name, arguments: args }, asking);
  }

  close(): Promise<void> {
    return this.#peer.close();
  }
}

/** Whether it has tools at all. */
const greet = async (peer: Peer, options: ConnectionOptions): Promise<boolean> => {
  const greeting = {
    protocolVersion: VERSIONS[0] ?? "",
    capabilities: {},
    clientInfo: { name: "prefork", version: "0" }, // servers must be given one, and none may depend on it
  };
  const { protocolVersion: version, capabilities } = await peer.request("initialize", greeting, options);
  if (typeof version !== "string" || !VERSIONS.includes(version))
    throw new ServerFault(
      "refused",
      `it speaks version ${JSON.stringify(version)} of the protocol, which is not known here`,
    );
  peer.agreed(version);
  await peer.notify("notifications/initialized");
  return isObject(capabilities) && isObject(capabilities.tools);
};
