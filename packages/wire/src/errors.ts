/** Every way a request can fail, in one closed union, and whether a retry can help.
 *  Invariant: `retryable` is decided here and nowhere else.
 *  Elsewhere: reading a provider's error (protocols/), waiting and retrying (send/client.ts). */

/** Invalid input from the caller or the user. The message says what is wrong and where, in one line. */
export class InputError extends Error {
  override readonly name = "InputError";
}

export type ModelErrorReason =
  | { readonly kind: "invalid-request"; readonly status: number }
  | { readonly kind: "authentication"; readonly status: number }
  | { readonly kind: "permission"; readonly status: number }
  | { readonly kind: "not-found"; readonly status: number }
  | { readonly kind: "too-large"; readonly status: number }
  | { readonly kind: "rate-limited"; readonly status: number; readonly retryAfterMs?: number }
  | { readonly kind: "overloaded"; readonly status?: number; readonly retryAfterMs?: number }
  | { readonly kind: "server"; readonly status?: number; readonly retryAfterMs?: number }
  | { readonly kind: "connection" }
  | { readonly kind: "timeout"; readonly phase: "connect" | "first-byte" | "idle" | "total" }
  | { readonly kind: "malformed-response" }
  | { readonly kind: "aborted" };

export type ModelErrorContext = {
  readonly requestId?: string;
  /** Content had already arrived: a retry would repeat what the caller has seen. */
  readonly afterContent?: boolean;
  /** A retry is useless: the provider said so, or the answer shows it. */
  readonly final?: boolean;
  readonly cause?: unknown;
};

export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly reason: ModelErrorReason;
  readonly requestId: string | undefined;
  readonly afterContent: boolean;
  readonly #final: boolean;

  constructor(message: string, reason: ModelErrorReason, context: ModelErrorContext = {}) {
    super(message, context.cause === undefined ? {} : { cause: context.cause });
    this.reason = reason;
    this.requestId = context.requestId;
    this.afterContent = context.afterContent ?? false;
    this.#final = context.final ?? false;
  }

  /** A retry is useless, whatever the reason is. */
  get isFinal(): boolean {
    return this.#final;
  }

  get retryable(): boolean {
    return !this.afterContent && !this.#final && canHelp(this.reason);
  }

  /** The shortest wait that the provider asked for. */
  get retryAfterMs(): number | undefined {
    return "retryAfterMs" in this.reason ? this.reason.retryAfterMs : undefined;
  }
}

const canHelp = (reason: ModelErrorReason): boolean => {
  switch (reason.kind) {
    case "rate-limited":
    case "overloaded":
    case "server":
    case "connection":
    case "malformed-response":
      return true;
    case "timeout":
      return reason.phase !== "total";
    case "invalid-request":
    case "authentication":
    case "permission":
    case "not-found":
    case "too-large":
    case "aborted":
      return false;
  }
};

/** Somebody else's text as one short line that is safe to print: without control or formatting characters. */
export const printable = (text: string, most = 200): string => {
  const letters = [
    ...text
      .slice(0, most * 8)
      .replace(/[\p{C}\p{Z}\s]+/gu, " ")
      .trim(),
  ];
  return letters.length > most ? `${letters.slice(0, most).join("")}…` : letters.join("");
};

// --- names of errors -------------------------------------------------------------------------------------------------

/** Anthropic's names for errors, each with the status that it stands for. */
export const ANTHROPIC_ERRORS: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
};

/** The names that all of Google's services use. */
export const GOOGLE_ERRORS: Readonly<Record<string, number>> = {
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  OUT_OF_RANGE: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  ABORTED: 409,
  RESOURCE_EXHAUSTED: 429,
  CANCELLED: 499,
  INTERNAL: 500,
  UNKNOWN: 500,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
};

/** The first name in such a table that stands for a status. */
export const errorNameFor = (status: number, names: Readonly<Record<string, number>>): string | undefined =>
  Object.keys(names).find((name) => names[name] === status);

/** The status of a name that came from outside. */
export const statusNamed = (name: string, names: Readonly<Record<string, number>>): number | undefined =>
  Object.hasOwn(names, name) ? names[name] : undefined;
