/** The long session, killed at moments that are chosen from a seed, with a new run each time. */

import { seededRandom } from "@prefork/testing/chance";
import { scratch } from "@prefork/testing/scratch";
import { broken, casesOf } from "./crash-laws.ts";
import { killedSession, type Moment, type Whole, wholeSession } from "./killed-session.ts";

export type CrashResult = {
  readonly kills: number;
  /** How often a kill hit what. */
  readonly cases: Readonly<Record<string, number>>;
  readonly broken: readonly string[];
};

/** What `npm test` runs; the full count is for the soak. */
export const KILLS_IN_TESTS = 2;
const KILLS = 100;

const SEED = 20_260_303;
/** Longer than events usually are apart, so that a kill can fall anywhere between two of them. */
const MOST_LATER_MS = 8;

/** One moment from each stretch of the session, so that few kills are spread over all of it as well. */
export const randomMoments =
  (kills: number, seed = SEED) =>
  ({ life }: Whole): readonly Moment[] => {
    const chance = seededRandom(seed);
    const stretch = life.shown.length / kills;
    return Array.from({ length: kills }, (_, kill) => ({
      events: Math.max(1, Math.floor((kill + chance.below(1_000) / 1_000) * stretch)),
      ms: chance.below(MOST_LATER_MS),
    }));
  };

/** The moment at which this call's end was shown. */
export const endOf =
  (callId: string) =>
  ({ life }: Whole): readonly Moment[] =>
    life.shown.flatMap((event, at) =>
      event.type === "call_ended" && event.callId === callId ? [{ events: at + 1, ms: 0, ended: callId }] : [],
    );

/** While the conversation is summed up and begun anew: too short a while for chance to hit it often. */
export const compactionMoments = ({ life }: Whole): readonly Moment[] => {
  const begun = life.shown.findIndex(({ type }) => type === "compaction_started") + 1;
  const ended = life.shown.findIndex(({ type }) => type === "compaction_ended") + 1;
  return [
    ...[0, 1, 2, 3, 5, 8, 13, 21].map((ms) => ({ events: begun, ms })),
    ...[0, 1, 2, 3].map((ms) => ({ events: ended, ms })),
  ];
};

/** What `npm run soak -- session` runs. */
export const soakMoments = (whole: Whole): readonly Moment[] => [
  ...randomMoments(KILLS)(whole),
  ...compactionMoments(whole),
];

export const crashSoak = async (moments: (whole: Whole) => readonly Moment[]): Promise<CrashResult> => {
  using place = scratch();
  const base = place.at("run");
  const whole = await wholeSession(base);
  const cases: Record<string, number> = {};
  const failures: string[] = [];
  const chosen = moments(whole);
  for (const moment of chosen) {
    const killed = await killedSession(base, moment);
    for (const name of new Set(casesOf(killed))) cases[name] = (cases[name] ?? 0) + 1;
    failures.push(...broken(killed, whole));
  }
  return { kills: chosen.length, cases, broken: failures };
};
