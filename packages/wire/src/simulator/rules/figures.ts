/** Prices of models, written the way price lists are.
 *  Invariant: dollars per million tokens; what no list states is left out.
 *  Elsewhere: the lists (the other files of this folder), arithmetic on them (../bill.ts). */

import type { ModelFacts, Prices } from "../../models.ts";
import type { Ttl } from "../../request.ts";
import type { OwnFacts } from "./rules.ts";

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;

type Listed = {
  readonly input: number;
  readonly read: number;
  readonly output: number;
  /** With the one lifetime that has a price. */
  readonly write?: readonly [Ttl, number];
};

export const prices = ({ input, read, output, write }: Listed): Prices => ({
  input,
  read,
  output,
  write: write === undefined ? {} : { [write[0]]: write[1] },
});

export type Row = Listed & {
  readonly id: string;
  readonly minimum: number;
  readonly earlierThinking?: ModelFacts["earlierThinking"]; // default: keep-all
  readonly tiers?: ModelFacts["tiers"];
} & Omit<OwnFacts, "facts">;

export const figures = (rows: readonly Row[]): ReadonlyMap<string, OwnFacts> =>
  new Map(
    rows.map(({ id, minimum, earlierThinking = "keep-all", tiers, peak, storage, ...listed }) => [
      id,
      {
        facts: {
          id,
          prices: prices(listed),
          minimumPrefix: minimum,
          earlierThinking,
          ...(tiers === undefined ? {} : { tiers }),
        },
        ...(peak === undefined ? {} : { peak }),
        ...(storage === undefined ? {} : { storage }),
      },
    ]),
  );
