/** Which engine runs the requests? Plain data out of flags and environment.
 *  Invariant: pure; a key is taken from the environment alone, never shown, and given only to the provider it was set for
 *  or to the address it was set beside; without one the embedded engine is offered and named, never passed off as a model.
 *  Elsewhere: opening it (open-engine.ts), what is known of a provider (@prefork/wire). */

import { type Credential, DEFAULT_MODEL, type Profile, profileAt, profiles } from "@prefork/wire";
import { UsageError } from "../io.ts";

export const PROVIDERS: readonly string[] = [...profiles.keys(), "rehearsal"];

export type EngineFlags = { readonly provider?: string; readonly model?: string; readonly baseUrl?: string };

export type EngineChoice =
  | {
      readonly kind: "provider";
      readonly profile: Profile;
      readonly model: string;
      readonly baseUrl?: string;
      readonly credential?: Credential;
    }
  | {
      readonly kind: "rehearsal";
      readonly model: string;
      /** Set where nobody asked for it. */
      readonly because?: string;
    };

type Environment = Readonly<Record<string, string | undefined>>;

const NO_KEY =
  "no ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY is set, so the embedded rehearsal engine answers: it follows task lists with real tools, and no language model is behind it";

export const chooseEngine = (flags: EngineFlags, env: Environment): EngineChoice => {
  const { provider, model } = flags;
  if (provider !== undefined && !PROVIDERS.includes(provider))
    throw new UsageError(`--provider ${provider} is not known; there is ${PROVIDERS.join(", ")}`);
  if (provider === "rehearsal") return { kind: "rehearsal", model: model ?? DEFAULT_MODEL };
  const found = whoAnswers(flags, env);
  if (!found) return { kind: "rehearsal", model: model ?? DEFAULT_MODEL, because: NO_KEY };
  const { profile, baseUrl, credential } = found;
  const { name, keys } = profile;
  if (baseUrl === undefined && credential === undefined && keys.length > 0)
    throw new UsageError(`--provider ${name} needs ${keyWords(profile)}, or --base-url of an endpoint without a key`);
  const asked = model ?? profile.model;
  if (asked === undefined) throw new UsageError(`--provider ${name} has no usual model; say which one with --model`);
  return {
    ...{ kind: "provider", profile, model: asked },
    ...(baseUrl === undefined ? {} : { baseUrl }),
    ...(credential === undefined ? {} : { credential }),
  };
};

type Found = {
  readonly profile: Profile;
  readonly baseUrl: string | undefined;
  readonly credential: Credential | undefined;
};

/** By name, by address, or by whose key is there, in this order. */
const whoAnswers = ({ provider, baseUrl }: EngineFlags, env: Environment): Found | undefined => {
  const url = checked("--base-url", given(baseUrl));
  if (provider !== undefined) {
    const profile = profileNamed(provider);
    return { profile, baseUrl: url ?? addressFor(profile, env), credential: keyFor(profile, env) };
  }
  if (url !== undefined) {
    const profile = profileAt(url) ?? (hasOnlyOpenAiKey(env) ? profileNamed("openai-chat") : profileNamed("anthropic"));
    return { profile, baseUrl: url, credential: hostKey(url, env) ?? keyFor(profile, env) };
  }
  return USUAL.flatMap((name): readonly Found[] => {
    const usual = profileNamed(name);
    const address = addressFor(usual, env);
    const profile = address === undefined ? usual : (profileAt(address) ?? speaking(usual));
    // A key that stands beside an address is meant for it, whoever is there.
    const beside = address === undefined ? undefined : keyFor(usual, env);
    const credential = hostKey(address, env) ?? keyFor(profile, env) ?? beside;
    return address === undefined && !credential ? [] : [{ profile, baseUrl: address, credential }];
  })[0];
};

/** Whoever is at an address is known by its key first, whatever format is spoken there. */
const hostKey = (url: string | undefined, env: Environment): Credential | undefined => {
  const host = url === undefined ? undefined : URL.parse(url)?.hostname;
  const profile = [...profiles.values()].find(({ hosts }) => host !== undefined && hosts.includes(host));
  return profile && keyFor(profile, env);
};

const USUAL: readonly string[] = ["anthropic", "openai", "gemini"].filter((name) => profiles.has(name));

/** Where people who use a provider's own tools say that it is somewhere else. */
const ADDRESSES: Readonly<Record<string, string>> = {
  anthropic: "ANTHROPIC_BASE_URL",
  openai: "OPENAI_BASE_URL",
  "openai-chat": "OPENAI_BASE_URL",
  gemini: "GEMINI_BASE_URL",
};

const addressFor = ({ name }: Profile, env: Environment): string | undefined => {
  const variable = ADDRESSES[name];
  return variable === undefined ? undefined : checked(variable, given(env[variable]));
};

/** Whoever takes OpenAI's place speaks its older format. */
const speaking = (profile: Profile): Profile => (profile.name === "openai" ? profileNamed("openai-chat") : profile);

const profileNamed = (name: string): Profile => {
  const profile = profiles.get(name);
  if (!profile) throw new UsageError(`--provider ${name} is not known; there is ${PROVIDERS.join(", ")}`);
  return profile;
};

const hasOnlyOpenAiKey = (env: Environment): boolean =>
  given(env.OPENAI_API_KEY) !== undefined && keyFor(profileNamed("anthropic"), env) === undefined;

/** Set but empty counts as not set: that is how shells switch a variable off. */
const given = (value: string | undefined): string | undefined =>
  value === undefined || value.trim() === "" ? undefined : value.trim();

const checked = (name: string, url: string | undefined): string | undefined => {
  if (url === undefined || /^https?:$/.test(URL.parse(url)?.protocol ?? "")) return url;
  throw new UsageError(`${name} must start with http:// or https://, not ${JSON.stringify(url)}`);
};

const AUTH_TOKEN = "ANTHROPIC_AUTH_TOKEN";

const keyFor = ({ name, keys }: Profile, env: Environment): Credential | undefined => {
  const key = keys.map((variable) => given(env[variable])).find((value) => value !== undefined);
  const token = name === "anthropic" ? given(env[AUTH_TOKEN]) : undefined;
  if (key !== undefined) return { kind: "api-key", value: key };
  return token === undefined ? undefined : { kind: "bearer", value: token };
};

const keyWords = ({ name, keys }: Profile): string =>
  [...keys, ...(name === "anthropic" ? [AUTH_TOKEN] : [])].join(" or ");
