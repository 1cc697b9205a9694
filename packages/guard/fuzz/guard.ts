/** `npm run fuzz -- guard`: can the classifier be brought to crash, to think for long, or to allow what changes something?
 *  Invariant: the same seed gives the same inputs; what is really run was allowed, and is run in a throw-away folder
 *  without network and without capabilities.
 *  Elsewhere: the inputs (guard/inputs.ts), running samples (guard/sandbox.ts), comparing with bash (guard/readings.ts). */

import { type SeededRandom, seededRandom } from "@prefork/testing/chance";
import { contextOf, decideBash } from "@prefork/testing/policies";
import { WRAPPER } from "../src/bash/classify.ts";
import { programs } from "../src/bash/programs/index.ts";
import { classify } from "../src/rules/index.ts";
import { notesFor } from "../src/rules/notes.ts";
import { startsIn } from "../src/rules/programs-with-programs.ts";
import { readShell } from "../src/rules/shell-words.ts";
import { corpusLines } from "../test/corpus.ts";
import { growing } from "./guard/growth.ts";
import { type Corpora, GROWING, input } from "./guard/inputs.ts";
import { lateInput } from "./guard/late-inputs.ts";
import { differentReadings } from "./guard/readings.ts";
import { runSamples, sandboxProblem } from "./guard/sandbox.ts";

export type FuzzOptions = {
  readonly seed: number;
  readonly inputs: number;
  /** No new input after this long; what was not reached is a finding of its own. */
  readonly seconds: number;
  readonly report: (line: string) => void;
};

export type FuzzReport = { readonly findings: readonly string[]; readonly summary: readonly string[] };

const MOST_MS = 50;
/** With rules a command is classified and read in several other ways. */
const MOST_RULED_MS = 200;
const SAMPLES = 600;
/** Allowed commands with names that turn up late, or of several modes. */
const LATE_SAMPLES = 400;
const GROWTHS = 6_000;
const READINGS = 1_500;

/** Rules of every kind that a command is held against, also ones that nothing of it falls under. */
const RULED = contextOf({
  allow: ["Bash"],
  ask: ["Bash(npm publish:*)", "Read(~/notes/**)"],
  deny: ["Bash(git push --force:*)", "Bash(rm:*)", "Read(./.env)", "Read(./secrets/**)", "Edit(**/locked/**/x)"],
});

type Judge = (text: string) => unknown;

/** All that reads a command before it may run: the verdict, what rules look at, what a person is told. */
const JUDGES: Readonly<Record<string, Judge>> = {
  classify,
  starts: (text) => startsIn(readShell(text)),
  notes: (text) => notesFor(text),
  rules: (text) => decideBash(text, RULED),
};

/** Of the processor, in milliseconds: others use the machine too. */
const timed = (text: string, judge: Judge = classify): number => {
  const started = process.cpuUsage();
  judge(text);
  const { user, system } = process.cpuUsage(started);
  return (user + system) / 1_000;
};

/** A slow verdict counts only if it is slow every time. */
const isSlow = (text: string): boolean => Math.min(timed(text), timed(text), timed(text)) > MOST_MS;

const shown = (text: string): string => JSON.stringify(text.length > 300 ? `${text.slice(0, 300)}…` : text);

const corpora = (): Corpora => ({
  allowed: corpusLines("allow-*.jsonl").map(({ cmd }) => cmd),
  denied: corpusLines("deny-*.jsonl").map(({ cmd }) => cmd),
  programs: [...programs.keys(), WRAPPER],
});

/** Keeps some of all that come by, each with the same probability. */
const reservoir = (most: number, chance: SeededRandom) => {
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

export const fuzz = async ({ seed, inputs, seconds, report }: FuzzOptions): Promise<FuzzReport> => {
  const findings: string[] = [];
  const chance = seededRandom(seed);
  const from = corpora();
  const [samples, readings] = [reservoir(SAMPLES, seededRandom(seed + 1)), reservoir(READINGS, seededRandom(seed + 2))];
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
    if (judged.reason.startsWith("could not be understood")) findings.push(`crash: ${shown(text)}`);
    if (judged.verdict !== "read-only" || allowed.has(text)) continue;
    allowed.add(text);
    samples.offer(text);
    readings.offer(text);
    if (made % 50_000 === 0) report(`${made} inputs`);
  }
  if (made < inputs) findings.push(`only ${made} of ${inputs} inputs in ${seconds} s`);
  report(`${made} inputs judged, ${allowed.size} allowed`);
  findings.push(...growthFindings(), ...tenfoldFindings(from, seededRandom(seed + 3)));
  const summary = [
    `${made} inputs, ${allowed.size} of them allowed`,
    `slowest verdict under ${Math.ceil(slowest)} ms`,
    `${GROWTHS} texts grown tenfold`,
  ];
  const problem = sandboxProblem();
  if (problem !== undefined) return { findings, summary: [...summary, `nothing was really run: ${problem}`] };
  const late = lateSamples(seededRandom(seed + 4));
  report(`running ${samples.kept.length} of them, and ${late.length} whose names turn up late`);
  const runs = await runSamples([...samples.kept, ...late]);
  report(`reading ${readings.kept.length} of them with bash`);
  const differences = await differentReadings(readings.kept);
  findings.push(...runs.findings, ...differences.findings);
  return { findings, summary: [...summary, runs.summary, differences.summary] };
};

const lateSamples = (chance: SeededRandom): readonly string[] => {
  const found = new Set<string>();
  for (let tries = 0; tries < 40_000 && found.size < LATE_SAMPLES; tries += 1) {
    const text = lateInput(chance);
    if (classify(text).verdict === "read-only") found.add(text);
  }
  return [...found];
};

const bestOf = (times: number, text: string, judge: Judge): number =>
  Math.min(...Array.from({ length: times }, () => timed(text, judge)));

/** Ten times the text must not take much more than ten times as long; seen once, that is shown. */
const growsFast = (few: string, many: string, judge: Judge): readonly [number, number] | undefined => {
  const most = judge === JUDGES.rules ? MOST_RULED_MS : MOST_MS;
  const first = timed(many, judge);
  if (first < 10) return undefined;
  let [small, large] = [Number.POSITIVE_INFINITY, first];
  for (let tries = 0; tries < 8; tries += 1) {
    small = Math.min(small, bestOf(3, few, judge));
    large = Math.min(large, timed(many, judge));
    if (large < 10 || (large < most && large < Math.max(small, 1) * 30)) return undefined;
  }
  return [small, large];
};

const grownFinding = (name: string, grow: (length: number) => string): readonly string[] =>
  Object.entries(JUDGES).flatMap(([who, judge]) => {
    const figures = growsFast(grow(960), grow(9_600), judge);
    if (!figures) return [];
    return [`${who} grows too fast: ${name}, ${figures[0].toFixed(1)} ms then ${figures[1].toFixed(1)} ms`];
  });

const growthFindings = (): readonly string[] =>
  Object.entries(GROWING).flatMap(([name, grow]) => grownFinding(name, grow));

/** Commands of the corpora, and made ones, with a part of them ten times as often. */
const tenfoldFindings = ({ allowed, denied }: Corpora, chance: SeededRandom): readonly string[] => {
  const texts = [...allowed, ...denied].filter((text) => text.length < 800);
  return Array.from({ length: GROWTHS }, () => {
    const text = chance.happens(0.15) ? lateInput(chance) : chance.one(texts);
    const grow = growing(text, chance);
    return grownFinding(shown(grow(960)), grow);
  }).flat();
};
