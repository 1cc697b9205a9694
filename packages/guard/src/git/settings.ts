/** A repository's settings, parsed by ourselves.
 *  Invariant: the syntax is git's, and what git would reject is a reason to ask; an include is never followed. What is passed on to git
 *  is an allow-list of keys, each with the form that its value must have; nothing in it names a program or a file.
 *  Elsewhere: settings without which git's answers would differ (repository.ts). */

import { join } from "node:path";
import type { ReadBudget } from "./checkout.ts";
import { ApprovalNeeded, type Checkout, readGitFile } from "./checkout.ts";
import { trimEndOf } from "./records.ts";

export type Setting = {
  readonly section: string; // lower case
  readonly subsection?: string;
  readonly key: string; // lower case
  /** Undefined for a key without a value, which means true. */
  readonly value: string | undefined;
};

export const nameOf = ({ section, subsection, key }: Setting): string =>
  subsection === undefined ? `${section}.${key}` : `${section}.${subsection}.${key}`;

const MOST_BYTES = 1_000_000;
/** More than the branches and remotes of any repository take. */
const MOST_SETTINGS = 20_000;

/** In the order of the file. */
export const readSettings = ({ git, common }: Checkout, budget: ReadBudget): readonly Setting[] => {
  const settings = settingsIn(join(common, "config"), budget);
  const hasOwn = settings.some((one) => nameOf(one) === "extensions.worktreeconfig" && isTrue(one.value));
  return hasOwn ? [...settings, ...settingsIn(join(git, "config.worktree"), budget)] : settings;
};

const settingsIn = (path: string, budget: ReadBudget): readonly Setting[] => {
  const text = readGitFile(path, MOST_BYTES, budget)?.toString() ?? "";
  const settings = parseSettings(text);
  if (settings === undefined) throw new ApprovalNeeded("git cannot read the repository's settings");
  budget.names(settings.length, path);
  return settings;
};

export const isTrue = (value: string | undefined): boolean =>
  value === undefined || (/^(?:true|yes|on|[-+]?\d+[kmg]?)$/i.test(value) && !/^[-+]?0+[kmg]?$/i.test(value));

// --- syntax ------------------------------------------------------------------------------------------------------------

