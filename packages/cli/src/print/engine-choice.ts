/** Which engine runs the requests? Plain data out of flags and environment.
 *  Invariant: pure; a key is taken from the environment alone and never shown; without one the embedded engine is offered
 *  and named, never passed off as a model.
 *  Elsewhere: opening it (open-engine.ts). */

import { type Credential, DEFAULT_MODEL } from "@prefork/wire";
import { UsageError } from "../io.ts";

export type Provider = "anthropic" | "rehearsal";
export const PROVIDERS: readonly Provider[] = ["anthropic", "rehearsal"];

export type EngineFlags = { readonly provider?: string; readonly model?: string; readonly baseUrl?: string };

export type EngineChoice =
  | {
      readonly provider: "anthropic";
      readonly model: string;
      readonly baseUrl?: string;
      readonly credential?: Credential;
    }
  | {
      readonly provider: "rehearsal";
      readonly model: string;
      /** Set where nobody asked for it. */
      readonly because?: string;
    };

type Environment = Readonly<Record<string, string | undefined>>;

const NO_KEY =
  "no ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN is set, so the embedded rehearsal engine answers: it follows task lists with real tools, and no language model is behind it";

export const chooseEngine = (
  { provider, model = DEFAULT_MODEL, baseUrl }: EngineFlags,
  env: Environment,
): EngineChoice => {
  if (provider !== undefined && !isProvider(provider))
    throw new UsageError(`--provider ${provider} is not known; use ${PROVIDERS.join(" or ")}`);
  const url = checked("--base-url", given(baseUrl)) ?? checked("ANTHROPIC_BASE_URL", given(env.ANTHROPIC_BASE_URL));
  const credential = credentialOf(env);
  if (provider === "rehearsal") return { provider, model };
  if (provider === undefined && url === undefined && credential === undefined)
    return { provider: "rehearsal", model, because: NO_KEY };
  if (url === undefined && credential === undefined)
    throw new UsageError(
      "--provider anthropic needs ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or --base-url of an endpoint without a key",
    );
  return {
    provider: "anthropic",
    model,
    ...(url === undefined ? {} : { baseUrl: url }),
    ...(credential === undefined ? {} : { credential }),
  };
};

const isProvider = (name: string): name is Provider => PROVIDERS.some((provider) => provider === name);

/** Set but empty counts as not set: that is how shells switch a variable off. */
const given = (value: string | undefined): string | undefined =>
  value === undefined || value.trim() === "" ? undefined : value.trim();

const checked = (name: string, url: string | undefined): string | undefined => {
  if (url === undefined || /^https?:$/.test(URL.parse(url)?.protocol ?? "")) return url;
  throw new UsageError(`${name} must start with http:// or https://, not ${JSON.stringify(url)}`);
};

const credentialOf = (env: Environment): Credential | undefined => {
  const key = given(env.ANTHROPIC_API_KEY);
  const token = given(env.ANTHROPIC_AUTH_TOKEN);
  if (key !== undefined) return { kind: "api-key", value: key };
  return token === undefined ? undefined : { kind: "bearer", value: token };
};
