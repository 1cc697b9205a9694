/** What does a wire make of a request, before anyone hashes, counts or looks it up?
 *  Invariant: the same for every wire; blocks are in the words of the Messages API, paths in the client's.
 *  Elsewhere: making one (../wires), its hashes (render.ts). */

import type { Json, JsonObject, Ttl } from "@prefork/wire";
import type { ReadBlock, ReadMessage } from "../body.ts";
import type { KeyParameter, Level } from "../rules/index.ts";

export type ReadTool = {
  /** Name, description and schema, in the client's own spelling. */
  readonly tool: JsonObject;
  readonly path: string;
  /** Where it enters the render. */
  readonly level: Level;
  readonly marker?: Ttl;
  readonly shown?: ReadBlock["shown"];
};

export type Parameters = Readonly<Partial<Record<KeyParameter, Json>>>;

export type ReadPrompt = {
  readonly tools: readonly ReadTool[];
  readonly system: readonly ReadBlock[];
  readonly messages: readonly ReadMessage[];
  /** What stands outside the three levels and may change the render; nothing absent or null. */
  readonly parameters: Parameters;
  readonly earlierThinking: "keep-all" | "last-turn";
  /** Paths of the thinking that the provider takes out before the model sees the prompt. */
  readonly dropped?: ReadonlySet<string>;
};
