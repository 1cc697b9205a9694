/** A Gemini body as a prompt: tools, then the system instruction, then the contents.
 *  Invariant: each function declaration is one piece, and so is each part of a content; both spellings of a member
 *  (`systemInstruction`, `system_instruction`) are the same. The model is in the address, not in the body.
 *  Elsewhere: what is cached (vendors.ts, entries.ts), where the address is read (recording.ts, ../proxy/). */

import type { Body } from "./body.ts";
import { type Counted, countObject, countText, tokensOf } from "./count.ts";
import { chainPieces, type Field, type Piece, type Prompt, type Setting, settingsPiece } from "./piece.ts";
import type { Level, Rules } from "./rules.ts";
import {
  type BodyMember,
  type BodyValue,
  isNullHere,
  isObjectHere,
  itemsAt,
  type KeyOrderRule,
  listAt,
  memberBelow,
  membersAt,
  rawText,
  stringAt,
  unorderedText,
} from "./values.ts";

/** The key order matters where the model sees it. Signatures prove where a part comes from and are not part of the
 *  prompt. */
const rule: KeyOrderRule = {
  ordered: new Set(["parameters", "parametersJsonSchema", "parameters_json_schema", "args"]),
  unseen: new Set(["thoughtSignature", "thought_signature"]),
};

export const geminiPrompt = (body: Body, rules: Rules): Prompt => {
  const { members } = body;
  const byLevel: Readonly<Record<Level, readonly Piece[]>> = {
    tools: listAt(members, "tools").flatMap(toolPieces),
    system: systemPieces(memberNamed(members, "systemInstruction")),
    messages: listAt(members, "contents").flatMap(contentPieces),
  };
  const settings = settingsOf(body);
  const isHeld = memberNamed(members, "cachedContent") !== undefined;
  const pieces = chainPieces(
    rules.levels.flatMap((level) => [settingsPiece(level, settings, rules), ...byLevel[level]]),
    rule,
  );
  return {
    body,
    // A stored entry was long enough to be stored.
    rules: isHeld ? { ...rules, minimum: 0 } : rules,
    text: rule,
    pieces,
    tokens: pieces.at(-1)?.end ?? 0,
    images: [],
    ...(isHeld ? { held: true } : {}),
    fast: false,
    inUs: false,
    notes: isHeld
      ? ["cachedContent: part of the prompt is stored by the provider under that name, and no body shows it"]
      : [],
  };
};

const snake = (key: string): string => key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** A member by either of its spellings. */
const memberNamed = (members: readonly BodyMember[], key: string): BodyValue | undefined =>
  members.find((member) => (member.key === key || member.key === snake(key)) && !isNullHere(member.at))?.at;

// --- parameters ------------------------------------------------------------------------------------------------------

const PLACES: readonly (readonly [Setting["name"], readonly (readonly string[])[]])[] = [
  ["cached_content", [["cachedContent"]]],
  ["service_tier", [["serviceTier"]]],
  ["thinking", [["generationConfig", "thinkingConfig"]]],
  [
    "output_format",
    [
      ["generationConfig", "responseSchema"],
      ["generationConfig", "responseJsonSchema"],
      ["generationConfig", "responseMimeType"],
    ],
  ],
  ["tool_choice", [["toolConfig"]]],
];

/** Values that mean the same as the provider's default. */
const DEFAULTS: Readonly<Record<string, string>> = {
  '{"functionCallingConfig":{"mode":"AUTO"}}': "auto",
  '{"function_calling_config":{"mode":"AUTO"}}': "auto",
  "{}": "auto",
  "text/plain": '{"type":"text"}',
};

const settingsOf = ({ members, model }: Body): readonly Setting[] => {
  const stated = PLACES.flatMap(([name, places]): readonly Setting[] => {
    const at = places.map((place) => memberBelow(members, place, memberNamed)).find((found) => found !== undefined);
    if (!at) return [];
    const text = stringAt(at) ?? unorderedText(at, rule);
    return [{ name, text: DEFAULTS[text] ?? text, at }];
  });
  const inBody = members.find(({ key }) => key === "model")?.at;
  const place = inBody ? { at: inBody } : {};
  return [...(model === "" ? [] : [{ name: "model" as const, text: model, ...place }]), ...stated];
};

// --- pieces ----------------------------------------------------------------------------------------------------------

type PieceSource = {
  readonly at: BodyValue;
  readonly level: Level;
  readonly kind: string;
  readonly role: string;
  readonly message?: number;
  readonly fields: readonly Field[];
  readonly counted: Counted;
};

