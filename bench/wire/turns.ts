/** What does turn k of a session cost to build, when k is early and when it is late?
 *  Invariant: the turn is the same for every length; the history before it is rebuilt for each sample, unmeasured, so that the turn grows the newest prefix, as it does in a session.
 *  Elsewhere: the conversation (history.ts). */

import { anthropic, type FrozenPrefix, type Marker, nextMarkers, prepare } from "@prefork/wire";
import { cpuPerUnit, type Extent, interleave, type Subject } from "../measure.ts";
import type { Finding } from "../table.ts";
import { fixedTurn, historyOf, lengthText } from "./history.ts";

const LENGTHS = [10_000, 100_000, 1_000_000] as const;
const TURNS = 5;
const FLAT = 1.5;

export const measureTurns = async ({ rounds, collect }: Extent): Promise<readonly Finding[]> => {
  const turns = Array.from({ length: TURNS }, (_, index) => fixedTurn(index));
  const subjects = LENGTHS.map((length): Subject => {
    const { build } = historyOf(length);
    return {
      name: String(length),
      sample: async () => {
        const history = build();
        await collect();
        return cpuPerUnit(TURNS, () => growBy(history, turns));
      },
    };
  });
  const cost = await interleave(subjects, { warmUp: 5, rounds });
  const micros = (length: number): number => cost.get(String(length)) ?? Number.NaN;
  return [100_000, 1_000_000].map((length) => ({
    group: "Build one more turn of 1.5K tokens (append, markers, chunk list): CPU",
    figure: `history of ${lengthText(length)} tokens`,
    ours: { value: micros(length), unit: "µs" },
    against: { name: "ours, history of 10K", amount: { value: micros(10_000), unit: "µs" } },
    limit: { of: "ratio", is: "at most", value: FLAT },
  }));
};

const growBy = (history: FrozenPrefix, turns: readonly ReturnType<typeof fixedTurn>[]): void => {
  let prefix = history;
  let markers: readonly Marker[] = nextMarkers(prefix);
  for (const turn of turns) {
    prefix = turn.reduce((grown, message) => grown.append(message), prefix);
    markers = nextMarkers(prefix, markers);
    prepare({ protocol: anthropic, prefix, markers, closing: { maxTokens: 8_192, stream: true } });
  }
};
