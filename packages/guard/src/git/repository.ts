/** A repository, read completely and understood.
 *  Invariant: nothing is written and git is not started; what is not understood is a reason to ask.
 *  Elsewhere: finding it (checkout.ts), its parts (settings.ts, index-file.ts, records.ts), what git gets to see of it (view.ts). */

import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import { isFolder, realPath, resolveName, UncheckedPathError } from "../files/index.ts";
import { ApprovalNeeded, type Checkout, locate, placeOf, ReadBudget, readGitFile } from "./checkout.ts";
import { type IndexCopy, readIndex } from "./index-file.ts";
import { readObjects } from "./links.ts";
import { type Records, readRecords, readText } from "./records.ts";
import { isTrue, nameOf, readSettings, type Setting } from "./settings.ts";
import { checkTracked } from "./tracked.ts";

/** Everything that was understood of a repository. */
export type ReadRepository = {
  readonly checkout: Checkout;
  readonly settings: readonly Setting[];
  /** It declares itself bare. */
  readonly isBare: boolean;
  readonly index: IndexCopy | undefined;
  /** In seconds. Git uses it to decide which files are unchanged. */
  readonly indexTime: number;
  readonly records: Records;
  /** Other folders whose files it may contain: those of the main checkout, and of repositories whose objects it
   *  uses. */
  readonly others: readonly string[];
  /** Its object folder, then its alternates. */
  readonly objects: readonly string[];
  /** Its own private attributes. */
  readonly attributes: Buffer;
};

const MOST_INDEX_BYTES = 64_000_000;

const lastOf = (settings: readonly Setting[], name: string): Setting | undefined =>
  settings.findLast((setting) => nameOf(setting) === name);

export type WantedParts = {
  /** Read all reflogs, not only those that `git status` uses. Default: no. */
  readonly logs?: boolean;
  /** Check each tracked file on the disk, which takes longer than everything else. Default: no. */
  readonly tracked?: boolean;
  /** Default: a new one. */
  readonly budget?: ReadBudget;
};

/** Reads the repository without writing anything. Undefined if there is none. */
export const readRepository = (folder: string, wanted: WantedParts = {}): ReadRepository | undefined => {
  const { budget = new ReadBudget() } = wanted;
  return budget.timed(() => readWithin(folder, { ...wanted, budget }));
};

type BoundedParts = WantedParts & { readonly budget: ReadBudget };

const readWithin = (folder: string, { logs = false, tracked, budget }: BoundedParts): ReadRepository | undefined => {
  if (!isFolder(folder)) return undefined; // git reports that itself
  const located = locate(folder);
  if (located.kind === "none") return undefined;
  const { checkout } = located;
  const settings = readSettings(checkout, budget);
  const hazard = settingsProblem(settings);
  if (hazard !== undefined) throw new ApprovalNeeded(hazard);
  if (!/^[01]$/.test(lastOf(settings, "core.repositoryformatversion")?.value ?? "0"))
    throw new ApprovalNeeded(configured("core.repositoryformatversion"));
  if ((lastOf(settings, "extensions.refstorage")?.value ?? "files") !== "files")
    throw new ApprovalNeeded(configured("extensions.refstorage"));
  const elsewhere = lastOf(settings, "core.worktree");
  if (elsewhere && realPath(resolveName(checkout.git, elsewhere.value ?? "")) !== checkout.top)
    throw new ApprovalNeeded(configured("core.worktree"));
  const { top, git, common } = checkout;
  if (!elsewhere && git === common && !git.startsWith(`${top}/`))
    throw new ApprovalNeeded(`${git} does not declare ${top} as its work tree (core.worktree)`);
  const bare = lastOf(settings, "core.bare");
  const isBare = !elsewhere && checkout.git === checkout.common && bare !== undefined && isTrue(bare.value);
  const format = lastOf(settings, "extensions.objectformat")?.value === "sha256" ? "sha256" : "sha1";
  const objects = readObjects(common, budget);
  const path = join(checkout.git, "index");
  const bytes = readGitFile(path, MOST_INDEX_BYTES, budget);
  const index = bytes && readIndex(bytes, format, budget);
  if (index && !isBare && tracked) checkTracked(checkout.top, index, budget);
  const indexTime = index ? Math.floor(statSync(path).mtimeMs / 1_000) : 0;
  const attributes = readText(join(checkout.common, "info/attributes"), budget) ?? Buffer.alloc(0);
  return {
    checkout,
    settings,
    isBare,
    index,
    indexTime,
    attributes,
    objects,
    others: othersOf(checkout, objects),
    records: readRecords(checkout, { logs, budget }),
  };
};

/** If a repository states where its files are, it has none elsewhere; a linked worktree shares those of its main
 *  checkout. */
const othersOf = ({ top, git, common }: Checkout, objects: readonly string[]): readonly string[] => {
  const shared = objects.map(dirname).filter((folder) => folder !== common);
  return [...new Set([...(git === common ? [] : [common]), ...shared].map(placeOf))].filter((place) => place !== top);
};

export const isApprovalNeeded = (value: unknown): value is ApprovalNeeded => value instanceof ApprovalNeeded;

/** A file that the system does not let us read also means that approval is needed. */
export const orApprovalNeeded = <T>(read: () => T): T | ApprovalNeeded => {
  try {
    return read();
  } catch (error) {
    if (isApprovalNeeded(error)) return error;
    if (error instanceof UncheckedPathError) return new ApprovalNeeded(error.message, { cause: error });
    const { code, path } = error as NodeJS.ErrnoException;
    if (typeof code !== "string") throw error;
    return new ApprovalNeeded(`${path ?? "the repository"} cannot be read (${code})`, { cause: error });
  }
};

/** Which settings of a repository are a reason to ask?
 *  Invariant: git sees none of these settings (settings.ts), so it starts nothing. But if a repository configures a
 *  program, or a setting that current git does not know, git's answer without it may differ, so a person is asked.
 *  Elsewhere: reading settings, and those that git gets to see (settings.ts). */

/** Filters run when contents are compared, drivers when changes are shown, promisors when an object is missing. An
 *  alias may replace a subcommand that this git does not have. */
const HAZARD =
  /^(filter\..*\.(clean|smudge|process)|diff\..*\.(command|textconv)|diff\.external|merge\..*\.driver|extensions\.partialclone|remote\..*\.(promisor|partialclonefilter|vcs)|core\.(fsmonitor|alternaterefscommand)|trailer\..*\.(command|cmd)|gpg\.ssh\.defaultkeycommand|alias\.(whatchanged|range-diff|sparse-checkout|bisect|submodule))$/s;

/** Sections with settings that decide how git reads, compares and stores. Only settings known to be harmless pass, so
 *  that a setting of a later git is asked about. Git's other sections are switched off or matter only when something
 *  is written; the remaining sections belong to other programs. */
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

/** The keys of one section; `<.*>` matches any subsection. */
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

/** The first setting that is a reason to ask, as a message. */
export const settingsProblem = (settings: readonly Setting[]): string | undefined => {
  const found = settings.find(isHazard);
  return found && configured(nameOf(found));
};
