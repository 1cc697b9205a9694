/** Anthropic's Messages API. */

import { refused, type Wire } from "../../wire.ts";
import { errorBody } from "./encode-answer.ts";
import { MessagesSession } from "./session.ts";

/** Other endpoints that speak this format have it under a path that says so. */
const path = /^(?:\/anthropic)?\/v1\/messages(\/count_tokens)?$/;

export const messagesWire: Wire = {
  name: "messages",
  callOf: (method, { pathname }) => {
    const [found, count] = path.exec(pathname) ?? [];
    if (found === undefined) return undefined;
    if (method !== "POST") return refused({ status: 405, message: "Method Not Allowed" });
    return { kind: count === undefined ? "answer" : "count" };
  },
  open: () => new MessagesSession(),
  errorBody,
  idHeader: "request-id",
  refusals: {
    noKey: { status: 401, message: "x-api-key header is required" },
    noJson: (reason) => ({ status: 400, message: `The request body is not valid JSON: ${reason}` }),
    noObject: { status: 400, message: "body: Input should be a valid dictionary" },
  },
  counted: (tokens) => ({ input_tokens: tokens }),
};
