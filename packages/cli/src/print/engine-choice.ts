/** Which engine runs the requests? Decides from flags, the environment, and the engine of a resumed session.
 *  Invariant: pure. A conversation stays with its provider unless the user says otherwise or its key is gone. A key comes
 *  only from the environment, is never shown, and is sent only to its own provider or to the base URL that was set with
 *  it. Without a key the built-in rehearsal engine answers, and a notice says so.
 *  Elsewhere: opening it (open-session.ts), facts about providers (@prefork/wire). */

import { REHEARSAL_SCHEME } from "@prefork/runtime/internal";
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
      /** Set if the user did not choose it. */
      readonly because?: string;
    };

/** The engine that answered a conversation so far. */
export type PreviousEngine = {
  readonly protocol: string;
  readonly model: string;
  /** The origin of its base URL, if known. */
  readonly address?: string;
};

type Environment = Readonly<Record<string, string | undefined>>;

const NO_KEY =
  "no ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY is set, so the built-in rehearsal engine answers: it follows task lists with real tools, without a language model";

/** `before`: the engine of the resumed session, if there is one. */
export const chooseEngine = (flags: EngineFlags, env: Environment, before?: PreviousEngine): EngineChoice => {
  const { provider, model } = flags;
  if (provider !== undefined && !PROVIDERS.includes(provider))
    throw new UsageError(`--provider ${provider} is unknown; use one of ${PROVIDERS.join(", ")}`);
  const usual = before?.protocol === profileNamed("anthropic").protocol.name ? before.model : DEFAULT_MODEL;
  if (provider === "rehearsal") return { kind: "rehearsal", model: model ?? usual };
  const found = findProvider(flags, env, before);
  if (!found) return { kind: "rehearsal", model: model ?? usual, because: NO_KEY };
  const { profile, baseUrl, credential } = found;
  const { name, keys } = profile;
  if (baseUrl === undefined && credential === undefined && keys.length > 0)
    throw new UsageError(
      `--provider ${name} needs ${keyVariables(profile)}, or --base-url for an endpoint without a key`,
    );
  const asked = model ?? (before?.protocol === profile.protocol.name ? before.model : profile.model);
  if (asked === undefined) throw new UsageError(`--provider ${name} has no default model; choose one with --model`);
  return {
    ...{ kind: "provider", profile, model: asked },
    ...(baseUrl === undefined ? {} : { baseUrl }),
    ...(credential === undefined ? {} : { credential }),
  };
};

/** Every provider with a key in the environment: a task may use another provider than its session. */
export const otherChoices = (env: Environment): readonly ProviderChoice[] =>
  [...profiles.values()].flatMap((profile): readonly ProviderChoice[] => {
    const credential = keyFor(profile, env);
    if (!credential || !hasValidAddress(profile, env)) return [];
    const baseUrl = addressFor(profile, env);
    // The model is in the requests that the task has sent.
    const model = profile.model ?? "its own";
    return [{ kind: "provider", profile, model, credential, ...(baseUrl === undefined ? {} : { baseUrl }) }];
  });

