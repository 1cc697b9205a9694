/** A session: everything composed. */

export { requestStop } from "./background.ts";
export type { EndingReader, EventReader } from "./event-hub.ts";
export { Exchange } from "./event-hub.ts";
export { type ForkingOptions, readSwitches, type Switches } from "./forking.ts";
export { addressIn, createSession, resumeSession } from "./open.ts";
export type { Permissions, SessionLimits, SessionOptions } from "./options.ts";
export { type ClosedSession, rewindClosed } from "./rewind.ts";
export type { SessionParts } from "./session.ts";
export { type PromptOptions, Session } from "./session.ts";
export type { SessionSetup } from "./setup.ts";
