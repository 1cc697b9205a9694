/** What holds of every fork of a recorded OpenAI body, over conversations and spellings made by chance. */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  assemble,
  type Block,
  bytesOf,
  FORK_PLACEHOLDER_RESULT,
  FrozenPrefix,
  fold,
  forkFamily,
  forkRequests,
  InputError,
  type Json,
  type Marker,
  nextMarkers,
  openaiChat,
  openaiResponses,
  type Prepared,
  type Protocol,
  prepare,
  profiles,
  text,
  toolResult,
} from "../src/index.ts";
import { readParent } from "../src/recorded/index.ts";
import { anyCharacter } from "./any-character.ts";
import { bodyOf, type Chance, chanceFrom, spelled } from "./spellings.ts";

type Item = { readonly [key: string]: Json };

/** One round: what is asked, what is said and called, and what the calls gave. */
type Round = { readonly asked: readonly string[]; readonly said: string; readonly results: readonly string[] };

const anyWords = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 12 });
const anyRound: fc.Arbitrary<Round> = fc.record({
  asked: fc.array(anyWords, { minLength: 1, maxLength: 3 }),
  said: anyWords,
  results: fc.array(fc.string({ unit: anyCharacter, maxLength: 9 }), { maxLength: 3 }),
});
const anyRounds = fc.array(anyRound, { minLength: 1, maxLength: 4 });
const idOf = (round: number, call: number): string => `call_${round}_${call}`;

// --- requests of our own ---------------------------------------------------------------------------------------------

/** Spelled as the encoders do, so that the two ways to a family can be held against each other letter for letter. */
const responseOf = ({ said, results }: Round): string => {
  const items = [
    { type: "reasoning", id: "rs", summary: [], encrypted_content: "gA==" },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: said }] },
    ...results.map((_, call) => ({ type: "function_call", call_id: idOf(9, call), name: "Agent", arguments: "{}" })),
  ];
  return JSON.stringify({ id: "resp", model: "m", status: "completed", output: items, usage: {} });
};

