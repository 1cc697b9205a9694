/** What would the files of a folder do if it were trusted? Read to be shown, before anybody trusts them.
 *  Invariant: nothing is run, loaded or written; everything shown is made safe and bounded, and what is left out is counted;
 *  the fingerprint belongs to exactly the bytes that were described. No value of the user's environment is shown.
 *  Elsewhere: what trust covers (@prefork/guard), asking (ask-trust.ts), how it looks (views: trust.ts). */

import { lstat } from "node:fs/promises";
import { join } from "node:path";
import {
  type AcceptedRule,
  configurationOf,
  describeProblem,
  loadSettings,
  type ProjectRules,
  projectRules,
  type Trust,
} from "@prefork/guard";
import { readSkills, type ServerEntry } from "@prefork/runtime";
import { readServers, toolEnvironment } from "@prefork/runtime/internal";
import { visibleName } from "../visible.ts";
import { safeLine, safeText, type TrustQuestion, type TrustSection } from "./state/index.ts";

export type TrustContext = {
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
};

export type TrustSummary = Pick<TrustQuestion, "folder" | "changed" | "sections" | "allowRules" | "problem"> & {
  /** Of the configuration that is described. */
  readonly fingerprint: string;
  /** The allow rules, to be accepted. */
  readonly offered: readonly AcceptedRule[];
};

/** More than anybody reads; the number of those left out is shown. */
const MAX_LINES = 100;
const MAX_LINE = 2_000;
const MAX_ATTEMPTS = 3;

const EXTENSIONS = ".prefork/extensions";
const SETTINGS = /^\.(?:prefork|claude)\/settings(?:\.local)?\.json$/;
const SKILL = /^\.(?:prefork|claude|agents)\/skills\/[^/]+\/SKILL\.md$/;
/** Trust covers these, because other programs use them; prefork does not. */
const NOT_USED = /^(?:\.(?:prefork|claude)\/(?:agents|hooks|commands)|\.envrc)(?=\/|$)/;

/** Undefined if there is nothing to ask about: the folder is trusted, or has nothing that prefork would use. */
export const summarizeTrust = async (trust: Trust, context: TrustContext): Promise<TrustSummary | undefined> => {
  if (trust.kind !== "unknown" && trust.kind !== "changed") return undefined;
  const { folder } = trust;
  for (let attempt = 1; ; attempt++) {
    const before = await configurationOf(folder);
    if (!before.ok) return undefined; // the session says why
    const { entries, fingerprint } = before.configuration;
    const isHome = folder === context.home;
    const names = Object.keys(entries).sort();
    if (trust.kind === "unknown" && !names.some((name) => isUsed(name, isHome))) return undefined;
    const described = await describe({ folder, entries, names, isHome }, context);
    const after = await configurationOf(folder);
    // Files that never stand still can be shown, but not trusted: the grant compares them again.
    if ((after.ok && after.configuration.fingerprint === fingerprint) || attempt === MAX_ATTEMPTS)
      return { ...described, fingerprint, folder: safeLine(folder, MAX_LINE), ...changedNames(trust) };
  }
};

const changedNames = (trust: Trust): Pick<TrustSummary, "changed"> =>
  trust.kind === "changed" ? { changed: bounded(trust.changed.map((name) => safeLine(name))) } : {};

/** The user's own settings and skills are used without trust. */
const isUsed = (name: string, isHome: boolean): boolean =>
  name === ".mcp.json" ||
  name === EXTENSIONS ||
  name.startsWith(`${EXTENSIONS}/`) ||
  (!isHome && (SETTINGS.test(name) || SKILL.test(name)));

type Folder = {
  readonly folder: string;
  readonly entries: Readonly<Record<string, string>>;
  readonly names: readonly string[];
  readonly isHome: boolean;
};

const describe = async (
  found: Folder,
  context: TrustContext,
): Promise<Omit<TrustSummary, "fingerprint" | "folder" | "changed">> => {
  const { folder, isHome, names } = found;
  const rules = isHome ? [] : await projectRules(folder, context.home);
  const settings = await loadSettings({ home: context.home, project: folder, trusted: true });
  const problems = settings.kind === "broken" ? settings.problems : [];
  const broken = problems.filter(({ name }) => name.startsWith(`${folder}/`)).map(describeProblem);
  const servers = await serversIn(found, settings.kind === "broken" ? [] : settings.servers, context);
  const skills = isHome ? { lines: [], notices: [] } : await skillsIn(found, context);
  const offered = rules.flatMap(({ file, allow }) => allow.map((rule): AcceptedRule => ({ file, rule })));
  const unused = [...new Set(names.flatMap((name) => NOT_USED.exec(name)?.[0] ?? []))];
  const sections: readonly TrustSection[] = [
    risk("Extensions: code that runs inside prefork with all your rights", await extensionLines(found)),
    risk("Tool servers: started with every session here", servers.lines),
    risk(
      "Calls that run without asking, if you accept these rules",
      offered.map(({ file, rule }) => `${rule}  (${file})`),
    ),
    plain("Skills: instructions that the agent can load", skills.lines),
    plain("Calls that are denied", rulesIn(rules, "deny")),
    plain("Calls that are asked about", rulesIn(rules, "ask")),
    plain("Not used", [...unused, ...rules.flatMap(({ notices }) => notices), ...servers.notices, ...skills.notices]),
    plain("Settings and hooks of git: if they change, you are asked again", gitNames(found)),
  ];
  return {
    sections: sections.filter(({ lines }) => lines.length > 0),
    allowRules: offered.length,
    offered,
    ...(broken.length === 0 ? {} : { problem: safeLine(broken.join("; "), MAX_LINE) }),
  };
};

