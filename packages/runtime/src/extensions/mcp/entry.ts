/** A tool server as somebody wrote it down: what is started, or which address is asked, and with which secrets.
 *  Invariant: pure; a name can stand in a rule and in a tool's name as it is, so nothing is ever renamed; variables are
 *  filled into secrets' places alone and from an environment without keys of ours; what is wrong is said, not guessed.
 *  Elsewhere: the files it is written in (configured.ts), starting it (stdio.ts, http.ts). */

import type { WrittenServers } from "@prefork/guard/internal";

type Common = {
  readonly name: string;
  /** Where it is written, for people. */
  readonly from?: string;
  readonly timeoutMs?: number; // of one call; default: 120,000
};

export type StdioServer = Common & {
  readonly transport: "stdio";
  readonly command: string;
  readonly args?: readonly string[];
  /** Beside the few variables that every program needs. */
  readonly env?: Readonly<Record<string, string>>;
};

export type HttpServer = Common & {
  readonly transport: "http";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
};

export type ServerEntry = StdioServer | HttpServer;

export type Environment = Readonly<Record<string, string | undefined>>;

export type EntryReading =
  | { readonly ok: true; readonly entry: ServerEntry }
  | { readonly ok: false; readonly reason: string };

/** One as it stands in a file. */
export type WrittenServer = WrittenServers[string];

const wrong = (reason: string): EntryReading => ({ ok: false, reason });

/** Two underscores would make `mcp__a__b__c` two tools; a full name has room for 64 characters. */
const NAME = /^[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*$/;
const MAX_NAME = 32;

export const isServerName = (name: string): boolean => NAME.test(name) && name.length <= MAX_NAME;

export const NAME_WORDS = `a name has at most ${MAX_NAME} letters, digits, - and single _`;

export const readEntry = (name: string, written: WrittenServer, place: Place): EntryReading => {
  const { type, command, args = [], env = {}, url, headers = {}, timeoutMs } = written;
  if (!isServerName(name)) return wrong(NAME_WORDS);
  const common = {
    name,
    ...(place.from === undefined ? {} : { from: place.from }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
  if (url !== undefined && command !== undefined) return wrong("it has both a command and a url");
  if (url !== undefined && type !== "stdio") {
    const problem = addressProblem(url, headers);
    if (problem !== undefined) return wrong(problem);
    const filled = filledIn(headers, place.environment);
    if (typeof filled === "string") return wrong(`headers: ${filled}`);
    return { ok: true, entry: { ...common, transport: "http", url, headers: filled } };
  }
  if (command === undefined || type === "http")
    return wrong(type === "http" ? "it has no url" : "it has neither a command nor a url");
  const unfilled = [command, ...args].find((text) => VARIABLE.test(text));
  if (unfilled !== undefined) return wrong(`variables are filled in env and headers alone, not in ${unfilled}`);
  const filled = filledIn(env, place.environment);
  if (typeof filled === "string") return wrong(`env: ${filled}`);
  return { ok: true, entry: { ...common, transport: "stdio", command, args, env: filled } };
};

type Place = { readonly from?: string; readonly environment: Environment };

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** Why nothing may be sent there, or undefined. */
const addressProblem = (url: string, headers: object): string | undefined => {
  if (VARIABLE.test(url)) return "variables are filled in env and headers alone, since an address is seen by others";
  const parsed = URL.parse(url);
  if (!parsed || !/^https?:$/.test(parsed.protocol)) return "the url is no http or https address";
  if (parsed.username !== "" || parsed.password !== "")
    return "the url holds a user name or a password; put it into headers";
  if (parsed.protocol === "http:" && !LOOPBACK.test(parsed.hostname) && Object.keys(headers).length > 0)
    return "headers are not sent over plain http to another machine; use https";
  return undefined;
};

// --- variables ---------------------------------------------------------------------------------------------------------

const VARIABLE = /\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/;
const VARIABLES = new RegExp(VARIABLE.source, "g");

/** Every `${NAME}` and `${NAME:-instead}`; a text where one is not there. */
const filledIn = (
  values: Readonly<Record<string, string>>,
  environment: Environment,
): Readonly<Record<string, string>> | string => {
  const missing: string[] = [];
  const filled = Object.entries(values).map(([key, text]) => [
    key,
    text.replace(VARIABLES, (_, name: string, instead: string | undefined) => {
      const value = environment[name] ?? instead;
      if (value === undefined) missing.push(name);
      return value ?? "";
    }),
  ]);
  return missing.length === 0 ? Object.fromEntries(filled) : `${missing.join(", ")} is not set, or is a key of ours`;
};

// --- secrets -----------------------------------------------------------------------------------------------------------

/** Shorter values are words like `true`, and hiding them would garble every text. */
const MIN_SECRET = 6;

/** Takes what was configured as env and headers out of a text for people. */
export const hiding = (entry: ServerEntry): ((text: string) => string) => {
  const values = Object.values((entry.transport === "stdio" ? entry.env : entry.headers) ?? {});
  const secrets = values
    .flatMap((value) => [value, ...value.split(/\s+/)])
    .filter((value) => value.length >= MIN_SECRET)
    .sort((a, b) => b.length - a.length);
  return (text) => secrets.reduce((shown, secret) => shown.replaceAll(secret, "***"), text);
};

/** What is started or asked, without its secrets. */
export const targetWords = (entry: ServerEntry): string =>
  entry.transport === "stdio" ? [entry.command, ...(entry.args ?? [])].join(" ") : entry.url;
