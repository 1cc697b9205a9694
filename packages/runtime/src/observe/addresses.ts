/** Where was the engine of a family, and when? Pure.
 *  Invariant: the first session's journal tells it for all agents, since they share an engine; where nobody noted an
 *  address, nothing is said to have moved.
 *  Elsewhere: who notes it (../session), what a move costs (find-cause.ts). */

import { ADDRESS_SLOT, REHEARSAL_SCHEME } from "../journal/index.ts";
import type { ShortfallCause } from "./cause.ts";
import type { AgentJournal } from "./line.ts";

export type Addresses = (at: number) => string | undefined;

export const addressesOf = ([root]: readonly AgentJournal[]): Addresses => {
  const noted = (root?.entries ?? []).flatMap(({ entry, at }) => {
    if (entry.kind === "opened" && entry.address !== undefined) return [{ at, address: entry.address }];
    const isMove = entry.kind === "state" && entry.slot === ADDRESS_SLOT && typeof entry.value === "string";
    return isMove ? [{ at, address: String(entry.value) }] : [];
  });
  return (at) => noted.findLast((one) => one.at <= at)?.address;
};

/** Why nothing of what was written then can be read now, if so. */
export const movedSince = (then: string | undefined, now: string | undefined): ShortfallCause | undefined => {
  if (then === undefined || now === undefined || then === now) return undefined;
  const isRehearsal = [then, now].every((address) => address.startsWith(REHEARSAL_SCHEME));
  return isRehearsal
    ? { kind: "rehearsal-ended" }
    : { kind: "other-address", from: addressWords(then), to: addressWords(now) };
};

const addressWords = (address: string): string =>
  address.startsWith(REHEARSAL_SCHEME) ? "the rehearsal engine" : address;
