/** The engine that needs no key: the simulator on loopback, answering by the rehearsal.
 *  Invariant: nothing of it is loaded before it is started, it listens on loopback only, and closing leaves no socket.
 *  Elsewhere: what it answers (script.ts), what it bills (@prefork/simulator). */

import type { LedgerRow, SimClock, SimScript } from "@prefork/simulator";
import type { Credential, ModelFacts } from "@prefork/wire";

export type EmbeddedOptions = {
  /** Whose rules and prices serve models that nobody published figures for. Default: the default model of the table. */
  readonly model?: string;
  /** Figures in place of the published ones. */
  readonly models?: ReadonlyMap<string, ModelFacts>;
  readonly clock?: SimClock; // default: real time
  readonly script?: SimScript; // default: the rehearsal
  readonly port?: number; // default: 0, any free one
};

export interface Embedded extends AsyncDisposable {
  /** What a client takes as its API address. */
  readonly baseUrl: string;
  /** Any key will do; this one says what it is for. */
  readonly credential: Credential;
  /** The model to ask for when the user names none. */
  readonly model: string;
  /** What a session is told its engine is. */
  readonly engine: "rehearsal";
  /** One line for people, before anything else is shown. */
  readonly notice: string;
  ledger(since?: number): readonly LedgerRow[];
  close(): Promise<void>;
}

export const REHEARSAL_NOTICE =
  "rehearsal engine: no key was given, so no language model answers; task lists are followed by a script, with real tools";

export const startEmbedded = async (options: EmbeddedOptions = {}): Promise<Embedded> => {
  const [{ startSimulator }, { DEFAULT_MODEL }, { rehearsal }] = await Promise.all([
    import("@prefork/simulator"),
    import("@prefork/wire"),
    import("./script.ts"),
  ]);
  const model = options.model ?? DEFAULT_MODEL;
  const simulator = await startSimulator({
    script: options.script ?? rehearsal(),
    unknownModelsAs: model,
    port: options.port ?? 0,
    ...(options.models === undefined ? {} : { models: options.models }),
    ...(options.clock === undefined ? {} : { clock: options.clock }),
  });
  const close = (): Promise<void> => simulator.close();
  return {
    baseUrl: simulator.url,
    credential: { kind: "api-key", value: "rehearsal" },
    model,
    engine: "rehearsal",
    notice: REHEARSAL_NOTICE,
    ledger: (since) => simulator.ledger(since),
    close,
    [Symbol.asyncDispose]: close,
  };
};
