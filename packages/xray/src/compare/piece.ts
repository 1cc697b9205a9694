/** A prompt as its provider renders it, piece by piece, with a hash of everything up to each piece.
 *  Invariant: two prompts share a prefix exactly as far as their keys agree; markers, spelling and white space are in no
 *  key; a piece holds places in the body and no text of it.
 *  Elsewhere: cutting a body into pieces (anthropic.ts, openai.ts), what of them is kept (entries.ts). */

import { hash } from "node:crypto";
import type { Ttl } from "@prefork/wire";
import type { Body } from "./body.ts";
import { type At, isStringHere, orderedText, stringAt, type TextRule, unorderedText } from "./places.ts";
import type { Level, Parameter, Rules } from "./rules.ts";

/** What a model sees of a value: the letters of a string, JSON in its own order, or JSON whose order says nothing. */
export type Field = { readonly name: string; readonly at: At; readonly form: "ordered" | "unordered" };

/** A parameter that is not at its default. `at` is where it is said, if the body says it in one place. */
export type Setting = { readonly name: Parameter; readonly text: string; readonly at?: At };

export type Piece = {
  readonly level: Level;
  /** `settings` opens each level; `tool`; or the type of a block. */
  readonly kind: string;
  readonly role: string;
  /** The block; of settings nothing. */
  readonly at?: At;
  readonly fields: readonly Field[];
  readonly settings: readonly Setting[];
  readonly tokens: number;
  /** Index of the message in its list. */
  readonly message?: number;
  /** A marker with this lifetime ends here. */
  readonly marker?: Ttl;
  /** Could one? */
  readonly markable: boolean;
  /** An automatic entry can end here: the end of a message of the user, of results, or of the opening instructions. */
  readonly ending?: boolean;
  /** Earlier thinking that the model leaves out just before this piece. */
  readonly stripped?: At;
};

export type PromptPiece = Piece & {
  /** Everything up to and with this piece; this piece alone. */
  readonly key: string;
  readonly own: string;
  /** Estimated tokens up to its end. */
  readonly end: number;
};

export type Prompt = {
  readonly body: Body;
  readonly rules: Rules;
  readonly text: TextRule;
  readonly pieces: readonly PromptPiece[];
  readonly tokens: number;
  /** Where pictures stand in it. */
  readonly images: readonly At[];
  /** The whole request is marked: its last block that can be. */
  readonly automatic?: Ttl;
  /** No explicit markers but these count (OpenAI's explicit mode). */
  readonly explicitOnly?: boolean;
  /** It begins with an entry that its provider holds under a name: no body shows that, and only it is sure to be read. */
  readonly held?: true;
  readonly fast: boolean;
  readonly inUs: boolean;
  readonly notes: readonly string[];
};

/** What a field says, in one spelling. */
export const fieldText = ({ at, form, name }: Field, rule: TextRule): string => {
  const letters = stringAt(at);
  if (letters !== undefined) return letters;
  return form === "ordered" || rule.ordered.has(name) ? orderedText(at) : unorderedText(at, rule);
};

/** Lengths stand before values, so that no content can imitate a boundary. */
const ownText = ({ level, role, kind, fields, settings }: Piece, rule: TextRule): string => {
  const said = fields.map((field) => {
    const text = fieldText(field, rule);
    return `\n${field.name}:${isStringHere(field.at) ? "s" : "j"}${text.length}:${text}`;
  });
  const set = settings.map(({ name, text }) => `\n${name}=${text.length}:${text}`);
  return `${level}/${role}/${kind}${said.join("")}${set.join("")}`;
};

/** Keys chained from the first piece on. */
export const chained = (pieces: readonly Piece[], rule: TextRule): readonly PromptPiece[] => {
  let key = "";
  let end = 0;
  return pieces.map((piece) => {
    const own = hash("sha256", ownText(piece, rule), "base64url");
    key = hash("sha256", `${key}${own}`, "base64url");
    end += piece.tokens;
    return { ...piece, own, key, end };
  });
};

/** How many pieces both begin with. */
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

/** Settings of one level that are not at their defaults, as the piece that opens it. */
export const settingsPiece = (level: Level, settings: readonly Setting[], { loses, defaults }: Rules): Piece => ({
  level,
  kind: "settings",
  role: "",
  fields: [],
  settings: settings.filter(({ name, text }) => loses[name] === level && defaults[name] !== text),
  tokens: 0,
  markable: false,
});
