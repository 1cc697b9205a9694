/** Compiles the libraries to dist, then bundles the command line.
 *  Invariant: works on Node 20; with `--if-installed` it does nothing where the compiler is not installed, because a
 *  clone that only runs the command line runs its sources.
 *  Elsewhere: the bundle (bundle.mjs), installing (bootstrap.mjs).
 *
 *  node scripts/build.mjs [--if-installed] */

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "./bundle.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const compiler = join(root, "node_modules/typescript/bin/tsc");

const compile = () => {
  const projects = readdirSync(join(root, "packages"))
    .map((name) => `packages/${name}/tsconfig.build.json`)
    .filter((project) => existsSync(join(root, project)));
  return spawnSync(process.execPath, [compiler, "--build", ...projects], { cwd: root, stdio: "inherit" }).status ?? 1;
};

if (existsSync(compiler) || !process.argv.includes("--if-installed")) {
  process.exitCode = compile();
  if (process.exitCode === 0) await bundle(root);
}
