/** What the programs of a read-only plan see of the world around them.
 *  Invariant: nothing is inherited but the time zone; programs come from system folders; git starts nothing that a
 *  repository's configuration names.
 *  Elsewhere: repositories whose configuration cannot be switched off (git-probe.ts), where programs lie (programs.ts). */

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
