/** External tools of the check: formatter and linter, type checker, compiler.
 *  Invariant: each runs from node_modules, on the runtime of this script; its output is shown unchanged.
 *  Elsewhere: our own rules (the files beside this one). */

import { spawn } from "node:child_process";
import { isAbsolute, join } from "node:path";
import { isFile, type Verdict } from "./source.ts";

type Run = { readonly ok: boolean; readonly output: string };

export async function checkFormatAndLint(root: string): Promise<Verdict> {
  const run = await runTool(root, ["@biomejs/biome/bin/biome", "check", "--error-on-warnings", "--max-diagnostics=50"]);
  const files = Number(/Checked (\d+) file/.exec(run.output)?.[1] ?? 0);
  const advice = "way out: npm run format repairs what can be repaired";
  return run.ok ? { files, problems: [] } : { files, problems: [], output: `${run.output.trimEnd()}\n${advice}` };
}

export async function checkTypes(root: string): Promise<Verdict> {
  const pretty = colours() ? ["--pretty"] : [];
  const run = await runTool(root, ["typescript/bin/tsc", "-p", "tsconfig.json", "--listFiles", ...pretty]);
  const isListed = (line: string): boolean => isAbsolute(line) && /\.[cm]?ts$/.test(line);
  const lines = run.output.trimEnd().split("\n");
  const files = lines.filter((line) => isListed(line) && !line.includes("/node_modules/")).length;
  const output = lines.filter((line) => !isListed(line)).join("\n");
  return run.ok ? { files, problems: [] } : { files, problems: [], output };
}

/** Compiles the libraries and bundles the command line; only what changed is compiled again. */
export async function build(root: string): Promise<Run> {
  const script = join(root, "scripts/build.mjs");
  return isFile(script) ? runNode(root, [script]) : { ok: true, output: "" };
}

const colours = (): boolean => process.stdout.isTTY === true && process.env.NO_COLOR === undefined;

const runTool = (root: string, [script = "", ...parameters]: readonly string[]): Promise<Run> =>
  runNode(root, [join(root, "node_modules", script), ...parameters]);

function runNode(root: string, parameters: readonly string[]): Promise<Run> {
  return new Promise((done) => {
    const env = { ...process.env, ...(colours() ? { FORCE_COLOR: "1" } : {}) };
    const child = spawn(process.execPath, parameters, { cwd: root, env });
    const output: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => output.push(chunk));
    child.on("error", (error) => done({ ok: false, output: error.message }));
    child.on("close", (code) => done({ ok: code === 0, output: Buffer.concat(output).toString() }));
  });
}
