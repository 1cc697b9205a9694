/** What a fork inherits: the parent's prefix after a main turn, and everything that can change how it is rendered.
 *  All of it is held by reference, so taking a snapshot costs nothing. Only the main line and library callers write
 *  the slot; everybody else only reads it.
 *  Elsewhere: growing from a snapshot (family.ts), the line itself (../agent). */

import { FrozenPrefix, type JsonObject, type Segment } from "@prefork/wire";
import type { LineageState } from "../agent/index.ts";

/** The parameters that a child must share with its parent to read its cache. The name is common in the field. */
export type CacheSafeParams = LineageState & {
  /** Not in the key, but inherited too. */
  readonly maxTokens: number;
  /** Who wrote it: `main` or `sdk`. Absent until somebody does. */
  readonly querySource?: string;
};

/** Equal for two snapshots exactly if one could read all that the other wrote. Markers and temperature are not in it:
 *  the former are not part of the prefix, the latter is sent with it and changes nothing in how it is rendered. */
export const cacheKeyHash = ({ prefix, head, protocol }: Keyed): string =>
  head.settings.temperature === undefined ? prefix.hash : untemperedHash(prefix, { head, protocol });

/** Siblings start from one prefix, so it is computed once for all of them. */
const untemperedHashes = new WeakMap<FrozenPrefix, string>();

const untemperedHash = (prefix: FrozenPrefix, about: Omit<Keyed, "prefix">): string => {
  const known = untemperedHashes.get(prefix) ?? untempered(prefix, about).hash;
  untemperedHashes.set(prefix, known);
  return known;
};

type Keyed = Pick<LineageState, "prefix" | "head" | "protocol">;

/** The same bytes without a temperature. */
const untempered = (prefix: FrozenPrefix, { head, protocol: { encoder } }: Omit<Keyed, "prefix">): FrozenPrefix => {
  const segments: Segment[] = [];
  for (let at = prefix.tip; at; at = at.before) segments.push(at);
  const spelled = segments.reverse().map((segment) => {
    const bytes = prefix.segmentBytes(segment);
    const { kind, lead } = segment;
    return { kind, lead, bytes: kind === "head" ? withoutTemperature(bytes) : bytes };
  });
  const { model, settings } = head;
  return FrozenPrefix.of({ model, betas: settings.betas ?? [], encoder, settings }, spelled);
};

/** The head is an object that is not closed yet. Some formats have no temperature in it. */
const withoutTemperature = (bytes: Buffer): string | Buffer => {
  const { temperature, ...others } = JSON.parse(`${bytes.toString("utf8")}}`) as JsonObject;
  return temperature === undefined ? bytes : JSON.stringify(others).slice(0, -1);
};

const WRITERS: readonly string[] = ["main", "sdk"];

export class SnapshotSlot {
  #params: CacheSafeParams | undefined;

  /** False: this source may only read, and nothing has changed. */
  save(params: CacheSafeParams, querySource: string): boolean {
    if (!WRITERS.includes(querySource)) return false;
    this.#params = params;
    return true;
  }

  get(): CacheSafeParams | undefined {
    return this.#params;
  }

  clear(): void {
    this.#params = undefined;
  }
}
