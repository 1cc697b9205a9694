/** May another turn begin? Pure.
 *  Invariant: asked before each request, never in the middle of one.
 *  Elsewhere: money and tokens, which need the request's size (account.ts). */

import type { ExchangeEnd } from "../events.ts";

export type TurnLimits = {
  /** Turns of one exchange. */
  readonly maxTurns?: number;
  /** Milliseconds since 1970 after which no request is sent. */
  readonly deadline?: number;
};

export type Stop = { readonly end: ExchangeEnd; readonly reason: string };

export const stopBefore = (
  { maxTurns, deadline }: TurnLimits,
  state: { readonly turns: number; readonly now: number; readonly aborted: boolean },
): Stop | undefined => {
  if (state.aborted) return { end: "aborted", reason: "interrupted" };
  if (maxTurns !== undefined && state.turns >= maxTurns)
    return { end: "max-turns", reason: `the limit of ${maxTurns} turn${maxTurns === 1 ? "" : "s"} is reached` };
  if (deadline !== undefined && state.now >= deadline)
    return { end: "out-of-time", reason: "the time limit is reached" };
  return undefined;
};
