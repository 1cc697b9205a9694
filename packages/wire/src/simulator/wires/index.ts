/** How each provider is spoken to. */

export { messagesWire } from "./messages/index.ts";
