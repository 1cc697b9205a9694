/** What do compressed bytes say? Decoded beside what is passed on, which stays as it is.
 *  Invariant: no more comes out than asked for, whatever is fed in; an encoding that nobody knows is a named failure.
 *  Elsewhere: what decoded answers say (answer-reader.ts), decoded requests (analysis.ts). */

import type { Transform } from "node:stream";
import {
  brotliDecompressSync,
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
  gunzipSync,
  inflateSync,
  zstdDecompressSync,
} from "node:zlib";

type Codec = {
  readonly open: () => Transform;
  readonly whole: (bytes: Uint8Array, maxOutputLength: number) => Buffer;
};

/** An answer that was broken off still says what it had said. */
const cutOff = { finishFlush: constants.Z_SYNC_FLUSH };

const gzip: Codec = {
  open: () => createGunzip(cutOff),
  whole: (bytes, maxOutputLength) => gunzipSync(bytes, { maxOutputLength }),
};

const CODECS: ReadonlyMap<string, Codec> = new Map([
  ["gzip", gzip],
  ["x-gzip", gzip],
  [
    "deflate",
    {
      open: () => createInflate(cutOff),
      whole: (bytes, maxOutputLength) => inflateSync(bytes, { maxOutputLength }),
    },
  ],
  [
    "br",
    {
      open: () => createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH }),
      whole: (bytes, maxOutputLength) => brotliDecompressSync(bytes, { maxOutputLength }),
    },
  ],
  [
    "zstd",
    {
      open: () => createZstdDecompress({ finishFlush: constants.ZSTD_e_flush }),
      whole: (bytes, maxOutputLength) => zstdDecompressSync(bytes, { maxOutputLength }),
    },
  ],
]);

/** The codecs of a `Content-Encoding`, the last applied first; undefined where one is unknown. */
const codecsOf = (encoding: string): readonly Codec[] | undefined => {
  const names = encoding
    .toLowerCase()
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "" && name !== "identity");
  const codecs = names.flatMap((name) => CODECS.get(name) ?? []);
  return codecs.length === names.length ? codecs.toReversed() : undefined;
};

export type Decoded = { readonly bytes: Uint8Array } | { readonly failure: string };

/** A whole body. */
export const decodeWhole = (bytes: Uint8Array, encoding: string, most: number): Decoded => {
  const codecs = codecsOf(encoding);
  if (!codecs) return { failure: "a body in an unknown encoding" };
  try {
    return { bytes: codecs.reduce((given: Uint8Array, codec) => codec.whole(given, most), bytes) };
  } catch (error) {
    const isLong = (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE";
    return { failure: isLong ? "a body that is too long once it is decoded" : "a body that cannot be decoded" };
  }
};

export type Decoder = {
  readonly write: (bytes: Uint8Array) => void;
  /** `ended` hears once that nothing more comes out, and why if that was no proper end. */
  readonly end: () => void;
};

export type DecoderEnds = {
  readonly out: (bytes: Buffer) => void;
  readonly ended: (failure?: string) => void;
};

/** A body in pieces. Without an encoding everything happens at once. */
export const openDecoder = (encoding: string, { out, ended }: DecoderEnds): Decoder => {
  const codecs = codecsOf(encoding);
  if (!codecs) return { write: () => undefined, end: () => ended("an answer in an unknown encoding") };
  const [first, ...more] = codecs.map(({ open }) => open());
  if (!first)
    return { write: (bytes) => out(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)), end: () => ended() };
  let isOver = false;
  const finish = (failure?: string): void => {
    if (isOver) return;
    isOver = true;
    ended(failure);
  };
  const broken = (): void => finish("an answer that cannot be decoded");
  for (const codec of [first, ...more]) codec.on("error", broken);
  const last = more.reduce((stream: Transform, codec) => stream.pipe(codec), first);
  last.on("data", out).on("end", () => finish());
  return {
    write: (bytes) => {
      if (!isOver) first.write(bytes);
    },
    end: () => {
      // After an error nothing ends by itself.
      if (!isOver) first.end();
    },
  };
};
