/** Opens the engine that was chosen.
 *  Invariant: what is started here is ended by disposing of it; the embedded engine is loaded only when it is used.
 *  Elsewhere: choosing (engine-choice.ts). */

import { anthropicEngine, type Engine, engineFor } from "@prefork/runtime";
import type { EngineChoice } from "./engine-choice.ts";

export type OpenedEngine = AsyncDisposable & { readonly engine: Engine };

export const openEngine = async (choice: EngineChoice): Promise<OpenedEngine> => {
  if (choice.kind === "provider") {
    const { kind: _kind, profile, ...options } = choice;
    return { engine: engineFor(profile, options), [Symbol.asyncDispose]: async () => undefined };
  }
  const { startEmbedded } = await import("../rehearsal/index.ts");
  const { model } = choice;
  const embedded = await startEmbedded({ model });
  const { baseUrl, credential } = embedded;
  // It is somewhere else each time, and nobody can go there.
  const { address: _address, ...engine } = anthropicEngine({ name: "rehearsal", model, baseUrl, credential });
  return {
    engine,
    [Symbol.asyncDispose]: () => embedded.close(),
  };
};
