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

export type Engine = {
  /** As people call it: `anthropic`, `rehearsal`. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly model: string;
  /** Where it is: the origin alone. Kept with a session, so that its next life can tell a move. */
  readonly address?: string;
  /** Does it explain cache misses when it is asked to? */
  readonly diagnoses?: boolean;
  /** Where what a family shares can be stored by name with the provider. */
  readonly stores?: () => CachedContents;
  readonly connect: (told: { readonly onRetry: (error: ModelError, attempt: number) => void }) => Client;
};

export type EngineOptions = Omit<ClientOptions, "onRetry" | "baseUrl"> & {
  readonly baseUrl?: string; // default: the provider's own
  readonly credential?: Credential;
  readonly model?: string; // default: the profile's; must be said where that has none
  readonly name?: string; // default: the profile's
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
  const { baseUrl = profile.baseUrl, model = profile.model, name = profile.name, ...rest } = options;
  if (model === undefined) throw new InputError(`${profile.name} has no usual model; say which one to ask`);
  const { diagnoses = baseUrl === ANTHROPIC_URL, ...client } = rest;
  const address = URL.parse(baseUrl)?.origin;
  return {
    ...{ name, diagnoses, protocol, model },
    ...(address === undefined ? {} : { address }),
    ...(protocol === gemini ? { stores: () => createCachedContents({ ...client, baseUrl }) } : {}),
    connect: ({ onRetry }) => createClient({ ...client, baseUrl, onRetry }),
  };
};

export const ANTHROPIC_URL = "https://api.anthropic.com";

/** Anthropic's API, or any endpoint that speaks its Messages format. */
export const anthropicEngine = (options: EngineOptions = {}): Engine => engineFor("anthropic", options);
