/** Which settings of a repository are a reason to ask?
 *  Invariant: git sees none of them (git-settings.ts), so nothing is started; but where a repository names a program, or
 *  what git of today does not know, git's answer without it may be another one, and people want to hear of it.
 *  Elsewhere: reading settings, and those that git gets to see (git-settings.ts). */

import { nameOf, type Setting } from "./git-settings.ts";

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

const isHazard = (setting: Setting): boolean => {
  const key = nameOf(setting);
  return (HAZARD.test(key.toLowerCase()) && !HARMLESS.test(`${key}=${setting.value ?? ""}`)) || !isKnown(key);
};

export const configured = (key: string): string => `the repository configures ${key}, which git could act on`;

/** The first that is a reason to ask, in words. */
export const settingsProblem = (settings: readonly Setting[]): string | undefined => {
  const found = settings.find(isHazard);
  return found && configured(nameOf(found));
};
