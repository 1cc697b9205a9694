#!/usr/bin/env node
/** The entry point of the command line: answers `--version` at once, finds a runtime that is new enough, then hands over.
 *  Invariant: parses on every Node that supports modules, and loads nothing else until it has to.
 *  Elsewhere: the commands (dist/main.js, bundled from src/main.ts; without a build, the sources themselves). */

import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import * as nodeModule from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";

const built = new URL("../dist/main.js", import.meta.url);
const source = new URL("../src/main.ts", import.meta.url);
const clone = new URL("../../../", import.meta.url);

/** The bundle is compiled for Node 22.18; the sources use `using` declarations, which need Node 24. */
const OLDEST_FOR_BUILD = [22, 18];
const OLDEST_FOR_SOURCES = [24, 0];
const SOURCE_FLAGS = ["--conditions=prefork-source", "--disable-warning=ExperimentalWarning"];

/** Keeps the young generation at its initial size: otherwise loading alone would take 15 MB more, permanently. */
setFlagsFromString("--semi-space-growth-factor=1");
/** A command waits for its provider most of the time, so less memory matters more than peak speed. */
setFlagsFromString("--optimize-for-size");

const isAtLeast = ([wantedMajor, wantedMinor]) => {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
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

/** Only if there are keys to pass on, or keys that were passed on to us. */
const loadLauncher = async () =>
  Object.keys(process.env).some((name) => /_(?:KEY|TOKEN|SECRET|KEYS_FD)$/.test(name))
    ? import("./launcher.js")
    : undefined;

const refuse = (line) => {
  process.stderr.write(`prefork: ${line}\n`);
  return 2;
};

/** Replaces this process if the runtime supports that: then killing it, even with SIGKILL, kills the actual work. */
const runOn = async (runtime, parameters) => {
  if (typeof process.execve === "function" && process.platform !== "win32")
    process.execve(runtime, [runtime, ...parameters]);
  const { spawn } = await import("node:child_process");
  const launcher = await loadLauncher();
  return new Promise((done) => {
    const child = spawn(runtime, parameters, { stdio: "inherit" });
    launcher?.eraseOwnBlock(); // once the child has its copy: programs that it starts could read ours
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

/** Caches compiled code for the next start, in a folder of the user's own: anyone who can write there can run code. */
const enableCodeCache = () => {
  if (process.env.NODE_DISABLE_COMPILE_CACHE || nodeModule.enableCompileCache === undefined) return;
  const base = process.env.XDG_CACHE_HOME || join(process.env.HOME || homedir(), ".cache");
  const folder = join(base, "prefork", "compiled");
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { uid, mode } = statSync(folder);
    if (uid !== process.getuid?.() || (mode & 0o077) !== 0) return;
    nodeModule.enableCompileCache(folder);
  } catch {
    // the home folder is not writable: starting takes a little longer
  }
};

const runBuilt = async () => {
  if (isAtLeast(OLDEST_FOR_BUILD)) {
    enableCodeCache();
    return (await import(built.href)).main(process.argv.slice(2));
  }
  const { fileURLToPath } = await import("node:url");
  const pinned = findPinnedRuntime();
  if (pinned) return runOn(fileURLToPath(pinned), process.argv.slice(1));
  return refuse(
    `needs Node 22.18 or newer, but this is ${process.versions.node}; in a clone, \`npm install\` and \`npx prefork\` provide it`,
  );
};

/** Our packages find each other's sources through an export condition, which can only be set for a new process. */
const runSources = async () => {
  const { fileURLToPath } = await import("node:url");
  if (!existsSync(new URL("node_modules/prefork", clone)))
    return refuse(`nothing is installed in ${fileURLToPath(clone)}: run npm install there`);
  const pinned = findPinnedRuntime();
  const runtime = pinned ? fileURLToPath(pinned) : isAtLeast(OLDEST_FOR_SOURCES) ? process.execPath : undefined;
  if (runtime === undefined)
    return refuse(
      `needs Node 24 to run its sources, but this is ${process.versions.node}; install Node 24, or build with: npm run build`,
    );
  return runOn(runtime, [...SOURCE_FLAGS, fileURLToPath(source), ...process.argv.slice(2)]);
};

const run = async () => {
  if (["--version", "-v", "version"].includes(process.argv[2])) {
    const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
    process.stdout.write(`${version}\n`);
    return 0;
  }
  (await loadLauncher())?.passKeysApart();
  if (existsSync(built)) return runBuilt();
  return existsSync(source)
    ? runSources()
    : refuse("the installation is incomplete: neither the bundle nor the sources exist");
};

process.exitCode = await run();
