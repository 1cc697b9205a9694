/** What the agent of the tour is asked: one prompt, a part for each area of the sample.
 *  Invariant: pure; written in forms that the rehearsal engine follows, and every part only looks.
 *  Elsewhere: what there is to find (sample.ts), how the prompt is understood (../rehearsal). */

import type { Facts } from "./sample.ts";

export type Part = {
  readonly area: keyof Facts;
  /** What the fork is called. */
  readonly name: string;
  readonly work: string;
};

export const PARTS: readonly Part[] = [
  { area: "schema", name: "Schema", work: "Count `= table(` in src/schema. Find `@deprecated` in src/schema." },
  { area: "service", name: "Service", work: "Read src/service/index.ts lines 3-8. Find `TODO` in src/service." },
  {
    area: "router",
    name: "Router",
    work: 'Count `route(` in src/router. Find duplicates of pattern `".+", ".+"` in src/router.',
  },
  { area: "tests", name: "Tests", work: "List *.test.ts files in test. Find `test.skip(` in test." },
  { area: "docs", name: "Docs", work: "Count files per folder in src. Find `TBD` in docs." },
];

export const promptOf = (parts: readonly Part[]): string =>
  [
    "The next version goes out tomorrow, and each area wants a look.",
    "",
    "In parallel:",
    ...parts.map(({ name, work }, index) => `${index + 1}. ${name}: ${work}`),
  ].join("\n");
