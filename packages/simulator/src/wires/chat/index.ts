/** Chat Completions, as OpenAI and many others speak it. */

import type { ReportRules } from "../../rules/index.ts";
import { refused, type Wire } from "../../wire.ts";
import { openaiWire } from "../openai/index.ts";
import { ChatSession } from "./session.ts";

/** Not all have the API version in their path, and one has its own folder. */
const path = /^(?:\/compatible-mode)?(?:\/v1)?\/chat\/completions$/;

export const chatWire = (reports: ReportRules): Wire => ({
  ...openaiWire(reports),
  name: "chat",
  callOf: (method, { pathname }) => {
    if (!path.test(pathname)) return undefined;
    return method === "POST" ? { kind: "answer" } : refused({ status: 405, message: "Method Not Allowed" });
  },
  open: () => new ChatSession(),
});
