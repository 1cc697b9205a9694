/** How is a request refused?
 *  Invariant: a refusal is a status and one line that names the location.
 *  Elsewhere: when a request is refused (wires/, cache/), how each provider encodes it (wires/), injected failures
 *  (faults.ts). */

import { inspect } from "node:util";
import { ANTHROPIC_ERRORS, errorNameFor } from "@prefork/wire/internal";

export type Refusal = {
  readonly status: number;
  readonly message: string;
  /** The provider's own name for the error and the field at fault, if its format has room for them. */
  readonly code?: string;
  readonly param?: string;
};

/** Anthropic's names, which the HTTP control uses too. */
export const errorType = (status: number): string =>
  errorNameFor(status === 405 ? 400 : status, ANTHROPIC_ERRORS) ?? "api_error";

/** Names in a message come from the client, and may contain line breaks. */
export const oneLine = (message: string): string => message.replaceAll(/[\r\n\u2028\u2029]+/g, " ");

export const invalid = (message: string, more: Pick<Refusal, "code" | "param"> = {}): Refusal => ({
  status: 400,
  message: oneLine(message),
  ...more,
});

/** A 500 for something that another function threw: anything can be thrown. */
export const thrownBy = (whose: "script" | "simulator", cause: unknown): Refusal => {
  const words = cause instanceof Error ? cause.message || cause.name : inspect(cause, { depth: 0 });
  return { status: 500, message: oneLine(`${whose}: ${words}`) };
};

/** A simulator that could not be started or configured: one line, and nothing is left open. */
export class SimulatorError extends Error {
  readonly kind: "port-in-use" | "not-loopback" | "script" | "listen" | "provider";

  constructor(kind: SimulatorError["kind"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "SimulatorError";
    this.kind = kind;
  }
}
