/** Which attributes of a repository speak of showing files, and might they mean a file that holds keys?
 *  Invariant: git reads `.gitattributes` in every folder on the way to a file, whether it keeps them or not, and files of
 *  every commit can be shown; so all lines count, and a line passes only if files of its names are no keys. Names are
 *  looked at nearest first; beyond the bound only folders that the index knows.
 *  Elsewhere: the attributes that hide keys (git-attributes.ts). */

import { type Dirent, lstatSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { isKeyEnding, isSecret, secretPatterns } from "../paths/index.ts";
import { askGit } from "./ask-git.ts";
import { asBytes, foldersOf, indexNames } from "./index-names.ts";
import { listFolder } from "./list-folder.ts";
import { type Checkout, indexMayKeep } from "./plain-checkout.ts";
import { readPlainFile } from "./plain-file.ts";

const NAME = ".gitattributes";

export type ShownLine = {
  /** The pattern, behind the folder that it counts from. */
  readonly pattern: string;
  readonly isHarmless: boolean;
};

/** More than anybody writes by hand. */
const MOST_BYTES = 1_000_000;
/** Names that are looked at, and of these in folders that programs fill or that lie elsewhere. */
const MOST_NAMES = 50_000;
const MOST_MADE = 5_000;
const MADE: readonly string[] = ["node_modules", ".venv", "venv", "target", "vendor", ".cache", "dist", "build"];

const ending = (name: string): string => (name.includes(".") ? name.slice(name.lastIndexOf(".") + 1) : "");

/** Endings that no key has, of files that people have git compare in a way of their own. */
const ENDINGS_OF_TEXTS: ReadonlySet<string> = new Set(
  [
    ...secretPatterns.sources.map((pattern) => ending(pattern)),
    ..."ada adb ads asm awk bash bat bib bibtex c++ cl clj cljs cmake cmd coffee cshtml csproj csx cu cuh cxx d".split(
      " ",
    ),
    ..."dbk dpr dts dtsi ejs el elm epub erl f f03 f08 f77 f90 f95 feature fish fountain fs fsproj gd glsl gql".split(
      " ",
    ),
    ..."gradle graphql groovy h++ haml hbs hh hrl htm hx hxx inc ino ipynb jl jsp jspf jspx kts less lisp lsp m".split(
      " ",
    ),
    ..."map markdown ml mli mm mustache nim nix odin pas phtml pl plx pm po pot props ps1 psm1 pug pxd py3 pyw".split(
      " ",
    ),
    ..."pyx r rake rkt rmd s sass scm sh shader sln sol ss storyboard strings styl sv targets tcl tex textile ttl".split(
      " ",
    ),
    ..."twig unity v vb vbproj vhd vhdl vim wat xaml xhtml xib xsd xsl xslt zig zsh".split(" "),
    ..."avif bmp doc docx dot eot gif ico jpeg jpg mov mp3 mp4 odp ods odt ogg otf pdf png ppt pptx psd rtf svg".split(
      " ",
    ),
    ..."tif tiff ttf wav webm webp woff woff2 xls xlsx".split(" "),
  ].filter((one) => !isKeyEnding(one)),
);

const NAMES_OF_TEXTS: ReadonlySet<string> = new Set([
  ...["makefile", "gnumakefile", "dockerfile", "jenkinsfile", "rakefile", "gemfile", "vagrantfile", "cmakelists.txt"],
  ...["readme", "license", "changelog", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"],
  ...["cargo.lock", "composer.lock", "gemfile.lock", "poetry.lock", "uv.lock", "pipfile.lock", "go.sum", "go.mod"],
]);

/** A path, or one with stars, that ends in a plain name. */
const PLAIN_PATTERN = /^[\w*/.@+-]+$/;

const isHarmless = (pattern: string): boolean => {
  const last = pattern.slice(pattern.lastIndexOf("/") + 1).toLowerCase();
  if (!PLAIN_PATTERN.test(pattern) || isSecret(pattern)) return false;
  return NAMES_OF_TEXTS.has(last) || (!last.startsWith(".") && ENDINGS_OF_TEXTS.has(ending(last)));
};

const SHOWS = /(?:^|[ \t\r\v\f])!?diff(?=[=\s]|$)/m;

/** Lines by which files are shown; a text that cannot be read is one. */
const shownBy = (folder: string, text: string | undefined): readonly ShownLine[] => {
  if (text === undefined) return [{ pattern: `${folder}.env`, isHarmless: false }];
  if (!SHOWS.test(text)) return [];
  return text
    .replace(/^\ufeff/, "")
    .split("\n")
    .map((line) => line.trim().split(/[ \t\r]+/))
    .filter(([pattern = "", ...words]) => !pattern.startsWith("#") && words.some((word) => SHOWS.test(word)))
    .map(([pattern = ""]) => ({ pattern: folder + pattern, isHarmless: isHarmless(pattern) }));
};

/** Undefined for what cannot be read whole. In a checkout a link is not followed: git takes its text for the attributes. */
const textAt = (path: string | Buffer, isKept: boolean): string | undefined => {
  if (isKept && isLink(path)) return undefined;
  const file = readPlainFile(path, MOST_BYTES);
  if (file === "unreadable") return undefined;
  return file === "missing" ? "" : file.toString();
};

const isLink = (path: string | Buffer): boolean => {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  } catch {
    return true;
  }
};

const MOST_KEPT = 50;

/** What the repository has git show by attributes of its own. */
export const shownLines = (checkout: Checkout, isPlain: boolean): readonly ShownLine[] => {
  const { top, git } = checkout;
  const info = shownBy("", textAt(join(git, "info/attributes"), false));
  if (top === "") return info;
  const { folders, isWhole } = foldersWithAttributes(top);
  const known = isWhole ? [] : [...foldersOf(indexNames(top)?.entries ?? [])].map((folder) => `${folder}/`);
  const found = new Set(["", ...folders, ...known]);
  const there = [...found].flatMap((folder) => shownBy(fromBytes(folder), textAt(asBytes(top, folder + NAME), true)));
  return [...info, ...there, ...(isPlain && !indexMayKeep({ git }, NAME) ? [] : keptBeside(top, found))];
};

/** Of attributes that git keeps and that are not there. */
const keptBeside = (top: string, found: ReadonlySet<string>): readonly ShownLine[] => {
  const asked = askGit({ folder: top, words: ["ls-files", "-z", "--", `:(glob)**/${NAME}`] });
  const names = asked?.text.split("\0").filter((name) => name !== "") ?? [];
  const beside = names.filter((name) => !found.has(Buffer.from(name.slice(0, -NAME.length)).toString("latin1")));
  if (asked?.failed !== false || beside.length > MOST_KEPT) return shownBy("", undefined);
  return beside.flatMap((name) => shownBy(name.slice(0, -NAME.length), keptText(top, name)));
};

/** As git finds a file that it keeps: where it is not there, in the index. */
const keptText = (top: string, name: string): string | undefined => {
  const asked = askGit({ folder: top, words: ["cat-file", "blob", `:${name}`] });
  return asked?.failed === false ? asked.text : undefined;
};

const fromBytes = (name: string): string => Buffer.from(name, "latin1").toString();

const entriesOf = (folder: Buffer, most: number): readonly Dirent[] => {
  try {
    return listFolder(folder, most, "latin1");
  } catch {
    return [];
  }
};

type Found = { readonly folders: readonly string[]; readonly isWhole: boolean };

/** Folders that hold attributes, as paths from the top that end in a slash; bytes as latin1. Through links too: git goes
 *  there by name. */
const foldersWithAttributes = (top: string): Found => {
  const folders: string[] = [];
  const [queue, last]: [string[], string[]] = [[""], []];
  const seen = new Set<string>();
  let [names, made] = [0, 0];
  const lookIn = (folder: string, isMade: boolean): void => {
    for (const entry of entriesOf(asBytes(top, folder), isMade ? MOST_MADE - made : MOST_NAMES - names)) {
      names += 1;
      made += isMade ? 1 : 0;
      const below = `${folder}${entry.name}/`;
      if (entry.name.toLowerCase() === NAME) folders.push(folder);
      else if (entry.isDirectory() && entry.name !== ".git")
        (isMade || MADE.includes(entry.name) ? last : queue).push(below);
      else if (entry.isSymbolicLink()) {
        const real = realFolder(asBytes(top, below));
        if (real !== undefined && !seen.has(real)) last.push(below);
        if (real !== undefined) seen.add(real);
      }
    }
  };
  for (let at = 0; at < queue.length && names <= MOST_NAMES; at += 1) lookIn(queue[at] ?? "", false);
  const isWhole = names <= MOST_NAMES;
  for (let at = 0; at < last.length && made <= MOST_MADE; at += 1) lookIn(last[at] ?? "", true);
  return { folders, isWhole };
};

const realFolder = (path: Buffer): string | undefined => {
  try {
    return realpathSync.native(path, "latin1");
  } catch {
    return undefined;
  }
};