const pieceOf = ({ counted, message, ...piece }: PieceSource): Piece => ({
  ...piece,
  settings: [],
  tokens: tokensOf(counted),
  ...(message === undefined ? {} : { message }),
  markable: true,
});

const fieldsOf = (members: readonly BodyMember[], prefix = ""): readonly Field[] =>
  members
    .filter(({ key, at }) => !isNullHere(at) && !rule.unseen.has(key))
    .map(
      ({ key, at }): Field => ({ name: `${prefix}${key}`, at, form: rule.ordered.has(key) ? "ordered" : "unordered" }),
    )
    .sort((one, other) => rank(one.name) - rank(other.name) || (one.name < other.name ? -1 : 1));

/** Names and descriptions come first. */
const rank = (name: string): number => (/name$/.test(name) ? 0 : /description$/.test(name) ? 1 : 2);

const DECLARATIONS = /^function_?declarations$/i;

/** Each declared function is one piece; the provider's own tools stay as they are. */
const toolPieces = (tool: BodyValue): readonly Piece[] =>
  membersAt(tool).flatMap(({ key, at }): readonly Piece[] => {
    const common = { level: "tools", kind: "tool", role: "" } as const;
    if (!DECLARATIONS.test(key))
      return [pieceOf({ ...common, at: tool, fields: [{ name: key, at, form: "unordered" }], counted: countText(at) })];
    return itemsAt(at).map((declared) =>
      pieceOf({
        ...common,
        at: declared,
        fields: fieldsOf(membersAt(declared)),
        counted: countObject(declared, rule.unseen),
      }),
    );
  });

const systemPieces = (instruction: BodyValue | undefined): readonly Piece[] => {
  if (!instruction) return [];
  const parts = isObjectHere(instruction) ? listAt(membersAt(instruction), "parts") : [instruction];
  return parts.map((part) => partPiece(part, { level: "system", role: "" }));
};

const contentPieces = (content: BodyValue, message: number): readonly Piece[] => {
  const members = membersAt(content);
  const role = stringAt(memberNamed(members, "role")) ?? "user";
  return listAt(members, "parts").map((part) => partPiece(part, { level: "messages", role, message }));
};

type PieceHome = { readonly level: Level; readonly role: string; readonly message?: number };

const DATA = ["inlineData", "fileData"] as const;

const partPiece = (at: BodyValue, home: PieceHome): Piece => {
  const members = membersAt(at);
  const text = memberNamed(members, "text");
  if (!isObjectHere(at)) return textPiece(at, at, home);
  const thought = memberNamed(members, "thought");
  const isThought = thought !== undefined && rawText(thought) === "true";
  if (text) return { ...textPiece(at, text, home), kind: isThought ? "thinking" : "text" };
  for (const [key, kind] of [
    ["functionCall", "tool_call"],
    ["functionResponse", "tool_result"],
  ] as const) {
    const inner = memberNamed(members, key);
    if (!inner) continue;
    const fields = fieldsOf(membersAt(inner));
    const payload = memberNamed(membersAt(inner), key === "functionCall" ? "args" : "response");
    const counted = countText(key === "functionCall" ? payload : resultIn(payload));
    return pieceOf({ ...home, at, kind, fields, counted });
  }
  const data = DATA.map((key) => memberNamed(members, key)).find((found) => found !== undefined);
  const isImage = data !== undefined && (stringAt(memberNamed(membersAt(data), "mimeType")) ?? "").startsWith("image/");
  const counted = data === undefined ? countObject(at, rule.unseen) : isImage ? PICTURE : DOCUMENT;
  return pieceOf({
    ...home,
    at,
    kind: isImage ? "image" : data ? "document" : "part",
    fields: fieldsOf(members),
    counted,
  });
};

/** The value under `output` or `error` is the result, otherwise the whole response. */
const resultIn = (response: BodyValue | undefined): BodyValue | undefined => {
  const members = response ? membersAt(response) : [];
  return memberNamed(members, "error") ?? memberNamed(members, "output") ?? response;
};

const PICTURE: Counted = { bytes: 0, images: 1 };
const DOCUMENT: Counted = { bytes: 0, documents: 1 };

const textPiece = (at: BodyValue, text: BodyValue, home: PieceHome): Piece =>
  pieceOf({
    ...home,
    at,
    kind: "text",
    fields: [{ name: "text", at: text, form: "unordered" }],
    counted: countText(text),
  });
