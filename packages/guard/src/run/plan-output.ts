/** What a plan has printed, up to a limit a stream.
 *  Invariant: never more than the limit is held, and what was cut is said.
 *  Elsewhere: who prints (run-pipe.ts). */

export type Printed = { readonly stdout: string; readonly stderr: string; readonly truncated: boolean };

export class PlanOutput {
  readonly #out: Buffer[] = [];
  readonly #err: Buffer[] = [];
  #room: { readonly out: number; readonly err: number };
  #truncated = false;

  constructor(limit: number) {
    this.#room = { out: limit, err: limit };
  }

  /** False when there is no room for more. */
  out(chunk: Buffer): boolean {
    return this.#keep(chunk, "out");
  }

  err(chunk: Buffer): boolean {
    return this.#keep(chunk, "err");
  }

  error(text: string): void {
    this.err(Buffer.from(text));
  }

  texts(): Printed {
    return {
      stdout: Buffer.concat(this.#out).toString("utf8"),
      stderr: Buffer.concat(this.#err).toString("utf8"),
      truncated: this.#truncated,
    };
  }

  #keep(chunk: Buffer, stream: "out" | "err"): boolean {
    const room = this.#room[stream];
    (stream === "out" ? this.#out : this.#err).push(chunk.subarray(0, room));
    this.#room = { ...this.#room, [stream]: Math.max(0, room - chunk.length) };
    if (chunk.length <= room) return true;
    this.#truncated = true;
    return false;
  }
}
