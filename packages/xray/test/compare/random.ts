/** Conversations by chance, valid for the provider, with markers by chance. */

import { textOfTokens } from "@prefork/simulator";
import fc from "fast-check";
import type { Block, Message, Request } from "./corpus/conversation.ts";

/** Letters that JSON escapes, that UTF-8 needs four bytes for, that stand alone. */
const letters = fc.string({
  minLength: 1,
  maxLength: 12,
  unit: fc.constantFrom("a", "b", " ", '"', "\\", "\n", "é", "語", "𝔘", "\u2028", "0"),
});
const prose = fc
  .record({ tokens: fc.integer({ min: 1, max: 700 }), seed: fc.nat(9_999), end: letters })
  .map(({ tokens, seed, end }) => `${textOfTokens(tokens, seed)}${end}`);
const textBlock = prose.map((text): Block => ({ type: "text", text }));
const inputs: fc.Arbitrary<Block> = fc.dictionary(
  fc.constantFrom("path", "limit", "2", "1", "deep", "list"),
  fc.oneof(letters, fc.integer(), fc.constant({ inner: [1, { x: "y" }] }), fc.constant([true, null, "z"])),
  { minKeys: 1, maxKeys: 4 },
);

const schema: Block = { type: "object", properties: { path: { type: "string" }, limit: { type: "number" } } };

const tools = fc
  .array(prose, { maxLength: 4 })
  .map((all) => all.map((description, index): Block => ({ name: `tool_${index}`, description, input_schema: schema })));

/** An assistant turn with calls, and the turn that answers them. */
const round = fc.record({
  said: fc.option(textBlock, { nil: undefined }),
  calls: fc.array(inputs, { minLength: 1, maxLength: 6 }),
  results: fc.array(prose, { minLength: 6, maxLength: 6 }),
  note: fc.option(textBlock, { nil: undefined }),
});

const conversation = fc
  .record({ opening: fc.array(textBlock, { minLength: 1, maxLength: 8 }), rounds: fc.array(round, { maxLength: 6 }) })
  .map(({ opening, rounds }): readonly Message[] => [
    { role: "user", content: opening },
    ...rounds.flatMap(({ said, calls, results, note }, turn): readonly Message[] => {
      const id = (index: number): string => `toolu_${turn}_${index}`;
      return [
        {
          role: "assistant",
          content: [
            ...(said ? [said] : []),
            ...calls.map((input, index) => ({ type: "tool_use", id: id(index), name: "tool_0", input })),
          ],
        },
        {
          role: "user",
          content: [
            ...calls.map((_, index) => ({
              type: "tool_result",
              tool_use_id: id(index),
              content: results[index] ?? "",
            })),
            ...(note ? [note] : []),
          ],
        },
      ];
    }),
  ]);

export const anyRequest: fc.Arbitrary<Request> = fc
  .record({ tools, system: fc.array(textBlock, { maxLength: 3 }), messages: conversation })
  .map((parts) => ({ model: "claude-sonnet-5", max_tokens: 64, ...parts }));

const marker: Block = { cache_control: { type: "ephemeral" } };

/** With markers on so many blocks, counted from the end in the order of the prompt. */
export const withMarkers = (request: Request, places: readonly number[]): Request => {
  let left = [
    ...request.tools,
    ...request.system,
    ...request.messages.flatMap(({ content }) => (typeof content === "string" ? [] : [...content])),
  ].length;
  const wanted = new Set(places.slice(0, 4).map((place) => place % left));
  const marked = (block: Block): Block => {
    left -= 1;
    return wanted.has(left) ? { ...block, ...marker } : block;
  };
  const list = (blocks: readonly Block[]): readonly Block[] => blocks.map(marked);
  return {
    ...request,
    tools: list(request.tools),
    system: typeof request.system === "string" ? request.system : list(request.system),
    messages: request.messages.map(({ role, content }) => ({
      role,
      content: typeof content === "string" ? content : list(content),
    })),
  };
};

export const anyPlaces = fc.array(fc.nat(60), { maxLength: 4 });

