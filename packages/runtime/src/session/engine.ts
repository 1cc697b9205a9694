/** What executes requests: a provider's API, the simulator, a local model.
 *  Invariant: an engine is a description; each session opens its own line to it and closes it again.
 *  Elsewhere: sending (@prefork/wire), which engine a user chose (the command line). */

import {
  anthropic,
  type Client,
  type ClientOptions,
  type Credential,
  createClient,
  DEFAULT_MODEL,
  type ModelError,
  type Protocol,
} from "@prefork/wire";

export type Engine = {
  /** As people call it: `anthropic`, `rehearsal`. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly model: string;
  /** Does it explain cache misses when it is asked to? */
  readonly diagnoses?: boolean;
  readonly connect: (told: { readonly onRetry: (error: ModelError, attempt: number) => void }) => Client;
};

export type AnthropicOptions = Omit<ClientOptions, "onRetry" | "baseUrl"> & {
  readonly baseUrl?: string; // default: the provider's own
  readonly credential?: Credential;
  readonly model?: string;
  readonly name?: string; // default: anthropic
  /** Whether the endpoint takes `diagnostics`. Default: only the provider's own does. */
  readonly diagnoses?: boolean;
};

export const ANTHROPIC_URL = "https://api.anthropic.com";

/** Anthropic's API, or any endpoint that speaks its Messages format. */
export const anthropicEngine = (options: AnthropicOptions = {}): Engine => {
  const { baseUrl = ANTHROPIC_URL, model = DEFAULT_MODEL, name = "anthropic", ...rest } = options;
  const { diagnoses = baseUrl === ANTHROPIC_URL, ...client } = rest;
  return {
    name,
    diagnoses,
    protocol: anthropic,
    model,
    connect: ({ onRetry }) => createClient({ ...client, baseUrl, onRetry }),
  };
};
