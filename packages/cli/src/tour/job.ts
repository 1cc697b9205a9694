/** What the tour asks its agent: one prompt, with one part for each area of the sample; and the same job in other shapes,
 *  to compare.
 *  Invariant: pure. Prompts use forms that the rehearsal engine follows, and every step only reads.
 *  Elsewhere: what there is to find (sample.ts), how a prompt is understood (../rehearsal). */

import type { SampleFacts } from "./sample.ts";

export type Part = {
  readonly area: keyof SampleFacts;
  /** The fork's name. */
  readonly name: string;
  readonly steps: readonly string[];
};

export const PARTS: readonly Part[] = [
  { area: "schema", name: "Schema", steps: ["Count `= table(` in src/schema.", "Find `@deprecated` in src/schema."] },
  { area: "service", name: "Service", steps: ["Read src/service/index.ts lines 3-8.", "Find `TODO` in src/service."] },
  {
    area: "router",
    name: "Router",
    steps: ["Count `route(` in src/router.", 'Find duplicates of pattern `".+", ".+"` in src/router.'],
  },
  { area: "tests", name: "Tests", steps: ["List *.test.ts files in test.", "Find `test.skip(` in test."] },
  { area: "docs", name: "Docs", steps: ["Count files per folder in src.", "Find `TBD` in docs."] },
];

const OCCASION = "The next version goes out tomorrow, and each area wants a look.";

const numbered = (items: readonly string[]): readonly string[] => items.map((item, index) => `${index + 1}. ${item}`);

export const partPrompt = ({ name, steps }: Part): string => `${name}: ${steps.join(" ")}`;

/** One fork for each part. */
export const parallelPrompt = (parts: readonly Part[]): string =>
  [OCCASION, "", "In parallel:", ...numbered(parts.map(partPrompt))].join("\n");

/** One agent, one step after the other. */
export const serialPrompt = (parts: readonly Part[]): string =>
  [OCCASION, "", ...numbered(parts.flatMap(({ steps }) => steps))].join("\n");
