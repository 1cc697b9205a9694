/** Gemini's API: content generated, streamed and counted, and prompts stored by name. */

import { type Call, type Refused, refused, type StoredPromptAction, type Wire } from "../../wire.ts";
import { errorBody } from "./complaints.ts";
import { GeminiSession } from "./session.ts";

const modelPath = /^\/v1(?:beta|alpha)?\/models\/([^/:]+):(\w+)$/;
const storedPath = /^\/v1(?:beta|alpha)?\/(cachedContents(?:\/[^/:]+)?)$/;

const one: Readonly<Record<string, StoredPromptAction>> = { GET: "get", PATCH: "update", DELETE: "delete" };
const many: Readonly<Record<string, StoredPromptAction>> = { GET: "list", POST: "create" };

const wrongMethod = refused({ status: 405, message: "Method Not Allowed" });

const storedPromptCall = (method: string, name: string): Call | Refused => {
  const action = (name.includes("/") ? one : many)[method];
  return action === undefined ? wrongMethod : { kind: "stored-prompt", action, name };
};

const modelCall = (
  method: string,
  url: URL,
  [, model = "", verb = ""]: RegExpExecArray,
): Call | Refused | undefined => {
  if (method !== "POST") return wrongMethod;
  switch (verb) {
    case "generateContent":
      return { kind: "answer", model, stream: false };
    case "streamGenerateContent":
      return url.searchParams.get("alt") === "sse"
        ? { kind: "answer", model, stream: true }
        : refused({ status: 400, message: "alt: streams are simulated as server-sent events only; add ?alt=sse" });
    case "countTokens":
      return { kind: "count", model };
    default:
      return undefined;
  }
};

export const geminiWire: Wire = {
  name: "gemini",
  callOf: (method, url) => {
    const ofModel = modelPath.exec(url.pathname);
    if (ofModel !== null) return modelCall(method, url, ofModel);
    const [, name] = storedPath.exec(url.pathname) ?? [];
    return name === undefined ? undefined : storedPromptCall(method, name);
  },
  open: () => new GeminiSession(),
  errorBody,
  idHeader: "x-request-id",
  refusals: {
    noKey: {
      status: 403,
      message:
        "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.",
    },
    noJson: (reason) => ({ status: 400, message: `Invalid JSON payload received. ${reason}` }),
    noObject: { status: 400, message: "Invalid JSON payload received. Expected an object." },
  },
  counted: (tokens) => ({ totalTokens: tokens }),
};
