/** Makes a fresh clone runnable: installs what is missing, then runs a script on the pinned runtime.
 *  Invariant: works on Node 20 without any package; leaves either a complete install with its stamp, or no stamp;
 *  never removes development packages that are already installed.
 *  Elsewhere: what is run (test.ts, check.ts, the command line's main.ts), who compiles dist (npm's prepare script).
 *
 *  node scripts/bootstrap.mjs [--omit-dev] <script.ts> [arguments…]
 *  With --omit-dev only what the sources need to run is installed; that leaves out compiler, linter and test packages. */

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { constants, hostname } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const modules = join(root, "node_modules");
const stampFile = join(modules, ".prefork-install-stamp");
const lockFolder = join(modules, ".prefork-install.lock");
const self = `${hostname()}@${process.pid}`;

/** A live owner touches its lock every second; one that has not for this long is gone, whatever its number says. */
const LOCK_SILENCE_MS = 30_000;
/** Without a terminal nobody watches a moving line, so progress comes as whole lines, and fewer. */
const PLAIN_PROGRESS_MS = 5_000;

const say = (line) => process.stderr.write(`${line}\n`);
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const readOr = (file, otherwise) => (existsSync(file) ? readFileSync(file, "utf8") : otherwise);

/** Everything that decides what npm would install, save the level. */
const manifestHash = () => {
  const packages = join(root, "packages");
  const manifests = existsSync(packages) ? readdirSync(packages).sort() : [];
  const files = ["package-lock.json", "package.json", ...manifests.map((name) => `packages/${name}/package.json`)];
  const hash = createHash("sha256").update(`${process.platform}-${process.arch}`);
  for (const file of files) hash.update(`\0${file}\0${readOr(join(root, file), "")}`);
  return hash.digest("hex");
};

/** The two levels of install; the first is enough to run the command line, the second for everything. */
const RUN = "run";
const DEVELOP = "develop";

/** What the last finished install was made for; without its stamp, undefined. */
const installedLevel = () => {
  const [hash, level = DEVELOP] = readOr(stampFile, "").split(" "); // stamps without a level come from full installs
  return hash === manifestHash() ? level : undefined;
};

const isInstalled = (level) => [DEVELOP, level].includes(installedLevel());

/** Whoever has development packages keeps them: npm removes them when it is told to omit them. */
const hasDevelopmentPackages = () => {
  const { devDependencies = {} } = JSON.parse(readOr(join(root, "package.json"), "{}"));
  return Object.keys(devDependencies).some((name) => existsSync(join(modules, name)));
};

const packageCount = (level) => {
  const { packages = {} } = JSON.parse(readOr(join(root, "package-lock.json"), "{}"));
  const fits = (list, value) => !list || list.includes(value);
  return Object.entries(packages).filter(
    ([path, entry]) =>
      path.includes("node_modules/") &&
      !entry.link &&
      !(level === RUN && entry.dev) &&
      fits(entry.os, process.platform) &&
      fits(entry.cpu, process.arch),
  ).length;
};

const isAlive = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
};

/** The lock is a folder holding one file named after its owner. A folder with the file already in it is renamed into
 *  place, which fails unless the place is free or empty: so a lock never stands without its owner's name, and a
 *  take-over, which removes the dead owner's file by name, cannot remove a living one. */
const tryLock = () => {
  const draft = `${lockFolder}.${process.pid}`;
  mkdirSync(draft, { recursive: true });
  writeFileSync(join(draft, self), "");
  try {
    renameSync(draft, lockFolder);
    return true;
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!["ENOTEMPTY", "EEXIST", "EPERM", "ENOENT"].includes(error.code)) throw error;
    return false;
  }
};

const lockOwner = () => {
  try {
    const [name] = readdirSync(lockFolder);
    if (name === undefined) return undefined;
    const at = name.lastIndexOf("@");
    const silence = Date.now() - statSync(join(lockFolder, name)).mtimeMs;
    return { name, host: name.slice(0, at), pid: Number(name.slice(at + 1)), silence };
  } catch {
    return undefined; // released between two looks
  }
};

