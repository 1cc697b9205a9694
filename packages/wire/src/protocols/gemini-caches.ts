/** Cache entries that Gemini stores by name, for requests with the same beginning: what an entry contains, and what
 *  each request still sends.
 *  Invariant: an entry ends with a whole content, and includes the tools, their choice and the system prompt, which a
 *  request that names the entry must not send; both are slices of the same bytes, so together they say what the request
 *  would say alone.
 *  Elsewhere: the API calls (../send/cached-contents.ts), whether it pays off (../cost/stored.ts), bytes
 *  (gemini-encode.ts). */

import { InputError } from "../errors.ts";
import { quote } from "../json.ts";
import type { FrozenPrefix, Segment } from "../prefix/index.ts";
import { HEAD_START } from "./gemini-encode.ts";
import { resourceOf } from "./gemini-settings.ts";
import { asCount, asObject, asString, malformed, parse } from "./reading.ts";

/** Plain data. A prefix is recognised by the hash of its last segment inside the entry. */
export type CachedContentPlan = {
  readonly model: string;
  /** How many segments the entry contains, and the chain hash of the last one: the end of S. */
  readonly segments: number;
  readonly hash: string;
  readonly contents: number;
  readonly ttlSeconds: number;
  readonly displayName?: string;
};

export type CachedContentOptions = {
  /** From its creation or its last extension. Default: ten minutes, which is enough for most fan-outs. */
  readonly ttlSeconds?: number;
  readonly displayName?: string;
};

const USUAL_TTL_SECONDS = 600;

/** The longest entry that all of these can name: every content that they share, as long as each still has something
 *  left to send. */
export const planCachedContent = (
  lines: readonly FrozenPrefix[],
  options: CachedContentOptions = {},
): CachedContentPlan => {
  const { ttlSeconds = USUAL_TTL_SECONDS, displayName } = options;
  const [first] = lines;
  if (!first) throw new InputError("an entry needs at least one request that will name it");
  checkTtl(ttlSeconds);
  const shared = Math.min(...lines.map((line) => Math.min(first.agreement(line), line.tip?.index ?? 0)));
  let end = shared;
  while (end > 0 && !lines.every((line) => beginsContent(line.segmentAt(end)))) end -= 1;
  const [inside, next] = [first.segmentAt(end - 1), first.segmentAt(end)];
  if (!inside || !next)
    throw new InputError("these requests differ in model, settings, tools or system: no entry can serve them all");
  return {
    model: first.model,
    segments: end,
    hash: inside.hash,
    contents: next.item,
    ttlSeconds,
    ...(displayName === undefined ? {} : { displayName }),
  };
};

const beginsContent = (segment: Segment | undefined): boolean => segment?.kind === "block" && segment.part === 0;

export const checkTtl = (seconds: number): void => {
  if (!Number.isSafeInteger(seconds) || seconds < 1)
    throw new InputError(`an entry lives for whole seconds, at least one: ${seconds}`);
};

/** Where the first content after the entry begins, and what closes the one before it. */
type Boundary = { readonly start: number; readonly offset: number; readonly close: string };

const LIST = `,"contents":[`;

const boundaryIn = (line: FrozenPrefix, { segments, hash, model }: CachedContentPlan): Boundary => {
  const next = line.segmentAt(segments);
  if (line.model !== model || !next || line.segmentAt(segments - 1)?.hash !== hash || !beginsContent(next))
    throw new InputError("the request does not begin with what the entry holds");
  const lead = line.segmentBytes(next).toString("latin1", 0, next.lead);
  const at = lead.lastIndexOf("{");
  const before = lead.slice(0, at);
  const close = before.endsWith(LIST) ? `${before.slice(0, -LIST.length)}}` : `${before.slice(0, -1)}]}`;
  return { start: next.start, offset: next.start + at, close };
};

/** The request body that creates the entry. */
export const creationBody = (plan: CachedContentPlan, line: FrozenPrefix): readonly Buffer[] => {
  const { start, close } = boundaryIn(line, plan);
  const { model, ttlSeconds, displayName } = plan;
  const named = displayName === undefined ? "" : `,"displayName":${quote(displayName)}`;
  const opening = `{"model":${quote(resourceOf(model))},"ttl":"${ttlSeconds}s"${named}`;
  const held = line.segmentBytes({ start: HEAD_START.length, end: start });
  return [Buffer.from(opening), held, Buffer.from(close)];
};

/** The request with the entry's name instead of its content. */
export const namingBody = (
  { plan, name }: { readonly plan: CachedContentPlan; readonly name: string },
  line: FrozenPrefix,
  closing: string,
): readonly Buffer[] => {
  const { offset } = boundaryIn(line, plan);
  const opening = `{"cachedContent":${quote(checkedName(name))},"contents":[`;
  const own = line.segmentBytes({ start: offset, end: line.byteLength });
  return [Buffer.concat([Buffer.from(opening), own, Buffer.from(line.close + closing)])];
};

/** The provider's own form: nothing in a name may lead to another address. */
const isName = (name: string): boolean => /^cachedContents\/[\w-]+$/.test(name);

export const checkedName = (name: string): string => {
  if (!isName(name)) throw new InputError("an entry's name is cachedContents/ and its id");
  return name;
};

/** What the provider reports about an entry that it stores. */
export const readStored = (body: string): { name: string; expireTime: string; tokens: number } => {
  const { name, expireTime, usageMetadata } = parse(body);
  const tokens = asCount(asObject(usageMetadata).totalTokenCount) ?? 0;
  if (!isName(asString(name))) throw malformed("an entry without a name");
  return { name: asString(name), expireTime: asString(expireTime), tokens };
};
