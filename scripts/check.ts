/** `npm run check`: does the repository follow its rules? One line per check; a failure names the rule, the location and
 *  how to fix it.
 *  Invariant: changes nothing, except the lists of exported names, and those only with --update-api.
 *  Elsewhere: the rules (checks/), what the code does (test.ts).
 *
 *  npm run check [-- <name>…] [-- --update-api] */

import { fileURLToPath } from "node:url";
import { checkApi } from "./checks/api.ts";
import { checkLayers } from "./checks/layers.ts";
import { checkLinks } from "./checks/links.ts";
import { checkPurity } from "./checks/purity.ts";
import { checkSize } from "./checks/size.ts";
import type { Verdict } from "./checks/source.ts";
import { build, checkFormatAndLint, checkTypes } from "./checks/tools.ts";

type Check = () => Verdict | Promise<Verdict>;

const root = fileURLToPath(new URL("..", import.meta.url));
const parameters = process.argv.slice(2);
const update = parameters.includes("--update-api");
const chosen = parameters.filter((parameter) => parameter !== "--update-api");

/** The slow checks, which run in other processes, start first; ours run in the meantime. */
const checks: Readonly<Record<string, Check>> = {
  format: () => checkFormatAndLint(root),
  types: () => checkTypes(root),
  api: async () => {
    const { ok, output } = await build(root);
    return ok ? checkApi(root, { update }) : { files: 0, problems: [], output: output.trimEnd() };
  },
  layers: () => checkLayers(root),
  size: () => checkSize(root),
  purity: () => checkPurity(root),
  links: () => checkLinks(root),
};

async function run(name: string, check: Check): Promise<boolean> {
  const started = performance.now();
  const { files, problems, output } = await check();
  const measured = `(${files} ${files === 1 ? "file" : "files"}, ${((performance.now() - started) / 1000).toFixed(1)} s)`;
  if (problems.length === 0 && output === undefined) {
    console.log(`ok    ${name} ${measured}`);
    return true;
  }
  console.log(`FAIL  ${name} ${measured}`);
  if (output !== undefined) console.log(output.replace(/^/gm, "      "));
  for (const { place, rule, wayOut } of problems) {
    console.log(`      ${place}\n        rule: ${rule}\n        way out: ${wayOut}`);
  }
  return false;
}

async function main(): Promise<number> {
  const unknown = chosen.filter((name) => checks[name] === undefined);
  if (unknown.length > 0) {
    console.error(
      `no such check: ${unknown.join(", ")}; there are ${Object.keys(checks).join(", ")}, and --update-api`,
    );
    return 2;
  }
  const names = chosen.length > 0 ? chosen : update ? ["api"] : Object.keys(checks);
  const results = await Promise.all(
    names.map(async (name) => {
      const check = checks[name];
      return check === undefined || (await run(name, check));
    }),
  );
  const failed = results.filter((good) => !good).length;
  if (failed > 0) console.log(`${failed} of ${results.length} checks failed`);
  return failed > 0 ? 1 : 0;
}

process.exitCode = await main();
