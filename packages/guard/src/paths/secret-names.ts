/** Which names stand for files that contain secrets? This is the one list: for literal names, patterns, walks through folders,
 *  the file tools, and files hidden in the read-only sandbox.
 *  Invariant: judged by name alone, in upper or lower case, including copies that editors and people leave behind. Templates
 *  that only list the keys, and public keys, are not secret. Takes time proportional to the name.
 *  Elsewhere: names that may not be written (protected.ts), where links lead (../run). */

import {
  BARE_WORDS,
  BEFORE_COPIES,
  BEGINNINGS,
  COPIES,
  DATA,
  ENDINGS,
  FOLDER_COPIES,
  FOLDERS,
  HISTORIES,
  HOME_FOLDERS,
  HOME_PLACES,
  LONG_ENDINGS,
  PLACES,
  SOURCES,
  SUBJECTS,
  TEMPLATES,
  WORDS,
} from "./secret-tables.ts";

const byFirst = (names: readonly string[]): ReadonlyMap<string, readonly string[]> =>
  Map.groupBy(names, (name) => name.slice(0, 2));
const BEGINNINGS_BY = byFirst(BEGINNINGS);
const SUBJECTS_BY = byFirst(SUBJECTS);

/** A pattern character does not end a name: what it matches is judged once it is known. */
const isLetter = (letter: string | undefined): boolean => letter !== undefined && /[a-z*?[]/.test(letter);

const FIRST_OF_COPIES: ReadonlySet<string> = new Set(BEFORE_COPIES.map((before) => before.slice(0, 1)));

/** The name without the marks of a copy: `#name#`, `.#name`, `name~`, `name.bak`, `name (1)`, `Copy of name`. */
const withoutCopy = (name: string): string => withoutCopySuffix(name.slice(copyPrefixLength(name)), COPIES);

const copyPrefixLength = (name: string): number => {
  let from = 0;
  if (FIRST_OF_COPIES.has(name[0] ?? ""))
    for (const before of BEFORE_COPIES) if (name.startsWith(before, from)) from += before.length;
  return from;
};

const withoutCopySuffix = (name: string, copies: ReadonlySet<string>): string => {
  let to = name.length;
  for (;;) {
    while (to > 0 && "~#) \t.".includes(name[to - 1] ?? "")) to -= 1;
    let at = to - 1;
    while (at > 0 && !"._- (~".includes(name[at] ?? "")) at -= 1;
    // A word for a copy, with or without a number; a number; a date.
    const last = at <= 0 ? "?" : withoutNumber(name.slice(at + 1, to));
    if (last !== "" && !copies.has(last)) return name.slice(0, to);
    to = at;
  }
};

const withoutNumber = (word: string): string => {
  let end = word.length;
  while (end > 0 && "0123456789".includes(word[end - 1] ?? "?")) end -= 1;
  return word.slice(0, end);
};

/** The same for a folder. Folder names often start with everyday words; these mark a copy only before a hidden name. */
export const withoutFolderCopy = (name: string): string => {
  if (PLAIN.test(name)) return name;
  const from = copyPrefixLength(name);
  return withoutCopySuffix(name[from] === "." ? name.slice(from) : name, FOLDER_COPIES);
};

/** Names in which nothing can mark a copy. */
const PLAIN = /^\.?[a-z0-9]*$/;

const normalizePlace = (place: string): string => place.split("/").map(withoutFolderCopy).join("/");

const EXACT: ReadonlySet<string> = new Set(PLACES.map(normalizePlace));
const AT_HOME: ReadonlySet<string> = new Set(HOME_PLACES.map(normalizePlace));
const INSIDE_HOME: ReadonlySet<string> = new Set(HOME_FOLDERS.map(normalizePlace));
const WHOLE: ReadonlySet<string> = new Set(FOLDERS.map(normalizePlace));
const DEEPEST = Math.max(...[...PLACES, ...FOLDERS].map((name) => name.split("/").length));

const FIRST: ReadonlySet<string> = new Set([...EXACT, ...WHOLE].map((place) => place.split("/")[0] ?? ""));

/** Folders whose own name is part of a secret path. */
const PARENTS_OF_SECRETS: ReadonlySet<string> = new Set(
  [...EXACT, ...WHOLE, ...AT_HOME].flatMap((place) => place.split("/").slice(0, -1)),
);

const ending = (name: string): string => name.slice(name.lastIndexOf(".") + 1);

const lastPart = (name: string): string =>
  name.slice(Math.max(name.lastIndexOf("."), name.lastIndexOf("-"), name.lastIndexOf("_")) + 1);

/** `.env.production.example`, and `example.env`, whose ending only tells what it is an example of. */
const isTemplate = (name: string): boolean => {
  if (TEMPLATES.has(lastPart(name))) return true;
  const dot = name.lastIndexOf(".");
  const isData = /^(?:env|tfvars|json|ya?ml|toml)$/.test(name.slice(dot + 1));
  return dot > 0 && isData && !name.startsWith(".env") && TEMPLATES.has(lastPart(name.slice(0, dot)));
};

const hasSecretBeginning = (name: string, beginnings: ReadonlyMap<string, readonly string[]>): boolean =>
  beginnings.get(name.slice(0, 2))?.some((one) => name.startsWith(one) && endsAt(name, one.length)) ?? false;

/** Whether the name ends there, or continues with a separator, a number or a word for a copy: `.env2`, `.envbackup`. */
const endsAt = (name: string, at: number): boolean => {
  if (!isLetter(name[at])) return true;
  let end = at;
  while (end < name.length && isLetter(name[end])) end += 1;
  return COPIES.has(name.slice(at, end));
};

/** `credentials`; with the ending of a data file, also as a part of the name: `prod-secrets.old.yml`. */
const hasSecretWord = (name: string): boolean => {
  const dot = name.indexOf(".", 1);
  if (dot < 0) return BARE_WORDS.has(name);
  const isData = name
    .slice(dot + 1)
    .split(".")
    .every((part) => DATA.has(part) || COPIES.has(part));
  return (
    isData &&
    name
      .slice(0, dot)
      .split(/[-_ .]/)
      .some((part) => WORDS.has(part))
  );
};

const hasSecretEnding = (name: string): boolean => {
  if (name.lastIndexOf(".") > 0 && ENDINGS.has(ending(name))) return true;
  if (name.includes("_") || name.endsWith(".json"))
    if (LONG_ENDINGS.some((one) => name.length > one.length && name.endsWith(one))) return true;
  return name.startsWith(".") && HISTORIES.some((one) => name.endsWith(one));
};

/** Judges one name on its own, wherever it is. */
const isSecretName = (name: string): boolean => {
  const core = withoutCopy(name);
  if (isTemplate(core)) return false;
  // Editors put a dot before the copy of a file that had none.
  return (
    looksSecret(name) || (core !== name && looksSecret(core)) || (core.startsWith(".") && looksSecret(core.slice(1)))
  );
};

const looksSecret = (name: string): boolean =>
  hasSecretBeginning(name, BEGINNINGS_BY) ||
  (hasSecretBeginning(name, SUBJECTS_BY) && !SOURCES.has(ending(name))) ||
  hasSecretWord(name) ||
  hasSecretEnding(name);

/** Journals of our sessions, and the files that were kept for a rewind: copies of any file, under other names. The
 *  outputs of a session are next to them, and may be read. */
const isOfSession = (folders: readonly string[], last: string): boolean =>
  (/^journal\b.*\.jsonl$/.test(last) && folders.at(-2) === "sessions" && folders.at(-3) === "prefork") ||
  folders.some(
    (name, at) => name === "prefork" && folders[at + 1] === "sessions" && [...folders, last][at + 3] === "rewind-files",
  );

/** git's settings, including those of submodules and bare repositories. */
const isGitSetting = (folders: readonly string[], last: string): boolean =>
  /^(?:config(?:\.worktree)?|credentials)$/.test(last) && folders.some((name) => name.endsWith(".git"));

const namesIn = (path: string): readonly string[] =>
  path
    .toLowerCase()
    .replaceAll(":", "/")
    .split("/")
    .filter((name) => name !== "" && name !== ".")
    .map((name) => name.trimEnd());

/** `~`, `/root`, `/home/NAME`, `/Users/NAME`, `/var/home/NAME`: how many names lead to it, or 0. */
const homeDepth = (path: string, names: readonly string[]): number => {
  if (/^~/.test(path)) return 1;
  if (!path.startsWith("/")) return 0;
  if (names[0] === "root") return 1;
  const at = names.slice(0, 2).findIndex((name) => /^(?:home|users)$/.test(name));
  return at < 0 ? 0 : at + 2;
};

/** Whether a file at this path may contain secrets. The part after a colon also counts as a path: `HEAD:.env`. */
export const isSecret = (path: string): boolean => {
  const names = namesIn(path);
  const last = names.at(-1) ?? "";
  if (last.endsWith(".pub")) return false;
  const folders = names.slice(0, -1).map(withoutFolderCopy);
  const core = withoutCopy(last);
  // Editors put a dot before the copy of a file that had none.
  const forms = new Set([core, withoutFolderCopy(last), core.startsWith(".") ? core.slice(1) : core]);
  return (
    isSecretName(last) ||
    [...forms].some(
      (file) =>
        isSecretPlace(folders, file) ||
        isGitSetting(folders, file) ||
        isOfSession(folders, file) ||
        isHomePlace(path, [...folders, file]),
    )
  );
};

/** The same, with these folders as homes, wherever they are: some settings are secret only there. Absolute paths. */
export const mayContainSecrets = (path: string, homes: readonly string[]): boolean =>
  isSecret(path) || homes.some((home) => isSecret(fromHome(path, home) ?? ""));

/** A path written relative to a home folder, as `~/…`; undefined if it is not inside. */
export const fromHome = (path: string, home: string): string | undefined =>
  home.length > 1 && (path === home || path.startsWith(`${home}/`)) ? `~${path.slice(home.length)}` : undefined;

const isSecretPlace = (folders: readonly string[], file: string): boolean => {
  const names = [...folders, file];
  for (let from = 0; from < names.length; from += 1) {
    if (!FIRST.has(names[from] ?? "")) continue;
    let joined = "";
    for (let at = from; at < Math.min(names.length, from + DEEPEST); at += 1) {
      joined += at === from ? names[at] : `/${names[at]}`;
      if (WHOLE.has(joined) || (at === names.length - 1 && EXACT.has(joined))) return true;
    }
  }
  return false;
};

const isHomePlace = (path: string, names: readonly string[]): boolean => {
  const home = homeDepth(path, names);
  const below = names.slice(home);
  return (
    home > 0 &&
    (AT_HOME.has(below.join("/")) || below.some((_, at) => INSIDE_HOME.has(below.slice(0, at + 1).join("/"))))
  );
};

/** Whether a folder's name makes files in it secret, so that a path relative to it would not show that. */
export const leadsToSecrets = (folder: string): boolean =>
  namesIn(folder)
    .map(withoutFolderCopy)
    .some((name) => PARENTS_OF_SECRETS.has(name) || name.endsWith(".git"));
