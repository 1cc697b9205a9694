/** `npm run fuzz -- <name>`: tries many random inputs.
 *  Invariant: exit code 0 if nothing was found, 1 with one finding per line, 2 for a usage error; the seed is printed, and
 *  the same seed gives the same inputs.
 *  Elsewhere: what is tried (packages/<package>/fuzz/<name>.ts, which export `fuzz`).
 *
 *  npm run fuzz -- guard [--seed N] [--inputs N] [--seconds N] */

import { globSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

type Fuzz = (options: {
  readonly seed: number;
  readonly inputs: number;
  readonly seconds: number;
  readonly report: (line: string) => void;
}) => Promise<{ readonly findings: readonly string[]; readonly summary: readonly string[] }>;

const root = fileURLToPath(new URL("..", import.meta.url));

/** Every file of a fuzz folder that exports `fuzz`, by its name. */
const known = async (): Promise<ReadonlyMap<string, Fuzz>> => {
  const found = new Map<string, Fuzz>();
  for (const path of globSync("packages/*/fuzz/*.ts", { cwd: root }).sort()) {
    const module = (await import(pathToFileURL(join(root, path)).href)) as { readonly fuzz?: Fuzz };
    if (module.fuzz) found.set(basename(path, ".ts"), module.fuzz);
  }
  return found;
};

const main = async (): Promise<number> => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seed: { type: "string", default: "1" },
      inputs: { type: "string", default: "200000" },
      seconds: { type: "string", default: "150" },
    },
  });
  const fuzzes = await known();
  const [name = ""] = positionals;
  const fuzz = fuzzes.get(name);
  const numbers = [values.seed, values.inputs, values.seconds].map(Number);
  if (!fuzz || positionals.length > 1 || !numbers.every((number) => Number.isInteger(number) && number > 0)) {
    console.error(`npm run fuzz -- <${[...fuzzes.keys()].join(" | ")}> [--seed N] [--inputs N] [--seconds N]`);
    return 2;
  }
  const [seed = 1, inputs = 1, seconds = 1] = numbers;
  const report = (line: string): void => void process.stderr.write(`… ${line}\n`);
  const { findings, summary } = await fuzz({ seed, inputs, seconds, report });
  for (const line of [`seed ${seed}`, ...summary]) console.log(line);
  for (const finding of findings) console.log(`FOUND ${finding}`);
  console.log(findings.length === 0 ? "nothing found" : `${findings.length} found`);
  return findings.length === 0 ? 0 : 1;
};

process.exitCode = await main();
