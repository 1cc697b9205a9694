/** What the programs of a read-only plan see of the world around them.
 *  Invariant: nothing is inherited but the time zone; programs come from system folders; git starts nothing that a
 *  repository's configuration names.
 *  Elsewhere: repositories whose configuration cannot be switched off (../git/repository.ts), where programs lie (programs.ts). */

import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { searchPath } from "./programs.ts";

/** Everything in git that a repository's own configuration could use to start a program, switched off. */
const GIT_OFF: Readonly<Record<string, string>> = {
  "core.fsmonitor": "false",
  "core.hooksPath": "/dev/null",
  "core.pager": "cat",
  "core.sshCommand": "false",
  "core.gitProxy": "false",
  "core.askPass": "false",
  "core.alternateRefsCommand": "true",
  "core.untrackedCache": "false",
  // Files that a repository may name anywhere: their first lines come back in complaints.
  "core.attributesFile": "/dev/null",
  "core.excludesFile": "/dev/null",
  "blame.ignoreRevsFile": "",
  "diff.orderFile": "/dev/null",
  // Files and objects of a repository's choice whose lines come back as the names of authors.
  "mailmap.file": "/dev/null",
  "mailmap.blob": "",
  // A folder of objects whose attributes would count over ours, and a kind of object that short numbers would stand for.
  "attr.tree": "",
  "core.disambiguate": "none",
  // Comparing would write what it has learned about the files back to the index.
  "diff.autoRefreshIndex": "false",
  "diff.ignoreSubmodules": "all",
  "diff.submodule": "short",
  "log.diffMerges": "separate",
  "status.submoduleSummary": "false",
  "submodule.recurse": "false",
  // A folder that the index keeps as a whole is searched without a look at attributes.
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
  HOME: "/dev/null", // nothing can be made below it, by nobody
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
  // A repository may put one file in the place of another, and then a path no longer says what is shown.
  GIT_NO_REPLACE_OBJECTS: "1",
  // Notes are files by their numbers: a repository may have one stand for any file. No ref can have this name.
  GIT_NOTES_REF: "refs/notes/.none",
  GIT_NOTES_DISPLAY_REF: "",
  GIT_ALLOW_PROTOCOL: "none",
  GIT_ASKPASS: "false",
  // Tool chains that would fetch or start another version of themselves because a project asks for it.
  GOTOOLCHAIN: "local",
  GOENV: "off",
  RUSTUP_TOOLCHAIN: "stable",
  RUSTUP_AUTO_INSTALL: "0",
  COREPACK_ENABLE_NETWORK: "0",
  // Older npms write a log before they tell their version, where the project's .npmrc says; the environment goes first.
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

/** Which variables are keys of model providers, and how do they leave the memory that other processes can read?
 *  Invariant: `process.env` keeps its values; only the block that the kernel shows as /proc/<pid>/environ is changed, and
 *  of it only these variables.
 *  Elsewhere: what commands get of the environment (../agent), systems without /proc (the launcher of the command line). */

/** Names of keys of model providers, and of ours. */
const KEYS =
  /^(ANTHROPIC|OPENAI|GEMINI|GOOGLE|OPENROUTER|DEEPSEEK|MINIMAX|DASHSCOPE|MOONSHOT|ZHIPU|ZHIPUAI|ZAI|MISTRAL|GROQ|XAI)_.*(KEY|TOKEN|SECRET)$|^PREFORK_.*(KEY|TOKEN|SECRET)$/s;

export const isProviderKey = (name: string): boolean => KEYS.test(name);

type Variables = Readonly<Record<string, string | undefined>>;

export const withoutProviderKeys = (environment: Variables): Variables =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !isProviderKey(name)));

/** The block as it was when the process began. Afterwards `process.env` lives elsewhere, but the block stays readable for
 *  every process of the same user: a command would find the key in /proc/$PPID/environ. Called before anything is started
 *  that could look. True where no key is left in the block. */
export const eraseKeysFromBlock = (): boolean => {
  if (process.platform !== "linux") return false;
  try {
    const found = keysIn(readFileSync("/proc/self/environ"));
    if (found.length === 0) return true;
    // The runtime reads the block itself until a variable is set anew.
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
    return false; // no /proc, or one that does not let us write
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

/** Field 50 of the process's line; the program's name before it may hold spaces and parentheses. */
const blockStart = (): number => {
  const line = readFileSync("/proc/self/stat", "latin1");
  const start = Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[47]);
  if (!Number.isSafeInteger(start) || start <= 0) throw new Error("the start of the environment is not shown");
  return start;
};
