/** What executes requests: a provider's API, the simulator, a local model.
 *  Invariant: an engine is a description; each session opens its own line to it and closes it again.
 *  Elsewhere: sending (@prefork/wire), which engine a user chose (the command line). */

import {
  type CachedContents,
  type Client,
  type ClientOptions,
  type Credential,
  createCachedContents,
  createClient,
  gemini,
  InputError,
  type ModelError,
  type Profile,
  type Protocol,
  profiles,
} from "@prefork/wire";

import { REHEARSAL_SCHEME } from "../journal/index.ts";

export type Engine = {
  /** As people call it: `anthropic`, `rehearsal`. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly model: string;
  /** Where it is: the origin alone. Kept with a session, so that its next life can tell a move. */
  readonly address?: string;
  /** Tokens that fit into its model's window, where this endpoint has its own limit. Default: the model's. */
  readonly window?: number;
  /** Does it explain cache misses when it is asked to? */
  readonly diagnoses?: boolean;
  /** Where what a family shares can be stored by name with the provider. */
  readonly stores?: () => CachedContents;
  readonly connect: (told: {
    readonly onRetry: (error: ModelError, attempt: number, waitMs?: number) => void;
  }) => Client;
};

export type EngineOptions = Omit<ClientOptions, "onRetry" | "baseUrl"> & {
  readonly baseUrl?: string; // default: the provider's own
  readonly credential?: Credential;
  readonly model?: string; // default: the profile's; must be said where that has none
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
      `the provider ${JSON.stringify(provider)} is not known; there is ${[...profiles.keys()].join(", ")}`,
    );
  const { protocol } = profile;
  const { baseUrl = profile.baseUrl, model = profile.model, name = profile.name, window, ...rest } = options;
  if (model === undefined) throw new InputError(`${profile.name} has no usual model; say which one to ask`);
  const { diagnoses = baseUrl === ANTHROPIC_URL, ...client } = rest;
  const address = URL.parse(baseUrl)?.origin;
  return {
    ...{ name, diagnoses, protocol, model },
    ...(window === undefined ? {} : { window }),
    ...(address === undefined ? {} : { address }),
    ...(protocol === gemini ? { stores: () => createCachedContents({ ...client, baseUrl }) } : {}),
    connect: ({ onRetry }) => createClient({ ...client, baseUrl, onRetry }),
  };
};

export const ANTHROPIC_URL = "https://api.anthropic.com";

/** Anthropic's API, or any endpoint that speaks its Messages format. */
export const anthropicEngine = (options: EngineOptions = {}): Engine => engineFor("anthropic", options);

/** What a journal says of the engine that its bytes were made for. */
export type NamedEngine = {
  readonly protocol: string;
  /** Unknown where nobody noted it. */
  readonly address: string | undefined;
};

/** The engine that bytes were made for. Another one would get a format that is not its own, or a conversation that was
 *  never meant for it. */
export const findEngine = (named: NamedEngine, engines: readonly Engine[]): Engine | undefined =>
  engines.find(
    ({ protocol, address }) =>
      protocol.name === named.protocol && (named.address === undefined || isSamePlace(address, named.address)),
  );

/** The embedded engine is the same in each process, though its cache and its address are not. */
const isSamePlace = (a: string | undefined, b: string): boolean =>
  a === b || [a, b].every((address) => address?.startsWith(REHEARSAL_SCHEME));

/** Why there is none, and what is missing. */
export const missingEngine = ({ protocol, address }: NamedEngine, current: Engine): string => {
  if (address?.startsWith(REHEARSAL_SCHEME))
    return `it was started with the rehearsal engine, and the session now uses ${current.name}; open the session with that engine to go on with it`;
  const speaking = [...profiles.values()].filter((profile) => profile.protocol.name === protocol);
  const profile = speaking.find(({ baseUrl }) => URL.parse(baseUrl)?.origin === address) ?? speaking[0];
  const place = address === undefined ? "" : ` at ${address}`;
  const keys = profile?.keys ?? [];
  const needs = keys.length === 0 ? "open the session with that engine" : `set ${keys.join(" or ")}`;
  return `it was started with ${profile?.name ?? protocol}${place}, and the session now uses ${current.name}; ${needs} to go on with it`;
};
