/** A session: everything composed. */

export { requestStop } from "./background.ts";
export type { EventReader } from "./event-hub.ts";
export { Exchange } from "./event-hub.ts";
export type { ForkingOptions } from "./forking.ts";
export { addressIn, createSession, resumeSession } from "./open.ts";
export type { Permissions, SessionLimits, SessionOptions } from "./options.ts";
export { type PromptOptions, Session } from "./session.ts";
