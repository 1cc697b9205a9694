/** Which prompts are stored by name, for whom, and until when?
 *  Invariant: a stored prompt is read completely by every request that names it, until it expires or is deleted; it
 *  belongs to one key and one model. Time comes in as an argument.
 *  Elsewhere: what storing costs (../../engine.ts), requests that name one (session.ts). */

import type { JsonObject } from "@prefork/wire";
import { invalid, type Refusal } from "../../errors.ts";
import { field } from "./complaints.ts";

export type StoredContent = {
  readonly name: string;
  readonly model: string;
  readonly displayName: string;
  readonly workspace: string;
  /** Tools, instructions and turns, as they were sent. */
  readonly body: JsonObject;
  readonly tokens: number;
  readonly createdAt: number;
  updatedAt: number;
  expiresAt: number;
};

const HOUR = 3_600_000;

const notFound: Refusal = { status: 403, message: "CachedContent not found (or permission denied)" };

/** Who asks, and when. */
export type Asking = { readonly workspace: string; readonly now: number };

export class StoredContents {
  readonly #stored = new Map<string, StoredContent>();

  keep(content: StoredContent): void {
    this.#stored.set(content.name, content);
  }

  find(name: string, { workspace, now }: Asking): StoredContent | Refusal {
    const stored = this.#stored.get(name);
    return stored !== undefined && stored.workspace === workspace && stored.expiresAt > now ? stored : notFound;
  }

  all({ workspace, now }: Asking): readonly StoredContent[] {
    return [...this.#stored.values()].filter((stored) => stored.workspace === workspace && stored.expiresAt > now);
  }

  delete(name: string): void {
    this.#stored.delete(name);
  }
}

/** When a body says that storage ends; an hour from now by default. */
export const expiryOf = (body: JsonObject, now: number): number | Refusal => {
  const ttl = body.ttl;
  const time = field(body, "expireTime");
  if (typeof ttl === "string") {
    const [, seconds] = /^(\d+(?:\.\d+)?)s$/.exec(ttl) ?? [];
    return seconds === undefined
      ? invalid(`Invalid value at 'ttl' (type.googleapis.com/google.protobuf.Duration), ${JSON.stringify(ttl)}`)
      : now + Number(seconds) * 1_000;
  }
  if (typeof time !== "string") return now + HOUR;
  const at = Date.parse(time);
  return Number.isNaN(at) || at <= now
    ? invalid(`Invalid value at 'expire_time': expected a time in the future, got ${JSON.stringify(time)}`)
    : at;
};

const timeText = (ms: number): string => new Date(ms).toISOString();

/** As the provider shows it, without its content. */
export const storedBody = (stored: StoredContent): JsonObject => ({
  name: stored.name,
  model: `models/${stored.model}`,
  displayName: stored.displayName,
  usageMetadata: { totalTokenCount: stored.tokens },
  createTime: timeText(stored.createdAt),
  updateTime: timeText(stored.updatedAt),
  expireTime: timeText(stored.expiresAt),
});
