/** `npm run soak -- <name>`: the long form of a test that `npm test` runs with a small count.
 *  Invariant: bounded in count; exit code 0 if everything held, 1 with what did not, 2 for a usage error.
 *  Elsewhere: the short forms (packages/<package>/test). */

import { spawnSync } from "node:child_process";
import { fileURLToPath, pathToFileURL } from "node:url";

type Soak = () => Promise<{ readonly held: boolean; readonly summary: string }>;

const at = (path: string): string => pathToFileURL(fileURLToPath(new URL(`../${path}`, import.meta.url))).href;

const soaks: Readonly<Record<string, Soak>> = {
  /** Another process swaps folders and files for links while they are being written. */
  paths: async () => {
    const { SOAK_TRIES, swapSoak } = await import(at("packages/guard/test/files/swap-soak.ts"));
    const result = await swapSoak(SOAK_TRIES);
    return { held: result.escapes.length === 0, summary: JSON.stringify(result) };
  },
  /** A session of fifty turns, killed at random moments and resumed. */
  session: async () => {
    const { crashSoak, soakMoments } = await import(at("packages/runtime/test/session/crash-soak.ts"));
    const result = await crashSoak(soakMoments);
    return { held: result.broken.length === 0, summary: JSON.stringify(result) };
  },
  /** Sessions with hundreds of tasks, killed at random moments, and a small family interrupted at every step. */
  tasks: async () => {
    const { tasksSoak } = await import(at("packages/runtime/test/tasks/tasks-soak.ts"));
    const result = await tasksSoak();
    const held = result.wild.broken.length === 0 && result.moments.broken.length === 0;
    return { held, summary: JSON.stringify(result) };
  },
  /** Families of forks in every combination: their bytes, their cache reads and their bill. */
  matrix: async () => {
    const { matrixSoak } = await import(at("packages/runtime/test/fork/matrix-soak.ts"));
    const result = await matrixSoak();
    return { held: result.broken.length === 0, summary: JSON.stringify(result) };
  },
  /** The proxy between a busy client and a provider that answers, resets and disconnects in every way. */
  proxy: async () => {
    const { FULL_SOAK, passSoak } = await import(at("packages/xray/test/proxy/pass-soak.ts"));
    const result = await passSoak(FULL_SOAK);
    const held = result.broken.length === 0 && result.hashes.sent === result.hashes.arrived;
    return { held, summary: JSON.stringify(result) };
  },
  /** Worktrees: a task killed at every step of its life, and merges of random edits on both sides. */
  worktrees: async () => {
    const { worktreesSoak } = await import(at("packages/worktrees/test/worktrees-soak.ts"));
    const result = await worktreesSoak();
    return { held: result.broken.length === 0, summary: JSON.stringify(result) };
  },
  /** Every git command in every hostile repository. */
  repositories: async () => {
    const { repositoriesSoak } = await import(at("packages/cli/test/hostile/repositories.ts"));
    const result = await repositoriesSoak();
    return { held: result.broken.length === 0, summary: JSON.stringify(result) };
  },
  /** Every command of the everyday corpora, compared with bash and with the bytes of the repository. */
  plans: async () => {
    const [cwd, file] = [fileURLToPath(new URL("..", import.meta.url)), "packages/guard/test/run/plan-as-bash.test.ts"];
    const env = { ...process.env, PREFORK_ALL_PLANS: "yes" };
    const { status, stdout } = spawnSync(process.execPath, [...process.execArgv, "scripts/test.ts", file], {
      ...{ cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] },
    });
    return {
      held: status === 0,
      summary: stdout
        .trim()
        .split("\n")
        .slice(status === 0 ? -1 : 0)
        .join("\n"),
    };
  },
  /** Every property with values that npm test does not generate. */
  properties: async () => {
    const { propertiesSoak } = await import("./properties-soak.ts");
    const result = propertiesSoak(fileURLToPath(new URL("..", import.meta.url)));
    return { held: result.broken.length === 0, summary: JSON.stringify(result) };
  },
  /** A thousand forks one after another, kept and not kept as tasks, and the resources that they leave behind. */
  forks: async () => {
    const { allForksSoak } = await import(at("packages/runtime/test/fork/forks-soak.ts"));
    const results: readonly { readonly broken: readonly string[] }[] = await allForksSoak();
    return { held: results.every(({ broken }) => broken.length === 0), summary: JSON.stringify(results) };
  },
};

const [name = ""] = process.argv.slice(2);
const soak = Object.hasOwn(soaks, name) ? soaks[name] : undefined;
if (soak) {
  const { held, summary } = await soak();
  console.log(`${held ? "held" : "DID NOT HOLD"}: ${summary}`);
  process.exitCode = held ? 0 : 1;
} else {
  console.error(`no such soak: "${name}"; there are ${Object.keys(soaks).join(", ")}`);
  process.exitCode = 2;
}
