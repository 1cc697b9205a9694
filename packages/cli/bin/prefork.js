#!/usr/bin/env node
/** The door of the command line: answers `--version` at once, finds a runtime that is new enough, then hands over.
 *  Invariant: parses on every Node that knows modules, and loads nothing else before it must.
 *  Elsewhere: the commands (dist/main.js, compiled from src/main.ts). */

import { existsSync, readFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";

const main = new URL("../dist/main.js", import.meta.url);

/** Young objects get no more room than they begin with: loading alone would take 15 MB more, for good. */
setFlagsFromString("--semi-space-growth-factor=1");
/** A command waits for its provider most of the time: less memory is worth more here than the last bit of speed. */
setFlagsFromString("--optimize-for-size");

const isNewEnough = () => {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 22);
};

/** In a clone the runtime is an npm package in a node_modules folder above this file. */
const findPinnedRuntime = () => {
  const name = `node_modules/node-${process.platform}-${process.arch}/bin/node`;
  for (let folder = new URL("./", import.meta.url); ; folder = new URL("../", folder)) {
    const runtime = new URL(name, folder);
    if (existsSync(runtime)) return runtime;
    if (folder.pathname === "/" || folder.href === new URL("../", folder).href) return undefined;
  }
};

const refuse = (line) => {
  process.stderr.write(`prefork: ${line}\n`);
  return 2;
};

const runOn = async (runtime) => {
  const { spawn } = await import("node:child_process");
  const { fileURLToPath } = await import("node:url");
  return new Promise((done) => {
    const child = spawn(fileURLToPath(runtime), process.argv.slice(1), { stdio: "inherit" });
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
      // A terminal sends Ctrl-C to both processes already.
      process.on(signal, () => (signal === "SIGINT" && process.stdin.isTTY) || child.kill(signal));
    }
    child.on("error", (error) => done(refuse(`${runtime} does not start: ${error.message}`)));
    child.on("close", (code, signal) => {
      if (signal === null) return done(code);
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    });
  });
};

const run = async () => {
  if (["--version", "-v", "version"].includes(process.argv[2])) {
    const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
    process.stdout.write(`${version}\n`);
    return 0;
  }
  if (!isNewEnough()) {
    const runtime = findPinnedRuntime();
    if (runtime) return runOn(runtime);
    return refuse(
      `needs Node 22.22 or newer, here is ${process.versions.node}; in a clone, \`npm install\` and \`npx prefork\` bring it`,
    );
  }
  if (!existsSync(main)) return refuse("not built: run npm run build");
  return (await import(main.href)).main(process.argv.slice(2));
};

process.exitCode = await run();
