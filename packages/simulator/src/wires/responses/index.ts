/** OpenAI's Responses API. */

import type { ReportRules } from "../../rules/index.ts";
import { refused, type Wire } from "../../wire.ts";
import { openaiWire } from "../openai/index.ts";
import { ResponsesSession } from "./session.ts";

const path = /^\/v1\/responses(\/input_tokens)?$/;

export const responsesWire = (reports: ReportRules): Wire => ({
  ...openaiWire(reports),
  name: "responses",
  callOf: (method, { pathname }) => {
    const [found, count] = path.exec(pathname) ?? [];
    if (found === undefined) return undefined;
    if (method !== "POST") return refused({ status: 405, message: "Method Not Allowed" });
    return { kind: count === undefined ? "answer" : "count" };
  },
  open: () => new ResponsesSession(),
});
