/** What did the provider count? Read from an answer as it arrives, streamed or whole, compressed or not.
 *  Invariant: only usage is looked for, by the protocol's own reader; memory is bounded whatever arrives; nothing here
 *  throws.
 *  Elsewhere: decoding (../decode.ts), the protocols' readers (../protocols/). */

import type { Json, JsonObject, Protocol, Usage } from "@prefork/wire";
import { frameReader, isArray, isObject, openDecoder } from "@prefork/wire/internal";

export type AnswerReaderOptions = {
  readonly protocol: Protocol;
  readonly contentType: string;
  readonly encoding: string;
  /** A whole answer, or one event of a stream, is not looked at beyond this. */
  readonly limit: number;
  /** Keep the text too. */
  readonly keepsText: boolean;
  /** Each time the provider tells what it counted. */
  readonly counted: (usage: Usage) => void;
  /** Once, when all that came has been read. */
  readonly ended: (failure?: string) => void;
};

export class AnswerReader {
  readonly #options: AnswerReaderOptions;
  readonly #decoder: ReturnType<typeof openDecoder>;
  readonly #frames = frameReader();
  readonly #isStream: boolean;
  #parts: Buffer[] = [];
  #kept = 0;
  /** Bytes since the last event that was complete. */
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
    const { protocol, counted } = this.#options;
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
    this.#options.ended(this.#failure ?? failure);
  }
}

/** Where each format says it: at the top, in the message that begins, in the response that ends; in the last part that
 *  has one, where all parts of an answer come as one list. */
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
