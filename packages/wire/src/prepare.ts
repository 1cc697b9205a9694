/** A request as the exact bytes that will be sent.
 *  Invariant: chunks point into the prefix's shared bytes and are cut only at markers; only the tail and the few bytes
 *  next to a marker are copied.
 *  Elsewhere: where markers go (prefix/markers.ts), sending (send/client.ts). */

import { InputError } from "./errors.ts";
import type { FrozenPrefix, Insertion, Marker } from "./prefix/index.ts";
import type { Protocol } from "./protocols/index.ts";
import type { Closing } from "./request.ts";

export type Prepared = {
  readonly protocol: Protocol;
  readonly prefix: FrozenPrefix;
  readonly markers: readonly Marker[];
  /** Everything after the last message, as it is sent. */
  readonly closing: string;
  readonly stream: boolean;
  /** The longest answer that was asked for, if known. The client stops reading soon after that. */
  readonly maxTokens?: number | undefined;
  readonly chunks: readonly Buffer[];
  readonly byteLength: number;
};

export type RequestParts = {
  readonly protocol: Protocol;
  readonly prefix: FrozenPrefix;
  readonly markers: readonly Marker[];
  readonly closing: Closing;
};

/** Open calls are answered by the placeholder first, because the provider would refuse the request otherwise. */
export const prepare = ({ protocol, prefix, markers, closing }: RequestParts): Prepared => {
  const { maxTokens } = closing;
  if (prefix.messages === 0) throw new InputError("a request needs at least one message");
  if (!Number.isSafeInteger(maxTokens) || maxTokens < 0)
    throw new InputError(`maxTokens must be a whole number, got ${maxTokens}`);
  return assemble({
    protocol,
    prefix: prefix.settled(),
    markers,
    closing: protocol.closing(closing, prefix.model, prefix.settings),
    stream: closing.stream,
    maxTokens,
  });
};

export type Assembly = Pick<Prepared, "protocol" | "prefix" | "markers" | "closing" | "stream" | "maxTokens">;

export const assemble = ({ protocol, prefix, markers, closing, stream, maxTokens }: Assembly): Prepared => {
  // Markers are in prompt order, which can differ from the byte order of a recorded request.
  const insertions = markers
    .flatMap((marker) => insertionsOf(protocol, marker, prefix.model))
    .sort((a, b) => a.offset - b.offset);
  const chunks = prefix.chunks(insertions, prefix.close + closing);
  const byteLength = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  return { protocol, prefix, markers, closing, stream, maxTokens, chunks, byteLength };
};

/** The whole request as one buffer, for tests and inspection, never for sending. */
export const bytesOf = ({ chunks }: Prepared): Buffer => Buffer.concat(chunks);

const insertionsOf = (protocol: Protocol, { at, ttl }: Marker, model: string): readonly Insertion[] => {
  if (!at.site) return [];
  const { fromEnd, wrap, recorded } = at.site;
  if (recorded?.ttl === ttl) return [{ offset: at.end - recorded.fromEnd, text: recorded.text }];
  const text = protocol.marker(ttl, model);
  const offset = at.end - fromEnd;
  if (!wrap) return [{ offset, text }];
  return [
    { offset: at.end - wrap.fromEnd, text: wrap.open },
    { offset, text: text + wrap.close },
  ];
};