const risk = (title: string, lines: readonly string[]): TrustSection => ({ ...plain(title, lines), isRisk: true });

const plain = (title: string, lines: readonly string[]): TrustSection => ({
  title: lines.length < 2 ? title : `${title} (${lines.length})`,
  lines: bounded(lines.map(shown)),
  isRisk: false,
});

/** On one line, with every character as it is. If it is cut, it says so: whoever trusts it must know that there is more. */
const shown = (text: string): string => {
  const line = safeText(visibleName(text));
  return line.length <= MAX_LINE
    ? line
    : `${line.slice(0, MAX_LINE)}… [cut: ${line.length - MAX_LINE} more characters]`;
};

const bounded = (lines: readonly string[]): readonly string[] =>
  lines.length <= MAX_LINES ? lines : [...lines.slice(0, MAX_LINES), `and ${lines.length - MAX_LINES} more`];

const rulesIn = (rules: readonly ProjectRules[], list: "deny" | "ask"): readonly string[] =>
  rules.flatMap((one) => one[list].map((rule) => `${rule}  (${one.file})`));

// --- extensions ----------------------------------------------------------------------------------------------------------

const extensionLines = async ({ folder, names }: Folder): Promise<readonly string[]> => {
  if (names.includes(EXTENSIONS)) return [`${EXTENSIONS} is a symbolic link, or behind one, so nothing in it runs`];
  const files = names.filter((name) => name.startsWith(`${EXTENSIONS}/`));
  return Promise.all(
    files.map(async (name) => {
      const facts = await lstat(join(folder, name)).catch(() => undefined);
      return facts?.isFile() ? `${name}  (${sizeText(facts.size)})` : `${name}  (not a regular file)`;
    }),
  );
};

const sizeText = (bytes: number): string =>
  bytes < 1_000 ? `${bytes} bytes` : `${(bytes / 1_000).toLocaleString("en-US", { maximumFractionDigits: 1 })} kB`;

// --- tool servers --------------------------------------------------------------------------------------------------------

type Described = { readonly lines: readonly string[]; readonly notices: readonly string[] };

/** With variables by name: their values are the user's, and may be secret. */
const serversIn = async (
  { folder, entries }: Folder,
  settings: Parameters<typeof readServers>[0]["settings"],
  { env }: TrustContext,
): Promise<Described> => {
  const names = Object.keys(toolEnvironment(env));
  const environment = Object.fromEntries(names.map((name) => [name, `$${name}`]));
  const { servers, notices } = await readServers({ project: folder, trusted: true, entries, settings, environment });
  const isHere = (text: string | undefined): boolean => text?.startsWith(`${folder}/`) === true;
  return {
    lines: servers.filter(({ from }) => isHere(from)).map(serverLine),
    notices: notices.filter(isHere).map((notice) => notice.slice(folder.length + 1)),
  };
};

const serverLine = (server: ServerEntry): string => {
  const values = Object.entries((server.transport === "stdio" ? server.env : server.headers) ?? {});
  if (server.transport === "http") {
    const sent = values.map(([name, value]) => `${name}: ${value}`).join(", ");
    return `${server.name}: connects to ${server.url}${sent === "" ? "" : `, and sends ${sent}`}`;
  }
  const words = [
    ...values.map(([name, value]) => `${name}=${/^\$\w+$/.test(value) ? value : shellWord(value)}`),
    ...[server.command, ...(server.args ?? [])].map(shellWord),
  ];
  return `${server.name}: runs ${words.join(" ")}`;
};

/** Quoted as a shell would need it, so that one can see where each word ends. */
const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

// --- skills --------------------------------------------------------------------------------------------------------------

const skillsIn = async ({ folder, entries }: Folder, { home }: TrustContext): Promise<Described> => {
  const { skills, notices } = await readSkills({ home, project: folder, trusted: true, entries });
  const own = skills.filter((skill) => skill.folder.startsWith(`${folder}/`));
  return {
    lines: own.map(
      ({ name, description, context }) => `${name}: ${description}${context === "fork" ? "  (runs as a fork)" : ""}`,
    ),
    notices: notices.filter((notice) => notice.includes(` ${folder}/`)),
  };
};

// --- git -----------------------------------------------------------------------------------------------------------------

/** Every repository has `.git/config`; what it includes, and hooks, are worth a look. */
const gitNames = ({ names, entries }: Folder): readonly string[] =>
  names.filter(
    (name) =>
      name.startsWith(".git/hooks/") || name.endsWith("/config.worktree") || entries[name]?.startsWith("included "),
  );
