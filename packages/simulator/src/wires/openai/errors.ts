/** How is a refusal encoded in OpenAI's formats?
 *  Invariant: a body under `error` with message, type, param and code, whoever sends it; only the values differ.
 *  Elsewhere: which values a provider has (../../rules). */

import type { JsonObject } from "@prefork/wire";
import type { Refusal } from "../../errors.ts";
import type { ReportRules } from "../../rules/index.ts";
import type { Wire } from "../../wire.ts";

const typeOf = (status: number): string => {
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
};

const nameOf = (status: number): string | null => {
  if (status === 401) return "invalid_api_key";
  if (status === 429) return "rate_limit_exceeded";
  return status === 503 || status === 529 ? "server_is_overloaded" : null;
};

/** The content of `error`. */
export const errorFields = (
  { status, message, code, param }: Refusal,
  { errorCode, errorTypes }: ReportRules,
): JsonObject => {
  const type = errorTypes[status] ?? typeOf(status);
  // Only Anthropic has a separate status for an overloaded model.
  const codes = { named: code ?? nameOf(status), typed: type, status: status === 529 ? 503 : status };
  return { message, type, param: param ?? null, code: codes[errorCode] };
};

/** What both formats have in common. */
export const openaiWire = (reports: ReportRules): Pick<Wire, "errorBody" | "idHeader" | "refusals" | "counted"> => ({
  errorBody: (refusal) => ({ error: errorFields(refusal, reports) }),
  idHeader: "x-request-id",
  refusals: {
    noKey: {
      status: 401,
      message:
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth.",
    },
    noJson: (reason) => ({ status: 400, message: `We could not parse the JSON body of your request: ${reason}` }),
    noObject: { status: 400, message: "We expected the body of your request to be a JSON object." },
  },
  counted: (tokens) => ({ object: "response.input_tokens", input_tokens: tokens }),
});
