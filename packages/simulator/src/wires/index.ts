/** The wire formats, by name. */

import type { ReportRules, WireName } from "../rules/index.ts";
import type { Wire } from "../wire.ts";
import { chatWire } from "./chat/index.ts";
import { geminiWire } from "./gemini/index.ts";
import { messagesWire } from "./messages/index.ts";
import { responsesWire } from "./responses/index.ts";

/** Error codes may differ between providers of one format. */
export const wires: Readonly<Record<WireName, (reports: ReportRules) => Wire>> = {
  messages: () => messagesWire,
  chat: chatWire,
  responses: responsesWire,
  gemini: () => geminiWire,
};
