/** Could a file name pattern stand for a name? In no more steps than pattern times name, whatever the pattern. Pure.
 *  Elsewhere: finding the names there really are (../../workspace/patterns.ts). */

/** What one place takes: any run of letters, any one letter, or this one. */
type Sign = "run" | "one" | { readonly letter: string };

const signsOf = (pattern: string): readonly Sign[] => {
  const signs: Sign[] = [];
  const lastClose = pattern.lastIndexOf("]");
  for (let at = 0; at < pattern.length; at += 1) {
    const letter = pattern[at] as string;
    if (letter === "*") {
      if (signs.at(-1) !== "run") signs.push("run");
    } else if (letter === "?") signs.push("one");
    else if (letter === "[" && lastClose > at + 1) {
      // Which letters a set holds is not asked: any one counts.
      at = pattern.indexOf("]", at + 2);
      if (at < 0) return [...signs, "run"];
      signs.push("one");
    } else {
      if (letter === "\\" && at + 1 < pattern.length) at += 1;
      signs.push({ letter: pattern[at] as string });
    }
  }
  return signs;
};

/** When a later sign fails, only the last run can take one letter more: earlier ones would gain nothing by it. */
const fits = (signs: readonly Sign[], name: string): boolean => {
  let [at, sign, run, taken] = [0, 0, -1, 0];
  while (at < name.length) {
    const wanted = signs[sign];
    if (wanted === "run") {
      run = sign;
      taken = at;
      sign += 1;
    } else if (wanted === "one" || (wanted !== undefined && wanted.letter === name[at])) {
      at += 1;
      sign += 1;
    } else if (run >= 0) {
      taken += 1;
      at = taken;
      sign = run + 1;
    } else return false;
  }
  return signs.slice(sign).every((left) => left === "run");
};

export const couldStandFor = (pattern: string, names: readonly string[]): boolean => {
  const signs = signsOf(pattern);
  // A pattern that asks for more letters than any of them has stands for none.
  const least = signs.filter((sign) => sign !== "run").length;
  return names.some((name) => name.length >= least && fits(signs, name));
};
