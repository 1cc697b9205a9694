/** Markers: what is not marked is not kept, and what is too far from the next marker is not found. */

import {
  a,
  assistant,
  type Block,
  b,
  call,
  HEAD,
  KEPT,
  type Message,
  marked,
  marked1h,
  next,
  prose,
  type Request,
  result,
  text,
  tool,
  unmarked,
  user,
  words,
} from "./conversation.ts";
import { nothing, type Pair } from "./pair.ts";

const none = { cause: nothing, read: KEPT, lost: 0 } as const;
const bare = (request: Request): Request => ({
  ...request,
  system: [prose(1_000, 1), prose(500, 2)],
  messages: unmarked(request.messages),
});

const headOnly = { ...a, messages: unmarked(a.messages) };
const tailOnly = { ...a, system: [prose(1_000, 1), prose(500, 2)] };

/** A turn of so many short blocks, the last one marked. */
const blocks = (count: number, seed = 200): readonly Block[] =>
  Array.from({ length: count }, (_, index) => prose(10, seed + index, index === count - 1 ? marked : {}));
const calls = (count: number): readonly Message[] => {
  const ids = Array.from({ length: count }, (_, index) => `toolu_${100 + index}`);
  return [
    assistant(...ids.map((id) => call(id))),
    user(...ids.map((id, index) => result(id, 10, index === count - 1 ? marked : {}))),
  ];
};
/** Forks of one turn that mark only their last block. */
const fork = (directive: string): Request => ({
  ...a,
  messages: [...unmarked(a.messages).slice(0, 4), user(prose(200, 6), text(directive, marked))],
});
const small = (request: Request): Request => ({
  ...request,
  tools: [],
  system: [prose(100, 1, marked)],
  messages: [user(prose(200, 3, marked)), ...request.messages.slice(5)],
});
const sharesLittle = (seed: number): Request => ({
  ...a,
  tools: [],
  system: [prose(600, 1)],
  messages: [user(prose(1_000, seed, marked))],
});

export const markers: readonly Pair[] = [
  {
    name: "no marker in the first request",
    a: bare(a),
    b,
    cause: { kind: "marker-missing", in: "a", at: "messages[4].content[0]" },
    read: 0,
    lost: KEPT,
  },
  {
    name: "no marker in either",
    a: bare(a),
    b: bare(b),
    cause: { kind: "marker-missing", in: "a", at: "messages[4].content[0]" },
    read: 0,
    lost: KEPT,
  },
  {
    name: "no marker in the second request",
    b: bare(b),
    cause: { kind: "marker-missing", in: "b", at: "messages[4].content[0]" },
    read: 0,
    lost: KEPT,
  },
  {
    name: "the second request marks only its system text",
    b: { ...b, messages: unmarked(b.messages) },
    cause: { kind: "marker-missing", in: "b", at: "messages[4].content[0]" },
    read: HEAD,
    lost: KEPT - HEAD,
  },
  {
    name: "the messages are never marked",
    a: headOnly,
    b: { ...b, messages: unmarked(b.messages) },
    cause: { kind: "marker-missing", in: "a", at: "messages[4].content[0]" },
    read: HEAD,
    lost: KEPT - HEAD,
  },
  {
    name: "the last marker one message too early: the tail is paid for again each turn",
    a: { ...a, messages: [...unmarked(a.messages).slice(0, 3), assistant(prose(100, 5, marked)), user(prose(200, 6))] },
    b,
    cause: { kind: "marker-missing", in: "a", at: "messages[4].content[0]" },
    read: KEPT - 200,
    lost: 200,
  },
  {
    name: "two forks of one turn, each with a marker on its own words only",
    a: fork("Look at the schema."),
    b: fork("Look at the service."),
    cause: { kind: "marker-missing", in: "a", at: "messages[4].content[0]" },
    path: "messages[4].content[1].text",
    read: HEAD,
    lost: KEPT - HEAD,
  },
  {
    name: "a turn of 21 blocks with one marker at its end",
    b: next(a, ...blocks(20)),
    cause: { kind: "look-back-exceeded", positions: { runs: 21, singly: 21 } },
    read: HEAD,
    lost: KEPT - HEAD,
  },
  { name: "near miss: a turn of 19 blocks is in reach", b: next(a, ...blocks(18)), ...none },
  {
    name: "near miss: a turn of 21 blocks that keeps the last request's marker",
    b: { ...next(a, ...blocks(20)), messages: [...a.messages, assistant(prose(80, 7)), user(...blocks(20))] },
    ...none,
  },
  {
    name: "near miss: 25 calls and their results are two positions",
    b: { ...a, messages: [...unmarked(a.messages), ...calls(25)] },
    ...none,
  },
  {
    name: "25 calls and their results, where each block counts",
    b: { ...a, messages: [...unmarked(a.messages), ...calls(25)] },
    singly: true,
    cause: { kind: "look-back-exceeded", positions: { runs: 2, singly: 50 } },
    read: HEAD,
    lost: KEPT - HEAD,
  },
  {
    name: "the entry of the system text, 21 blocks before the only marker",
    a: headOnly,
    b: { ...tailOnly, messages: [user(...blocks(21))] },
    cause: { kind: "look-back-exceeded", positions: { runs: 21, singly: 21 } },
    path: "messages[0].content[0].text",
    read: 0,
    lost: HEAD,
  },
  {
    name: "near miss: automatic caching instead of markers",
    a: { ...bare(a), ...marked },
    b: { ...bare(b), ...marked },
    ...none,
  },
  { name: "near miss: the marker of the last turn moved on", a: tailOnly, b: next(tailOnly), ...none },
  {
    name: "near miss: one more marker",
    b: { ...b, tools: [tool("Read", marked), tool("Edit"), tool("Bash")] },
    ...none,
  },
  {
    name: "near miss: a marker inside a result",
    a: {
      ...a,
      messages: [
        ...unmarked(a.messages).slice(0, 2),
        user({ type: "tool_result", tool_use_id: "toolu_1", content: [text(words(600, 71), marked)] }),
      ],
    },
    b: { ...b, messages: b.messages.map((message, index) => (index === 2 ? user(result("toolu_1", 600)) : message)) },
    cause: nothing,
    read: HEAD + 1_059,
    lost: 0,
  },
  {
    name: "near miss: an hour for the system text, five minutes behind it",
    a: { ...a, system: [prose(1_000, 1), prose(500, 2, marked1h)] },
    b: { ...b, system: [prose(1_000, 1), prose(500, 2, marked1h)] },
    ...none,
  },
  {
    name: "a prompt shorter than the model keeps",
    a: small(a),
    b: small(b),
    cause: { kind: "below-minimum", minimum: 1_024, tokens: 300 },
    read: 0,
    lost: 300,
  },
  {
    name: "too little in common to be kept",
    a: sharesLittle(61),
    b: sharesLittle(62),
    cause: { kind: "below-minimum", minimum: 1_024, tokens: 600 },
    path: "messages[0].content[0].text",
    read: 0,
    lost: 600,
  },
  {
    name: "near miss: just long enough",
    a: { ...small(a), system: [prose(824, 1)] },
    b: { ...small(b), system: [prose(824, 1)] },
    cause: nothing,
    read: 1_024,
    lost: 0,
  },
];