const HEADER = /\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?\]/y;
const KEY = /([A-Za-z][A-Za-z0-9-]*)[ \t]*(=|(?=\n|$))/y;
const SKIPPED = /(?:[ \t\r\n]|[#;][^\n]*)+/y;
/** A value, up to the end of its line: plain text, quoted text, escaped characters. */
const PIECE = /[^"\\\n#;]+|"|\\(?:[tbn"\\]|\n)|[#;]|\n/y;

const ESCAPED: Readonly<Record<string, string>> = {
  ...{ "\\t": "\t", "\\b": "\b", "\\n": "\n", '\\"': '"', "\\\\": "\\" },
  "\\\n": "", // continues on the next line
};

type Reader = { readonly text: string; at: number };

const take = (reader: Reader, pattern: RegExp): RegExpExecArray | undefined => {
  pattern.lastIndex = reader.at;
  const found = pattern.exec(reader.text) ?? undefined;
  if (found) reader.at += found[0].length;
  return found;
};

/** Undefined if git could not read it either, or if it is too large to check. */
export const parseSettings = (text: string): readonly Setting[] | undefined => {
  if (text.includes("\0")) return undefined;
  const reader: Reader = { text: text.replace(/^\ufeff/, "").replaceAll("\r\n", "\n"), at: 0 };
  const settings: Setting[] = [];
  let header: Pick<Setting, "section" | "subsection"> | undefined;
  for (;;) {
    take(reader, SKIPPED);
    if (reader.at >= reader.text.length) return settings;
    const found = take(reader, HEADER);
    if (found) {
      const [, section = "", quoted] = found;
      const subsection = quoted?.replace(/\\(.)/gs, "$1");
      header = { section: section.toLowerCase(), ...(subsection === undefined ? {} : { subsection }) };
      continue;
    }
    const key = header && take(reader, KEY);
    if (!header || !key) return undefined;
    const value = key[2] === "=" ? takeValue(reader) : undefined;
    if (value === null) return undefined;
    if (settings.length === MOST_SETTINGS) return undefined;
    settings.push({ ...header, key: (key[1] ?? "").toLowerCase(), value });
  }
};

/** Blanks at both ends are dropped unless quoted. Null if it is not understood. */
const takeValue = (reader: Reader): string | null => {
  let [value, kept, quoted] = ["", 0, false];
  for (;;) {
    const piece = take(reader, PIECE)?.[0];
    if (piece === undefined && reader.at < reader.text.length) return null;
    const isComment = (piece === "#" || piece === ";") && !quoted;
    if (piece === undefined || piece === "\n" || isComment) {
      if (quoted) return null;
      if (isComment) take(reader, /[^\n]*/y);
      return value.slice(0, kept) + trimEndOf(value.slice(kept), " \t\r");
    }
    if (piece === '"') quoted = !quoted;
    else if (piece.startsWith("\\")) value += ESCAPED[piece] ?? "";
    else value += value === "" && !quoted ? piece.replace(/^[ \t\r]+/, "") : piece;
    if (quoted || piece === '"' || piece.startsWith("\\")) kept = value.length;
  }
};

// --- what git gets to see ------------------------------------------------------------------------------------------------

const BOOL = "(?:true|false|yes|no|on|off|0|1)?";
const NUMBER = "-?\\d{1,9}[kmg]?";
const WORD = "[\\w-]+";
const WORDS = "[\\w,=. -]+";
/** A person's name, an address: one line of plain text. */
const LINE = "[^\\x00-\\x1f\\x7f]*";
const REF = "refs/[\\w./+@-]+";

/** Keys, each with the format that its value must have. */
const HANDED_ON: readonly (readonly [keys: string, value: string])[] = [
  [
    "core.(filemode|ignorecase|precomposeunicode|symlinks|quotepath|trustctime|sparsecheckout|sparsecheckoutcone)",
    BOOL,
  ],
  ["core.(commitgraph|multipackindex|warnambiguousrefs|preloadindex|protecthfs|protectntfs|ignorestat)", BOOL],
  ["core.(autocrlf|safecrlf)", `${BOOL}|input|warn`],
  ["core.(eol|checkstat|whitespace)", WORDS],
  ["core.abbrev", `${NUMBER}|auto|no|off`],
  ["core.(bigfilethreshold|repositoryformatversion)", NUMBER],
  ["extensions.objectformat", "sha1|sha256"],
  ["branch.<plain>.(remote|pushremote)", "[\\w./-]+"],
  ["branch.<plain>.merge", REF],
  ["branch.<plain>.rebase", `${BOOL}|${WORD}`],
  ["branch.(sort|autosetuprebase)|tag.sort|push.default|remote.pushdefault", "[\\w:.-]+"],
  ["remote.<plain>.(url|pushurl)|url.<plain>.(insteadof|pushinsteadof)", LINE],
  ["remote.<plain>.fetch", `[+^]?[\\w./*@+-]+(:[\\w./*@+-]*)?`],
  ["diff.(renames|noprefix|mnemonicprefix|indentheuristic|suppressblankempty|relative)", `${BOOL}|copies|copy`],
  ["diff.(renamelimit|context|interhunkcontext|statgraphwidth|statnamewidth)", NUMBER],
  ["diff.(algorithm|colormoved|colormovedws|dirstat|wserrorhighlight)", WORDS],
  ["diff.(srcprefix|dstprefix)", "[\\w./-]*"],
  ["status.(branch|short|aheadbehind|showstash|relativepaths|renames|displaycommentprefix)", `${BOOL}|copies|copy`],
  ["status.(showuntrackedfiles|renamelimit)|column.\\w+", WORDS],
  ["log.(abbrevcommit|follow|showroot|mailmap|decorate)", `${BOOL}|short|full|auto`],
  ["log.date|blame.date", "[\\w:-]+"],
  ["format.pretty", "oneline|short|medium|full|fuller|reference|email|raw|mboxrd"],
  ["grep.(linenumber|column|fullname|extendedregexp|patterntype)", `${BOOL}|${WORD}`],
  ["blame.(blankboundary|coloring|showemail|showroot)|advice.\\w+", `${BOOL}|${WORD}`],
  ["i18n.(commitencoding|logoutputencoding)", WORD],
  ["versionsort.suffix|init.defaultbranch", "[\\w.-]+"],
  ["(user|author|committer).(name|email)", LINE],
];

/** The name of a branch or a remote, or an address. */
const PLAIN = '[^\\x00-\\x1f\\x7f\\\\"]+';

const FORMS = HANDED_ON.map(([keys, value]) => ({
  keys: new RegExp(`^(?:${keys.replaceAll(".", "\\.").replaceAll("<plain>", PLAIN)})$`, "s"),
  value: new RegExp(`^(?:${value})$`, "is"),
}));

/** `://name:password@`, or a token in place of the name. */
const PASSWORD = /:\/\/(?:[^/@:\s]*:[^/@\s]+|[^/@\s]{20,})@/;

export const holdsPassword = (setting: Setting): boolean =>
  PASSWORD.test(setting.subsection ?? "") || PASSWORD.test(setting.value ?? "");

const isHandedOn = (setting: Setting): boolean => {
  const name = nameOf(setting);
  return FORMS.some(({ keys, value }) => keys.test(name) && value.test(setting.value ?? "")) && !holdsPassword(setting);
};

export const isInclude = ({ section }: Setting): boolean => /^include(?:if)?(?:\.|$)/.test(section);

const quoted = (text: string): string =>
  `"${text.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n").replaceAll("\t", "\\t").replaceAll("\b", "\\b")}"`;

const written = ({ section, subsection, key, value }: Setting): string => {
  const header = subsection === undefined ? section : `${section} "${subsection.replace(/[\\"]/g, "\\$&")}"`;
  return `[${header}]\n\t${key}${value === undefined ? "" : ` = ${quoted(value)}`}\n`;
};

/** The file that git reads in place of the repository's. */
export const handedOn = (settings: readonly Setting[], isBare: boolean): string =>
  `[core]\n\tbare = ${isBare}\n${settings.filter(isHandedOn).map(written).join("")}`;

/** For `git config`, which prints settings and acts on none of them. */
export const printable = (settings: readonly Setting[]): string =>
  settings
    .filter((setting) => !isInclude(setting) && !holdsPassword(setting))
    .map(written)
    .join("");
