/** What did the provider count? Reads the usage from an answer as it arrives, streamed or whole, compressed or not.
 *  Invariant: only the usage is read, by the protocol's own reader; memory is bounded whatever arrives; nothing here
 *  throws.
 *  Elsewhere: decoding and the protocols' readers (@prefork/wire). */

import type { Json, JsonObject, Protocol, Usage } from "@prefork/wire";
import { frameReader, isArray, isObject, openDecoder } from "@prefork/wire/internal";

export type AnswerReaderOptions = {
  readonly protocol: Protocol;
  readonly contentType: string;
  readonly encoding: string;
  /** A whole answer, or one event of a stream, is not read beyond this size. */
  readonly limit: number;
  /** Keep the text too. */
  readonly keepsText: boolean;
  /** Called each time the provider reports its count. */
  readonly onUsage: (usage: Usage) => void;
  /** Called once, when everything that arrived has been read. */
  readonly onEnd: (failure?: string) => void;
};

export class AnswerReader {
  readonly #options: AnswerReaderOptions;
  readonly #decoder: ReturnType<typeof openDecoder>;
  readonly #frames = frameReader();
  readonly #isStream: boolean;
  #parts: Buffer[] = [];
  #kept = 0;
  /** Bytes since the last complete event. */
  #waiting = 0;
  #usage: Usage | undefined;
  #failure: string | undefined;

  constructor(options: AnswerReaderOptions) {
    this.#options = options;
    this.#isStream = /^\s*text\/event-stream\b/i.test(options.contentType);
    this.#decoder = openDecoder(options.encoding, {
      out: (bytes) => this.#read(bytes),
      ended: (failure) => this.#end(failure),
    });
  }

  write(bytes: Uint8Array): void {
    this.#decoder.write(bytes);
  }

  end(): void {
    this.#decoder.end();
  }

  get text(): string {
    return Buffer.concat(this.#parts).toString("utf8");
  }

  #read(bytes: Buffer): void {
    const { limit, keepsText } = this.#options;
    if (this.#failure) return;
    if (!this.#isStream || keepsText) this.#keep(bytes);
    if (!this.#isStream) return;
    const frames = this.#frames(bytes);
    this.#waiting = frames.length > 0 ? 0 : this.#waiting + bytes.length;
    if (this.#waiting > limit) this.#fail("an answer that is too long");
    for (const { data } of frames) if (/"usage(?:Metadata)?"/.test(data)) this.#look(data);
  }

  #keep(bytes: Buffer): void {
    this.#kept += bytes.length;
    if (this.#kept <= this.#options.limit) this.#parts.push(bytes);
    else if (this.#isStream) return;
    else this.#fail("an answer that is too long");
  }

  #fail(failure: string): void {
    this.#failure = failure;
    this.#parts = [];
  }

  #look(json: string): void {
    const { protocol, onUsage: counted } = this.#options;
    try {
      const reported = usageIn(JSON.parse(json) as Json);
      if (!reported) return;
      this.#usage = protocol.usage(reported, this.#usage);
    } catch {
      this.#failure ??= "an answer that makes no sense";
      return;
    }
    counted(this.#usage);
  }

  #end(failure: string | undefined): void {
    if (!this.#isStream && this.#parts.length > 0) this.#look(this.text);
    if (!this.#options.keepsText) this.#parts = [];
    this.#options.onEnd(this.#failure ?? failure);
  }
}

/** Where each format reports it: at the top, in the message that starts, in the response that ends; or in the last part
 *  that has one, if an answer is a list of parts. */
const usageIn = (value: Json): JsonObject | undefined => {
  if (isArray(value)) return value.map(usageIn).findLast((found) => found !== undefined);
  if (!isObject(value)) return undefined;
  const { message, response } = value;
  return [
    value.usage,
    value.usageMetadata,
    isObject(message) ? message.usage : undefined,
    isObject(response) ? response.usage : undefined,
  ].find((found) => isObject(found));
};
