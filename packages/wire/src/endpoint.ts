/** Whom requests go to: a base URL, checked once, and the paths under it.
 *  Invariant: nothing that is sent can change the host, and no message of ours repeats a key.
 *  Elsewhere: sending (transport.ts), what is sent (client.ts, cached-contents.ts). */

import { InputError } from "./errors.ts";
import type { Credential } from "./protocols/index.ts";
import { type Target, targetOf } from "./transport.ts";

export const parseBase = (baseUrl: string): URL => {
  const url = URL.parse(baseUrl);
  // The text is not repeated: people put keys into it by mistake.
  if (!url || !/^https?:$/.test(url.protocol)) throw new InputError("the base URL must start with http:// or https://");
  if (url.username !== "" || url.password !== "")
    throw new InputError("the base URL must not hold a user or a password");
  return url;
};

/** Set as a path, never resolved as a reference: `https://host//` must not make a host of what follows it. */
const under = (base: URL, path: string): URL => {
  const [way = "", query] = path.split("?");
  const url = new URL(base);
  url.pathname = base.pathname.replace(/\/+$/, "") + way;
  if (query !== undefined) url.search = base.search === "" ? query : `${base.search}&${query}`;
  return url;
};

export const targetUnder = (base: URL, path: string): Target => targetOf(under(base, path));

/** A provider that repeats the key in its complaint must not put it into ours. */
export const without = (credential: Credential | undefined, text: string): string =>
  credential && credential.value.length >= SHORTEST_KEY ? text.replaceAll(credential.value, "[key]") : text;

/** What is shorter is no secret, and stands in every other word. */
const SHORTEST_KEY = 6;