const removeQuietly = (remove, path) => {
  try {
    remove(path);
  } catch {
    // already gone, or taken by the next owner: both are fine
  }
};

const takeLock = async () => {
  let told = false;
  while (!tryLock()) {
    const owner = lockOwner();
    if (owner) {
      const dead = (owner.host === hostname() && !isAlive(owner.pid)) || owner.silence > LOCK_SILENCE_MS;
      if (dead) removeQuietly(unlinkSync, join(lockFolder, owner.name));
      else if (!told) say(`waiting for process ${owner.pid}, which is installing`);
      told ||= !dead;
      if (dead) continue;
    }
    await pause(200);
  }
};

const keepLock = () => removeQuietly((path) => utimesSync(path, new Date(), new Date()), join(lockFolder, self));

const releaseLock = () => {
  removeQuietly(unlinkSync, join(lockFolder, self));
  removeQuietly(rmdirSync, lockFolder);
};

/** Shows that time passes; returns how to stop. */
const showProgress = (label) => {
  const started = Date.now();
  const terminal = process.stderr.isTTY === true;
  let saidAt = started;
  const timer = setInterval(() => {
    keepLock();
    const now = Date.now();
    if (terminal) process.stderr.write(`\r\x1b[K${label} … ${Math.round((now - started) / 1000)} s`);
    else if (now - saidAt >= PLAIN_PROGRESS_MS) {
      saidAt = now;
      say(`  still ${label}, ${Math.round((now - started) / 1000)} s`);
    }
  }, 1000);
  return () => {
    clearInterval(timer);
    if (terminal) process.stderr.write("\r\x1b[K");
    return Date.now() - started;
  };
};

/** Ctrl-C reaches the whole foreground group by itself; sending it on as well would make one press count as two. */
const forwardSignals = (child) => {
  const listeners = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"].map((signal) => {
    const fromTerminal = process.stdin.isTTY && (signal === "SIGINT" || signal === "SIGQUIT");
    const listener = () => {
      child.interruptedBy = signal;
      if (!fromTerminal) child.kill(signal);
    };
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
  return () => {
    for (const stop of listeners) stop();
  };
};

/** Runs a program to its end. `output` is what it printed, when that was not passed through. */
const runToEnd = (command, parameters, options) =>
  new Promise((done) => {
    const child = spawn(command, parameters, { cwd: root, ...options });
    const stopForwarding = forwardSignals(child);
    const output = [];
    child.stdout?.on("data", (chunk) => output.push(chunk));
    child.stderr?.on("data", (chunk) => output.push(chunk));
    const finish = (end) => {
      stopForwarding();
      done({ ...end, interruptedBy: child.interruptedBy, output: Buffer.concat(output).toString() });
    };
    child.on("error", (error) => finish({ error }));
    child.on("close", (code, signal) => finish({ code, signal }));
  });

const runNpm = (level) => {
  // --include: NODE_ENV=production or an omit setting would leave out the compiler or the runtime.
  const development = level === RUN ? "--omit=dev" : "--include=dev";
  const flags = ["install", "--no-audit", "--no-fund", "--loglevel=error", development, "--include=optional"];
  const npmScript = process.env.npm_execpath ?? "";
  const options = { stdio: ["ignore", "pipe", "pipe"] };
  return /npm-cli\.[cm]?js$/.test(npmScript) && existsSync(npmScript)
    ? runToEnd(process.execPath, [npmScript, ...flags], options)
    : runToEnd("npm", flags, options);
};

/** npm writes its own record of the tree last; without it the tree is a fragment, and a fragment is worse than none. */
const removeFragment = () => {
  if (existsSync(join(modules, ".package-lock.json"))) return;
  for (const name of readdirSync(modules))
    if (join(modules, name) !== lockFolder) rmSync(join(modules, name), { recursive: true, force: true });
};

