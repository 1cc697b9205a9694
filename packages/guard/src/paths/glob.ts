/** Does a path match a glob such as `*.{ts,tsx}`?
 *  Invariant: all ways through the glob are followed at the same time, without backtracking. A path takes at most its own
 *  length times the length of the glob, memory is bounded, and no regular expression is built from untrusted text.
 *  Elsewhere: patterns as bash reads them (name-pattern.ts), rules about paths (../rules). */

const MAX_LENGTH = 1_000;
const MAX_DEPTH = 20;
/** The total for all ranges: each number is a separate alternative. */
const MAX_VALUES = 100;

/** What is wrong with a glob, if anything. */
export const globProblem = (glob: string): string | undefined => {
  if (glob.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`;
  const { depth, values } = groupsIn([...glob]);
  if (depth > MAX_DEPTH) return `has braces more than ${MAX_DEPTH} deep`;
  return values > MAX_VALUES ? `has ranges of more than ${MAX_VALUES} numbers` : undefined;
};

export type GlobOptions = {
  /** Everything below a matching folder matches too. */
  readonly orBelow?: boolean;
};

/** `*`, `**`, `?`, `[…]`, `{a,b}`, `{1..9}` and `(a|b)`; names that begin with a dot match too, and so does the text of
 *  the glob itself. Throws if the glob has a problem. */
export const globMatcher = (glob: string, { orBelow = false }: GlobOptions = {}): ((path: string) => boolean) => {
  const problem = globProblem(glob);
  if (problem !== undefined) throw new RangeError(`the pattern ${problem}`);
  const machine = new Machine(readGlob(glob));
  const isItself = (path: string): boolean => path === glob || (orBelow && path.startsWith(`${glob}/`));
  return (path) => path !== "" && (isItself(path) || machine.accepts(path, orBelow));
};

// --- reading -------------------------------------------------------------------------------------------------------------

type Test = (letter: string) => boolean;

type Token =
  | { readonly kind: "letter"; readonly fits: Test }
  /** Any number of letters that fit. */
  | { readonly kind: "run"; readonly fits: Test }
  /** `**` with the slash after it: any number of folders. */
  | { readonly kind: "folders" }
  /** `**` at the end, with the slash before it: the folder itself, and everything below it. */
  | { readonly kind: "below" }
  | { readonly kind: "one-of"; readonly ways: readonly (readonly Token[])[] };

const isSlash: Test = (letter) => letter === "/";
const isOther: Test = (letter) => letter !== "/";
const isAny: Test = () => true;
const only = (wanted: string): Token => ({ kind: "letter", fits: (letter) => letter === wanted });

type Groups = {
  /** Start of each group → the ends of its alternatives, the last at the closing sign. */
  readonly ends: ReadonlyMap<number, readonly number[]>;
  /** Start of each set → its end. */
  readonly sets: ReadonlyMap<number, number>;
  readonly depth: number;
  /** How many values the ranges stand for. */
  readonly values: number;
};

type Open = { readonly at: number; readonly close: string; readonly splits: number[] };

/** Finds braces that contain a comma or a range, and parentheses that contain a bar. Others are plain letters. */
const groupsIn = (letters: readonly string[]): Groups => {
  const ends = new Map<number, readonly number[]>();
  const sets = new Map<number, number>();
  const open: Open[] = [];
  const waiting = new Map([
    ["}", 0],
    [")", 0],
  ]);
  const lastSet = letters.lastIndexOf("]");
  let [depth, values] = [0, 0];
  for (let at = 0; at < letters.length; at += 1) {
    const letter = letters[at] as string;
    const close = letter === "{" ? "}" : ")";
    const setEnd = letter === "[" && at < lastSet ? endOfSet(letters, at) : -1;
    if (letter === "\\") at += 1;
    else if (setEnd !== -1) {
      sets.set(at, setEnd);
      at = setEnd;
    } else if (letter === "{" || letter === "(") {
      open.push({ at, close, splits: [] });
      waiting.set(close, (waiting.get(close) ?? 0) + 1);
      depth = Math.max(depth, open.length);
    } else if (letter === ",") splitAt(open, "}", at);
    else if (letter === "|") splitAt(open, ")", at);
    else if ((waiting.get(letter) ?? 0) > 0) {
      for (let last = open.pop(); last !== undefined; last = open.pop()) {
        waiting.set(last.close, (waiting.get(last.close) ?? 1) - 1);
        if (last.close !== letter) continue; // it was never closed
        const isShort = letter === "}" && at - last.at < MAX_RANGE_LENGTH;
        const range = isShort ? rangeIn(letters.slice(last.at + 1, at).join("")) : undefined;
        values += range?.size ?? 0;
        if (last.splits.length > 0 || range) ends.set(last.at, [...last.splits, at]);
        break;
      }
    }
  }
  return { ends, sets, depth, values };
};

const splitAt = (open: readonly Open[], close: string, at: number): void => {
  const last = open.at(-1);
  if (last?.close === close) last.splits.push(at);
};

/** A closing bracket right at the start belongs to the set. */
const endOfSet = (letters: readonly string[], start: number): number => {
  let at = start + 1;
  if (letters[at] === "!" || letters[at] === "^") at += 1;
  for (at += 1; at < letters.length; at += 1) {
    if (letters[at] === "\\") at += 1;
    else if (letters[at] === "]") return at;
  }
  return -1;
};

const MAX_RANGE_LENGTH = 24;

type Range = { readonly low: number; readonly size: number; readonly isNumber: boolean };

/** `1..12` or `e..a`. */
const rangeIn = (text: string): Range | undefined => {
  const [, from = "", to = ""] = /^(-?\d{1,9}|[a-zA-Z])\.\.(-?\d{1,9}|[a-zA-Z])$/.exec(text) ?? [];
  const isNumber = /\d/.test(from);
  if (from === "" || isNumber !== /\d/.test(to)) return undefined;
  const [one, other] = [from, to].map((end) => (isNumber ? Number(end) : end.charCodeAt(0))) as [number, number];
  return { low: Math.min(one, other), size: Math.abs(one - other) + 1, isNumber };
};

const valuesOf = ({ low, size, isNumber }: Range): readonly string[] =>
  Array.from({ length: size }, (_, step) => (isNumber ? String(low + step) : String.fromCharCode(low + step)));

/** A part of the glob: does it start where a name starts, and end where a name ends? */
type Section = {
  readonly from: number;
  readonly to: number;
  readonly isStart: boolean;
  readonly isEnd: boolean;
};

const readGlob = (glob: string): readonly Token[] => {
  const letters = [...glob];
  const groups = groupsIn(letters);
  const read = ({ from, to, isStart, isEnd }: Section): readonly Token[] => {
    const tokens: Token[] = [];
    const starts = (at: number): boolean => (at === from ? isStart : letters[at - 1] === "/");
    const endsBefore = (at: number): boolean => (at >= to ? isEnd : letters[at] === "/");
    const starsAt = (at: number): number => {
      let end = at;
      while (end < to && letters[end] === "*") end += 1;
      return end;
    };
    /** Is the rest nothing but slashes with `**` after each? */
    const onlyStarsFrom = (slash: number): boolean => {
      let at = slash;
      for (let end = starsAt(at + 1); letters[at] === "/" && end - at === 3; end = starsAt(at + 1)) at = end;
      return at === to;
    };
    for (let at = from; at < to; at += 1) {
      const letter = letters[at] as string;
      const [ends, set] = [groups.ends.get(at), groups.sets.get(at)];
      if (letter === "*") {
        const end = starsAt(at);
        const isWhole = end - at === 2 && starts(at) && endsBefore(end);
        if (!isWhole) tokens.push({ kind: "run", fits: isOther });
        else if (end < to) tokens.push({ kind: "folders" });
        else tokens.push({ kind: "run", fits: isAny });
        at = isWhole && end < to ? end : end - 1;
      } else if (letter === "/" && isEnd && tokens.at(-1)?.kind !== "run" && onlyStarsFrom(at)) {
        tokens.push({ kind: "below" });
        at = to;
      } else if (letter === "?") tokens.push({ kind: "letter", fits: isOther });
      else if (set !== undefined && set < to) {
        tokens.push(oneOfSet(letters.slice(at, set + 1)));
        at = set;
      } else if (ends !== undefined) {
        const close = ends.at(-1) as number;
        const around = { isStart: starts(at), isEnd: endsBefore(close + 1) };
        const range = ends.length === 1 ? rangeIn(letters.slice(at + 1, close).join("")) : undefined;
        const ways =
          (range && valuesOf(range).map((value) => [...value].map(only))) ??
          ends.map((end, part) =>
            read({ from: (part === 0 ? at : (ends[part - 1] as number)) + 1, to: end, ...around }),
          );
        tokens.push({ kind: "one-of", ways });
        at = close;
      } else {
        if (letter === "\\" && at + 1 < to) at += 1;
        tokens.push(only(letters[at] as string));
      }
    }
    return tokens;
  };
  return read({ from: 0, to: letters.length, isStart: true, isEnd: true });
};

/** Also matches its own text: files are really called `[id].tsx`. */
const oneOfSet = (written: readonly string[]): Token => {
  const inner = written.slice(1, -1);
  const isNegated = inner[0] === "!" || inner[0] === "^";
  const ranges: (readonly [string, string])[] = [];
  const members = isNegated ? inner.slice(1) : inner;
  for (let at = 0; at < members.length; at += 1) {
    if (members[at] === "\\" && at + 1 < members.length) at += 1;
    const from = members[at] as string;
    const to = members[at + 1] === "-" ? members[at + 2] : undefined;
    ranges.push([from, to ?? from]);
    if (to !== undefined) at += 2;
  }
  const fits: Test = (letter) =>
    letter !== "/" && ranges.some(([from, to]) => from <= letter && letter <= to) !== isNegated;
  return { kind: "one-of", ways: [[{ kind: "letter", fits }], written.map(only)] };
};

// --- matching ------------------------------------------------------------------------------------------------------------

/** Consumes a letter that fits and continues at `to`, or continues at `free` without consuming one. */
type Place = { fits?: Test; to: number; free: readonly number[] };

/** All places that the letters so far can lead to. */
type Reached = {
  readonly places: readonly number[];
  readonly isEnd: boolean;
  /** Where each letter leads from here. Absent if there are too many places to remember. */
  readonly next?: Map<string, Reached>;
};

const MAX_CACHED = 5_000;
const MAX_CACHED_PLACES = 50;
const END = 0;

class Machine {
  readonly #places: Place[] = [{ to: END, free: [] }];
  readonly #cache = new Map<string, Reached>();
  /** The last step that reached each place. */
  readonly #seen: Uint32Array;
  readonly #start: Reached;
  #step = 0;
  /** How many steps are cached. */
  #cached = 0;

  constructor(tokens: readonly Token[]) {
    const start = this.#build(tokens, END);
    this.#seen = new Uint32Array(this.#places.length);
    this.#start = this.#reach([start]);
  }

  accepts(path: string, orBelow: boolean): boolean {
    let here = this.#start;
    for (const letter of path) {
      if (orBelow && letter === "/" && here.isEnd) return true;
      here = here.next?.get(letter) ?? this.#take(here, letter);
      if (here.places.length === 0 && !here.isEnd) return false;
    }
    return here.isEnd;
  }

  #take({ places, next }: Reached, letter: string): Reached {
    const targets: number[] = [];
    for (const at of places) {
      const place = this.#places[at];
      if (place?.fits?.(letter)) targets.push(place.to);
    }
    const reached = this.#reach(targets);
    if (next === undefined) return reached;
    if (this.#cached >= MAX_CACHED) this.#clearCache();
    this.#cached += 1;
    next.set(letter, reached);
    return reached;
  }

  /** Adds the places that are reached without consuming a letter. */
  #reach(open: number[]): Reached {
    if (this.#step === 0xffff_ffff) this.#seen.fill(0);
    this.#step = this.#step === 0xffff_ffff ? 1 : this.#step + 1;
    const places: number[] = [];
    let isEnd = false;
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (this.#seen[at] === this.#step) continue;
      this.#seen[at] = this.#step;
      const { fits, free } = this.#places[at] as Place;
      if (fits !== undefined) places.push(at);
      isEnd ||= at === END;
      for (const more of free) open.push(more);
    }
    if (places.length > MAX_CACHED_PLACES) return { places, isEnd };
    const key = `${places.sort((a, b) => a - b).join()}${isEnd ? "!" : ""}`;
    const known = this.#cache.get(key) ?? { places, isEnd, next: new Map() };
    this.#cache.set(key, known);
    return known;
  }

  #clearCache(): void {
    for (const { next } of this.#cache.values()) next?.clear();
    this.#cache.clear();
    this.#cached = 0;
  }

  /** Built from the end. Returns the place where the tokens start; after them it continues at `next`. */
  #build(tokens: readonly Token[], next: number): number {
    return tokens.reduceRight((after, token) => this.#place(token, after), next);
  }

  #place(token: Token, next: number): number {
    switch (token.kind) {
      case "letter":
        return this.#add({ fits: token.fits, to: next, free: [] });
      case "run":
        return this.#loop(token.fits, next);
      case "folders": {
        const start = this.#add({ fits: isOther, to: END, free: [next] });
        const slash = this.#add({ fits: isSlash, to: start, free: [] });
        (this.#places[start] as Place).to = this.#loop(isOther, slash);
        return start;
      }
      case "below":
        return this.#add({ fits: isSlash, to: this.#loop(isAny, next), free: [next] });
      case "one-of":
        return this.#add({ to: END, free: token.ways.map((way) => this.#build(way, next)) });
    }
  }

  #loop(fits: Test, next: number): number {
    const at = this.#add({ fits, to: END, free: [next] });
    (this.#places[at] as Place).to = at;
    return at;
  }

  #add(place: Place): number {
    return this.#places.push(place) - 1;
  }
}
