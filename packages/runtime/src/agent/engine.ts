/** What executes requests: a provider's API, the simulator, a local model. An engine is a description. A session
 *  connects to it, shares one client among all agents that use the same endpoint and credential, so that back-off and
 *  pacing apply to all of them, and closes every client when it closes. An agent holds a reference to the engine that
 *  it uses; a fork holds its parent's.
 *  Elsewhere: sending (@prefork/wire), which engine a user chose (the command line). */

import { hash } from "node:crypto";
import {
  type CachedContents,
  type Client,
  type ClientOptions,
  type Credential,
  createCachedContents,
  createClient,
  gemini,
  InputError,
  type ModelFacts,
  modelFacts,
  type Profile,
  type Protocol,
  profiles,
  windowOf,
} from "@prefork/wire";
import { DEFAULT_WINDOW } from "../context/index.ts";
import { REHEARSAL_SCHEME } from "../journal/index.ts";

export type Engine = {
  /** Its common name: `anthropic`, `rehearsal`. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly model: string;
  /** Its origin (scheme, host, port). Kept with a session, so that the session notices when it moves. */
  readonly address?: string;
  /** Tokens that fit into the window, if this endpoint has its own limit. Default: the model's. */
  readonly window?: number;
  /** Does it explain cache misses when it is asked to? */
  readonly diagnoses?: boolean;
  /** Stores what a family shares by name with the provider, if the provider offers that. */
  readonly stores?: () => CachedContents;
  /** Engines with the same endpoint and credential name the same connection, and share one client in a session. Default:
   *  nobody shares this engine's client. */
  readonly connection?: string;
  readonly connect: () => Client;
};

export type EngineOptions = Omit<ClientOptions, "onRetry" | "baseUrl"> & {
  readonly baseUrl?: string; // default: the provider's own
  readonly credential?: Credential;
  readonly model?: string; // default: the profile's; required if the profile has none
  readonly name?: string; // default: the profile's
  readonly window?: number; // default: the model's, as its vendor publishes it
  /** Whether the endpoint takes `diagnostics`. Default: only Anthropic's own does. */
  readonly diagnoses?: boolean;
};

/** An endpoint by its profile, or by the name of one: `openai`, `gemini`, `deepseek`, `vllm`. */
export const engineFor = (provider: Profile | string, options: EngineOptions = {}): Engine => {
  const profile = typeof provider === "string" ? profiles.get(provider) : provider;
  if (!profile)
    throw new InputError(
      `unknown provider ${JSON.stringify(provider)}; known providers: ${[...profiles.keys()].join(", ")}`,
    );
  const { protocol } = profile;
  const { baseUrl = profile.baseUrl, model = profile.model, name = profile.name, window, ...rest } = options;
  if (model === undefined)
    throw new InputError(`${profile.name} has no default model; choose one with the option model`);
  const { diagnoses = baseUrl === ANTHROPIC_URL, ...client } = rest;
  const address = URL.parse(baseUrl)?.origin;
  return {
    ...{ name, diagnoses, protocol, model },
    ...(window === undefined ? {} : { window }),
    ...(address === undefined ? {} : { address }),
    ...(protocol === gemini ? { stores: () => createCachedContents({ ...client, baseUrl }) } : {}),
    connection: hash("sha256", JSON.stringify([baseUrl, client.credential, client.headers])),
    connect: () => createClient({ ...client, baseUrl }),
  };
};

export const ANTHROPIC_URL = "https://api.anthropic.com";

/** Anthropic's API, or any endpoint that speaks its Messages format. */
export const anthropicEngine = (options: EngineOptions = {}): Engine => engineFor("anthropic", options);

// --- the engines of one session ----------------------------------------------------------------------------------------

/** What one agent sends its requests with. */
export type AgentEngine = {
  readonly engine: Engine;
  readonly client: Client;
  readonly protocol: Protocol;
  /** What is known of the agent's model. */
  readonly facts: ModelFacts | undefined;
  /** Tokens that fit into the model's window. */
  readonly window: number;
};

/** What a journal says about the engine that its bytes were encoded for. */
export type NamedEngine = {
  readonly protocol: string;
  /** Absent if it was not recorded. */
  readonly address: string | undefined;
};

export type EnginesOptions = {
  /** The session's own. */
  readonly engine: Engine;
  /** Engines that tasks of an earlier run may have been started with. */
  readonly engines?: readonly Engine[] | undefined;
  /** Tokens that fit into the window of the session's own model. Default: the engine's, else the model's. */
  readonly window?: number | undefined;
  /** Wraps the client of the session's own engine. */
  readonly wrap?: (client: Client) => Client;
};

export class Engines {
  readonly #options: EnginesOptions;
  readonly #clients = new Map<Engine | string, Client>();

  constructor(options: EnginesOptions) {
    this.#options = options;
  }

  /** The session's own engine for this model. */
  open(model: string): AgentEngine {
    return this.#reference(this.#options.engine, model);
  }

  /** The engine that a journal names. Another one would get a format that is not its own, or a conversation that was never
   *  meant for it; so a session without that engine throws, and names the credential that is missing. */
  resume(model: string, named: NamedEngine): AgentEngine {
    const { engine, engines = [] } = this.#options;
    const found = [engine, ...engines].find((each) => isNamed(each, named));
    if (!found) throw new InputError(missingEngine(named, engine));
    return this.#reference(found, model);
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
  }

  #reference(engine: Engine, model: string): AgentEngine {
    const own = engine === this.#options.engine ? this.#options.window : undefined;
    const window = own ?? engine.window ?? windowOf(model) ?? DEFAULT_WINDOW;
    return { engine, client: this.#connect(engine), protocol: engine.protocol, facts: modelFacts(model), window };
  }

  #connect(engine: Engine): Client {
    const key = engine.connection ?? engine;
    const known = this.#clients.get(key);
    if (known) return known;
    const { wrap = (client) => client } = this.#options;
    const client = engine === this.#options.engine ? wrap(engine.connect()) : engine.connect();
    this.#clients.set(key, client);
    return client;
  }
}

const isNamed = ({ protocol, address }: Engine, named: NamedEngine): boolean =>
  protocol.name === named.protocol && (named.address === undefined || isSameAddress(address, named.address));

/** The built-in rehearsal engine is the same in each process, although its cache and its address are not. */
const isSameAddress = (a: string | undefined, b: string): boolean =>
  a === b || [a, b].every((address) => address?.startsWith(REHEARSAL_SCHEME));

/** Why there is none, and what is missing. */
const missingEngine = ({ protocol, address }: NamedEngine, current: Engine): string => {
  if (address?.startsWith(REHEARSAL_SCHEME))
    return `it was started with the rehearsal engine, and the session now uses ${current.name}; open the session with that engine to resume it`;
  const speaking = [...profiles.values()].filter((profile) => profile.protocol.name === protocol);
  const profile = speaking.find(({ baseUrl }) => URL.parse(baseUrl)?.origin === address) ?? speaking[0];
  const place = address === undefined ? "" : ` at ${address}`;
  const keys = profile?.keys ?? [];
  const needs = keys.length === 0 ? "open the session with that engine" : `set ${keys.join(" or ")}`;
  return `it was started with ${profile?.name ?? protocol}${place}, and the session now uses ${current.name}; ${needs} to resume it`;
};