const whyInstall = () => {
  if (!existsSync(join(modules, ".package-lock.json"))) return "first run only";
  if (!existsSync(stampFile)) return "node_modules is there, but not from a finished run of this script";
  if (installedLevel() === RUN) return "so far only what npm start needs is installed";
  return "package.json or package-lock.json changed since the last install";
};

/** Resolves to undefined when all is installed, else to the end of this program. */
const install = async (wanted) => {
  const lockBefore = readOr(join(root, "package-lock.json"), "");
  const level = wanted === RUN && hasDevelopmentPackages() ? DEVELOP : wanted;
  const what = level === RUN ? "with npm" : "with npm and building";
  say(`installing ${packageCount(level)} packages ${what} (${whyInstall()})`);
  rmSync(stampFile, { force: true });
  const stopProgress = showProgress("installing");
  const end = await runNpm(level);
  const took = stopProgress();
  if (end.code !== 0) {
    removeFragment();
    const signal = end.signal ?? end.interruptedBy;
    if (signal) return { signal };
    say(end.error ? `npm could not be started: ${end.error.message}` : end.output.trimEnd());
    say(`npm install failed after ${seconds(took)}; nothing was run.`);
    say(
      existsSync(join(modules, ".package-lock.json"))
        ? "What to do: the packages are there, but building ours failed; repair what is named above, then run this again."
        : "What to do: is the registry reachable (npm ping)? Is the disk full? Then run the same command again.",
    );
    return { code: 1 };
  }
  if (readOr(join(root, "package-lock.json"), "") !== lockBefore && existsSync(join(root, ".git")))
    say("note: npm changed package-lock.json. See `git diff package-lock.json`; commit it only if you meant to.");
  writeFileSync(`${stampFile}.${process.pid}`, `${manifestHash()} ${level}`);
  renameSync(`${stampFile}.${process.pid}`, stampFile);
  say(`installed in ${seconds(took)}`);
  return undefined;
};

const ensureInstalled = async (level) => {
  if (isInstalled(level)) return undefined;
  mkdirSync(modules, { recursive: true });
  await takeLock();
  try {
    return isInstalled(level) ? undefined : await install(level);
  } finally {
    releaseLock();
    if (readdirSync(modules).length === 0) removeQuietly(rmdirSync, modules);
  }
};

const runtimes = () => {
  const pinned = join(modules, `node-${process.platform}-${process.arch}`, "bin", "node");
  const current = Number(process.versions.node.split(".")[0]) >= 24 ? [process.execPath] : [];
  return existsSync(pinned) ? [pinned, ...current] : current;
};

const runScript = async (script, parameters) => {
  const flags = ["--conditions=prefork-source", "--disable-warning=ExperimentalWarning"];
  const env = { ...process.env, PATH: [join(modules, ".bin"), process.env.PATH].filter(Boolean).join(delimiter) };
  for (const runtime of runtimes()) {
    const end = await runToEnd(runtime, [...flags, resolve(root, script), ...parameters], {
      cwd: process.cwd(),
      env,
      stdio: "inherit",
    });
    if (!end.error) return end; // a runtime made for another C library does not start: try the next
  }
  say(`This needs Node 24 to run TypeScript sources; here is Node ${process.versions.node}, and no pinned runtime`);
  say(
    `for ${process.platform}-${process.arch} is installed. Install Node 24 or newer, then run the same command again.`,
  );
  return { code: 2 };
};

const leave = ({ code, signal }) => {
  process.exitCode = signal ? 128 + constants.signals[signal] : code;
  if (signal) process.kill(process.pid, signal);
};

const omitDev = process.argv[2] === "--omit-dev";
const [script, ...parameters] = process.argv.slice(omitDev ? 3 : 2);
if (script === undefined) {
  say("usage: node scripts/bootstrap.mjs [--omit-dev] <script.ts> [arguments…]");
  leave({ code: 2 });
} else {
  leave((await ensureInstalled(omitDev ? RUN : DEVELOP)) ?? (await runScript(script, parameters)));
}
