/** Which engine runs the requests? Plain data out of flags, environment and what a session that goes on was answered by.
 *  Invariant: pure; a conversation stays with its provider unless somebody says otherwise, or its key is gone; a key is
 *  taken from the environment alone, never shown, and given only to the provider it was set for or to the address it was
 *  set beside; without one the embedded engine is offered and named, never passed off as a model.
 *  Elsewhere: opening it (open-engine.ts), what is known of a provider (@prefork/wire). */

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
      /** Set where nobody asked for it. */
      readonly because?: string;
    };

/** Who has answered a conversation so far. */
export type Answered = {
  readonly protocol: string;
  readonly model: string;
  /** The origin of its address, where it is known. */
  readonly address?: string;
};

type Environment = Readonly<Record<string, string | undefined>>;

const NO_KEY =
  "no ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY is set, so the embedded rehearsal engine answers: it follows task lists with real tools, and no language model is behind it";

/** `before`: of the session that goes on, if one does. */
export const chooseEngine = (flags: EngineFlags, env: Environment, before?: Answered): EngineChoice => {
  const { provider, model } = flags;
  if (provider !== undefined && !PROVIDERS.includes(provider))
    throw new UsageError(`--provider ${provider} is not known; there is ${PROVIDERS.join(", ")}`);
  const usual = before?.protocol === profileNamed("anthropic").protocol.name ? before.model : DEFAULT_MODEL;
  if (provider === "rehearsal") return { kind: "rehearsal", model: model ?? usual };
  const found = whoAnswers(flags, env, before);
  if (!found) return { kind: "rehearsal", model: model ?? usual, because: NO_KEY };
  const { profile, baseUrl, credential } = found;
  const { name, keys } = profile;
  if (baseUrl === undefined && credential === undefined && keys.length > 0)
    throw new UsageError(`--provider ${name} needs ${keyWords(profile)}, or --base-url of an endpoint without a key`);
  const asked = model ?? (before?.protocol === profile.protocol.name ? before.model : profile.model);
  if (asked === undefined) throw new UsageError(`--provider ${name} has no usual model; say which one with --model`);
  return {
    ...{ kind: "provider", profile, model: asked },
    ...(baseUrl === undefined ? {} : { baseUrl }),
    ...(credential === undefined ? {} : { credential }),
  };
};

/** Every provider that the environment has a key for: a task may belong to another one than its session. */
export const otherChoices = (env: Environment): readonly ProviderChoice[] =>
  [...profiles.values()].flatMap((profile): readonly ProviderChoice[] => {
    const credential = keyFor(profile, env);
    if (!credential || !hasSoundAddress(profile, env)) return [];
    const baseUrl = addressFor(profile, env);
    // Which model is asked stands in what the task has sent.
    const model = profile.model ?? "its own";
    return [{ kind: "provider", profile, model, credential, ...(baseUrl === undefined ? {} : { baseUrl }) }];
  });

