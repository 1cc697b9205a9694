/** One tour: a sample repository, a session on the rehearsal engine, one prompt whose parts become forks, the account.
 *  Invariant: everything stands in one private folder, which is gone afterwards unless it is to be kept and the tour came
 *  to its end; nothing of the user's settings, conventions, sessions or environment is read but where programs are.
 *  Elsewhere: the sample (sample.ts), what is shown (live.ts, ../commands/tour-report.ts). */

import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { stateFolder } from "@prefork/guard";
import { anthropicEngine, createSession, type ExchangeResult, type RuntimeEvent, type Task } from "@prefork/runtime";
import { type Explanation, explainFamily, type ObservedFamily, readFamily } from "@prefork/runtime/observe";
import { addUsage, noUsage, type Usage } from "@prefork/wire";
import { type Embedded, startEmbedded } from "../rehearsal/index.ts";
import { PARTS, type Part, promptOf } from "./job.ts";
import { makeRepository, type Repository } from "./repository.ts";
import { type Sample, sampleOf } from "./sample.ts";

export type TourOptions = {
  readonly seed: number;
  readonly forks: number;
  readonly isKept: boolean;
  /** Where programs are looked for. */
  readonly path: string | undefined;
  /** In which the private folder is made. */
  readonly temporary: string;
  readonly signal: AbortSignal;
  /** Once, before the first request. */
  readonly onReady: (tour: TourStart) => void;
  readonly onEvent: (event: RuntimeEvent) => void;
};

export type TourStart = {
  readonly sample: Sample;
  readonly repository: Repository;
  readonly parts: readonly Part[];
  readonly prompt: string;
  readonly model: string;
};

export type TourFork = {
  readonly part: Part;
  readonly task: Task;
  /** The names of the tools that it called, in order. */
  readonly tools: readonly string[];
};

export type TourResult = TourStart & {
  readonly session: string;
  readonly forks: readonly TourFork[];
  readonly exchange: ExchangeResult;
  readonly family: ObservedFamily;
  readonly explanation: Explanation;
  /** What the provider's own ledger says: to be compared with the sums from the journals. */
  readonly billed: { readonly requests: number; readonly usage: Usage };
  /** Where everything is kept; absent where it is gone. */
  readonly keptIn?: KeptPlaces;
};

export type KeptPlaces = {
  readonly folder: string;
  /** The value of XDG_STATE_HOME under which commands find the session. */
  readonly stateHome: string;
};

export const runTour = async (options: TourOptions): Promise<TourResult> => {
  const { signal, seed, isKept, path } = options;
  signal.throwIfAborted();
  await using place = await openPlace(options.temporary);
  const sample = sampleOf(seed);
  const repository = await makeRepository(sample, { folder: join(place.folder, sample.trade.service), path, signal });
  const parts = PARTS.slice(0, options.forks);
  const start = { sample, repository, parts, prompt: promptOf(parts) };
  const talked = await converse(start, place, options);
  signal.throwIfAborted();
  const store = { state: stateOf(place), now: Date.now, newId: () => "" };
  const family = await readFamily(store, talked.session);
  if (isKept) place.keep();
  return {
    ...start,
    ...talked,
    family,
    explanation: explainFamily(family),
    ...(isKept ? { keptIn: { folder: place.folder, stateHome: place.stateHome } } : {}),
  };
};

type Place = AsyncDisposable & KeptPlaces & { readonly home: string; readonly keep: () => void };

const openPlace = async (temporary: string): Promise<Place> => {
  const folder = await realpath(await mkdtemp(join(temporary, "prefork-tour-")));
  const [home, stateHome] = [join(folder, "home"), join(folder, "state")];
  const kept = { is: false };
  const dispose = async (): Promise<void> => {
    if (!kept.is) await rm(folder, { recursive: true, force: true });
  };
  try {
    for (const inside of [home, stateHome]) await mkdir(inside);
  } catch (error) {
    await dispose();
    throw error;
  }
  const keep = (): void => {
    kept.is = true;
  };
  return { folder, home, stateHome, keep, [Symbol.asyncDispose]: dispose };
};

const stateOf = ({ stateHome, home }: Place): string => stateFolder({ XDG_STATE_HOME: stateHome }, home);

type Talked = Pick<TourResult, "model" | "session" | "forks" | "exchange" | "billed">;

const converse = async (start: Omit<TourStart, "model">, place: Place, options: TourOptions): Promise<Talked> => {
  const { signal, onReady, onEvent } = options;
  const { prompt, parts, repository } = start;
  await using embedded = await startEmbedded();
  const { baseUrl, credential, model, engine: name } = embedded;
  await using session = await createSession({
    engine: anthropicEngine({ name, model, baseUrl, credential }),
    cwd: repository.folder,
    home: place.home,
    state: stateOf(place),
    environment: { HOME: place.home, ...(options.path === undefined ? {} : { PATH: options.path }) },
    permissions: { mode: "default" }, // stated, so that forks may run with nobody to ask
  });
  onReady({ ...start, model });
  const called: { readonly agent: string; readonly tool: string }[] = [];
  const exchange = session.prompt(prompt, { signal });
  for await (const event of exchange) {
    if (event.type === "call_started") called.push({ agent: event.agent, tool: event.tool });
    onEvent(event);
  }
  const result = await exchange.result();
  signal.throwIfAborted();
  if (result.end !== "done") throw new Error(`the tour ended early: ${result.reason}`);
  return {
    ...{ model, session: session.id, exchange: result, billed: billedBy(embedded) },
    forks: parts.flatMap((part): readonly TourFork[] => {
      const task = session.tasks.find(({ label }) => label === part.name);
      const own = called.filter(({ agent }) => agent === task?.id);
      return task ? [{ part, task, tools: own.map(({ tool }) => tool) }] : [];
    }),
  };
};

const billedBy = (embedded: Embedded): TourResult["billed"] => {
  const rows = embedded.ledger();
  const usage = rows.reduce(
    (sum, { plain, read, written, output }) => addUsage(sum, { plain, read, written, output }),
    noUsage,
  );
  return { requests: rows.length, usage };
};
