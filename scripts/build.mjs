/** Compiles the libraries to dist, then bundles the command line.
 *  Invariant: works on Node 20; with `--if-installed` it does nothing where the compiler is not installed, because a
 *  clone that only runs the command line runs its sources.
 *  Elsewhere: the bundle (bundle.mjs), installing (bootstrap.mjs).
 *
 *  node scripts/build.mjs [--if-installed] */

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "./bundle.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const compiler = join(root, "node_modules/typescript/bin/tsc");

/** The compiler leaves what it made of a source that has moved away; a tarball would carry it along. */
const removeStale = (folder) => {
  const [dist, src] = [join(folder, "dist"), join(folder, "src")];
  if (!existsSync(dist)) return;
  for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    const source = join(src, relative(dist, file)).replace(/(?:\.d\.ts|\.js)$/, ".ts");
    if (entry.name !== ".tsbuildinfo" && !existsSync(source)) rmSync(file, { recursive: true, force: true });
  }
};

const compile = () => {
  const folders = readdirSync(join(root, "packages")).map((name) => `packages/${name}`);
  const projects = folders
    .map((folder) => `${folder}/tsconfig.build.json`)
    .filter((project) => existsSync(join(root, project)));
  for (const project of projects) removeStale(join(root, project, ".."));
  return spawnSync(process.execPath, [compiler, "--build", ...projects], { cwd: root, stdio: "inherit" }).status ?? 1;
};

if (existsSync(compiler) || !process.argv.includes("--if-installed")) {
  process.exitCode = compile();
  if (process.exitCode === 0) await bundle(root);
}
