/** A Gemini body as a prompt: tools, then the system instruction, then the contents.
 *  Invariant: each declaration of a function is one piece, each part of a content is one; both spellings of a member
 *  (`systemInstruction`, `system_instruction`) are the same. The model stands in the address, not in the body.
 *  Elsewhere: what of it is kept (vendors.ts, entries.ts), where the address is read (recording.ts, ../proxy/). */

import type { Body } from "./body.ts";
import { type Counted, lettersOf, objectBytes, tokensOf } from "./count.ts";
import { chained, type Field, type Piece, type Prompt, type Setting, settingsPiece } from "./piece.ts";
import {
  type At,
  isNullHere,
  isObjectHere,
  itemsAt,
  listAt,
  type MemberAt,
  memberBelow,
  membersAt,
  rawText,
  stringAt,
  type TextRule,
  unorderedText,
} from "./places.ts";
import type { Level, Rules } from "./rules.ts";

/** The order of keys counts where a model sees it. Signatures prove where a part comes from, and say nothing. */
const rule: TextRule = {
  ordered: new Set(["parameters", "parametersJsonSchema", "parameters_json_schema", "args"]),
  unseen: new Set(["thoughtSignature", "thought_signature"]),
};

export const geminiPrompt = (body: Body, rules: Rules): Prompt => {
  const { members } = body;
  const byLevel: Readonly<Record<Level, readonly Piece[]>> = {
    tools: listAt(members, "tools").flatMap(toolPieces),
    system: systemPieces(named(members, "systemInstruction")),
    messages: listAt(members, "contents").flatMap(contentPieces),
  };
  const settings = settingsOf(body);
  const isHeld = named(members, "cachedContent") !== undefined;
  const pieces = chained(
    rules.levels.flatMap((level) => [settingsPiece(level, settings, rules), ...byLevel[level]]),
    rule,
  );
  return {
    body,
    // What is held was long enough to be.
    rules: isHeld ? { ...rules, minimum: 0 } : rules,
    text: rule,
    pieces,
    tokens: pieces.at(-1)?.end ?? 0,
    images: [],
    ...(isHeld ? { held: true } : {}),
    fast: false,
    inUs: false,
    notes: isHeld
      ? ["cachedContent: a part of the prompt is held by the provider under that name, and no body shows it"]
      : [],
  };
};

const snake = (key: string): string => key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** A member by either of its spellings. */
const named = (members: readonly MemberAt[], key: string): At | undefined =>
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

/** Spellings of what the provider does without being told. */
const DEFAULTS: Readonly<Record<string, string>> = {
  '{"functionCallingConfig":{"mode":"AUTO"}}': "auto",
  '{"function_calling_config":{"mode":"AUTO"}}': "auto",
  "{}": "auto",
  "text/plain": '{"type":"text"}',
};

const settingsOf = ({ members, model }: Body): readonly Setting[] => {
  const stated = PLACES.flatMap(([name, places]): readonly Setting[] => {
    const at = places.map((place) => memberBelow(members, place, named)).find((found) => found !== undefined);
    if (!at) return [];
    const text = stringAt(at) ?? unorderedText(at, rule);
    return [{ name, text: DEFAULTS[text] ?? text, at }];
  });
  const inBody = members.find(({ key }) => key === "model")?.at;
  const place = inBody ? { at: inBody } : {};
  return [...(model === "" ? [] : [{ name: "model" as const, text: model, ...place }]), ...stated];
};

// --- pieces ----------------------------------------------------------------------------------------------------------

type Saying = {
  readonly at: At;
  readonly level: Level;
  readonly kind: string;
  readonly role: string;
  readonly message?: number;
  readonly fields: readonly Field[];
  readonly counted: Counted;
};

const pieceOf = ({ counted, message, ...piece }: Saying): Piece => ({
  ...piece,
  settings: [],
  tokens: tokensOf(counted),
  ...(message === undefined ? {} : { message }),
  markable: true,
});

