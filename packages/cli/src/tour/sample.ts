/** A small service as files, generated from a seed, with a few flaws to find.
 *  Invariant: pure; the same seed gives the same bytes, and the facts state exactly what a search of the files finds.
 *  Elsewhere: the text of each file (sample-code.ts, sample-edges.ts, conventions.ts), writing them (repository.ts). */

import { conventionsFile } from "./conventions.ts";
import { DOMAINS, type Domain, type Resource } from "./domains.ts";
import {
  type Flaws,
  outcomeFile,
  schemaFile,
  schemaIndexFile,
  serviceFile,
  serviceIndexFile,
  storeFile,
  type Todo,
  tableFile,
  typesFile,
} from "./sample-code.ts";
import {
  errorsPage,
  mainFile,
  packageFile,
  pageFile,
  ROUTES_EACH,
  readmeFile,
  routeFile,
  routerFile,
  routerIndexFile,
  routesTestFile,
  tablesTestFile,
  testFile,
  tsconfigFile,
} from "./sample-edges.ts";

/** What there is to find, by the part of the job that finds it. */
export type SampleFacts = {
  readonly schema: { readonly tables: number; readonly deprecated: string };
  readonly service: { readonly todos: number; readonly failing: string };
  readonly router: { readonly routes: number; readonly repeated: string };
  readonly tests: { readonly files: number; readonly skipped: string; readonly untested: string };
  readonly docs: { readonly unfinished: string; readonly undocumented: string };
};

export type Sample = {
  readonly seed: number;
  readonly domain: Domain;
  readonly resources: readonly Resource[];
  /** Path → text. */
  readonly files: ReadonlyMap<string, string>;
  readonly facts: SampleFacts;
};

const THINGS = 6;
/** Test files that do not belong to a service. */
const OTHER_TESTS = 2;

export const sampleOf = (seed: number): Sample => {
  const random = new SampleRandom(seed);
  const domain = random.one(DOMAINS);
  const [first, ...rest] = random.some(domain.resources, THINGS);
  if (first === undefined) throw new Error(`the domain ${domain.service} has no resources`);
  const resources: Resources = [first, ...rest];
  const planted = plantFlaws(resources, random);
  const files = filesOf(domain, resources, planted.flaws);
  return { seed, domain, resources, files, facts: planted.facts };
};

type Resources = readonly [Resource, ...(readonly Resource[])];

type PlantedFlaws = { readonly flaws: (resource: Resource) => Flaws; readonly facts: SampleFacts };

const plantFlaws = (resources: Resources, random: SampleRandom): PlantedFlaws => {
  const deprecated = random.one(resources);
  const failing = random.one(resources);
  const paged = random.some(resources, 1 + random.below(2));
  const unitless = random.some(resources, 1 + random.below(3));
  const [repeated, repeating] = inTurn(random.some(resources, 2), random);
  const [untested, skipping] = inTurn(random.some(resources, 2), random);
  const [undocumented, unfinished] = inTurn(random.some(resources, 2), random);
  const todosOf = (resource: Resource): readonly Todo[] => [
    ...(paged.includes(resource) ? (["page"] as const) : []),
    ...(resource === failing ? (["fails"] as const) : []),
    ...(unitless.includes(resource) ? (["unit"] as const) : []),
  ];
  return {
    flaws: (resource) => ({
      isDeprecated: resource === deprecated,
      todos: todosOf(resource),
      ...(resource === repeating && repeated ? { alsoServes: repeated } : {}),
      isTested: resource !== untested,
      skips: resource === skipping,
      isDocumented: resource !== undocumented,
      isUnfinished: resource === unfinished,
    }),
    facts: {
      schema: { tables: resources.length, deprecated: `src/schema/${deprecated.one}.ts` },
      service: {
        todos: resources.flatMap(todosOf).length,
        failing: serviceOf(failing),
      },
      router: { routes: resources.length * ROUTES_EACH + 1, repeated: `GET /${repeated?.many}/:id` },
      tests: {
        files: resources.length - 1 + OTHER_TESTS,
        skipped: `test/${skipping?.one}-service.test.ts`,
        untested: serviceOf(untested ?? deprecated),
      },
      docs: { unfinished: `docs/${unfinished?.many}.md`, undocumented: `src/types/${undocumented?.one}.ts` },
    },
  };
};

const inTurn = <T>(two: readonly T[], random: SampleRandom): readonly T[] =>
  random.below(2) === 0 ? two : two.toReversed();

const serviceOf = ({ one }: Resource): string => `src/service/${one}-service.ts`;

const filesOf = (domain: Domain, resources: Resources, flaws: PlantedFlaws["flaws"]): ReadonlyMap<string, string> => {
  const each = resources.flatMap((resource): readonly (readonly [string, string])[] => {
    const { one, many } = resource;
    const own = flaws(resource);
    return [
      [`src/types/${one}.ts`, typesFile(resource)],
      [`src/schema/${one}.ts`, schemaFile(resource, own)],
      [serviceOf(resource), serviceFile(resource, own)],
      [`src/router/${many}.ts`, routerFile(resource, own)],
      ...(own.isTested ? ([[`test/${one}-service.test.ts`, testFile(resource, own)]] as const) : []),
      ...(own.isDocumented ? ([[`docs/${many}.md`, pageFile(resource, own)]] as const) : []),
    ];
  });
  return new Map([
    [".gitignore", "node_modules/\n"],
    ["AGENTS.md", conventionsFile(domain, resources)],
    ["README.md", readmeFile(domain, resources)],
    ["package.json", packageFile(domain)],
    ["tsconfig.json", tsconfigFile()],
    ["src/main.ts", mainFile()],
    ["src/types/outcome.ts", outcomeFile()],
    ["src/schema/table.ts", tableFile()],
    ["src/schema/index.ts", schemaIndexFile(resources)],
    ["src/service/store.ts", storeFile()],
    ["src/service/index.ts", serviceIndexFile(resources)],
    ["src/router/route.ts", routeFile()],
    ["src/router/index.ts", routerIndexFile(resources)],
    ["test/routes.test.ts", routesTestFile(resources)],
    ["test/tables.test.ts", tablesTestFile(resources)],
    ["docs/errors.md", errorsPage()],
    ...each,
  ]);
};

/** Seeded random numbers, the same on every machine: only 32-bit integers, so that no rounding differs. */
export class SampleRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number): number {
    // A Weyl sequence, mixed by multiplying and shifting, so that neighbouring seeds give different numbers.
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return Math.floor((((mixed ^ (mixed >>> 15)) >>> 0) / 0x1_0000_0000) * count);
  }

  one<T>(list: readonly [T, ...(readonly T[])]): T {
    return list[this.below(list.length)] ?? list[0];
  }

  /** `count` random items, in the order of the list. */
  some<T>(list: readonly T[], count: number): readonly T[] {
    const remaining = list.map((_, index) => index);
    const drawn = Array.from({ length: Math.min(count, list.length) }, () =>
      remaining.splice(this.below(remaining.length), 1),
    );
    return drawn
      .flat()
      .toSorted((a, b) => a - b)
      .flatMap((index) => list.slice(index, index + 1));
  }
}
