/** A session: everything composed. */

export type { EventReader } from "./event-hub.ts";
export { Exchange } from "./exchange.ts";
export type { ForkingOptions } from "./forking.ts";
export { addressIn, createSession, resumeSession } from "./open.ts";
export type { Permissions, SessionLimits, SessionOptions } from "./options.ts";
export { requestStop } from "./requests.ts";
export { type PromptOptions, Session } from "./session.ts";
