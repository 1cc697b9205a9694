/** What does the entry of a tool server mean: what is started or which address is contacted, and with which secrets?
 *  Invariant: pure. A server's name can be used in a rule and in a tool's name as it is, so nothing is ever renamed.
 *  Variables are only filled in where secrets belong, from an environment without our keys. An invalid entry is
 *  reported, never guessed at.
 *  Elsewhere: the files with entries (configured.ts), starting a server (stdio.ts, http.ts). */

import type { WrittenServers } from "@prefork/guard/internal";

type Common = {
  readonly name: string;
  /** The file that contains it, for people. */
  readonly from?: string;
  readonly timeoutMs?: number; // of one call; default: 120,000
};

export type StdioServer = Common & {
  readonly transport: "stdio";
  readonly command: string;
  readonly args?: readonly string[];
  /** In addition to the few variables that every program needs. */
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
  /** `unset`: the variables that have no value, if that is the reason. */
  | { readonly ok: false; readonly reason: string; readonly unset?: readonly string[] };

/** An entry as it is in a file. */
export type WrittenServer = WrittenServers[string];

const refuse = (reason: string): EntryReading => ({ ok: false, reason });

const refuseUnset = (field: "env" | "headers", unset: readonly string[]): EntryReading => ({
  ok: false,
  reason: `${field}: ${unset.join(", ")} is not set, or is one of our keys`,
  unset,
});

/** With two underscores in a row, `mcp__a__b__c` would be ambiguous. A full tool name has at most 64 characters. */
const NAME = /^[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*$/;
const MAX_NAME = 32;

export const isServerName = (name: string): boolean => NAME.test(name) && name.length <= MAX_NAME;

export const NAME_RULE = `a name has at most ${MAX_NAME} letters, digits, - and single _`;

export const readEntry = (name: string, written: WrittenServer, place: EntryContext): EntryReading => {
  const { type, command, args = [], env = {}, url, headers = {}, timeoutMs } = written;
  if (!isServerName(name)) return refuse(NAME_RULE);
  const common = {
    name,
    ...(place.from === undefined ? {} : { from: place.from }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
  if (url !== undefined && command !== undefined) return refuse("it has both a command and a url");
  if (url !== undefined && type !== "stdio") {
    const problem = addressProblem(url, headers);
    if (problem !== undefined) return refuse(problem);
    const filled = fillVariables(headers, place.environment);
    if ("unset" in filled) return refuseUnset("headers", filled.unset);
    return { ok: true, entry: { ...common, transport: "http", url, headers: filled.values } };
  }
  if (command === undefined || type === "http")
    return refuse(type === "http" ? "it has no url" : "it has neither a command nor a url");
  const unfilled = [command, ...args].find((text) => VARIABLE.test(text));
  if (unfilled !== undefined) return refuse(`variables are only filled in env and headers, not in ${unfilled}`);
  const filled = fillVariables(env, place.environment);
  if ("unset" in filled) return refuseUnset("env", filled.unset);
  return { ok: true, entry: { ...common, transport: "stdio", command, args, env: filled.values } };
};

type EntryContext = { readonly from?: string; readonly environment: Environment };

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** Why nothing may be sent there; undefined if it may. */
const addressProblem = (url: string, headers: object): string | undefined => {
  if (VARIABLE.test(url)) return "variables are only filled in env and headers, because others can see an address";
  const parsed = URL.parse(url);
  if (!parsed || !/^https?:$/.test(parsed.protocol)) return "the url is not an http or https address";
  if (parsed.username !== "" || parsed.password !== "")
    return "the url contains a user name or a password; put it into headers";
  if (parsed.protocol === "http:" && !LOOPBACK.test(parsed.hostname) && Object.keys(headers).length > 0)
    return "headers are not sent over plain http to another machine; use https";
  return undefined;
};

// --- variables ---------------------------------------------------------------------------------------------------------

const VARIABLE = /\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/;
const VARIABLES = new RegExp(VARIABLE.source, "g");

type FilledVariables = { readonly values: Readonly<Record<string, string>> } | { readonly unset: readonly string[] };

/** Fills in every `${NAME}` and `${NAME:-default}`. Returns the names of variables that are not set, if there are any. */
const fillVariables = (values: Readonly<Record<string, string>>, environment: Environment): FilledVariables => {
  const unset: string[] = [];
  const filled = Object.entries(values).map(([key, text]) => [
    key,
    text.replace(VARIABLES, (_, name: string, fallback: string | undefined) => {
      const value = environment[name] ?? fallback;
      if (value === undefined) unset.push(name);
      return value ?? "";
    }),
  ]);
  return unset.length === 0 ? { values: Object.fromEntries(filled) } : { unset };
};

// --- secrets -----------------------------------------------------------------------------------------------------------

/** Shorter values are words like `true`, and hiding them would garble every text. */
const MIN_SECRET = 6;

/** Removes the values of env and headers from a text for people. */
export const createSecretFilter = (entry: ServerEntry): ((text: string) => string) => {
  const values = Object.values((entry.transport === "stdio" ? entry.env : entry.headers) ?? {});
  const secrets = values
    .flatMap((value) => [value, ...value.split(/\s+/)])
    .filter((value) => value.length >= MIN_SECRET)
    .sort((a, b) => b.length - a.length);
  return (text) => secrets.reduce((shown, secret) => shown.replaceAll(secret, "***"), text);
};

/** What is started or contacted, without its secrets. */
export const describeTarget = (entry: ServerEntry): string =>
  entry.transport === "stdio" ? [entry.command, ...(entry.args ?? [])].join(" ") : entry.url;