const completionOf = ({ said, results }: Round): string => {
  const calls = results.map((_, call) => ({
    id: idOf(9, call),
    type: "function",
    function: { name: "Agent", arguments: "{}" },
  }));
  const message = { role: "assistant", content: said, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
  return JSON.stringify({ id: "c", model: "m", choices: [{ index: 0, message, finish_reason: "stop" }], usage: {} });
};

const sentBy = (protocol: Protocol, model: string, rounds: readonly Round[]): Prepared => {
  const head = {
    model,
    tools: [{ type: "function" as const, name: "Agent", description: "Forks.", inputSchema: { type: "object" } }],
    system: [text("You are a test."), text("Be brief.")],
    settings: {},
  };
  const grown = rounds.reduce<FrozenPrefix>(
    (prefix, { asked, said, results }, round) => {
      const calls = results.map(
        (_, call): Block => ({ type: "tool_use", id: idOf(round, call), name: "Agent", input: `{"n": 1.0}` }),
      );
      const answers = results.map((result, call) => toolResult(idOf(round, call), result));
      const heard = prefix.append({ role: "user", content: asked.map(text) });
      if (round === rounds.length - 1) return heard;
      const told = heard.append({ role: "assistant", content: [text(said), ...calls] });
      return answers.length > 0 ? told.append({ role: "user", content: answers }) : told;
    },
    FrozenPrefix.open(protocol.encoder, head),
  );
  return prepare({ protocol, prefix: grown, markers: nextMarkers(grown), closing: { maxTokens: 64, stream: true } });
};

const chatOf = (name: string): Protocol => {
  const found = profiles.get(name)?.protocol;
  assert.ok(found);
  return found;
};

const wires: readonly (readonly [Protocol, string, (round: Round) => string])[] = [
  [openaiResponses, "gpt-6-sol", responseOf],
  [openaiResponses, "gpt-5.5", responseOf],
  [openaiChat, "gpt-6-sol", completionOf],
  [openaiChat, "gpt-4.1", completionOf],
  [chatOf("dashscope"), "qwen3.7-max", completionOf],
  [chatOf("glm"), "glm-5", completionOf],
];

const indexes = (markers: readonly Marker[]): readonly number[] => markers.map(({ at }) => at.index);

for (const [format, model, answerOf] of wires)
  test(`${format.name}, ${model}: our own requests come back with hash, markers and bytes, and have the same forks`, () => {
    fc.assert(
      fc.property(anyRounds, anyRound, (rounds, round) => {
        const sent = sentBy(format, model, rounds);
        const recorded = readParent(bytesOf(sent), { format });
        assert.equal(recorded.prefix.hash, sent.prefix.hash);
        assert.deepEqual(indexes(recorded.markers), indexes(sent.markers));
        assert.deepEqual(bytesOf(assemble(recorded)), bytesOf(sent));
        const answer = answerOf(round);
        const options = {
          protocol: "none" as const,
          results: round.results.map((result, call) => toolResult(idOf(9, call), result)),
        };
        // Where nothing was thought since the last words of the user, a recording has nothing to lose by more of them.
        const ours = forkFamily({ ...sent, strips: recorded.strips }, ["one", "two"], {
          ...options,
          inFlight: fold(format.whole(answer)).response.message,
          parentNote: "launched",
        });
        const theirs = forkRequests(bytesOf(sent), ["one", "two"], {
          ...options,
          answer,
          format,
          parentNote: "launched",
        });
        const texts = ({ members, parentNext }: typeof ours): readonly string[] =>
          [...members, ...(parentNext ? [parentNext] : [])].map((member) => bytesOf(member).toString());
        assert.deepEqual(texts(theirs), texts(ours));
        assert.deepEqual(theirs.notes, []);
      }),
      { numRuns: 40, seed: 11 },
    );
  });

// --- requests of others ----------------------------------------------------------------------------------------------

/** How a format says what a conversation is. */
type Words = {
  readonly list: "input" | "messages";
  readonly part: string;
  readonly opening: (content: Json) => Item;
  readonly heard: (content: Json) => Item;
  readonly said: (round: Round, ids: readonly string[]) => readonly Item[];
  readonly result: (id: string, output: Json) => Item;
};

const responses: Words = {
  list: "input",
  part: "input_text",
  opening: (content) => ({ type: "message", role: "developer", content }),
  heard: (content) => ({ role: "user", content }),
  said: ({ said }, ids) => [
    { type: "reasoning", id: "rs", summary: [], encrypted_content: "gA==" },
    {
      type: "message",
      id: "m",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: said }],
    },
    ...ids.map((id) => ({ type: "function_call", call_id: id, name: "Agent", arguments: `{"n": 1}` })),
  ],
  result: (id, output) => ({ type: "function_call_output", call_id: id, output }),
};

const chat: Words = {
  list: "messages",
  part: "text",
  opening: (content) => ({ role: "system", content }),
  heard: (content) => ({ role: "user", content }),
  said: ({ said }, ids) => [
    {
      role: "assistant",
      content: said,
      refusal: null,
      ...(ids.length > 0
        ? {
            tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "Agent", arguments: `{"n": 1}` } })),
          }
        : {}),
    },
  ],
  result: (id, output) => ({ role: "tool", tool_call_id: id, content: output }),
};

/** `markers`: how many of the texts carry one. */
type Habits = { readonly words: Words; readonly chance: Chance; readonly markers: number };

/** A text is said bare, as one part, or with a marker on it. */
const contentOf = (said: string, { words, chance, markers }: Habits): Json => {
  if (chance() < 0.5 && markers === 0) return said;
  const marker: Item = chance() < markers ? { prompt_cache_breakpoint: { mode: "explicit" } } : {};
  return [{ type: words.part, text: said, ...marker }];
};

type Recorded = { readonly items: readonly Item[]; readonly answer: readonly Item[]; readonly tail: readonly Item[] };

