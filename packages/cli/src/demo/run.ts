/** One run of the demo: a parent, its forks, the parent's next request, and the simulator's ledger of them.
 *  Invariant: every figure except the comparisons comes from the simulator's ledger, read over HTTP afterwards.
 *  Elsewhere: what is printed (report.ts). */

import { contentTokens, type LedgerRow, ManualClock, startSimulator } from "@prefork/simulator";
import {
  createClient,
  type FamilyOutcome,
  type FanOut,
  type ForkPlans,
  forkFamily,
  forkPlans,
  type InFlight,
  type LaunchOrder,
  type ModelResponse,
  modelFacts,
  type Outcome,
  sendFamily,
} from "@prefork/wire";
import { demoScript, runParent } from "./parent.ts";

export type DemoOptions = {
  readonly forks: number;
  readonly cold: boolean;
  readonly inFlight: InFlight;
  readonly lookback: "runs" | "singly";
  readonly model: string;
  readonly signal: AbortSignal;
  readonly onProgress: (line: string) => void;
};

export type DemoRow = {
  readonly label: string;
  /** What the provider's rules let this request read when it was sent. */
  readonly inheritable: number;
  readonly ledger: LedgerRow;
};

export type DemoResult = {
  readonly options: Pick<DemoOptions, "forks" | "cold" | "inFlight" | "lookback" | "model">;
  /** P, S and the average D, in tokens, as the ledger counted them. */
  readonly prefix: number;
  readonly tail: number;
  readonly directive: number;
  readonly launch: LaunchOrder & { readonly reason: string };
  readonly children: readonly DemoRow[];
  readonly parentNext: DemoRow;
  readonly plans: ForkPlans;
};

/** Longer than the lifetime of any entry in the demo. */
const PAUSE_MS = 10 * 60_000;

export const runDemo = async (options: DemoOptions): Promise<DemoResult> => {
  const { forks, cold, inFlight, model, signal, onProgress } = options;
  const clock = new ManualClock();
  await using simulator = await startSimulator({ script: demoScript, clock, lookback: options.lookback });
  const client = createClient({ baseUrl: simulator.url, credential: { kind: "api-key", value: "demo" } });
  try {
    const onTurn = (turn: number, of: number): void => onProgress(`parent: turn ${turn} of ${of}`);
    const parent = await runParent({ client, model, forks, signal, onTurn });
    if (cold) clock.advance(PAUSE_MS);
    const family = forkFamily(parent.sent, parent.directives, {
      inFlight: parent.inFlight,
      trim: inFlight === "trim",
      singleTurn: true,
      cold,
      parentNote: noteFor(forks),
      parentTokens: parent.tokens,
    });
    const answered = new Set<number | "parent">();
    const onEvent = (member: number | "parent"): void => {
      answered.add(member);
      onProgress(`family: ${answered.size} of ${forks + 1} requests answered`);
    };
    const outcome = await sendFamily(client, family, { signal, onEvent });
    const rows = rowsById(await readLedger(simulator.url));
    return account(options, outcome, { last: rows(parent.answerId), rows });
  } finally {
    client.close();
  }
};

/** The note to the parent about its forks, after everything that it shares with them. */
const noteFor = (forks: number): string => {
  const ids = Array.from({ length: forks }, (_, index) => `fork-${index + 1}`);
  return `async_launched: ${ids.join(", ")}`;
};

const readLedger = async (url: string): Promise<readonly LedgerRow[]> => {
  const response = await fetch(`${url}/_sim/ledger`);
  return ((await response.json()) as { readonly rows: readonly LedgerRow[] }).rows;
};

type Rows = (answerId: string) => LedgerRow;

const rowsById = (ledger: readonly LedgerRow[]): Rows => {
  const byId = new Map(ledger.map((row) => [row.messageId, row]));
  return (answerId) => {
    const row = byId.get(answerId);
    if (!row) throw new Error(`the simulator's ledger has no row for ${answerId}`);
    return row;
  };
};

const responseOf = (outcome: Outcome | undefined): ModelResponse => {
  if (outcome?.status === "answered") return outcome.response;
  throw outcome?.error ?? new Error("the parent's next request was not sent");
};

const account = (
  options: DemoOptions,
  outcome: FamilyOutcome,
  { last, rows }: { readonly last: LedgerRow; readonly rows: Rows },
): DemoResult => {
  const { forks, cold, inFlight, lookback, model } = options;
  const children = outcome.members.map((member) => rows(responseOf(member).id));
  const next = rows(responseOf(outcome.parentNext).id);
  const prefix = last.promptTokens;
  const trailing = contentTokens({ kind: "text", text: noteFor(forks), images: 0, documents: 0 });
  const tail = next.promptTokens - prefix - trailing;
  const directive = children.reduce((sum, { plain }) => sum + plain, 0) / forks;
  const fanOut: FanOut = {
    ...{ prefix, tail, directive, forks, singleTurn: true },
    warm: !cold,
    parentNext: { trailing },
    facts: modelFacts(model),
  };
  const atStart = cold ? 0 : prefix;
  const afterLeader = prefix + (inFlight === "keep" ? tail : 0);
  const waited = outcome.launch.launch === "leader-first";
  return {
    options: { forks, cold, inFlight, lookback, model },
    ...{ prefix, tail, directive, launch: outcome.launch },
    children: children.map((ledger, index) => ({
      label: waited && index === 0 ? "fork 1 (leader)" : `fork ${index + 1}`,
      inheritable: waited && index > 0 ? afterLeader : atStart,
      ledger,
    })),
    parentNext: { label: "parent's next", inheritable: waited ? afterLeader : atStart, ledger: next },
    plans: forkPlans(fanOut),
  };
};
