/** `npm run mutate`: would the tests notice a small fault? Plants seeded mutants in copies of the repository, one at a time,
 *  and runs the tests of their module.
 *  Invariant: exit code 0 if at least 85 % are killed and every survivor has a reason in mutate/survivors.json; the same
 *  seed plants the same mutants.
 *  Elsewhere: which faults (mutate/mutants.ts), asking the tests (mutate/judge.ts).
 *
 *  npm run mutate [-- <module>…] [--seed N] [--mutants N] [--minutes N] */

import { globSync, mkdtempDisposableSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { copyRepository, judge, type Outcome, type Reach, reachOf } from "./mutate/judge.ts";
import { type Mutant, mutantsOf, sample } from "./mutate/mutants.ts";

type Module = { readonly sources: readonly string[]; readonly tests: readonly string[] };

const modules: Readonly<Record<string, Module>> = {
  fork: { sources: ["packages/runtime/src/{fork,children}/*.ts"], tests: ["packages/runtime/test/fork/*.test.ts"] },
  tasks: { sources: ["packages/runtime/src/tasks/*.ts"], tests: ["packages/runtime/test/tasks/*.test.ts"] },
  markers: {
    sources: ["packages/wire/src/{prefix/markers,fork-messages,prepare}.ts"],
    tests: ["packages/wire/test/*.test.ts"],
  },
  economics: {
    sources: ["packages/wire/src/cost/{fan-out,lifetime,plans,stored}.ts"],
    tests: ["packages/wire/test/{economics*,worked-figures,prices,launch-gate}.test.ts"],
  },
  guard: { sources: ["packages/guard/src/{rules,bash}/**/*.ts"], tests: ["packages/guard/test/rules/*.test.ts"] },
};

const KILLED_SHARE = 0.85;

type Job = { readonly module: string; readonly mutant: Mutant };
type Result = Job & { readonly outcome: Outcome };

const root = fileURLToPath(new URL("..", import.meta.url));
const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** Takes the same number from every module, so that a large one does not hide a small one. If a module has too few, the
 *  next one gives more. */
function chooseJobs(names: readonly string[], { seed, count }: { seed: number; count: number }): readonly Job[] {
  const pools = names
    .map((module) => {
      const files = globSync([...(modules[module]?.sources ?? [])], { cwd: root }).sort();
      const mutants = files.flatMap((file) => mutantsOf(file, readFileSync(join(root, file), "utf8")));
      return { module, mutants };
    })
    .sort((one, other) => one.mutants.length - other.mutants.length);
  const jobs: Job[] = [];
  for (const [at, { module, mutants }] of pools.entries()) {
    const share = Math.round((count - jobs.length) / (pools.length - at));
    jobs.push(...sample(mutants, { seed, count: share }).map((mutant) => ({ module, mutant })));
  }
  return jobs;
}

/** Each copy of the repository takes the next item as soon as it is free. */
async function inCopies<Item>(copies: readonly string[], items: readonly Item[], work: Work<Item>): Promise<void> {
  const waiting = [...items];
  const run = async (copy: string): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(copy, item);
  };
  await Promise.all(copies.map(run));
}

type Work<Item> = (copy: string, item: Item) => Promise<void>;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seed: { type: "string", default: "1" },
      mutants: { type: "string", default: "300" },
      minutes: { type: "string", default: "30" },
    },
  });
  const names = positionals.length === 0 ? Object.keys(modules) : positionals;
  const [seed = 0, count = 0, minutes = 0] = [values.seed, values.mutants, values.minutes].map(Number);
  const isUsable = [seed, count, minutes].every((number) => Number.isInteger(number) && number > 0);
  if (!isUsable || !names.every((name) => Object.hasOwn(modules, name))) {
    say(`npm run mutate [-- ${Object.keys(modules).join(" | ")}] [--seed N] [--mutants N] [--minutes N]`);
    return 2;
  }
  const begun = performance.now();
  const late = (): boolean => performance.now() - begun > minutes * 60_000;
  const jobs = chooseJobs(names, { seed, count });
  using folder = mkdtempDisposableSync(join(tmpdir(), "prefork-mutate-"));
  // A signal ends the run without disposing of anything.
  process.once("exit", () => rmSync(folder.path, { recursive: true, force: true, maxRetries: 3 }));
  const copies = Array.from({ length: Math.min(4, availableParallelism()) }, (_, at) => join(folder.path, `${at}`));
  for (const copy of copies) copyRepository(root, copy);

  const tests = [
    ...new Set(names.flatMap((name) => globSync([...(modules[name]?.tests ?? [])], { cwd: root }))),
  ].sort();
  say(`${jobs.length} mutants of ${names.join(", ")}; seed ${seed}; ${tests.length} test files run unchanged first`);
  const reaches = new Map<string, Reach>();
  const broken: string[] = [];
  await inCopies(copies, tests, async (copy, test) => {
    const reach = await reachOf(copy, test);
    if (reach === undefined) broken.push(test);
    else reaches.set(test, reach);
  });
  if (broken.length > 0) {
    say(`These tests fail without any mutant, so they can judge none: ${broken.join(", ")}. Run npm test first.`);
    return 1;
  }
  const testsOf = (module: string): readonly Reach[] =>
    globSync([...(modules[module]?.tests ?? [])], { cwd: root }).flatMap((test) => reaches.get(test) ?? []);
  const results: Result[] = [];
  await inCopies(copies, jobs, async (copy, job) => {
    if (late()) return;
    const outcome = await judge(copy, job.mutant, testsOf(job.module));
    results.push({ ...job, outcome });
    const by = outcome.kind === "killed" ? ` by ${outcome.by.split("/").at(-1)}` : "";
    say(`${results.length}/${jobs.length} ${outcome.kind}${by}: ${job.mutant.id}`);
  });
  return showResults(results, { planned: jobs.length, names, seconds: (performance.now() - begun) / 1_000 });
}

type Closing = { readonly planned: number; readonly names: readonly string[]; readonly seconds: number };

function showResults(results: readonly Result[], { planned, names, seconds }: Closing): number {
  const reasons: Readonly<Record<string, string>> = JSON.parse(
    readFileSync(new URL("mutate/survivors.json", import.meta.url), "utf8"),
  );
  const survivors = results.filter(({ outcome }) => outcome.kind !== "killed");
  for (const { mutant, outcome } of survivors) {
    const why =
      outcome.kind === "unreached" ? "no test of the module executes it" : "every test that executes it passes";
    console.log(
      `${mutant.file}:${mutant.line} ${outcome.kind}\n  ${mutant.id}\n  ${reasons[mutant.id] ?? `NO REASON: ${why}`}`,
    );
  }
  for (const name of names) {
    const own = results.filter(({ module }) => module === name);
    const killed = own.filter(({ outcome }) => outcome.kind === "killed").length;
    console.log(`${name}: ${killed} of ${own.length} killed`);
  }
  const share = results.length === 0 ? 0 : 1 - survivors.length / results.length;
  const unexplained = survivors.filter(({ mutant }) => reasons[mutant.id] === undefined).length;
  console.log(`${(share * 100).toFixed(1)} % of ${results.length} mutants killed in ${Math.round(seconds)} s`);
  if (results.length < planned) console.log(`${planned - results.length} were not run: out of time`);
  if (unexplained > 0) console.log(`${unexplained} survivors have no reason in scripts/mutate/survivors.json`);
  return share >= KILLED_SHARE && unexplained === 0 && results.length === planned ? 0 : 1;
}

// A separate process group is not notified when we exit, and a mutant may make it run forever.
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const)
  process.once(signal, () => process.exit(code));
process.exitCode = await main();
