/** Restarts this program without keys in its environment, on systems where a process cannot erase its own.
 *  Invariant: it stays the same process with the same streams, arguments and exit code; keys go through a pipe, never
 *  through arguments or files; if anything fails, the process continues as it was.
 *  Elsewhere: Linux, where a session erases its own environment block (@prefork/runtime). */

import { accessSync, closeSync, constants, openSync, readFileSync, readSync, writeSync } from "node:fs";

const HANDED_OVER = "PREFORK_KEYS_FD";
/** More would not fit into the pipe before anyone reads from it. */
const MAX_BYTES = 32_768;

/** These commands run no code that somebody else wrote, so nothing there could read our environment. */
const STARTS_NOTHING = [
  "help",
  "--help",
  "-h",
  "cost",
  "sessions",
  "explain",
  "ps",
  "demo",
  "xray",
  "sim",
  "trust",
  "completion",
  "__complete",
];

/** Every variable that looks like a key: all of them are restored after the restart. */
const keyNames = (env) => Object.keys(env).filter((name) => /^[A-Za-z_]\w*_(?:KEY|TOKEN|SECRET)$/.test(name));

/** The first argument names the variables. The pipe keeps its content after its writer has exited. */
const SCRIPT = [
  `exec 3< <(for name in $1; do printf '%s=%s\\0' "$name" "\${!name}"; done)`,
  'wait "$!" 2>/dev/null',
  'for name in $1; do unset -v "$name"; done',
  `shift; export ${HANDED_OVER}=3; exec "$@"`,
].join("\n");

const canErase = () => {
  if (process.platform !== "linux") return false;
  try {
    closeSync(openSync("/proc/self/mem", "r+"));
    return true;
  } catch {
    return false;
  }
};

/** Called before a command that starts other programs. Returns if there is nothing to do, or no way to do it. */
export const relaunchWithoutKeys = () => {
  const { env, argv } = process;
  const names = keyNames(env);
  const size = names.reduce((sum, name) => sum + name.length + Buffer.byteLength(env[name] ?? "") + 2, 0);
  if (size === 0 || size > MAX_BYTES || typeof process.execve !== "function") return;
  try {
    accessSync("/bin/bash", constants.X_OK);
  } catch {
    return;
  }
  const commandLine = [process.execPath, ...process.execArgv, ...argv.slice(1)];
  // -p: bash runs and defines nothing from the environment first.
  process.execve("/bin/bash", [
    "bash",
    "--noprofile",
    "--norc",
    "-p",
    "-c",
    SCRIPT,
    "bash",
    names.join(" "),
    ...commandLine,
  ]);
};

/** True if the process was restarted and has its keys back. */
export const receiveKeys = () => {
  const { [HANDED_OVER]: text } = process.env;
  if (text === undefined) return false;
  delete process.env[HANDED_OVER];
  try {
    const chunks = [];
    for (const chunk = Buffer.alloc(4_096); ; ) {
      const read = readSync(Number(text), chunk);
      if (read === 0) break;
      chunks.push(Buffer.from(chunk.subarray(0, read)));
    }
    closeSync(Number(text));
    for (const entry of Buffer.concat(chunks).toString().split("\0")) {
      const [, name, value] = /^(\w+)=(.*)$/s.exec(entry) ?? [];
      if (name !== undefined) process.env[name] = value;
    }
    return true;
  } catch {
    return false; // the variable is not from our restart
  }
};

export const passKeysApart = () => {
  if (receiveKeys() || canErase() || STARTS_NOTHING.includes(process.argv[2])) return;
  relaunchWithoutKeys();
};

/** For an old runtime that waits for a newer one as its child: erases the values that the child has received. Linux only. */
export const eraseOwnBlock = () => {
  try {
    const block = readFileSync("/proc/self/environ", "latin1");
    const line = readFileSync("/proc/self/stat", "latin1");
    const start = Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[47]);
    const memory = openSync("/proc/self/mem", "r+");
    for (const found of block.matchAll(/(?<=^|\0)\w+_(?:KEY|TOKEN|SECRET)=[^\0]*/g))
      writeSync(memory, Buffer.alloc(found[0].length), 0, found[0].length, start + found.index);
    closeSync(memory);
  } catch {
    // no /proc, or it is not writable
  }
};
