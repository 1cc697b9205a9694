/** A prompt as its provider renders it, piece by piece, with a hash of everything up to each piece.
 *  Invariant: two prompts share a prefix exactly as far as their keys agree; markers, formatting and white space are in
 *  no key; a piece holds positions in the body and none of its text.
 *  Elsewhere: cutting a body into pieces (anthropic.ts, openai.ts, gemini.ts), what is cached of them (entries.ts). */

import { hash } from "node:crypto";
import type { Ttl } from "@prefork/wire";
import type { Body } from "./body.ts";
import type { Level, Parameter, Rules } from "./rules.ts";
import { type BodyValue, isStringHere, type KeyOrderRule, orderedText, stringAt, unorderedText } from "./values.ts";

/** What a model sees of a value: the text of a string, JSON in its own key order, or JSON whose key order does not
 *  matter. */
export type Field = { readonly name: string; readonly at: BodyValue; readonly form: "ordered" | "unordered" };

/** A parameter that is not at its default. `at` is where it is set, if the body sets it in one place. */
export type Setting = { readonly name: Parameter; readonly text: string; readonly at?: BodyValue };

export type Piece = {
  readonly level: Level;
  /** `settings` opens each level; `tool`; or the type of a block. */
  readonly kind: string;
  readonly role: string;
  /** The block; absent for settings. */
  readonly at?: BodyValue;
  readonly fields: readonly Field[];
  readonly settings: readonly Setting[];
  readonly tokens: number;
  /** Index of the message in its list. */
  readonly message?: number;
  /** A marker with this lifetime ends here. */
  readonly marker?: Ttl;
  /** Could it carry a marker? */
  readonly markable: boolean;
  /** An automatic entry can end here: after a user message, a group of results, or the opening instructions. */
  readonly ending?: boolean;
  /** Earlier thinking that the model drops just before this piece. */
  readonly stripped?: BodyValue;
};

export type PromptPiece = Piece & {
  /** The hash of everything up to and including this piece; of this piece alone. */
  readonly key: string;
  readonly own: string;
  /** Estimated tokens up to its end. */
  readonly end: number;
};

export type Prompt = {
  readonly body: Body;
  readonly rules: Rules;
  readonly text: KeyOrderRule;
  readonly pieces: readonly PromptPiece[];
  readonly tokens: number;
  /** Where its images are. */
  readonly images: readonly BodyValue[];
  /** The whole request is marked, at its last block that can carry a marker. */
  readonly automatic?: Ttl;
  /** Only explicit markers count (OpenAI's explicit mode). */
  readonly explicitOnly?: boolean;
  /** It begins with a stored entry that no body shows; only that entry is certain to be read. */
  readonly held?: true;
  readonly fast: boolean;
  readonly inUs: boolean;
  readonly notes: readonly string[];
};

/** The normalised text of a field. */
export const fieldText = ({ at, form, name }: Field, rule: KeyOrderRule): string => {
  const letters = stringAt(at);
  if (letters !== undefined) return letters;
  return form === "ordered" || rule.ordered.has(name) ? orderedText(at) : unorderedText(at, rule);
};

/** Values are preceded by their length, so that no content can imitate a boundary. */
const ownText = ({ level, role, kind, fields, settings }: Piece, rule: KeyOrderRule): string => {
  const fieldTexts = fields.map((field) => {
    const text = fieldText(field, rule);
    return `\n${field.name}:${isStringHere(field.at) ? "s" : "j"}${text.length}:${text}`;
  });
  const settingTexts = settings.map(({ name, text }) => `\n${name}=${text.length}:${text}`);
  return `${level}/${role}/${kind}${fieldTexts.join("")}${settingTexts.join("")}`;
};

/** Hashes chained from the first piece on. */
export const chainPieces = (pieces: readonly Piece[], rule: KeyOrderRule): readonly PromptPiece[] => {
  let key = "";
  let end = 0;
  return pieces.map((piece) => {
    const own = hash("sha256", ownText(piece, rule), "base64url");
    key = hash("sha256", `${key}${own}`, "base64url");
    end += piece.tokens;
    return { ...piece, own, key, end };
  });
};

/** The number of pieces that both begin with. */
export const agreement = (a: Prompt, b: Prompt): number => {
  const shorter = Math.min(a.pieces.length, b.pieces.length);
  let [low, high] = [0, shorter];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (a.pieces[middle - 1]?.key === b.pieces[middle - 1]?.key) low = middle;
    else high = middle - 1;
  }
  return low;
};

/** The settings of one level that are not at their defaults, as the piece that opens it. */
export const settingsPiece = (level: Level, settings: readonly Setting[], { loses, defaults }: Rules): Piece => ({
  level,
  kind: "settings",
  role: "",
  fields: [],
  settings: settings.filter(({ name, text }) => loses[name] === level && defaults[name] !== text),
  tokens: 0,
  markable: false,
});
