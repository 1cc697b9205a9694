/** JSON in any of the ways that it can be written, by chance.
 *  Invariant: what is written parses to the value that was given; the same seed gives the same text. */

import type { Json, JsonObject } from "../src/index.ts";

export type Chance = () => number;

/** Numbers from 0 to 1 in an endless row, the same for the same seed. */
export const chanceFrom = (seed: number): Chance => {
  let state = seed | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
};

const spaced = (chance: Chance): string =>
  chance() < 0.7 ? "" : ([" ", "\n", "\t ", "\r\n"][Math.floor(chance() * 4)] ?? "");

const shuffled = <T>(items: readonly T[], chance: Chance): readonly T[] =>
  items
    .map((item) => ({ item, at: chance() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);

const letterIn = (letter: string, chance: Chance): string =>
  /[a-z]/.test(letter) && chance() < 0.1
    ? `\\u00${letter.charCodeAt(0).toString(16)}`
    : JSON.stringify(letter).slice(1, -1);

/** The value in any of the ways that JSON can say it. */
export const spelled = (value: Json, chance: Chance): string => {
  const space = (): string => spaced(chance);
  if (Array.isArray(value))
    return `[${space()}${value.map((item) => spelled(item, chance) + space()).join(`,${space()}`)}]`;
  if (typeof value === "number") return chance() < 0.5 ? `${value}.0e0` : String(value);
  if (typeof value === "string") return `"${Array.from(value, (letter) => letterIn(letter, chance)).join("")}"`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = shuffled(Object.entries(value), chance);
  return `{${space()}${members.map(([key, member]) => `"${key}"${space()}:${space()}${spelled(member, chance)}${space()}`).join(`,${space()}`)}}`;
};

export type Spelling = { readonly text: string; readonly end: number };

/** A body with its list, and the byte where the list's last item ends. */
export const bodyOf = (members: JsonObject, list: string, chance: Chance): Spelling => {
  const rest = shuffled(Object.entries(members), chance);
  let made = `{${spaced(chance)}`;
  let end = 0;
  rest.forEach(([key, value], index) => {
    made += `${index > 0 ? `,${spaced(chance)}` : ""}"${key}"${spaced(chance)}:${spaced(chance)}`;
    if (key === list && Array.isArray(value)) {
      const items = value.map((item) => spelled(item, chance));
      made += `[${spaced(chance)}${items.join(`${spaced(chance)},${spaced(chance)}`)}`;
      end = Buffer.byteLength(made);
      made += `${spaced(chance)}]`;
    } else made += spelled(value, chance);
    made += spaced(chance);
  });
  return { text: `${made}}${spaced(chance)}`, end };
};
