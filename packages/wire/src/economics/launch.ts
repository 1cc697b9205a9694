/** Whether to send a family at once or to let a leader write the shared tail first, and how long to wait for it.
 *  Invariant: at once only where that costs at most 1 % more over every reader of S, the parent's next request
 *  included; a cold family is never sent at once while a second reader would pay the same write.
 *  Elsewhere: the bills (plans.ts, fan-out.ts); releasing followers at the readable moment is the sender's work. */

import {
  addBills,
  type Bill,
  billOf,
  checkFanOut,
  type FanOut,
  familyRequests,
  figure,
  type InFlight,
  type Launch,
  weightOf,
} from "./fan-out.ts";

export type LaunchQuestion = FanOut & {
  readonly inFlight?: InFlight; // default: keep
  /** Recent time from sending a request to its first response event. Default: 5 s. */
  readonly firstEventMs?: number;
  /** What is left of the parent's entry, where known. */
  readonly expiresInMs?: number;
};

export type LaunchDecision = {
  readonly launch: Launch;
  readonly reason: string;
  readonly atOnce: Bill;
  readonly leaderFirst: Bill;
  /** How much more at once costs, as a share of leader first: 0.058 is 5.8 %. */
  readonly extra: number;
  /** Followers are released after this even if the leader has not answered; 0 where nobody waits. */
  readonly waitCapMs: number;
};

const ACCEPTED_EXTRA = 0.01;
const USUAL_FIRST_EVENT_MS = 5_000;
/** An entry this near its end may be gone when the requests arrive. */
const NEAR_EXPIRY_MS = 15_000;
/** Cold, each reader let go early pays the whole prefix again: a minute of waiting is the cheaper mistake. */
const COLD_WAIT_FLOOR_MS = 60_000;
/** The leader's entry lives five minutes from its start; past this, waiting would lose what it waits for. */
const WAIT_CEILING_MS = 270_000;

const waitCap = (warm: boolean, firstEventMs: number): number =>
  Math.min(WAIT_CEILING_MS, warm ? 2 * firstEventMs : Math.max(COLD_WAIT_FLOOR_MS, 4 * firstEventMs));

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
const seconds = (ms: number): string => `${figure(ms / 1_000)} s`;

const readersInWords = ({ forks, parentNext }: FanOut): string => {
  const children = forks === 1 ? "1 fork" : `${figure(forks)} forks`;
  return parentNext === "none" ? children : `${children} and the parent's next request`;
};

export const decideLaunch = (question: LaunchQuestion): LaunchDecision => {
  checkFanOut(question);
  const { inFlight = "keep", firstEventMs = USUAL_FIRST_EVENT_MS, expiresInMs } = question;
  const expiring = question.warm && expiresInMs !== undefined && expiresInMs < NEAR_EXPIRY_MS;
  const warm = question.warm && !expiring;
  const family = { ...question, warm };

  const bill = (launch: Launch): Bill => {
    const { children, parentNext } = familyRequests(family, launch, inFlight);
    return addBills(billOf(children, family), billOf(parentNext, family));
  };
  const atOnce = bill("at-once");
  const leaderFirst = bill("leader-first");
  const least = weightOf(leaderFirst);
  // The last decimals are binary noise; without this, "exactly 1 %" would fall on either side.
  const extra = least === 0 ? 0 : Math.round((weightOf(atOnce) / least - 1) * 1e9) / 1e9;
  const figures = `${figure(atOnce.units)} base-input tokens against ${figure(leaderFirst.units)}`;

  const decided = (launch: Launch, reason: string): LaunchDecision => ({
    launch,
    reason,
    atOnce,
    leaderFirst,
    extra,
    waitCapMs: launch === "at-once" ? 0 : waitCap(warm, firstEventMs),
  });

  const readers = question.forks + (question.parentNext === "none" ? 0 : 1);
  if (readers === 1) return decided("at-once", "at once: there is one reader, and nobody to wait for");
  if (extra <= 0) {
    const nothingShared = warm && (inFlight === "trim" || question.tail === 0);
    const why = nothingShared
      ? "the prefix is warm and nothing after it is shared"
      : "nothing that the requests share is long enough to be cached";
    return decided("at-once", `at once: ${why}, so there is nothing to wait for`);
  }
  if (warm && extra <= ACCEPTED_EXTRA) {
    return decided(
      "at-once",
      `at once: it costs ${percent(extra)} more than leader first (${figures}, over ${readersInWords(question)}), ` +
        `within the ${percent(ACCEPTED_EXTRA)} accepted for not waiting`,
    );
  }
  const cause = expiring
    ? `the prefix expires in ${seconds(expiresInMs)} and may be gone on arrival, and then `
    : warm
      ? ""
      : "the prefix is cold, and ";
  return decided(
    "leader-first",
    `leader first: ${cause}at once would cost ${percent(extra)} more (${figures}, over ${readersInWords(question)}); ` +
      `the others follow when the leader's entry is readable, or after ${seconds(waitCap(warm, firstEventMs))}`,
  );
};
