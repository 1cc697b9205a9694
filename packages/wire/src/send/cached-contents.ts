/** Entries that Gemini stores by name: creating one, holding it longer, letting it go, and requests that name it.
 *  Invariant: an entry is never created twice by our doing, as each would be paid for until it ends; one that is gone
 *  already is no failure of letting it go.
 *  Elsewhere: what stands in an entry (protocols/gemini-caches.ts), whether it pays (economics/stored.ts). */

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
import { Backoff, defaultRetry, realEdge } from "./retry.ts";
import { type Attempt, createTransport, defaultTimeouts, parseBase, redactKey, targetUnder } from "./transport.ts";

export type StoredContent = {
  readonly name: string;
  readonly plan: CachedContentPlan;
  /** When it ends, in the provider's words. */
  readonly expireTime: string;
  /** What it holds, as the provider counts it: billed once as input, and by the hour while it is held. */
  readonly tokens: number;
};

export type CachedContents = {
  /** The entry of a plan, from any line that begins with it. Readable as soon as this is told. */
  readonly create: (plan: CachedContentPlan, line: FrozenPrefix, signal?: AbortSignal) => Promise<StoredContent>;
  /** The entry with so long to live from now on. */
  readonly extend: (stored: StoredContent, ttlSeconds: number, signal?: AbortSignal) => Promise<StoredContent>;
  readonly remove: (stored: Pick<StoredContent, "name">, signal?: AbortSignal) => Promise<"removed" | "gone">;
  readonly close: () => void;
};

type Call = Pick<Attempt, "method" | "chunks" | "signal"> & {
  readonly path: string;
  /** Sending it again does nothing that was not meant. */
  readonly isRepeatable: boolean;
};

export const createCachedContents = (options: ClientOptions): CachedContents => {
  const { credential } = options;
  const transport = createTransport();
  const backoff = new Backoff({ ...defaultRetry, ...options.retry }, options.edge ?? realEdge);
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
      await backoff.pass(made.signal);
      try {
        const body = await attempt(made);
        backoff.succeeded();
        return body;
      } catch (error) {
        if (!(error instanceof ModelError) || !mayRepeat(error, made)) throw error;
        if (!backoff.failed(error, count)) throw backoff.explained(error);
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

/** A refusal was done nothing for; after anything else it is not known whether the entry exists. */
const mayRepeat = ({ reason }: ModelError, { isRepeatable }: Call): boolean =>
  isRepeatable || reason.kind === "rate-limited" || reason.kind === "overloaded";

/** The same request, with the entry's name in place of what stands in it; all who name it can read it at once. */
export const withCachedContent = (prepared: Prepared, stored: Pick<StoredContent, "name" | "plan">): Prepared => {
  const chunks = namingBody(stored, prepared.prefix, prepared.closing);
  const byteLength = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  return { ...prepared, protocol: { ...prepared.protocol, readable: "at-once" }, chunks, byteLength };
};