const recordedOf = (rounds: readonly Round[], habits: Habits): Recorded => {
  const { words, chance } = habits;
  const { opening, heard, said, result } = words;
  const content = (value: string): Json => contentOf(value, habits);
  const asked = ({ asked: all }: Round): readonly Item[] => all.map((value) => heard(content(value)));
  const ids = ({ results }: Round, round: number): readonly string[] => results.map((_, call) => idOf(round, call));
  const last = rounds.at(-1) as Round;
  const earlier = rounds
    .slice(0, -1)
    .flatMap((round, index) => [
      ...asked(round),
      ...said(round, ids(round, index)),
      ...round.results.map((output, call) => result(idOf(index, call), chance() < 0.5 ? output : content(output))),
    ]);
  return {
    items: [...(chance() < 0.6 ? [opening(content("Be brief."))] : []), ...earlier, ...asked(last)],
    answer: said(last, ids(last, 9)),
    tail: [...ids(last, 9).map((id) => result(id, FORK_PLACEHOLDER_RESULT)), heard("one")],
  };
};

/** A lone text may be the whole input. */
const listOf = (items: readonly Item[], { list }: Words): Json => {
  const [only] = items;
  const isBare = list === "input" && items.length === 1 && only?.role === "user" && typeof only.content === "string";
  return isBare ? (only.content ?? "") : items;
};

const MARKERS = new Set(["prompt_cache_breakpoint", "cache_control"]);

/** Without markers, with a lone part as the text that it is, and a message without the word that it is one. */
const plain = (value: Json, key = ""): Json => {
  if (Array.isArray(value)) {
    const items = value.map((item) => plain(item));
    const [only] = items as readonly (Item | undefined)[];
    const isText = only?.type === "input_text" || only?.type === "text";
    return (key === "content" || key === "output") && items.length === 1 && isText ? (only.text ?? "") : items;
  }
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, member]) => !MARKERS.has(name) && !(name === "type" && member === "message"))
      .map(([name, member]) => [name, plain(member, name)]),
  );
};

const count = (value: string, word: string): number => value.split(word).length - 1;

const models = fc.constantFrom("gpt-6-sol", "gpt-5.6", "gpt-5.2", "gpt-4.1");
const modes = fc.constantFrom<Item>(
  {},
  { prompt_cache_options: { mode: "implicit" } },
  { prompt_cache_options: { mode: "explicit", ttl: "30m" } },
);

const anyRecording = fc.record({
  rounds: anyRounds,
  seed: fc.integer(),
  model: models,
  mode: modes,
  markers: fc.constantFrom(0, 0, 0.4),
});

for (const words of [responses, chat])
  test(`${words.list}: forks of any formatting contain what was recorded and answered byte for byte, and their own directive`, () => {
    let compared = 0;
    fc.assert(
      fc.property(anyRecording, ({ rounds, seed, model, mode, markers }) => {
        const chance = chanceFrom(seed);
        const { items, answer, tail } = recordedOf(rounds, { words, chance, markers });
        const members: Item = {
          model,
          [words.list]: listOf(items, words),
          ...(chance() < 0.5
            ? { tools: [{ type: "function", name: "t", function: {}, parameters: { b: 1, a: 2 } }] }
            : {}),
          temperature: 1,
          stream: chance() < 0.5,
          ...mode,
        };
        const body = bodyOf(members, words.list, chance);
        const output = answer.map((item) => spelled(item, chance));
        const given = words === responses ? `{"output":[${output.join(" , ")}]}` : ` ${output.join()} `;
        const { members: forks, notes } = forkRequests(body.text, ["one", "two"], { answer: given, protocol: "none" });
        const first = forks[0] ? bytesOf(forks[0]).toString() : "";
        assert.deepEqual(
          plain(JSON.parse(first) as Json),
          plain({ ...members, [words.list]: [...items, ...answer, ...tail] }),
        );
        for (const letters of output) assert.ok(first.includes(letters), "the answer's own letters");
        const isExplicit = JSON.stringify(mode).includes("explicit");
        const isImplicit = !isExplicit && (model === "gpt-6-sol" || model === "gpt-5.6");
        assert.ok(count(first, "prompt_cache_breakpoint") + (isImplicit ? 1 : 0) <= 4, "at most four writes");
        // Moved members, a text made a list, and markers put in or taken out are the only ways to be other bytes.
        if (notes.length > 0 || markers > 0 || isExplicit) return;
        compared += 1;
        const recorded = Buffer.from(body.text);
        for (const fork of forks.map(bytesOf)) {
          assert.equal(Buffer.compare(fork.subarray(0, body.end), recorded.subarray(0, body.end)), 0);
          assert.equal(Buffer.compare(fork.subarray(body.end - recorded.length), recorded.subarray(body.end)), 0);
        }
      }),
      { numRuns: 250, seed: 12 },
    );
    assert.ok(compared > 20, `${compared} bodies were compared byte for byte`);
  });

