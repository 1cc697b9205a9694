/** The engine that needs no key: the simulator on loopback, with the rehearsal as its script.
 *  Invariant: none of it is loaded before it starts, it listens on loopback only, and closing it leaves no socket open.
 *  Elsewhere: what it answers (script.ts), what it bills (@prefork/simulator). */

import type { LedgerRow, SimClock, SimScript } from "@prefork/simulator";
import type { Credential, ModelFacts } from "@prefork/wire";

export type EmbeddedOptions = {
  /** The model whose rules and prices apply to models without published figures. Default: the table's default model. */
  readonly model?: string;
  /** Figures that replace the published ones. */
  readonly models?: ReadonlyMap<string, ModelFacts>;
  readonly clock?: SimClock; // default: real time
  readonly script?: SimScript; // default: the rehearsal
  readonly port?: number; // default: 0, any free one
  readonly firstEventMs?: number; // how long it waits before each answer; default: 0
};

export interface Embedded extends AsyncDisposable {
  /** The API address for a client. */
  readonly baseUrl: string;
  /** Any key works; this one says what it is for. */
  readonly credential: Credential;
  /** The model to request when the user names none. */
  readonly model: string;
  /** The engine name that the session records. */
  readonly engine: "rehearsal";
  /** One line for people, printed before anything else. */
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
    ...(options.firstEventMs === undefined ? {} : { latency: { firstEventMs: options.firstEventMs } }),
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
