/** What do the programs of a read-only plan see of the environment?
 *  Invariant: nothing is inherited except the time zone; programs come from system folders; git starts nothing that a
 *  repository's configuration names.
 *  Elsewhere: repositories whose configuration cannot be switched off (../git/repository.ts), where programs are (programs.ts). */

import { randomBytes } from "node:crypto";
import { closeSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";
import { searchPath } from "./programs.ts";

/** Switches off everything in git with which a repository's configuration could start a program. */
const GIT_OFF: Readonly<Record<string, string>> = {
  "core.fsmonitor": "false",
  "core.hooksPath": "/dev/null",
  "core.pager": "cat",
  "core.sshCommand": "false",
  "core.gitProxy": "false",
  "core.askPass": "false",
  "core.alternateRefsCommand": "true",
  "core.untrackedCache": "false",
  // Files that a repository may choose freely; git quotes their first lines in error messages.
  "core.attributesFile": "/dev/null",
  "core.excludesFile": "/dev/null",
  "blame.ignoreRevsFile": "",
  "diff.orderFile": "/dev/null",
  // Files and objects that a repository may choose freely; git prints their lines as author names.
  "mailmap.file": "/dev/null",
  "mailmap.blob": "",
  // A tree whose attributes would outrank ours, and a type of object that short ids would be resolved to.
  "attr.tree": "",
  "core.disambiguate": "none",
  // Comparing would write refreshed file data back to the index.
  "diff.autoRefreshIndex": "false",
  "diff.ignoreSubmodules": "all",
  "diff.submodule": "short",
  "log.diffMerges": "separate",
  "status.submoduleSummary": "false",
  "submodule.recurse": "false",
  // A folder that the index stores as one entry is searched without checking attributes.
  "index.sparse": "false",
  "log.showSignature": "false",
  "gpg.program": "false",
  "gpg.openpgp.program": "false",
  "gpg.ssh.program": "false",
  "gpg.x509.program": "false",
  "credential.helper": "",
  "protocol.allow": "never",
  "safe.bareRepository": "explicit",
  "interactive.diffFilter": "",
};

const gitSettings = (attributes: string): Readonly<Record<string, string>> => {
  const entries = Object.entries({ ...GIT_OFF, "core.attributesFile": attributes }).flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { ...Object.fromEntries(entries), GIT_CONFIG_COUNT: String(Object.keys(GIT_OFF).length) };
};

/** `attributes`: the file that tells git which files it must not show. */
export const cleanEnvironment = (timeZone?: string, attributes = "/dev/null"): Readonly<Record<string, string>> => ({
  PATH: searchPath(),
  HOME: "/dev/null", // nobody can create anything below it
  LANG: "C.UTF-8",
  LC_ALL: "C.UTF-8",
  TERM: "dumb",
  NO_COLOR: "1",
  PAGER: "cat",
  GIT_PAGER: "cat",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
  GIT_NO_LAZY_FETCH: "1",
  // A repository may replace one object by another, and then a path no longer tells what is shown.
  GIT_NO_REPLACE_OBJECTS: "1",
  // A note is an object by its id, so a repository can make it any file. No ref can have this name.
  GIT_NOTES_REF: "refs/notes/.none",
  GIT_NOTES_DISPLAY_REF: "",
  GIT_ALLOW_PROTOCOL: "none",
  GIT_ASKPASS: "false",
  // Tool chains that would fetch or start another version of themselves if a project asks for it.
  GOTOOLCHAIN: "local",
  GOENV: "off",
  RUSTUP_TOOLCHAIN: "stable",
  RUSTUP_AUTO_INSTALL: "0",
  COREPACK_ENABLE_NETWORK: "0",
  // Older npms write a log where the project's .npmrc says before they print their version; the environment overrides it.
  npm_config_cache: "/dev/null/npm",
  npm_config_logs_dir: "/dev/null/npm",
  npm_config_logs_max: "0",
  npm_config_timing: "false",
  npm_config_update_notifier: "false",
  npm_config_userconfig: "/dev/null",
  npm_config_globalconfig: "/dev/null/npmrc",
  ...gitSettings(attributes),
  ...(timeZone === undefined ? {} : { TZ: timeZone }),
});

// --- provider keys ---------------------------------------------------------------------------------------------------
// Which variables are keys of model providers, and how are they erased from memory that other processes can read?
// `process.env` keeps its values; only the block that the kernel shows as /proc/<pid>/environ changes, and only these
// variables in it. Systems without /proc are handled by the launcher of the command line.

/** Names of API keys of model providers, and of our own. */
const KEYS =
  /^(ANTHROPIC|OPENAI|GEMINI|GOOGLE|OPENROUTER|DEEPSEEK|MINIMAX|DASHSCOPE|MOONSHOT|ZHIPU|ZHIPUAI|ZAI|MISTRAL|GROQ|XAI)_.*(KEY|TOKEN|SECRET)$|^PREFORK_.*(KEY|TOKEN|SECRET)$/s;

export const isProviderKey = (name: string): boolean => KEYS.test(name);

type Variables = Readonly<Record<string, string | undefined>>;

export const withoutProviderKeys = (environment: Variables): Variables =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !isProviderKey(name)));

