/** Does a path fall under a path rule, `Read(./src/**)`?
 *  Invariant: names are compared one by one, never as one text. To allow, letter by letter; to ask or deny, as the most
 *  forgiving file system would, at any depth if the rule has no slash, and with everything below what it names.
 *  Elsewhere: what a path text means (../paths), rules of other tools (rules.ts). */

import type { PathPatternData } from "../bash/index.ts";
import { globMatcher, globProblem, isSecret, mayContainSecrets } from "../paths/index.ts";
import { COMPUTED, couldBe } from "./shell-words.ts";

type Name = {
  readonly exact: (name: string) => boolean;
  readonly forgiving: (folded: string) => boolean;
  /** The folded name, where it is no pattern. */
  readonly only?: string;
  /** As it is written. */
  readonly source: string;
};
/** `**`: any number of names. */
type Component = Name | "any";

export type PathPattern = {
  readonly exact: readonly Component[];
  readonly forgiving: readonly (readonly Component[])[];
};

export type PathPlace = {
  /** Where relative rules start: the folder that holds the settings folder. Absolute. */
  readonly base: string;
  /** What `~` stands for. */
  readonly home?: string;
  /** Where `/x` starts: at the root of the system, or at `base`. `//x` always starts at the root. */
  readonly slash?: "system" | "base"; // default: system
};

const MOST_STARS = 2;
const MOST_COMPONENTS = 64;

const namesOf = (path: string): readonly string[] => path.split("/").filter((name) => name !== "" && name !== ".");

/** The pattern in `Read(…)`, or what is wrong with it. */
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
    // Some agents read a single slash as the project's root; where it tightens, both readings count.
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
  if (/[\p{Cc}\\]/u.test(text)) return "holds a control character or a backslash";
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
    else if (name.includes("**")) return "has `**` beside other letters; it stands alone between slashes";
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

/** Names as a forgiving rule compares them; made once for many rules. */
export const foldedNames = (names: readonly string[]): readonly string[] => names.map(fold);

/** A name as a file system that ignores case, writing forms and invisible marks would see it. */
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

/** Only for what tightens: the forgiving forms are all that was written. */
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

/** The same pattern in another folder, where it is one of that folder; undefined where it is not. */
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

/** Is the path (its names from the root) exactly what the rule names? */
export const allowsPath = (pattern: PathPattern, names: readonly string[]): boolean =>
  fits(pattern.exact, names, EXACTLY);

/** Is the path what the rule names, or below it? */
export const coversPath = (pattern: PathPattern, names: readonly string[]): boolean =>
  coversFolded(pattern, names.map(fold));

export const coversFolded = ({ forgiving }: PathPattern, folded: readonly string[]): boolean =>
  forgiving.some((components) => fits(components, folded, FORGIVINGLY));

/** Could it be, where some names are computed by a shell? */
export const couldCoverFolded = ({ forgiving }: PathPattern, folded: readonly string[]): boolean =>
  forgiving.some((components) => fits(components, folded, PERHAPS));

/** The rule as patterns for names below a folder, in the way of .gitignore; none where nothing below it falls under the
 *  rule. What such patterns cannot say is said more broadly. */
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

/** Does the rule name one file, in one folder or in any, that usually holds keys? */
export const namesKeys = ({ exact, forgiving }: PathPattern): boolean =>
  [exact, ...forgiving].every((components) => {
    const last = components.at(-1);
    return last !== undefined && last !== "any" && last.only !== undefined && isSecret(`/x/${last.source}`);
  });

/** Does the rule's own text name files that hold keys, so that whoever wrote it thought of them? Its last part does, or the
 *  folder that all below it is named of. */
export const speaksOfKeys = ({ exact }: PathPattern, homes: readonly string[]): boolean => {
  const names = exact.map((component) => (component === "any" ? "x" : component.source));
  return mayContainSecrets(`/${names.join("/")}`, homes);
};

/** Is what the rule names hidden by a leading dot, so that searches which skip such names never see it? */
export const isHidden = ({ exact }: PathPattern): boolean =>
  exact.some((component) => component !== "any" && /^\./.test(component.only ?? ""));

/** Are all names known on the way to what the rule names, so that it can be found without looking everywhere? */
export const isPlaced = ({ forgiving }: PathPattern): boolean =>
  forgiving.every((components) => {
    const end = components.findLastIndex((component) => component !== "any");
    return !components.slice(0, end + 1).includes("any");
  });

/** Could something below the folder fall under the rule? */
export const reachesBelow = ({ forgiving }: PathPattern, folded: readonly string[]): boolean =>
  forgiving.some((components) => leadsBelow(components, folded));

/** Up to the first `**`, below which anything may stand. A search asks this of thousands of folders. */
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
  /** What lies below counts as well. */
  readonly below: boolean;
};

const EXACTLY: Comparison = { same: (component, name) => component.exact(name), below: false };
const FORGIVINGLY: Comparison = { same: (component, name) => component.forgiving(name), below: true };
const PERHAPS: Comparison = {
  same: ({ only, forgiving }, name) =>
    name.includes(COMPUTED) ? only === undefined || couldBe(name, only) : forgiving(name),
  below: true,
};

/** Goes back only to the last `**`, which is enough: an earlier one could take nothing that a later one could not. */
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
