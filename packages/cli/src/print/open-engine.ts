/** Opens the engine that was chosen.
 *  Invariant: what is started here is ended by disposing of it; the embedded engine is loaded only when it is used.
 *  Elsewhere: choosing (engine-choice.ts). */

import { randomUUID } from "node:crypto";
import { anthropicEngine, type Engine, engineFor } from "@prefork/runtime";
import { REHEARSAL_SCHEME } from "@prefork/runtime/internal";
import { type EngineChoice, otherChoices } from "./engine-choice.ts";

export type OpenedEngine = AsyncDisposable & { readonly engine: Engine };

/** Engines that tasks may belong to, whatever the session itself uses. Nothing is opened before it is needed. */
export const enginesOf = (env: Readonly<Record<string, string | undefined>>): readonly Engine[] =>
  otherChoices(env).map(({ kind: _kind, profile, ...options }) => engineFor(profile, options));

export const openEngine = async (choice: EngineChoice): Promise<OpenedEngine> => {
  if (choice.kind === "provider") {
    const { kind: _kind, profile, ...options } = choice;
    return { engine: engineFor(profile, options), [Symbol.asyncDispose]: async () => undefined };
  }
  const { startEmbedded } = await import("../rehearsal/index.ts");
  const { model } = choice;
  const embedded = await startEmbedded({ model });
  const { baseUrl, credential } = embedded;
  const engine = anthropicEngine({ name: "rehearsal", model, baseUrl, credential });
  return {
    // Nobody can go there again: its cache ends with this process, and the journal can tell.
    engine: { ...engine, address: `${REHEARSAL_SCHEME}${randomUUID()}` },
    [Symbol.asyncDispose]: () => embedded.close(),
  };
};
