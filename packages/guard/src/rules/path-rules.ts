/** Does a path match a path rule, `Read(./src/**)`?
 *  Invariant: names are compared one by one, never as one string. To allow, they must be equal letter by letter. To ask or deny,
 *  they are compared as the most forgiving file system would, at any depth if the rule has no slash, and including everything
 *  below what the rule names.
 *  Elsewhere: what a path means (../paths), rules of other tools (rules.ts), asking about each file of a plan (../run). */

import type { PathPatternData, PlanRule } from "../bash/index.ts";
import { globMatcher, globProblem, isSecret, mayContainSecrets } from "../paths/index.ts";
import { COMPUTED, couldBe } from "./shell-words.ts";

type Name = {
  readonly exact: (name: string) => boolean;
  readonly forgiving: (folded: string) => boolean;
  /** The folded name, if it is not a pattern. */
  readonly only?: string;
  /** As written. */
  readonly source: string;
};
/** `**`: any number of names. */
type Component = Name | "any";

export type PathPattern = {
  readonly exact: readonly Component[];
  readonly forgiving: readonly (readonly Component[])[];
};

export type PathPlace = {
  /** What relative rules are relative to: the folder that contains the settings folder. Absolute. */
  readonly base: string;
  /** What `~` stands for. */
  readonly home?: string;
  /** What `/x` is relative to: the root of the system, or `base`. `//x` always starts at the root. */
  readonly slash?: "system" | "base"; // default: system
};

const MOST_STARS = 2;
const MOST_COMPONENTS = 64;

const namesOf = (path: string): readonly string[] => path.split("/").filter((name) => name !== "" && name !== ".");

/** The pattern in `Read(…)`, or why it is invalid. */
export const parsePathPattern = (text: string, { base, home, slash }: PathPlace): PathPattern | string => {
  const wrong = wrongIn(text);
  if (wrong !== undefined) return wrong;
  const names = namesOf(text.replace(/^~(?=\/|$)/, ""));
  const compiled = compile(names);
  if (typeof compiled === "string") return compiled;
  const below = (folder: string): readonly Component[] => [...namesOf(folder).map(literal), ...compiled];
  if (/^~(\/|$)/.test(text)) {
    if (home === undefined) return "starts with ~, but no home folder is known";
    return { exact: below(home), forgiving: [below(home)] };
  }
  if (text.startsWith("/")) {
    if (slash === "base" && !text.startsWith("//")) return { exact: below(base), forgiving: [below(base)] };
    const absolute = below("");
    // Some agents read a single slash as the project's root. For rules that tighten, both readings apply.
    return { exact: absolute, forgiving: text.startsWith("//") ? [absolute] : [absolute, below(base)] };
  }
  const climbs = names.findIndex((name) => name !== "..");
  const start = namesOf(base);
  const folder = start.slice(0, Math.max(0, start.length - (climbs === -1 ? names.length : climbs))).join("/");
  const relative = [...namesOf(folder).map(literal), ...compiled];
  const anywhere: readonly Component[] = [...namesOf(base).map(literal), "any", ...compiled];
  return { exact: relative, forgiving: text.includes("/") ? [relative] : [relative, anywhere] };
};