/** Erases the keys from the environment block that the process started with. `process.env` no longer uses that block, but
 *  every process of the same user can read it: a command would find the key in /proc/$PPID/environ. Call this before
 *  starting any process that could look. Returns true if no key is left in the block. */
export const eraseKeysFromBlock = (): boolean => {
  if (process.platform !== "linux") return false;
  try {
    const found = keysIn(readFileSync("/proc/self/environ"));
    if (found.length === 0) return true;
    // Node reads the block directly until a variable is assigned.
    for (const { name } of found) process.env[name] = String(process.env[name] ?? "");
    const memory = openSync("/proc/self/mem", "r+");
    try {
      const start = blockStart();
      for (const { at, length } of found) writeSync(memory, Buffer.alloc(length), 0, length, start + at);
    } finally {
      closeSync(memory);
    }
    return keysIn(readFileSync("/proc/self/environ")).length === 0;
  } catch {
    return false; // no /proc, or it is not writable
  }
};

type BlockEntry = { readonly name: string; readonly at: number; readonly length: number };

const keysIn = (block: Buffer): readonly BlockEntry[] => {
  const found: BlockEntry[] = [];
  for (let at = 0; at < block.length; ) {
    const zero = block.indexOf(0, at);
    const end = zero < 0 ? block.length : zero;
    const entry = block.toString("latin1", at, end);
    const name = entry.slice(0, Math.max(0, entry.indexOf("=")));
    if (isProviderKey(name)) found.push({ name, at, length: end - at });
    at = end + 1;
  }
  return found;
};

/** Field 50 of /proc/self/stat; the program's name before it may contain spaces and parentheses. */
const blockStart = (): number => {
  const line = readFileSync("/proc/self/stat", "latin1");
  const start = Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[47]);
  if (!Number.isSafeInteger(start) || start <= 0)
    throw new Error("/proc/self/stat does not show where the environment starts");
  return start;
};

/** Finds and ends processes that a command left behind by leaving its process group (setsid).
 *  Invariant: a process is ours only if its environment contains our mark, a number that nobody can guess. It is signalled only
 *  while it is still the process that was inspected (same pid, same start time). Linux only: elsewhere nothing is found.
 *  Not found: processes started without the environment (`env -i`), and those of another user.
 *  Elsewhere: the process group itself (the caller), the sandbox, where everything ends with its first process (../run). */

export const MARK = "PREFORK_COMMAND";

type Environment = Readonly<Record<string, string | undefined>>;

/** Deeper than anybody nests. Without a limit, the mark could fill the environment. */
const MAX_MARK_LENGTH = 400;

/** A new mark, nested below the one in the environment if there is one: ending the outer command ends this one too. */
export const newMark = ({ [MARK]: above }: Environment = {}): string => {
  const own = randomBytes(8).toString("hex");
  return above === undefined || above.length > MAX_MARK_LENGTH ? own : `${above}/${own}`;
};

type Straggler = { readonly pid: number; readonly started: string };

const startOf = (pid: number): string | undefined => {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
};

const carriesMark = (pid: number, mark: string): boolean => {
  try {
    const entry = `\0${readFileSync(`/proc/${pid}/environ`, "latin1")}`;
    const at = entry.indexOf(`\0${MARK}=${mark}`);
    return at >= 0 && /^(?:\0|\/|$)/.test(entry.slice(at + MARK.length + mark.length + 2));
  } catch {
    return false; // it has ended, or belongs to another user
  }
};

const findStragglers = (mark: string): readonly Straggler[] => {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid || !carriesMark(pid, mark)) return [];
    const started = startOf(pid);
    return started === undefined ? [] : [{ pid, started }];
  });
};

const signal = ({ pid, started }: Straggler, name: NodeJS.Signals): void => {
  if (startOf(pid) !== started) return;
  try {
    process.kill(pid, name);
  } catch {
    // it has ended in the meantime
  }
};

const GRACE_MS = 1_000;
const MAX_ROUNDS = 10;

/** Sends SIGTERM to all processes with the mark, then SIGKILL after a grace period, including any they start meanwhile. */
export const endStragglers = async (mark: string): Promise<void> => {
  let stragglers = findStragglers(mark);
  if (stragglers.length === 0) return;
  for (const one of stragglers) signal(one, "SIGTERM");
  for (
    let waited = 0, step = 5;
    stragglers.length > 0 && waited < GRACE_MS;
    waited += step, step = Math.min(2 * step, 80)
  ) {
    await after(step);
    stragglers = stragglers.filter(({ pid, started }) => startOf(pid) === started);
  }
  for (let round = 0; round < MAX_ROUNDS; round++) {
    stragglers = findStragglers(mark);
    if (stragglers.length === 0) return;
    for (const one of stragglers) signal(one, "SIGKILL");
    await after(10);
  }
};
