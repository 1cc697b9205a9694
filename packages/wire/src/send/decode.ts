/** Decompresses bodies and splits them into server-sent events.
 *  Invariant: never produces more than was asked for, whatever is fed in; an unknown encoding is a named failure.
 *  Elsewhere: answers of a provider (transport.ts), answers and requests that pass through the proxy
 *  (@prefork/xray/proxy). */

import type { Transform } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { createParser } from "eventsource-parser";
import type { Frame } from "../response.ts";

type Codec = {
  readonly open: () => Transform;
  readonly whole: (bytes: Uint8Array, maxOutputLength: number) => Buffer;
};

// Loaded when something is compressed, which is rare.
const zlib = () => process.getBuiltinModule("node:zlib");

/** An answer that was cut off can still be read up to that point. */
const gzip: Codec = {
  open: () => zlib().createGunzip({ finishFlush: zlib().constants.Z_SYNC_FLUSH }),
  whole: (bytes, maxOutputLength) => zlib().gunzipSync(bytes, { maxOutputLength }),
};

const CODECS: ReadonlyMap<string, Codec> = new Map([
  ["gzip", gzip],
  ["x-gzip", gzip],
  [
    "deflate",
    {
      open: () => zlib().createInflate({ finishFlush: zlib().constants.Z_SYNC_FLUSH }),
      whole: (bytes, maxOutputLength) => zlib().inflateSync(bytes, { maxOutputLength }),
    },
  ],
  [
    "br",
    {
      open: () => zlib().createBrotliDecompress({ finishFlush: zlib().constants.BROTLI_OPERATION_FLUSH }),
      whole: (bytes, maxOutputLength) => zlib().brotliDecompressSync(bytes, { maxOutputLength }),
    },
  ],
  [
    "zstd",
    {
      open: () => zlib().createZstdDecompress({ finishFlush: zlib().constants.ZSTD_e_flush }),
      whole: (bytes, maxOutputLength) => zlib().zstdDecompressSync(bytes, { maxOutputLength }),
    },
  ],
]);

/** The codecs of a `Content-Encoding`, the last applied first; undefined if one is unknown. */
const codecsOf = (encoding: string): readonly Codec[] | undefined => {
  const names = encoding
    .toLowerCase()
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "" && name !== "identity");
  const codecs = names.flatMap((name) => CODECS.get(name) ?? []);
  return codecs.length === names.length ? codecs.toReversed() : undefined;
};

/** Streams that decode a body, in the order in which they apply; undefined if an encoding is unknown. */
export const openCodecs = (encoding: string): readonly Transform[] | undefined =>
  codecsOf(encoding)?.map(({ open }) => open());

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
  /** `ended` is called once, when nothing more comes out, with the reason if it did not end properly. */
  readonly end: () => void;
};

export type DecoderEnds = {
  readonly out: (bytes: Buffer) => void;
  readonly ended: (failure?: string) => void;
};

/** Decodes a body in pieces. Without an encoding everything happens synchronously. */
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
      // After an error no stream ends by itself.
      if (!isOver) first.end();
    },
  };
};

// --- server-sent events ----------------------------------------------------------------------------------------------

type FrameReader = {
  readonly read: (chunk: Buffer) => readonly Frame[];
  /** The last event, if only the blank line after it is missing. */
  readonly end: () => readonly Frame[];
};

export const openFrames = (): FrameReader => {
  const ready: Frame[] = [];
  const parser = createParser({ onEvent: ({ event, data }) => ready.push({ event: event ?? "message", data }) });
  const decoder = new StringDecoder("utf8");
  return {
    read: (chunk) => {
      parser.feed(decoder.write(chunk));
      return ready.splice(0);
    },
    end: () => {
      parser.feed(`${decoder.end()}\n\n`);
      return ready.splice(0).filter(({ data }) => isWholeData(data));
    },
  };
};

const isWholeData = (data: string): boolean => {
  if (data.trim() === "[DONE]") return true;
  try {
    return typeof JSON.parse(data) === "object";
  } catch {
    return false;
  }
};

/** Returns the frames that each chunk completes, wherever the bytes were cut: inside a line, a name or a character. */
export const frameReader = (): ((chunk: Buffer) => readonly Frame[]) => openFrames().read;

/** The frames in a body that came in one piece. */
export const framesIn = (text: string): readonly Frame[] => {
  const reader = openFrames();
  return [...reader.read(Buffer.from(text)), ...reader.end()];
};
