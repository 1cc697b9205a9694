/** What does a path from a model mean, judged by its text alone? One absolute path, or a reason why not.
 *  Invariant: nothing is expanded or decoded; only `.`, `..` and doubled slashes are resolved. A text that some other program
 *  would read differently is refused.
 *  Elsewhere: names that agents may not write (protected.ts), what is on the disk (../files). */

export type Refused = { readonly ok: false; readonly reason: string };

export type JudgedPath = { readonly ok: true; readonly path: string; readonly parts: readonly string[] };

const MAX_PATH_BYTES = 4_096;
const MAX_NAME_BYTES = 255;

const refuse = (reason: string): Refused => ({ ok: false, reason });

/** Control characters of both ranges, line separators, direction marks, and lone surrogates, which no bytes encode. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

/** Forms that a shell, a browser or a template would expand. */
const EXPANSION_FORMS: readonly (readonly [RegExp, string])[] = [
  [/^~|\/~(?:\/|$)/, "~ is not expanded"],
  [/\$[({]|`/, "substitutions are not expanded"],
  [/(?:^|\/)\$[A-Z_][A-Z0-9_]*(?:\/|$)/, "variables are not expanded"],
  [/%(?:2[ef]|5c|00)/i, "percent codes are not decoded"],
  [/\\/, "a backslash separates nothing here"],
];

/** Why a name between two slashes is not a plain name under every reading. After Unicode normalization it must not turn
 *  into `.`, `..` or contain a slash. */
const nameProblem = (name: string): string | undefined => {
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return `a name in the path is longer than ${MAX_NAME_BYTES} bytes`;
  const folded = name.normalize("NFKC");
  if (folded !== name && (/[/\\]/.test(folded) || /^\.{1,2}$/.test(folded)))
    return "a name in the path becomes `.`, `..` or a slash when it is normalized";
  return undefined;
};

/** Reads an absolute path name by name. `.` and doubled slashes are dropped, `..` removes the name before it, and only the
 *  result is ever opened. */
export const judgePath = (text: unknown): JudgedPath | Refused => {
  if (typeof text !== "string") return refuse("the path must be a string");
  if (text === "") return refuse("the path is empty");
  if (text.includes("\0")) return refuse("the path contains a NUL character");
  if (UNPRINTABLE.test(text)) return refuse("the path contains control characters");
  if (Buffer.byteLength(text) > MAX_PATH_BYTES) return refuse(`the path is longer than ${MAX_PATH_BYTES} bytes`);
  if (/^[a-z][a-z0-9+.-]*:/i.test(text)) return refuse("this is a URL or a drive, not a path; give an absolute path");
  for (const [form, why] of EXPANSION_FORMS) if (form.test(text)) return refuse(`${why}; give the plain absolute path`);
  if (!text.startsWith("/")) return refuse("the path is relative; give an absolute path");
  const parts: string[] = [];
  for (const name of text.split("/")) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      parts.pop();
      continue;
    }
    const wrong = nameProblem(name);
    if (wrong !== undefined) return refuse(wrong);
    parts.push(name);
  }
  return { ok: true, path: `/${parts.join("/")}`, parts };
};

/** The names below a folder, or undefined if the path is not inside it. Whole names are compared byte by byte, so a sibling
 *  that only starts with the folder's name is outside. */
export const partsBelow = (folder: readonly string[], parts: readonly string[]): readonly string[] | undefined =>
  folder.length <= parts.length && folder.every((name, at) => name === parts[at])
    ? parts.slice(folder.length)
    : undefined;

/** The names below a folder that has one or more paths: as it was given, and canonical. */
export const judgeInside = (
  folders: readonly string[],
  text: unknown,
): { readonly ok: true; readonly below: readonly string[] } | Refused => {
  const judged = judgePath(text);
  if (!judged.ok) return judged;
  for (const folder of folders) {
    const below = partsBelow(folder.split("/").filter(Boolean), judged.parts);
    if (below !== undefined) return { ok: true, below };
  }
  return refuse(`the path is outside ${folders[0] ?? "every allowed folder"}`);
};

/** Paths in /proc, /sys and /dev: reading one queries the kernel or a device, and may reveal secrets or never end. The shared
 *  memory below /dev contains ordinary files. */
export const isPseudoPath = (text: string): boolean => {
  const names = text.split("/").filter((name) => name !== "" && name !== ".");
  while (names.includes("..")) {
    const at = names.indexOf("..");
    names.splice(Math.max(0, at - 1), at === 0 ? 1 : 2);
  }
  const climbs = text.startsWith("/") || /(?:^|\/)\.\.(?:\/|$)/.test(text);
  if (!climbs || (names[0] === "dev" && ["shm", "null"].includes(names[1] ?? ""))) return false;
  return ["proc", "sys", "dev"].includes(names[0] ?? "");
};