/** One more turn at the end. */
export const anyTurn = fc
  .tuple(textBlock, fc.array(textBlock, { minLength: 1, maxLength: 25 }))
  .map(([answer, prompt]): readonly Message[] => [
    { role: "assistant", content: [answer] },
    { role: "user", content: prompt },
  ]);

// --- edits -----------------------------------------------------------------------------------------------------------

type Edit = { readonly request: Request; readonly path: string };

/** Every string of a request that is in the prompt, by its path. */
const stringsOf = (value: unknown, path: string): readonly (readonly [path: string, text: string])[] => {
  if (typeof value === "string") return [[path, value]];
  if (Array.isArray(value)) return value.flatMap((item, index) => stringsOf(item, `${path}[${index}]`));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value)
    .filter(
      ([key]) =>
        key !== "cache_control" &&
        key !== "type" &&
        key !== "role" &&
        key !== "tool_use_id" &&
        key !== "id" &&
        key !== "name",
    )
    .flatMap(([key, item]) => stringsOf(item, /^\d/.test(key) ? `${path}["${key}"]` : `${path}.${key}`));
};

const editable = (request: Request): readonly (readonly [string, string])[] => [
  ...stringsOf(request.tools, "tools"),
  ...stringsOf(request.system, "system"),
  ...stringsOf(request.messages, "messages"),
];

/** The request with another letter put into one of its strings, somewhere. */
export const edited = (request: Request, which: number, where: number): Edit | undefined => {
  const places = editable(request);
  const found = places[which % Math.max(1, places.length)];
  if (found === undefined) return undefined;
  const [path, text] = found;
  const units = [...text];
  const at = where % (units.length + 1);
  const next = units.toSpliced(at, 0, "¤").join("");
  const replaced = (value: unknown, here: string): unknown => {
    if (here === path) return next;
    if (Array.isArray(value)) return value.map((item, index) => replaced(item, `${here}[${index}]`));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [
        key,
        replaced(item, /^\d/.test(key) ? `${here}["${key}"]` : here === "" ? key : `${here}.${key}`),
      ]),
    );
  };
  return { request: replaced(request, "") as Request, path };
};

/** Changes of the whole request that a provider still takes; each leaves it as it is where it cannot be made. */
const changes: readonly ((request: Request) => Request)[] = [
  (request) => ({ ...request, tools: request.tools.toReversed() }),
  (request) => ({ ...request, tools: request.tools.slice(0, -1) }),
  (request) => ({ ...request, tools: [...request.tools, { type: "web_search_20250305", name: "web_search" }] }),
  (request) => ({ ...request, tools: [{ name: "first", input_schema: schema }, ...request.tools] }),
  (request) => ({ ...request, system: request.system.slice(1) }),
  (request) => ({ ...request, system: [{ type: "text", text: "First of all." }, ...(request.system as Block[])] }),
  (request) => ({ ...request, output_config: { effort: "low" } }),
  (request) => ({ ...request, thinking: { type: "adaptive" } }),
  (request) => (request.tools.length < 2 ? request : { ...request, tool_choice: { type: "any" } }),
  (request) => ({ ...request, stop_sequences: ["END"], metadata: { user_id: "u" } }),
  (request) => ({ ...request, messages: request.messages.toSpliced(1, request.messages.length > 2 ? 2 : 0) }),
  (request) => ({
    ...request,
    messages: request.messages.map((message, index) =>
      index === 0 ? { role: "user", content: [...(message.content as Block[]), picture] } : message,
    ),
  }),
  (request) => ({
    ...request,
    messages: request.messages.toSpliced(
      1,
      0,
      { role: "assistant", content: [{ type: "text", text: "Go on." }] },
      { role: "user", content: "I do." },
    ),
  }),
];

const picture: Block = { type: "image", source: { type: "base64", media_type: "image/png", data: "cG5n" } };

export const anyChanges: fc.Arbitrary<(request: Request) => Request> = fc
  .uniqueArray(fc.constantFrom(...changes), { maxLength: 2 })
  .map((chosen) => (request) => chosen.reduce((changed, change) => change(changed), request));