const wrongIn = (text: string): string | undefined => {
  if (text.trim() === "") return "names no path";
  if (/[\p{Cc}\\]/u.test(text)) return "contains a control character or a backslash";
  if (/^~[^/]/.test(text)) return "names another user's home; write the path out";
  if (/^!|[!@+*?]\(/.test(text)) return "uses `!` or an extended pattern; use * ** ? [ab] {a,b}";
  const names = namesOf(text);
  if (names.length > MOST_COMPONENTS) return `has more than ${MOST_COMPONENTS} names`;
  const first = names.findIndex((name) => name !== "..");
  if (names.slice(first === -1 ? names.length : first).includes(".."))
    return "has `..` after a name; write the place it leads to";
  return names[0] === ".." && text.startsWith("/") ? "climbs above the root" : undefined;
};

const compile = (names: readonly string[]): readonly Component[] | string => {
  const components: Component[] = [];
  for (const name of names) {
    if (name === "..") continue;
    if (name === "**") components.push("any");
    else if (name.includes("**")) return "has `**` next to other letters; it must be alone between slashes";
    else if ((name.match(/\*/g)?.length ?? 0) > MOST_STARS) return `has more than ${MOST_STARS} stars in one name`;
    else if (!/[*?[\]{}]/.test(name)) components.push(literal(name));
    else {
      const problem = globProblem(name) ?? globProblem(name.normalize("NFKC").toLowerCase());
      if (problem !== undefined) return problem;
      components.push(globbed(name));
    }
  }
  return components;
};

/** Names as a forgiving rule compares them, computed once for many rules. */
export const foldedNames = (names: readonly string[]): readonly string[] => names.map(fold);

/** A name as seen by a file system that ignores case, Unicode forms and invisible characters. */
const fold = (name: string): string => {
  if (/^[\w+@.-]*[\w+@-]$/.test(name)) return name.toLowerCase();
  const plain = name.normalize("NFKC").replace(/\p{Cf}/gu, "");
  return plain.toLowerCase().replace(/(?<=[^. ])[. ]+$/, "");
};

const literal = (wanted: string): Name => {
  const folded = fold(wanted);
  return { exact: (name) => name === wanted, forgiving: (name) => name === folded, only: folded, source: wanted };
};

const globbed = (glob: string): Name => {
  const forgiving = globMatcher(glob.normalize("NFKC").toLowerCase());
  return { exact: globMatcher(glob), forgiving, source: glob };
};

export const writtenPattern = ({ forgiving }: PathPattern): PathPatternData =>
  forgiving.map((components) =>
    components.map((component) => {
      if (component === "any") return "**";
      return component.only === undefined ? { glob: component.source } : { name: component.source };
    }),
  );

/** Only for rules that tighten, because only the forgiving forms are stored. */
export const tighteningPattern = (written: PathPatternData): PathPattern => {
  const forgiving = written.map((components) =>
    components.map((one): Component => {
      if (one === "**") return "any";
      return "glob" in one ? globbed(one.glob) : literal(one.name);
    }),
  );
  return { exact: forgiving[0] ?? [], forgiving };
};

export type Move = { readonly from: string; readonly to: string };

/** The pattern moved to another folder; undefined if it is not about the original folder. */
export const movedPattern = ({ exact, forgiving }: PathPattern, move: Move): PathPattern | undefined => {
  const moved = movedComponents(exact, move);
  return (
    moved && { exact: moved, forgiving: forgiving.map((components) => movedComponents(components, move) ?? components) }
  );
};

const movedComponents = (components: readonly Component[], { from, to }: Move): readonly Component[] | undefined => {
  const names = namesOf(from);
  const isBelow = names.every((name, at) => {
    const component = components[at];
    return component !== undefined && component !== "any" && component.only !== undefined && component.exact(name);
  });
  return isBelow ? [...namesOf(to).map(literal), ...components.slice(names.length)] : undefined;
};

/** Whether the path (its names from the root) is exactly what the rule names. */
export const allowsPath = (pattern: PathPattern, names: readonly string[]): boolean =>
  fits(pattern.exact, names, EXACTLY);

/** Whether the path is what the rule names, or below it. */
export const coversPath = (pattern: PathPattern, names: readonly string[]): boolean =>
  coversFolded(pattern, names.map(fold));

export const coversFolded = ({ forgiving }: PathPattern, folded: readonly string[]): boolean =>
  forgiving.some((components) => fits(components, folded, FORGIVINGLY));

/** Whether it could be, if a shell computes some of the names. */
export const couldCoverFolded = ({ forgiving }: PathPattern, folded: readonly string[]): boolean =>
  forgiving.some((components) => fits(components, folded, PERHAPS));

/** The rule as .gitignore patterns relative to a folder; none if nothing below the folder matches. What such patterns cannot
 *  express is covered more broadly. */
export const patternsBelow = ({ forgiving }: PathPattern, folder: readonly string[]): readonly string[] => {
  const folded = folder.map(fold);
  return forgiving.flatMap((components) => {
    const any = components.indexOf("any");
    const fixed = any === -1 ? components : components.slice(0, any);
    const fits = folded.slice(0, fixed.length).every((name, at) => {
      const component = fixed[at];
      return component !== undefined && component !== "any" && component.forgiving(name);
    });
    if (!fits) return [];
    const rest = components.slice(Math.min(folded.length, fixed.length));
    const names = rest.map((component) =>
      component === "any" ? "**" : component.source.replace(/\{.*\}|\[.*\]/g, "*").replace(/["\\]/g, "?"),
    );
    while (names.at(-1) === "**") names.pop();
    return names.length === 0 ? ["**"] : [`/${names.join("/")}`, `/${names.join("/")}/**`];
  });
};

/** Whether the rule names one file, in one folder or any, that usually contains secrets. */
export const namesKeys = ({ exact, forgiving }: PathPattern): boolean =>
  [exact, ...forgiving].every((components) => {
    const last = components.at(-1);
    return last !== undefined && last !== "any" && last.only !== undefined && isSecret(`/x/${last.source}`);
  });

/** Whether the rule's text names secret files, so that its author meant them: by its last part, or by the folder of which it
 *  names everything below. */
export const speaksOfKeys = ({ exact }: PathPattern, homes: readonly string[]): boolean => {
  const names = exact.map((component) => (component === "any" ? "x" : component.source));
  return mayContainSecrets(`/${names.join("/")}`, homes);
};

/** Whether the rule names something hidden by a leading dot, which searches that skip hidden names never see. */
export const isHidden = ({ exact }: PathPattern): boolean =>
  exact.some((component) => component !== "any" && /^\./.test(component.only ?? ""));

/** Whether all names that lead to the rule's target are literal, so that it can be found without searching. */
export const isPlaced = ({ forgiving }: PathPattern): boolean =>
  forgiving.every((components) => {
    const end = components.findLastIndex((component) => component !== "any");
    return !components.slice(0, end + 1).includes("any");
  });

/** Whether something below the folder could match the rule. */
export const reachesBelow = ({ forgiving }: PathPattern, folded: readonly string[]): boolean =>
  forgiving.some((components) => leadsBelow(components, folded));

/** The names up to the first `**`, below which anything may be. A search checks this for thousands of folders. */
const leadsBelow = (components: readonly Component[], folded: readonly string[]): boolean => {
  for (let at = 0; at < folded.length; at += 1) {
    const component = components[at];
    if (component === undefined || component === "any") return true;
    if (!component.forgiving(folded[at] ?? "")) return false;
  }
  return true;
};

type Comparison = {
  readonly same: (component: Name, name: string) => boolean;
  /** Everything below counts as well. */
  readonly below: boolean;
};

const EXACTLY: Comparison = { same: (component, name) => component.exact(name), below: false };
const FORGIVINGLY: Comparison = { same: (component, name) => component.forgiving(name), below: true };
const PERHAPS: Comparison = {
  same: ({ only, forgiving }, name) =>
    name.includes(COMPUTED) ? only === undefined || couldBe(name, only) : forgiving(name),
  below: true,
};

/** Backtracks only to the last `**`, which is enough: an earlier one could match nothing that a later one could not. */
const fits = (components: readonly Component[], names: readonly string[], { same, below }: Comparison): boolean => {
  let at = 0;
  let component = 0;
  let back: { component: number; at: number } | undefined;
  while (at < names.length) {
    const wanted = components[component];
    const name = names[at];
    if (wanted === undefined && below) return true;
    if (wanted === "any") {
      back = { component, at };
      component++;
    } else if (wanted !== undefined && name !== undefined && same(wanted, name)) {
      component++;
      at++;
    } else if (back !== undefined) {
      back = { component: back.component, at: back.at + 1 };
      component = back.component + 1;
      at = back.at;
    } else return false;
  }
  while (components[component] === "any") component += 1;
  return component === components.length;
};

// --- rules of a plan -------------------------------------------------------------------------------------------------------
// Rules about reading that a plan carries as plain data, so that they apply wherever it runs, to every file that a name turns
// out to be. They are compared as leniently as when a command is classified, and include everything below what they name.

export type ReadRules = {
  readonly isEmpty: boolean;
  /** Why a file must not be read. The path is absolute. */
  readonly problem: (path: string) => string | undefined;
  /** For a folder: which paths in it match a rule. Undefined if nothing below it can. */
  readonly inside: (folder: string) => ((path: string) => boolean) | undefined;
  /** The same for rules with literal paths: whether a path matches one, or leads towards it. */
  readonly insideLiteral: (folder: string) => ((path: string) => "under" | "towards" | undefined) | undefined;
  /** Whether a rule's target could be anywhere below the folder. */
  readonly isAnywhere: (folder: string) => boolean;
  /** The rules as .gitignore patterns relative to a folder. */
  readonly below: (folder: string) => readonly string[];
};

const splitPath = (path: string): readonly string[] => path.split("/").filter((name) => name !== "" && name !== ".");

export const readRules = (rules: readonly PlanRule[]): ReadRules => {
  const compiled = rules.map(({ rule, paths }) => ({ rule, pattern: tighteningPattern(paths) }));
  const isCovered = (patterns: readonly PathPattern[], path: string): boolean => {
    const folded = foldedNames(splitPath(path));
    return patterns.some((pattern) => coversFolded(pattern, folded));
  };
  const reaching = (folder: string): readonly PathPattern[] => {
    const folded = foldedNames(splitPath(folder));
    return compiled.map(({ pattern }) => pattern).filter((pattern) => reachesBelow(pattern, folded));
  };
  return {
    isEmpty: rules.length === 0,
    problem: (path) => {
      const found = compiled.find(({ pattern }) => isCovered([pattern], path));
      return found && `${path} is restricted by ${found.rule}, so it needs approval`;
    },
    inside: (folder) => {
      const patterns = reaching(folder);
      return patterns.length === 0 ? undefined : (path) => isCovered(patterns, path);
    },
    insideLiteral: (folder) => {
      const patterns = reaching(folder).filter(isPlaced);
      if (patterns.length === 0) return undefined;
      return (path) => {
        const folded = foldedNames(splitPath(path));
        if (patterns.some((pattern) => coversFolded(pattern, folded))) return "under";
        return patterns.some((pattern) => reachesBelow(pattern, folded)) ? "towards" : undefined;
      };
    },
    isAnywhere: (folder) => reaching(folder).some((pattern) => !isPlaced(pattern)),
    below: (folder) => [...new Set(compiled.flatMap(({ pattern }) => patternsBelow(pattern, splitPath(folder))))],
  };
};