/** An address that is none concerns nobody as long as nobody needs it. */
const hasSoundAddress = ({ name }: Profile, env: Environment): boolean =>
  (ADDRESSES[name] ?? []).every((variable) => /^https?:\/\//.test(given(env[variable]) ?? "https://"));

export type ProviderChoice = Extract<EngineChoice, { readonly kind: "provider" }>;

type Found = {
  readonly profile: Profile;
  readonly baseUrl: string | undefined;
  readonly credential: Credential | undefined;
};

/** Where a conversation goes on in another place than it was: what to tell of it. */
export const movedWords = (before: Answered, choice: EngineChoice, asked?: string): string | undefined => {
  const { kind, model } = choice;
  const wasRehearsal = before.address?.startsWith(REHEARSAL_SCHEME) === true;
  const from = wasRehearsal ? REHEARSAL : `${speakerOf(before.protocol)?.name ?? before.protocol} (${before.model})`;
  if (kind === "rehearsal") {
    const isSame = before.protocol === profileNamed("anthropic").protocol.name;
    if (isSame && (wasRehearsal || before.address === undefined)) return undefined;
    return `this conversation was with ${from} and goes on with ${REHEARSAL}: no language model answers from here on`;
  }
  const { profile, baseUrl } = choice;
  const isSame = profile.protocol.name === before.protocol && !wasRehearsal;
  const address = addressOf(profile, baseUrl);
  // Whoever speaks the same format elsewhere is somebody else, and is sent all that was said.
  const isElsewhere = isSame && address !== undefined && before.address !== undefined && address !== before.address;
  if (isSame && !isElsewhere && (asked === undefined || asked === before.model)) return undefined;
  const [there, here] = isElsewhere ? [` at ${before.address}`, ` at ${address}`] : ["", ""];
  return `this conversation was with ${isElsewhere ? before.model : from}${there} and goes on with ${profile.name} (${model})${here}: its cache knows nothing of it yet, so the next request pays for all of it`;
};

const REHEARSAL = "the rehearsal engine";

const addressOf = (profile: Profile, baseUrl = profile.baseUrl): string | undefined => URL.parse(baseUrl)?.origin;

const speakerOf = (protocol: string): Profile | undefined =>
  [...profiles.values()].find((profile) => profile.protocol.name === protocol);

/** By name, by address, by who has answered so far, or by whose key is there, in this order. */
const whoAnswers = (
  { provider, baseUrl }: EngineFlags,
  env: Environment,
  before: Answered | undefined,
): Found | undefined => {
  const speaker = before && speakerOf(before.protocol);
  const url = checked("--base-url", given(baseUrl));
  if (provider !== undefined) {
    const profile = profileNamed(provider);
    return { profile, baseUrl: url ?? addressFor(profile, env), credential: keyFor(profile, env) };
  }
  if (url !== undefined) {
    const profile = profileAt(url) ?? byPath(url) ?? speaker ?? byKey(url, env);
    return { profile, baseUrl: url, credential: hostKey(url, env) ?? keyFor(profile, env) };
  }
  const key = speaker && keyFor(speaker, env);
  if (speaker && key) return { profile: speaker, baseUrl: addressFor(speaker, env), credential: key };
  return usual(env) ?? keyless(speaker);
};

/** An engine of one's own is where it usually is. */
const keyless = (speaker: Profile | undefined): Found | undefined =>
  speaker && speaker.keys.length === 0 ? { profile: speaker, baseUrl: undefined, credential: undefined } : undefined;

/** By what stands in the environment. */
const usual = (env: Environment): Found | undefined =>
  USUAL.flatMap((name): readonly Found[] => {
    const usual = profileNamed(name);
    const address = addressFor(usual, env);
    const profile = address === undefined ? usual : (profileAt(address) ?? speaking(usual));
    // A key that stands beside an address is meant for it, whoever is there.
    const beside = address === undefined ? undefined : keyFor(usual, env);
    const credential = hostKey(address, env) ?? keyFor(profile, env) ?? beside;
    return address === undefined && !credential ? [] : [{ profile, baseUrl: address, credential }];
  })[0];

/** A path names the API's version, and only Gemini's has such names; under another one it is somebody else's format. */
const byPath = (url: string): Profile | undefined => {
  const way = URL.parse(url)?.pathname.split("/") ?? [];
  if (way.includes("anthropic")) return profileNamed("anthropic");
  if (way.includes("openai")) return profileNamed("openai-chat");
  return way.some((part) => /^v1(?:beta\d*|alpha)$/.test(part)) ? profileNamed("gemini") : undefined;
};

/** Whoever has only one provider's key means that provider's format; Messages is what most gateways speak. */
const byKey = (url: string, env: Environment): Profile => {
  const [only, ...others] = USUAL.map(profileNamed).filter((profile) => keyFor(profile, env) !== undefined);
  if (!only || only.name === "anthropic") return profileNamed("anthropic");
  if (others.length === 0) return speaking(only);
  throw new UsageError(`--base-url ${url} does not say who answers there; add --provider (${PROVIDERS.join(", ")})`);
};

/** Whoever is at an address is known by its key first, whatever format is spoken there. */
const hostKey = (url: string | undefined, env: Environment): Credential | undefined => {
  const host = url === undefined ? undefined : URL.parse(url)?.hostname;
  const profile = [...profiles.values()].find(({ hosts }) => host !== undefined && hosts.includes(host));
  return profile && keyFor(profile, env);
};

const USUAL: readonly string[] = ["anthropic", "openai", "gemini"].filter((name) => profiles.has(name));

const GOOGLE = "GOOGLE_GEMINI_BASE_URL";

/** The variables of each provider's own SDK; the first that is set counts. GEMINI_BASE_URL is our earlier name for the
 *  one that Google's SDK reads. */
const ADDRESSES: Readonly<Record<string, readonly string[]>> = {
  anthropic: ["ANTHROPIC_BASE_URL"],
  openai: ["OPENAI_BASE_URL"],
  "openai-chat": ["OPENAI_BASE_URL"],
  gemini: [GOOGLE, "GEMINI_BASE_URL"],
};

const addressFor = ({ name }: Profile, env: Environment): string | undefined => {
  const variable = ADDRESSES[name]?.find((each) => given(env[each]) !== undefined);
  const url = variable === undefined ? undefined : checked(variable, given(env[variable]));
  return variable === GOOGLE && url !== undefined ? withVersion(url) : url;
};

/** Google's SDK adds the version of the API to an address itself. */
const withVersion = (url: string): string =>
  /\/v\d/.test(URL.parse(url)?.pathname ?? "") ? url : `${url.replace(/\/+$/, "")}/v1beta`;

/** Whoever takes OpenAI's place speaks its older format. */
const speaking = (profile: Profile): Profile => (profile.name === "openai" ? profileNamed("openai-chat") : profile);

const profileNamed = (name: string): Profile => {
  const profile = profiles.get(name);
  if (!profile) throw new UsageError(`--provider ${name} is not known; there is ${PROVIDERS.join(", ")}`);
  return profile;
};

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
