/** Which prompts are stored by name, for whom, and until when?
 *  Invariant: a stored prompt is read completely by every request that names it, until it expires or is deleted; it
 *  belongs to one key and one model. Time comes in as an argument.
 *  Elsewhere: what storing costs (../../engine.ts), requests that name one (session.ts). */

import type { JsonObject } from "@prefork/wire";
import { invalid, type Refusal } from "../../errors.ts";
import { field } from "./complaints.ts";

export type HeldContent = {
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

export class HeldContents {
  readonly #held = new Map<string, HeldContent>();

  keep(content: HeldContent): void {
    this.#held.set(content.name, content);
  }

  find(name: string, { workspace, now }: Asking): HeldContent | Refusal {
    const held = this.#held.get(name);
    return held !== undefined && held.workspace === workspace && held.expiresAt > now ? held : notFound;
  }

  all({ workspace, now }: Asking): readonly HeldContent[] {
    return [...this.#held.values()].filter((held) => held.workspace === workspace && held.expiresAt > now);
  }

  delete(name: string): void {
    this.#held.delete(name);
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
export const heldBody = (held: HeldContent): JsonObject => ({
  name: held.name,
  model: `models/${held.model}`,
  displayName: held.displayName,
  usageMetadata: { totalTokenCount: held.tokens },
  createTime: timeText(held.createdAt),
  updateTime: timeText(held.updatedAt),
  expireTime: timeText(held.expiresAt),
});
