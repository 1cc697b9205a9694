/** Which files does the glob of a search mean? Pure.
 *  Invariant: asked by us with ripgrep and without, so the answer is the same. Ripgrep's own --glob is not used for it:
 *  a file that fits it is searched there although git ignores it, and Grep promises otherwise.
 *  Elsewhere: which files there are at all (list-files.ts, ripgrep.ts). */

import picomatch from "picomatch";
import type { SearchPlace } from "./search-place.ts";

const OPTIONS = { dot: true, noextglob: true, nonegate: true } as const;

/** `*.ts` fits names at any depth, `src/*.ts` fits paths below the folder. With `!` before it, files that fit are left
 *  out, and so is all below a folder that fits. */
export const wantedBy = (glob: string | undefined, { folder, isFile }: SearchPlace): ((path: string) => boolean) => {
  if (glob === undefined || isFile) return () => true;
  const isExcluding = glob.startsWith("!");
  const pattern = (isExcluding ? glob.slice(1) : glob).replace(/^(?:\.\/)+/, "");
  const fits = fitting(pattern);
  return (path) => {
    const names = path.slice(folder.length + 1).split("/");
    if (!isExcluding) return fits(names);
    return !names.some((_, at) => fits(names.slice(0, at + 1)));
  };
};

const fitting = (pattern: string): ((names: readonly string[]) => boolean) => {
  const bare = pattern.replace(/\/$/, "");
  const isPath = bare.includes("/");
  const fits = picomatch(bare.replace(/^\//, ""), OPTIONS);
  return (names) => fits(isPath ? names.join("/") : (names.at(-1) ?? ""));
};

/** A pattern for names that every wanted file fits, for ripgrep to leave others unread: a type, unlike a glob, brings
 *  back nothing that git ignores. Undefined where there is no such pattern, or no plain one. */
export const namesHint = (glob: string): string | undefined => {
  const name = glob.split("/").at(-1) ?? "";
  const isPlain = /^[\w.*?-]+$/.test(name) || (!glob.includes("/") && /^[\w.*?-]*\{[\w.,*?-]+\}[\w.*?-]*$/.test(name));
  return isPlain && !/^\*+$|\*\*/.test(name) ? name : undefined;
};
