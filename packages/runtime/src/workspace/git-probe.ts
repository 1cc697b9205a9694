/** Does a repository configure something that git would start, and that no override switches off?
 *  Invariant: asks git itself, with everything switched off that can be; reading its own configuration starts nothing.
 *  Elsewhere: the overrides (environment.ts), files that are links (git-links.ts), commands that use git
 *  (guard/bash). */

import { lstatSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { askGit, through } from "./ask-git.ts";
import { linkHazard } from "./git-links.ts";
import { reached } from "./reached.ts";

/** Filters run when contents are compared, drivers when changes are shown, promisors when an object is missing. An alias stands in for a subcommand that this git does not have or no longer keeps. */
const HAZARD =
  /^(filter\..*\.(clean|smudge|process)|diff\..*\.(command|textconv)|diff\.external|merge\..*\.driver|extensions\.partialclone|remote\..*\.(promisor|partialclonefilter|vcs)|core\.(fsmonitor|alternaterefscommand)|trailer\..*\.(command|cmd)|gpg\.ssh\.defaultkeycommand|alias\.(whatchanged|range-diff|sparse-checkout|bisect|submodule))$/s;

/** In these sections git keeps what decides how it reads, compares and stores: there only what is known to be harmless
 *  passes, so that a setting of a later git is asked about. The rest of git's sections is switched off or only counts
 *  when something is written; others belong to other programs. */
const KNOWN: Readonly<Record<string, RegExp>> = {
  core: known(
    "abbrev askpass attributesfile autocrlf bare bigfilethreshold checkroundtripencoding checkstat commentchar commentstring",
    "commitgraph compression createobject deltabasecachelimit editor eol excludesfile filemode filesreflocktimeout fscache",
    "fsmonitor fsmonitorhookversion fsync fsyncmethod fsyncobjectfiles gitproxy hidedotfiles hookspath ignorecase ignorestat",
    "logallrefupdates longpaths loosecompression maxtreedepth multipackindex notesref packedgitlimit packedgitwindowsize",
    "packedrefstimeout pager precomposeunicode prefersymlinkrefs preloadindex protecthfs protectntfs quotepath",
    "repositoryformatversion restrictinheritedhandles safecrlf sharedrepository sparsecheckout sparsecheckoutcone splitindex",
    "sshcommand symlinks trustctime unsetenvvars untrackedcache usebuiltinfsmonitor usereplacerefs warnambiguousrefs",
    "whitespace worktree",
  ),
  diff: known(
    "algorithm autorefreshindex colormoved colormovedws context dirstat guitool ignoresubmodules indentheuristic",
    "interhunkcontext mnemonicprefix noprefix dstprefix srcprefix relative renamelimit renames statgraphwidth statnamewidth",
    "submodule suppressblankempty tool wordregex wserrorhighlight trustexitcode",
    "<.*>.binary <.*>.cachetextconv <.*>.wordregex <.*>.xfuncname <.*>.funcname <.*>.algorithm <.*>.trustexitcode",
  ),
  extensions: known("compatobjectformat noop objectformat preciousobjects refstorage relativeworktrees worktreeconfig"),
  merge: known(
    "autostash branchdesc conflictstyle defaulttoupstream directoryrenames ff guitool log renamelimit renames renormalize stat",
    "suppressdest tool verbosity verifysignatures <.*>.name <.*>.recursive",
  ),
  remote: known(
    "pushdefault <.*>.fetch <.*>.followremotehead <.*>.gh-resolved <.*>.mirror <.*>.proxy <.*>.proxyauthmethod <.*>.prune",
    "<.*>.prunetags <.*>.push <.*>.pushurl <.*>.receivepack <.*>.serveroption <.*>.skipdefaultupdate <.*>.skipfetchall",
    "<.*>.tagopt <.*>.uploadpack <.*>.url <.*>.lfsurl <.*>.lfspushurl <.*>.puttykeyfile <.*>.annex-[a-z-]*",
  ),
  attr: known(),
  hook: known(),
  filter: known("<.*>.required"),
  trailer: known("ifexists ifmissing separators where <.*>.ifexists <.*>.ifmissing <.*>.key <.*>.where"),
  gpg: known(
    "format mintrustlevel program openpgp.program x509.program ssh.program ssh.allowedsignersfile ssh.revocationfile",
  ),
};

/** Names of one section; `<.*>` stands for whatever it is divided by. */
function known(...lines: readonly string[]): RegExp {
  const names = lines
    .join(" ")
    .split(" ")
    .map((name) => name.replace("<.*>.", ".*\\."));
  return new RegExp(`^(?:${names.filter((name) => name !== "").join("|")})$`, "s");
}

const isKnown = (key: string): boolean => {
  const [, section = "", rest = ""] = /^([^.]*)\.(.*)$/s.exec(key) ?? [];
  return KNOWN[section.toLowerCase()]?.test(rest.toLowerCase()) ?? true;
};

/** The built-in monitor is switched off by an override; a program of the repository's choice is a reason to ask. */
const HARMLESS = /^(core\.fsmonitor=(false|true|0|1|on|off|yes|no|))$/is;

/** What is wrong with a repository, and the reason in words. */
export type Hazard = { readonly key: string; readonly reason: string };

const configured = (key: string): Hazard => ({
  key,
  reason: `the repository configures ${key}, which git could act on`,
});

/** The first hazard of the repository that git finds from `folder` and the `-C` it is given there; undefined where there
 *  is none, or no repository. */
export const gitHazard = (folder: string, within: readonly string[] = []): Hazard | undefined => {
  const asked = askGit({ folder, words: [...through(within), "config", "--list", "--show-scope", "-z"] });
  if (asked === undefined) return undefined;
  if (/^fatal: cannot change to/.test(asked.complaint)) return undefined; // nor can git when it is run
  if (asked.failed) return { key: "config", reason: "git cannot read the repository's settings" };
  const fields = asked.text.split("\0");
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const scope = fields[at] ?? "";
    const [key = "", value = ""] = (fields[at + 1] ?? "").split(/\n(.*)/s);
    if (scope === "command") continue;
    if (HAZARD.test(key.toLowerCase()) && !HARMLESS.test(`${key}=${value}`)) return configured(key);
    if (!isKnown(key)) return configured(key);
    if (key === "core.worktree" && isElsewhere(folder, within)) return configured(key);
  }
  const reason = linkHazard(folder, within);
  return reason === undefined ? undefined : { key: "files", reason };
};

/** A repository may say that its files lie somewhere else, in a folder that is none of its business: in any but the one
 *  that its `.git` was found in. */
const isElsewhere = (folder: string, within: readonly string[]): boolean => {
  const answer = askGit({ folder, words: [...through(within), "rev-parse", "--show-toplevel"] });
  if (answer === undefined || answer.failed) return true;
  const top = answer.text.replace(/\n$/, "");
  try {
    const here = realpathSync.native(within.reduce(reached, folder));
    return top !== nearestAbove(here);
  } catch {
    return true;
  }
};

const nearestAbove = (folder: string): string | undefined => {
  if (lstatSync(join(folder, ".git"), { throwIfNoEntry: false }) !== undefined) return folder;
  return dirname(folder) === folder ? undefined : nearestAbove(dirname(folder));
};

/** Does git find a repository from here that it is willing to use? */
export const isInRepository = (folder: string): boolean =>
  askGit({ folder, words: ["rev-parse", "--git-dir"] })?.failed === false;
