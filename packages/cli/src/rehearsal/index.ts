/** The engine that needs no key. Its script is loaded when the engine starts. */

export { type Embedded, type EmbeddedOptions, REHEARSAL_NOTICE, startEmbedded } from "./embedded.ts";