/** An invalid base URL is an error only for a provider that is used. */
const hasValidAddress = ({ name }: Profile, env: Environment): boolean =>
  (ADDRESSES[name] ?? []).every((variable) => /^https?:\/\//.test(nonEmpty(env[variable]) ?? "https://"));

export type ProviderChoice = Extract<EngineChoice, { readonly kind: "provider" }>;

type ProviderMatch = {
  readonly profile: Profile;
  readonly baseUrl: string | undefined;
  readonly credential: Credential | undefined;
};

/** The notice for a conversation that continues with another engine; undefined if it stays with its own. */
export const engineChangeNotice = (
  before: PreviousEngine,
  choice: EngineChoice,
  asked?: string,
): string | undefined => {
  const { kind, model } = choice;
  const wasRehearsal = before.address?.startsWith(REHEARSAL_SCHEME) === true;
  const from = wasRehearsal
    ? REHEARSAL
    : `${profileForProtocol(before.protocol)?.name ?? before.protocol} (${before.model})`;
  if (kind === "rehearsal") {
    const isSame = before.protocol === profileNamed("anthropic").protocol.name;
    if (isSame && (wasRehearsal || before.address === undefined)) return undefined;
    return `this conversation was with ${from} and continues with ${REHEARSAL}: from now on no language model answers`;
  }
  const { profile, baseUrl } = choice;
  const isSame = profile.protocol.name === before.protocol && !wasRehearsal;
  const address = addressOf(profile, baseUrl);
  // The same format at another base URL is another provider, which receives the whole conversation.
  const isElsewhere = isSame && address !== undefined && before.address !== undefined && address !== before.address;
  if (isSame && !isElsewhere && (asked === undefined || asked === before.model)) return undefined;
  const [there, here] = isElsewhere ? [` at ${before.address}`, ` at ${address}`] : ["", ""];
  return `this conversation was with ${isElsewhere ? before.model : from}${there} and continues with ${profile.name} (${model})${here}: its cache is cold, so the next request pays for the whole conversation`;
};

const REHEARSAL = "the rehearsal engine";

const addressOf = (profile: Profile, baseUrl = profile.baseUrl): string | undefined => URL.parse(baseUrl)?.origin;

const profileForProtocol = (protocol: string): Profile | undefined =>
  [...profiles.values()].find((profile) => profile.protocol.name === protocol);

/** By name, by base URL, by the previous engine, or by key, in this order. */
const findProvider = (
  { provider, baseUrl }: EngineFlags,
  env: Environment,
  before: PreviousEngine | undefined,
): ProviderMatch | undefined => {
  const previous = before && profileForProtocol(before.protocol);
  const url = checkUrl("--base-url", nonEmpty(baseUrl));
  if (provider !== undefined) {
    const profile = profileNamed(provider);
    return { profile, baseUrl: url ?? addressFor(profile, env), credential: keyFor(profile, env) };
  }
  if (url !== undefined) {
    const profile = profileAt(url) ?? profileByPath(url) ?? previous ?? profileByKey(url, env);
    return { profile, baseUrl: url, credential: hostKey(url, env) ?? keyFor(profile, env) };
  }
  const key = previous && keyFor(previous, env);
  if (previous && key) return { profile: previous, baseUrl: addressFor(previous, env), credential: key };
  return providerFromEnvironment(env) ?? providerWithoutKey(previous);
};

/** A local engine without a key is expected at its default address. */
const providerWithoutKey = (previous: Profile | undefined): ProviderMatch | undefined =>
  previous && previous.keys.length === 0 ? { profile: previous, baseUrl: undefined, credential: undefined } : undefined;

/** The first provider that the environment names, by base URL or key. */
const providerFromEnvironment = (env: Environment): ProviderMatch | undefined =>
  COMMON_PROVIDERS.flatMap((name): readonly ProviderMatch[] => {
    const usual = profileNamed(name);
    const address = addressFor(usual, env);
    const profile = address === undefined ? usual : (profileAt(address) ?? compatibleProfile(usual));
    // A key set together with a base URL is meant for it, whichever provider is there.
    const sharedKey = address === undefined ? undefined : keyFor(usual, env);
    const credential = hostKey(address, env) ?? keyFor(profile, env) ?? sharedKey;
    return address === undefined && !credential ? [] : [{ profile, baseUrl: address, credential }];
  })[0];

/** A path names the version of the API, and only Gemini's versions have such names; other names name another format. */
const profileByPath = (url: string): Profile | undefined => {
  const parts = URL.parse(url)?.pathname.split("/") ?? [];
  if (parts.includes("anthropic")) return profileNamed("anthropic");
  if (parts.includes("openai")) return profileNamed("openai-chat");
  return parts.some((part) => /^v1(?:beta\d*|alpha)$/.test(part)) ? profileNamed("gemini") : undefined;
};

/** With one key only, the endpoint has that provider's format. Most gateways offer Anthropic Messages. */
const profileByKey = (url: string, env: Environment): Profile => {
  const [only, ...others] = COMMON_PROVIDERS.map(profileNamed).filter((profile) => keyFor(profile, env) !== undefined);
  if (!only || only.name === "anthropic") return profileNamed("anthropic");
  if (others.length === 0) return compatibleProfile(only);
  throw new UsageError(`--base-url ${url} does not identify the provider; add --provider (${PROVIDERS.join(", ")})`);
};

/** The key of the provider that owns the host, whichever format it is addressed in. */
const hostKey = (url: string | undefined, env: Environment): Credential | undefined => {
  const host = url === undefined ? undefined : URL.parse(url)?.hostname;
  const profile = [...profiles.values()].find(({ hosts }) => host !== undefined && hosts.includes(host));
  return profile && keyFor(profile, env);
};

const COMMON_PROVIDERS: readonly string[] = ["anthropic", "openai", "gemini"].filter((name) => profiles.has(name));

const GOOGLE = "GOOGLE_GEMINI_BASE_URL";

/** The variables of each provider's own SDK; the first one that is set applies. GEMINI_BASE_URL is our earlier name for
 *  the variable of Google's SDK. */
const ADDRESSES: Readonly<Record<string, readonly string[]>> = {
  anthropic: ["ANTHROPIC_BASE_URL"],
  openai: ["OPENAI_BASE_URL"],
  "openai-chat": ["OPENAI_BASE_URL"],
  gemini: [GOOGLE, "GEMINI_BASE_URL"],
};

const addressFor = ({ name }: Profile, env: Environment): string | undefined => {
  const variable = ADDRESSES[name]?.find((each) => nonEmpty(env[each]) !== undefined);
  const url = variable === undefined ? undefined : checkUrl(variable, nonEmpty(env[variable]));
  return variable === GOOGLE && url !== undefined ? withVersion(url) : url;
};

/** Google's SDK appends the API version to the base URL itself. */
const withVersion = (url: string): string =>
  /\/v\d/.test(URL.parse(url)?.pathname ?? "") ? url : `${url.replace(/\/+$/, "")}/v1beta`;

/** Endpoints that replace OpenAI use its older format. */
const compatibleProfile = (profile: Profile): Profile =>
  profile.name === "openai" ? profileNamed("openai-chat") : profile;

const profileNamed = (name: string): Profile => {
  const profile = profiles.get(name);
  if (!profile) throw new UsageError(`--provider ${name} is unknown; use one of ${PROVIDERS.join(", ")}`);
  return profile;
};

/** An empty variable counts as unset: that is how shells switch one off. */
const nonEmpty = (value: string | undefined): string | undefined =>
  value === undefined || value.trim() === "" ? undefined : value.trim();

const checkUrl = (name: string, url: string | undefined): string | undefined => {
  if (url === undefined || /^https?:$/.test(URL.parse(url)?.protocol ?? "")) return url;
  throw new UsageError(`${name} must start with http:// or https://, not ${JSON.stringify(url)}`);
};

const AUTH_TOKEN = "ANTHROPIC_AUTH_TOKEN";

const keyFor = ({ name, keys }: Profile, env: Environment): Credential | undefined => {
  const key = keys.map((variable) => nonEmpty(env[variable])).find((value) => value !== undefined);
  const token = name === "anthropic" ? nonEmpty(env[AUTH_TOKEN]) : undefined;
  if (key !== undefined) return { kind: "api-key", value: key };
  return token === undefined ? undefined : { kind: "bearer", value: token };
};

const keyVariables = ({ name, keys }: Profile): string =>
  [...keys, ...(name === "anthropic" ? [AUTH_TOKEN] : [])].join(" or ");
