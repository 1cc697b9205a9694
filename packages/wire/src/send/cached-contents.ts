/** Cache entries that Gemini stores by name: creating, extending and deleting one, and requests that name it.
 *  Invariant: we never create an entry twice, because each would be billed until it expires; deleting an entry that is
 *  already gone is not an error.
 *  Elsewhere: what an entry contains (../protocols/gemini-caches.ts), whether it pays off (../cost/stored.ts). */

import { ModelError } from "../errors.ts";
import type { FrozenPrefix } from "../prefix/index.ts";
import type { Prepared } from "../prepare.ts";
import {
  type CachedContentPlan,
  checkedName,
  checkTtl,
  creationBody,
  gemini,
  namingBody,
  readStored,
} from "../protocols/index.ts";
import type { ClientOptions } from "./client.ts";
import { Backoff, defaultRetry, systemTiming } from "./client.ts";
import { type Attempt, createTransport, defaultTimeouts, parseBase, redactKey, targetUnder } from "./transport.ts";

export type StoredContent = {
  readonly name: string;
  readonly plan: CachedContentPlan;
  /** When it expires, as the provider spells it. */
  readonly expireTime: string;
  /** Its size as the provider counts it: billed once as input, and by the hour while it is stored. */
  readonly tokens: number;
};

export type CachedContents = {
  /** Creates the entry of a plan, from any prefix that begins with it. It can be read as soon as this resolves. */
  readonly create: (plan: CachedContentPlan, line: FrozenPrefix, signal?: AbortSignal) => Promise<StoredContent>;
  /** The entry with this time to live from now on. */
  readonly extend: (stored: StoredContent, ttlSeconds: number, signal?: AbortSignal) => Promise<StoredContent>;
  readonly remove: (stored: Pick<StoredContent, "name">, signal?: AbortSignal) => Promise<"removed" | "gone">;
  readonly close: () => void;
};

type Call = Pick<Attempt, "method" | "chunks" | "signal"> & {
  readonly path: string;
  /** Repeating the call has no further effect. */
  readonly isRepeatable: boolean;
};

export const createCachedContents = (options: ClientOptions): CachedContents => {
  const { credential } = options;
  const transport = createTransport();
  const backoff = new Backoff({ ...defaultRetry, ...options.retry }, options.timing ?? systemTiming);
  const base = parseBase(options.baseUrl);

  const attempt = async ({ path, method, chunks, signal }: Call): Promise<string> => {
    const answer = await transport.send({
      target: targetUnder(base, path),
      ...(method ? { method } : {}),
      headers: { ...gemini.headers(credential, []), ...options.headers },
      chunks,
      byteLength: chunks.reduce((sum, chunk) => sum + chunk.length, 0),
      timeouts: { ...defaultTimeouts, ...options.timeouts },
      signal,
    });
    const { status, headers } = answer;
    const body = await answer.text();
    if (status !== 200) throw gemini.failure({ status, headers: headers(), body: redactKey(body, credential) });
    return body;
  };

  const call = async (made: Call): Promise<string> => {
    for (let count = 1; ; count += 1) {
      await backoff.waitUntilOpen(made.signal);
      try {
        const body = await attempt(made);
        backoff.succeeded();
        return body;
      } catch (error) {
        if (!(error instanceof ModelError) || !mayRepeat(error, made)) throw error;
        if (!backoff.failed(error, count)) throw backoff.withRetryTime(error);
        options.onRetry?.(error, count, backoff.waitMs);
      }
    }
  };

  return {
    create: async (plan, line, signal) => {
      const chunks = creationBody(plan, line);
      const body = await call({ path: "/cachedContents", chunks, signal, isRepeatable: false });
      return { ...readStored(body), plan };
    },
    extend: async ({ name, plan }, ttlSeconds, signal) => {
      checkTtl(ttlSeconds);
      const chunks = [Buffer.from(`{"ttl":"${ttlSeconds}s"}`)];
      const path = `/${checkedName(name)}`;
      const body = await call({ path, method: "PATCH", chunks, signal, isRepeatable: true });
      return { ...readStored(body), plan: { ...plan, ttlSeconds } };
    },
    remove: async ({ name }, signal) => {
      const path = `/${checkedName(name)}`;
      try {
        await call({ path, method: "DELETE", chunks: [], signal, isRepeatable: true });
        return "removed";
      } catch (error) {
        if (error instanceof ModelError && error.reason.kind === "not-found") return "gone";
        throw error;
      }
    },
    close: transport.close,
  };
};

/** A refused call had no effect; after any other failure it is unknown whether the entry exists. */
const mayRepeat = ({ reason }: ModelError, { isRepeatable }: Call): boolean =>
  isRepeatable || reason.kind === "rate-limited" || reason.kind === "overloaded";

/** The same request with the entry's name instead of its content. Every request that names it can read it at once. */
export const withCachedContent = (prepared: Prepared, stored: Pick<StoredContent, "name" | "plan">): Prepared => {
  const chunks = namingBody(stored, prepared.prefix, prepared.closing);
  const byteLength = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  return { ...prepared, protocol: { ...prepared.protocol, readable: "at-once" }, chunks, byteLength };
};