const fieldsOf = (members: readonly MemberAt[], prefix = ""): readonly Field[] =>
  members
    .filter(({ key, at }) => !isNullHere(at) && !rule.unseen.has(key))
    .map(
      ({ key, at }): Field => ({ name: `${prefix}${key}`, at, form: rule.ordered.has(key) ? "ordered" : "unordered" }),
    )
    .sort((one, other) => rank(one.name) - rank(other.name) || (one.name < other.name ? -1 : 1));

/** What stands first is told first. */
const rank = (name: string): number => (/name$/.test(name) ? 0 : /description$/.test(name) ? 1 : 2);

const DECLARATIONS = /^function_?declarations$/i;

/** Declared functions each by itself; the provider's own tools as they are. */
const toolPieces = (tool: At): readonly Piece[] =>
  membersAt(tool).flatMap(({ key, at }): readonly Piece[] => {
    const common = { level: "tools", kind: "tool", role: "" } as const;
    if (!DECLARATIONS.test(key))
      return [pieceOf({ ...common, at: tool, fields: [{ name: key, at, form: "unordered" }], counted: lettersOf(at) })];
    return itemsAt(at).map((declared) =>
      pieceOf({
        ...common,
        at: declared,
        fields: fieldsOf(membersAt(declared)),
        counted: objectBytes(declared, rule.unseen),
      }),
    );
  });

const systemPieces = (instruction: At | undefined): readonly Piece[] => {
  if (!instruction) return [];
  const parts = isObjectHere(instruction) ? listAt(membersAt(instruction), "parts") : [instruction];
  return parts.map((part) => partPiece(part, { level: "system", role: "" }));
};

const contentPieces = (content: At, message: number): readonly Piece[] => {
  const members = membersAt(content);
  const role = stringAt(named(members, "role")) ?? "user";
  return listAt(members, "parts").map((part) => partPiece(part, { level: "messages", role, message }));
};

type Home = { readonly level: Level; readonly role: string; readonly message?: number };

const DATA = ["inlineData", "fileData"] as const;

const partPiece = (at: At, home: Home): Piece => {
  const members = membersAt(at);
  const text = named(members, "text");
  if (!isObjectHere(at)) return saidPart(at, at, home);
  const thought = named(members, "thought");
  const isThought = thought !== undefined && rawText(thought) === "true";
  if (text) return { ...saidPart(at, text, home), kind: isThought ? "thinking" : "text" };
  for (const [key, kind] of [
    ["functionCall", "tool_call"],
    ["functionResponse", "tool_result"],
  ] as const) {
    const inner = named(members, key);
    if (!inner) continue;
    const fields = fieldsOf(membersAt(inner));
    const said = named(membersAt(inner), key === "functionCall" ? "args" : "response");
    const counted = lettersOf(key === "functionCall" ? said : resultIn(said));
    return pieceOf({ ...home, at, kind, fields, counted });
  }
  const data = DATA.map((key) => named(members, key)).find((found) => found !== undefined);
  const isImage = data !== undefined && (stringAt(named(membersAt(data), "mimeType")) ?? "").startsWith("image/");
  const counted = data === undefined ? objectBytes(at, rule.unseen) : isImage ? PICTURE : DOCUMENT;
  return pieceOf({
    ...home,
    at,
    kind: isImage ? "image" : data ? "document" : "part",
    fields: fieldsOf(members),
    counted,
  });
};

/** What stands under `output` or `error` is the result, or else the whole response. */
const resultIn = (response: At | undefined): At | undefined => {
  const members = response ? membersAt(response) : [];
  return named(members, "error") ?? named(members, "output") ?? response;
};

const PICTURE: Counted = { bytes: 0, images: 1 };
const DOCUMENT: Counted = { bytes: 0, documents: 1 };

const saidPart = (at: At, text: At, home: Home): Piece =>
  pieceOf({
    ...home,
    at,
    kind: "text",
    fields: [{ name: "text", at: text, form: "unordered" }],
    counted: lettersOf(text),
  });
