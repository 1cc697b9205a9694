/** `npm run fuzz -- guard`: can the classifier be brought to crash, to think for long, or to allow what changes something?
 *  Invariant: the same seed gives the same inputs; what is really run was allowed, and is run in a throw-away folder
 *  without network and without capabilities.
 *  Elsewhere: the inputs (guard/inputs.ts), running samples (guard/sandbox.ts), comparing with bash (guard/readings.ts). */

import { programs } from "../src/guard/bash/programs/index.ts";
import { classify } from "../src/guard/index.ts";
import { corpusLines } from "../test/corpus.ts";
import { type Chance, chanceOf } from "./guard/chance.ts";
import { type Corpora, GROWING, input } from "./guard/inputs.ts";
import { differentReadings } from "./guard/readings.ts";
import { runSamples, sandboxProblem } from "./guard/sandbox.ts";

export type FuzzOptions = {
  readonly seed: number;
  readonly inputs: number;
  /** No new input after this long; what was not reached is a finding of its own. */
  readonly seconds: number;
  readonly told: (line: string) => void;
};

export type FuzzReport = { readonly findings: readonly string[]; readonly summary: readonly string[] };

const MOST_MS = 50;
const SAMPLES = 600;
const READINGS = 1_500;

const timed = (text: string): number => {
  const started = performance.now();
  classify(text);
  return performance.now() - started;
};

/** A slow verdict counts only if it is slow every time: others use the machine too. */
const isSlow = (text: string): boolean => Math.min(timed(text), timed(text), timed(text)) > MOST_MS;

const shown = (text: string): string => JSON.stringify(text.length > 300 ? `${text.slice(0, 300)}…` : text);

const corpora = (): Corpora => ({
  allowed: corpusLines("allow-*.jsonl").map(({ cmd }) => cmd),
  denied: corpusLines("deny-*.jsonl").map(({ cmd }) => cmd),
  programs: [...programs.keys()],
});

/** Keeps some of all that come by, each with the same probability. */
const reservoir = (most: number, chance: Chance) => {
  const kept: string[] = [];
  let seen = 0;
  return {
    offer: (text: string): void => {
      seen += 1;
      if (kept.length < most) kept.push(text);
      else if (chance.happens(most / seen)) kept[chance.below(most)] = text;
    },
    kept,
  };
};

export const fuzz = async ({ seed, inputs, seconds, told }: FuzzOptions): Promise<FuzzReport> => {
  const findings: string[] = [];
  const chance = chanceOf(seed);
  const from = corpora();
  const [samples, readings] = [reservoir(SAMPLES, chanceOf(seed + 1)), reservoir(READINGS, chanceOf(seed + 2))];
  const started = performance.now();
  const allowed = new Set<string>();
  let [made, slowest] = [0, 0];
  for (; made < inputs && performance.now() - started < seconds * 1_000; made += 1) {
    const text = input(from, chance);
    const before = performance.now();
    const judged = classify(text);
    const taken = performance.now() - before;
    if (taken > MOST_MS && isSlow(text)) findings.push(`slow: ${shown(text)}`);
    else slowest = Math.max(slowest, Math.min(taken, MOST_MS));
    if (judged.reason === "could not be read") findings.push(`crash: ${shown(text)}`);
    if (judged.verdict !== "read-only" || allowed.has(text)) continue;
    allowed.add(text);
    samples.offer(text);
    readings.offer(text);
    if (made % 50_000 === 0) told(`${made} inputs`);
  }
  if (made < inputs) findings.push(`only ${made} of ${inputs} inputs in ${seconds} s`);
  told(`${made} inputs judged, ${allowed.size} allowed`);
  findings.push(...growthFindings());
  const summary = [`${made} inputs, ${allowed.size} of them allowed`, `slowest verdict under ${Math.ceil(slowest)} ms`];
  const problem = sandboxProblem();
  if (problem !== undefined) return { findings, summary: [...summary, `nothing was really run: ${problem}`] };
  told(`running ${samples.kept.length} of them`);
  const runs = await runSamples(samples.kept);
  told(`reading ${readings.kept.length} of them with bash`);
  const differences = await differentReadings(readings.kept);
  findings.push(...runs.findings, ...differences.findings);
  return { findings, summary: [...summary, runs.summary, differences.summary] };
};

const bestOf = (times: number, text: string): number => Math.min(...Array.from({ length: times }, () => timed(text)));

/** Four times the text must not take much more than four times as long; seen once, that is shown. */
const growthFindings = (): readonly string[] =>
  Object.entries(GROWING).flatMap(([name, grow]) => {
    const tries = [1, 2, 3, 4].map(() => [2_400, 9_600].map((length) => bestOf(9, grow(length))));
    const fine = tries.some(([quarter = 0, full = 0]) => full < MOST_MS && (full < 5 || full < quarter * 7));
    const [quarter = 0, full = 0] = tries[0] ?? [];
    return fine ? [] : [`grows too fast: ${name}, ${quarter.toFixed(1)} ms then ${full.toFixed(1)} ms`];
  });
