/** One tour: a sample repository, a session on the rehearsal engine, one prompt whose parts become forks, and the bill.
 *  Invariant: everything lives in one private folder. It is removed afterwards, unless the caller wants to keep it and the
 *  tour finished. The tour reads no settings, conventions or sessions of the user; of the environment it uses only PATH.
 *  Elsewhere: the sample (sample.ts), the same work done in other ways (alternatives.ts), what is shown (live.ts,
 *  ../commands/tour-report.ts). */

import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { stateFolder } from "@prefork/guard";
import { createSession, type ExchangeResult, type RuntimeEvent, type Task } from "@prefork/runtime";
import { type Explanation, explainFamily, type ObservedFamily, readFamily } from "@prefork/runtime/observe";
import { addUsage, noUsage, type Usage } from "@prefork/wire";
import { type Embedded, startEmbedded } from "../rehearsal/index.ts";
import { type Alternative, FIRST_EVENT_MS, runAlternatives, sessionOptions } from "./alternatives.ts";
import { PARTS, type Part, parallelPrompt } from "./job.ts";
import { makeRepository, type Repository } from "./repository.ts";
import { type Sample, sampleOf } from "./sample.ts";

export type TourOptions = {
  readonly seed: number;
  readonly forks: number;
  readonly isKept: boolean;
  /** Where programs are found. */
  readonly path: string | undefined;
  /** The private folder is created in here. */
  readonly temporary: string;
  readonly signal: AbortSignal;
  /** Called once, before the first request. */
  readonly onReady: (tour: TourStart) => void;
  readonly onEvent: (event: RuntimeEvent) => void;
  /** Called once, when the forks are done and the alternatives start. */
  readonly onComparing: () => void;
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
  /** From the prompt to the last answer. */
  readonly ms: number;
  readonly family: ObservedFamily;
  readonly explanation: Explanation;
  readonly alternatives: readonly Alternative[];
  /** The simulator's own ledger, to compare with the sums from the journals. */
  readonly billed: { readonly requests: number; readonly usage: Usage };
  /** Absent when the folder was removed. */
  readonly keptIn?: KeptFolders;
};

export type KeptFolders = {
  readonly folder: string;
  /** The value of XDG_STATE_HOME with which commands find the session. */
  readonly stateHome: string;
};

export const runTour = async (options: TourOptions): Promise<TourResult> => {
  const { signal, seed, isKept, path } = options;
  signal.throwIfAborted();
  await using tour = await openTourFolder(options.temporary);
  const sample = sampleOf(seed);
  const repository = await makeRepository(sample, { folder: join(tour.folder, sample.domain.service), path, signal });
  const parts = PARTS.slice(0, options.forks);
  const start = { sample, repository, parts, prompt: parallelPrompt(parts) };
  const run = await runForks(start, tour, options);
  signal.throwIfAborted();
  const family = await readFamily({ state: stateOf(tour), now: Date.now, newId: () => "" }, run.session);
  const explanation = explainFamily(family);
  options.onComparing();
  const { home } = tour;
  const alternatives = await runAlternatives(
    { family, explanation, startedAt: run.startedAt, ms: run.ms },
    { parts, path, signal, home, cwd: repository.folder, state: join(tour.folder, "alternatives") },
  );
  if (isKept) tour.keep();
  return {
    ...start,
    ...run,
    family,
    explanation,
    alternatives,
    ...(isKept ? { keptIn: { folder: tour.folder, stateHome: tour.stateHome } } : {}),
  };
};

type TourFolder = AsyncDisposable & KeptFolders & { readonly home: string; readonly keep: () => void };

const openTourFolder = async (temporary: string): Promise<TourFolder> => {
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

const stateOf = ({ stateHome, home }: TourFolder): string => stateFolder({ XDG_STATE_HOME: stateHome }, home);

type ForksRun = Pick<TourResult, "model" | "session" | "forks" | "exchange" | "billed" | "ms"> & {
  readonly startedAt: number;
};

const runForks = async (
  start: Omit<TourStart, "model">,
  tour: TourFolder,
  { signal, path, onReady, onEvent }: TourOptions,
): Promise<ForksRun> => {
  const { prompt, parts, repository } = start;
  await using embedded = await startEmbedded({ firstEventMs: FIRST_EVENT_MS });
  const { model } = embedded;
  const folders = { cwd: repository.folder, home: tour.home, state: stateOf(tour), path };
  await using session = await createSession(sessionOptions(embedded, folders));
  onReady({ ...start, model });
  const called: { readonly agent: string; readonly tool: string }[] = [];
  const startedAt = Date.now();
  const exchange = session.prompt(prompt, { signal });
  for await (const event of exchange) {
    if (event.type === "call_started") called.push({ agent: event.agent, tool: event.tool });
    onEvent(event);
  }
  const result = await exchange.result();
  const ms = Date.now() - startedAt;
  signal.throwIfAborted();
  if (result.end !== "done") throw new Error(`the tour ended early: ${result.reason}`);
  return {
    ...{ model, session: session.id, exchange: result, billed: ledgerSum(embedded), startedAt, ms },
    forks: parts.flatMap((part): readonly TourFork[] => {
      const task = session.tasks.find(({ label }) => label === part.name);
      const own = called.filter(({ agent }) => agent === task?.id);
      return task ? [{ part, task, tools: own.map(({ tool }) => tool) }] : [];
    }),
  };
};

const ledgerSum = (embedded: Embedded): TourResult["billed"] => {
  const rows = embedded.ledger();
  const usage = rows.reduce(
    (sum, { plain, read, written, output }) => addUsage(sum, { plain, read, written, output }),
    noUsage,
  );
  return { requests: rows.length, usage };
};
