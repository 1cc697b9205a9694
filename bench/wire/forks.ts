/** What does one more fork cost to build, and does it matter how long its parent is?
 *  Invariant: a fork is built as users build it, with `forkFamily`; the figure includes the family's shared tail, divided
 *  by the forks that share it.
 *  Elsewhere: sending it (sending.ts), the conversation (history.ts). */

import { bytesOf, forkFamily } from "@prefork/wire";
import { cpuPerUnit, type Extent, interleave, type Subject } from "../measure.ts";
import type { Finding } from "../table.ts";
import { directiveOf, inFlight, lengthText, parentOf } from "./history.ts";

const LENGTHS = [10_000, 200_000, 1_000_000] as const;
const FORKS = 50;
const STRINGIFIED = "JSON.stringify of its body";
const FLAT = 1.5;
const TEN_TIMES_CHEAPER = 0.1;

export const measureForks = async ({ rounds, collect }: Extent): Promise<readonly Finding[]> => {
  const directives = Array.from({ length: FORKS }, (_, index) => directiveOf(index));
  const subjects = LENGTHS.map((length): Subject => {
    const parent = parentOf(length);
    return {
      name: String(length),
      sample: async () => {
        await collect();
        return cpuPerUnit(FORKS, () => void forkFamily(parent, directives, { inFlight }));
      },
    };
  });
  const cost = await interleave([...subjects, stringify(collect)], { warmUp: 10, rounds });
  const micros = (name: number | string): number => cost.get(String(name)) ?? Number.NaN;
  const group = "Build one more fork (its blocks, markers, chunk list): CPU";
  return [
    {
      group,
      figure: "parent of 200K tokens",
      ours: { value: micros(200_000), unit: "µs" },
      against: { name: STRINGIFIED, amount: { value: micros(STRINGIFIED), unit: "µs" } },
      limit: { of: "ratio", is: "at most", value: TEN_TIMES_CHEAPER },
    },
    ...[200_000, 1_000_000].map(
      (length): Finding => ({
        group,
        figure: `parent of ${lengthText(length)} tokens`,
        ours: { value: micros(length), unit: "µs" },
        against: { name: "ours, parent of 10K", amount: { value: micros(10_000), unit: "µs" } },
        limit: { of: "ratio", is: "at most", value: FLAT },
      }),
    ),
  ];
};

/** A fork's whole body, 200K tokens, from an object to text. */
const stringify = (collect: () => Promise<void>): Subject => {
  const [fork] = forkFamily(parentOf(200_000), [directiveOf(0)], { inFlight }).members;
  const body: unknown = fork && JSON.parse(bytesOf(fork).toString());
  const times = 5;
  return {
    name: STRINGIFIED,
    sample: async () => {
      await collect();
      return cpuPerUnit(times, () => {
        for (let time = 0; time < times; time += 1) JSON.stringify(body);
      });
    },
  };
};
