/** A request as its wire format reads it, before it is hashed, counted or looked up.
 *  Invariant: the same for every format; blocks have the form of the Messages API, paths are the client's.
 *  Elsewhere: making one (../wires), its hashes (render.ts). */

import type { Json, JsonObject, Ttl } from "@prefork/wire";
import type { ReadBlock, ReadMessage } from "../body.ts";
import type { KeyParameter, Level } from "../rules/index.ts";

export type ReadTool = {
  /** Name, description and schema, as the client wrote them. */
  readonly tool: JsonObject;
  readonly path: string;
  /** The level at which it is rendered. */
  readonly level: Level;
  readonly marker?: Ttl;
  readonly shown?: ReadBlock["shown"];
};

export type Parameters = Readonly<Partial<Record<KeyParameter, Json>>>;

export type ReadPrompt = {
  readonly tools: readonly ReadTool[];
  readonly system: readonly ReadBlock[];
  readonly messages: readonly ReadMessage[];
  /** What is outside the three levels and may change the rendered prompt; nothing absent or null. */
  readonly parameters: Parameters;
  readonly earlierThinking: "keep-all" | "last-turn";
  /** Paths of the thinking that the provider removes before the model sees the prompt. */
  readonly dropped?: ReadonlySet<string>;
};
