/** Do the packed command line and the packed libraries work on their own? Installs the tarballs, the command into an empty
 *  prefix as `npm install --global` does, the libraries into an empty project, and runs them far from the clone, on this
 *  Node and on the oldest that they support. Needs the package registry.
 *  Elsewhere: the same without a registry (packed.test.ts, part of npm test).
 *
 *  Part of npm run verify. */

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempDisposableSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const OLDEST_NODE = "22.18.0";
const root = fileURLToPath(new URL("..", import.meta.url));

const npm = (cwd: string, parameters: readonly string[]): string =>
  execFileSync("npm", [...parameters, "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd,
    encoding: "utf8",
    stdio: "pipe",
  });

using folder = mkdtempDisposableSync(join(tmpdir(), "prefork-install-"));
const home = join(folder.path, "home");
mkdirSync(home);
const [{ filename }] = JSON.parse(npm(root, ["pack", "--json", "--workspace=prefork", `--pack-destination=${home}`]));
npm(home, ["install", "--global", `--prefix=${folder.path}`, join(home, filename)]);

const LIBRARIES = ["wire", "simulator", "xray", "guard", "worktrees", "runtime"].map((name) => `@prefork/${name}`);
const project = join(folder.path, "project");
mkdirSync(project);
const packed = JSON.parse(
  npm(root, ["pack", "--json", ...LIBRARIES.map((name) => `--workspace=${name}`), `--pack-destination=${project}`]),
) as readonly { readonly filename: string }[];
writeFileSync(join(project, "package.json"), '{ "type": "module" }');
npm(project, ["install", ...packed.map(({ filename: tarball }) => `./${tarball}`)]);
cpSync(join(root, "examples/consumer/use-libraries.mjs"), join(project, "use.mjs"));

const oldest = `node-${process.platform}-${process.arch}`;
npm(home, ["install", `--prefix=${join(folder.path, "oldest")}`, `${oldest}@${OLDEST_NODE}`]);
const program = join(folder.path, "lib/node_modules/prefork/bin/prefork.js");
const { PATH = "" } = process.env;
for (const node of [process.execPath, join(folder.path, "oldest/node_modules", oldest, "bin/node")]) {
  const prefork = (...parameters: readonly string[]): string =>
    execFileSync(node, [program, ...parameters], {
      cwd: home,
      env: { HOME: home, PATH },
      encoding: "utf8",
      stdio: "pipe",
    });
  const version = prefork("--version").trim();
  const answer = prefork("-p", "Run `echo installed`");
  if (!answer.includes("installed")) throw new Error(`prefork -p did not run the command; it answered:\n${answer}`);
  const bill = prefork("tour");
  if (!bill.includes("five forks, as above")) throw new Error(`prefork tour printed no bill:\n${bill}`);
  const runtime = execFileSync(node, ["--version"], { encoding: "utf8" }).trim();
  console.log(`ok    prefork ${version}, installed alone: --version, -p and tour on Node ${runtime}`);
  const env = { HOME: home, PATH };
  const used = execFileSync(node, ["use.mjs"], { cwd: project, env, encoding: "utf8", stdio: "pipe" });
  if (!used.includes('"simulator":"alone"')) throw new Error(`the libraries did not answer; they printed:\n${used}`);
  console.log(`ok    ${LIBRARIES.join(", ")} from their tarballs on Node ${runtime}`);
}