const anyMember = fc.constantFrom(
  "model",
  "messages",
  "input",
  "tools",
  "role",
  "content",
  "type",
  "output",
  "tool_calls",
  "call_id",
  "choices",
  "message",
  "prompt_cache_breakpoint",
  "cache_control",
  "prompt_cache_options",
);
const anyWord = fc.constantFrom("user", "assistant", "tool", "system", "message", "text", "function_call", "gpt-6-sol");
const { anyObject } = fc.letrec<{ anyObject: Json; anyValue: Json }>((tie) => ({
  anyValue: fc.oneof(
    { depthSize: "small" },
    anyWord,
    fc.jsonValue() as fc.Arbitrary<Json>,
    fc.array(tie("anyObject")),
    tie("anyObject"),
  ),
  anyObject: fc.dictionary(anyMember, tie("anyValue"), { maxKeys: 5 }),
}));

test("whatever is given as a recording or an answer is forked or refused in one line", () => {
  fc.assert(
    fc.property(
      anyObject,
      anyObject,
      fc.constantFrom(openaiResponses, openaiChat, undefined),
      (body, answer, format) => {
        for (const given of [{ answer: JSON.stringify(answer) }, {}])
          try {
            const { members } = forkRequests(JSON.stringify(body), ["one"], { ...given, format });
            for (const member of members) JSON.parse(bytesOf(member).toString());
          } catch (error) {
            assert.ok(error instanceof InputError && !error.message.includes("\n"), String(error));
          }
      },
    ),
    { numRuns: 200, seed: 13 },
  );
});

/** A list whose items are nearly right. */
const anyItem = fc.record(
  {
    type: fc.constantFrom(
      "message",
      "function_call",
      "function_call_output",
      "reasoning",
      "custom_tool_call",
      "odd",
      5,
    ),
    role: fc.constantFrom("user", "assistant", "developer", "system", "tool", "me"),
    content: fc.oneof(
      fc.string(),
      fc.constant(null),
      fc.array(fc.oneof(fc.constant({ type: "text", text: "x" }), anyObject)),
    ),
    output: fc.oneof(fc.string(), fc.array(fc.constant({ type: "input_text", text: "x" })), anyObject),
    call_id: fc.constantFrom("a", "b", 5),
    tool_call_id: fc.constantFrom("a", "b"),
    tool_calls: fc.array(fc.constantFrom({ id: "a" }, { id: "b", type: "function" })),
  },
  { requiredKeys: ["role", "content"] },
);

test("a list of nearly valid items is forked or refused in one line, and what is forked begins with it", () => {
  fc.assert(
    fc.property(
      fc.array(anyItem, { minLength: 1, maxLength: 5 }),
      fc.constantFrom("input", "messages"),
      (items, list) => {
        const recorded = JSON.stringify({ model: "gpt-6-sol", [list]: items, stream: true });
        try {
          const { members, notes } = forkRequests(recorded, ["one"], { protocol: "none" });
          const sent = bytesOf(members[0] as Prepared).toString();
          const said = (JSON.parse(sent) as { readonly [key: string]: readonly Json[] })[list] ?? [];
          if (notes.length === 0) assert.deepEqual(plain(said.slice(0, items.length)), plain(items as unknown as Json));
        } catch (error) {
          assert.ok(error instanceof InputError && !error.message.includes("\n"), String(error));
        }
      },
    ),
    { numRuns: 150, seed: 14 },
  );
});
