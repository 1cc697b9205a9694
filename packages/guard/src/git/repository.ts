/** A repository, read completely and understood.
 *  Invariant: nothing is written and git is not started; what is not understood is a reason to ask.
 *  Elsewhere: finding it (checkout.ts), its parts (settings.ts, index-file.ts, records.ts), what git gets to see of it (view.ts). */

import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import { realPath, resolveName } from "../files/index.ts";
import { type Checkout, Doubt, isFolder, locate, placeOf, ReadBudget, readGitFile } from "./checkout.ts";
import { type IndexCopy, readIndex } from "./index-file.ts";
import { readObjects } from "./links.ts";
import { type Records, readRecords, readText } from "./records.ts";
import { isTrue, nameOf, readSettings, type Setting } from "./settings.ts";
import { checkTracked } from "./tracked.ts";

/** A repository as far as it was understood. */
export type ReadRepository = {
  readonly checkout: Checkout;
  readonly settings: readonly Setting[];
  /** It declares itself bare. */
  readonly isBare: boolean;
  readonly index: IndexCopy | undefined;
  /** Seconds. What git finds unchanged depends on it. */
  readonly indexTime: number;
  readonly records: Records;
  /** Other folders whose files it may hold: those of the main checkout, and of repositories that it takes objects from. */
  readonly others: readonly string[];
  /** Its folder of objects, then those that it takes objects from. */
  readonly objects: readonly string[];
  /** Its own private attributes. */
  readonly attributes: Buffer;
};

const MOST_INDEX_BYTES = 64_000_000;

const lastOf = (settings: readonly Setting[], name: string): Setting | undefined =>
  settings.findLast((setting) => nameOf(setting) === name);

export type WantedParts = {
  /** All reflogs, not only those that `git status` tells from. Default: no. */
  readonly logs?: boolean;
  /** A look at each tracked file on the disk, which takes longer than all the rest. Default: no. */
  readonly tracked?: boolean;
  /** Default: one of its own. */
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
  if (hazard !== undefined) throw new Doubt(hazard);
  if (!/^[01]$/.test(lastOf(settings, "core.repositoryformatversion")?.value ?? "0"))
    throw new Doubt(configured("core.repositoryformatversion"));
  if ((lastOf(settings, "extensions.refstorage")?.value ?? "files") !== "files")
    throw new Doubt(configured("extensions.refstorage"));
  const elsewhere = lastOf(settings, "core.worktree");
  if (elsewhere && realPath(resolveName(checkout.git, elsewhere.value ?? "")) !== checkout.top)
    throw new Doubt(configured("core.worktree"));
  const { top, git, common } = checkout;
  if (!elsewhere && git === common && !git.startsWith(`${top}/`))
    throw new Doubt(`${git} does not declare ${top} as its work tree (core.worktree)`);
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

/** A repository that says where its files are has none elsewhere; a linked worktree shares those of its main checkout. */
const othersOf = ({ top, git, common }: Checkout, objects: readonly string[]): readonly string[] => {
  const shared = objects.map(dirname).filter((folder) => folder !== common);
  return [...new Set([...(git === common ? [] : [common]), ...shared].map(placeOf))].filter((place) => place !== top);
};

export const isDoubt = (value: unknown): value is Doubt => value instanceof Doubt;

/** What the system does not let us read is a doubt, too. */
export const orDoubt = <T>(read: () => T): T | Doubt => {
  try {
    return read();
  } catch (error) {
    if (isDoubt(error)) return error;
    const { code, path } = error as NodeJS.ErrnoException;
    if (typeof code !== "string") throw error;
    return new Doubt(`${path ?? "the repository"} cannot be read (${code})`, { cause: error });
  }
};

/** Which settings of a repository are a reason to ask?
 *  Invariant: git sees none of them (settings.ts), so nothing is started; but where a repository names a program, or
 *  what git of today does not know, git's answer without it may be another one, and people want to hear of it.
 *  Elsewhere: reading settings, and those that git gets to see (settings.ts). */

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

/** The first setting that is a reason to ask, as a message. */
export const settingsProblem = (settings: readonly Setting[]): string | undefined => {
  const found = settings.find(isHazard);
  return found && configured(nameOf(found));
};
