/** Does code that must be deterministic use a clock, randomness or the environment? And is there module-level state
 *  anywhere in our packages?
 *  Elsewhere: how text is read without comments and strings (source.ts). */

import { type Problem, placeOf, readSources, type SourceFile, type Verdict } from "./source.ts";

/** The edges, where time and the machine come in as defaults that a caller can replace. */
const edges = [
  /^packages\/wire\/src\/(?:send\/(?:transport|client)|launch|family)(?:\.ts$|-)/,
  /^packages\/simulator\/src\/(?:serve|server|clock)(?:\.ts$|\/|-)/,
  /^packages\/xray\/src\/proxy\/(?:server|proxy)(?:\.ts$|-)/,
];
const isPure = (path: string): boolean =>
  /^packages\/(?:wire|simulator|xray)\/src\//.test(path) && !edges.some((edge) => edge.test(path));

type Ban = { readonly what: string; readonly pattern: RegExp };

const impure: readonly Ban[] = [
  { what: "a clock", pattern: /\bDate\.now\b|\bnew Date\b(?!\s*\(\s*[^\s)])|\bperformance\.now\b|\bhrtime\b/g },
  { what: "a timer", pattern: /\bset(?:Timeout|Interval|Immediate)\b/g },
  { what: "chance", pattern: /\bMath\.random\b|\brandom(?:UUID|Bytes|Int|FillSync)\b|\bgetRandomValues\b/g },
  { what: "the environment", pattern: /\bprocess\.(?:env|argv|cwd|pid|platform)\b|\bimport\.meta\.env\b/g },
];

/** The formatter puts what belongs to the module, and nothing else, at the start of a line. */
const moduleState = /^(?:export\s+)?(?:declare\s+)?(?:let|var)\b/gm;

export function checkPurity(root: string): Verdict {
  const files = readSources(root, /^packages\/[^/]+\/src\//);
  return {
    files: files.length,
    problems: files.flatMap((file) => [...(isPure(file.path) ? findImpure(file) : []), ...findState(file)]),
  };
}

const findImpure = (file: SourceFile): readonly Problem[] =>
  impure.flatMap(({ what, pattern }) =>
    [...file.blanked.matchAll(pattern)].map((found) => ({
      place: placeOf(file, found.index),
      rule: `no ${what.replace(/^(?:a|the) /, "")} in pure code (${found[0].trim()})`,
      wayOut: `take ${what} as an argument; only the edges named in scripts/checks/purity.ts have a default for it`,
    })),
  );

const findState = (file: SourceFile): readonly Problem[] =>
  [...file.blanked.matchAll(moduleState)].map((found) => ({
    place: placeOf(file, found.index),
    rule: "no let or var at module level: state has an owner",
    wayOut: "make it a private field of the object whose life it shares, or a const",
  }));
