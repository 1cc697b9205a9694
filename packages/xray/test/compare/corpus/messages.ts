/** The conversation itself: what was sent once must stand there again, letter for letter. */

import {
  a,
  assistant,
  type Block,
  b,
  blockOf,
  call,
  HEAD,
  KEPT,
  type Message,
  marked,
  next,
  prose,
  type Request,
  result,
  text,
  user,
  withBlock,
  withMessage,
  words,
} from "./conversation.ts";
import { nothing, type Pair } from "./pair.ts";

const none = { cause: nothing, read: KEPT, lost: 0 } as const;
/** Everything before the messages is read, they are paid for again. */
const messagesLost = { read: HEAD, lost: KEPT - HEAD } as const;

const edited = (message: number, role: string, more: object = {}): Pair["cause"] => ({
  kind: "message-edited",
  message,
  role,
  change: "edited",
  ...more,
});

/** 400 tokens of first prompt with these 40 letters in it. */
const opening = (said: string): Block => text(`${words(190, 3)}${said.padEnd(40)}${words(200, 13)}`);
const dates = ["2026-03-01T09:15:02Z", "2026-03-01T09:17:44Z"].map(opening);
const paths = ["cwd: /home/ann/app/src", "cwd: /home/bob/app/src"].map(opening);

const lastOf = (request: Request): readonly Message[] => request.messages.slice(-2);
const reminder = (seed: number): Block => prose(30, seed, marked);
const reminded: Request = { ...a, messages: [...a.messages.slice(0, 4), user(prose(200, 6), reminder(40))] };
/** Seven messages of which the fourth and fifth repeat the second and third. */
const insertedTurn = [assistant(prose(25, 41)), user(prose(35, 42))];

/** The first prompt again, with a fork's directive in a block of its own. */
const fork = (directive: string, shared: Block = {}): Request => ({
  ...a,
  messages: [...a.messages.slice(0, 4), user(prose(200, 6, shared), text(`${words(100, 43)} ${directive}`, marked))],
});

export const messages: readonly Pair[] = [
  { name: "near miss: the conversation goes on", b, ...none },
  { name: "near miss: the same request again", b: a, ...none },
  {
    name: "the first prompt was written anew",
    b: withBlock(b, [0, 0], prose(400, 33)),
    cause: edited(0, "user"),
    path: "messages[0].content[0].text",
    read: HEAD,
    lost: KEPT - HEAD - 400,
  },
  {
    name: "a time in the first prompt",
    a: withBlock(a, [0, 0], dates[0] ?? {}),
    b: withBlock(b, [0, 0], dates[1] ?? {}),
    cause: edited(0, "user", { volatile: "date" }),
    path: "messages[0].content[0].text",
    ...messagesLost,
  },
  {
    name: "a working folder in the first prompt",
    a: withBlock(a, [0, 0], paths[0] ?? {}),
    b: withBlock(b, [0, 0], paths[1] ?? {}),
    cause: edited(0, "user", { volatile: "path" }),
    path: "messages[0].content[0].text",
    ...messagesLost,
  },
  {
    name: "new ids for every call",
    b: withBlock(withBlock(b, [1, 1], call("toolu_9")), [2, 0], { ...blockOf(b, 2, 0), tool_use_id: "toolu_9" }),
    cause: edited(1, "assistant"),
    path: "messages[1].content[1].id",
    read: HEAD,
    lost: KEPT - HEAD,
  },
  {
    name: "the input of a call with its members in another order",
    b: withBlock(b, [1, 1], call("toolu_1", { limit: 40, path: "src/server.ts" })),
    cause: edited(1, "assistant"),
    path: "messages[1].content[1].input.limit",
    read: HEAD,
    lost: KEPT - HEAD - 9,
  },
  {
    name: "a result cleared after its turn",
    b: withBlock(b, [2, 0], { ...blockOf(b, 2, 0), content: "[cleared]" }),
    cause: edited(2, "user"),
    path: "messages[2].content[0].content",
    read: HEAD,
    lost: KEPT - HEAD - 600,
  },
  {
    name: "a result said to be an error",
    b: withBlock(b, [2, 0], { ...blockOf(b, 2, 0), is_error: true }),
    cause: edited(2, "user"),
    path: "messages[2].content[0].is_error",
    ...messagesLost,
  },
  {
    name: "white space at the end of an answer",
    b: withBlock(b, [3, 0], text(`${words(100, 5)}\n`)),
    cause: edited(3, "assistant"),
    path: "messages[3].content[0].text",
    ...messagesLost,
  },
  {
    name: "going back two messages, to where no entry ends",
    b: { ...b, messages: b.messages.toSpliced(3, 2) },
    cause: { kind: "marker-missing", in: "a", at: "messages[2].content[0]" },
    path: "messages[3].content[0].text",
    read: HEAD,
    lost: 1_059,
  },
  {
    name: "the first exchange left out",
    b: { ...b, messages: [user(prose(400, 3)), assistant(prose(100, 5)), ...b.messages.slice(4)] },
    cause: { kind: "message-removed", message: 1, role: "assistant", count: 2 },
    path: "messages[1]",
    read: HEAD,
    lost: 700,
  },
  {
    name: "an exchange put in between",
    b: { ...b, messages: b.messages.toSpliced(3, 0, ...insertedTurn) },
    cause: { kind: "message-inserted", message: 3, role: "assistant", count: 2 },
    path: "messages[3]",
    ...messagesLost,
  },
  {
    name: "a note put into an earlier message",
    b: withBlock(b, [4, 0], prose(20, 44), prose(200, 6)),
    cause: { kind: "message-edited", message: 4, role: "user", change: "block-added" },
    path: "messages[4].content[0]",
    ...messagesLost,
  },
  {
    name: "a reminder that was marked is left out when the conversation goes on",
    a: reminded,
    b: next({ ...reminded, messages: [...a.messages.slice(0, 4), user(prose(200, 6))] }),
    cause: { kind: "message-edited", message: 4, role: "user", change: "block-removed" },
    path: "messages[4].content[1]",
    ...messagesLost,
  },
  {
    name: "who speaks",
    b: withMessage(b, 3, { role: "user", content: b.messages[3]?.content ?? "" }),
    cause: edited(3, "user"),
    path: "messages[3].content[0]",
    read: HEAD,
    lost: KEPT - HEAD - 100,
  },
  {
    name: "a block of a type nobody knows changed",
    a: withBlock(
      a,
      [1, 0],
      { type: "server_tool_use", id: "s_1", name: "probe", input: { q: "one" } },
      {
        type: "probe_tool_result",
        tool_use_id: "s_1",
        content: { kind: "found", at: 1 },
      },
    ),
    b: withBlock(
      b,
      [1, 0],
      { type: "server_tool_use", id: "s_1", name: "probe", input: { q: "one" } },
      {
        type: "probe_tool_result",
        tool_use_id: "s_1",
        content: { kind: "found", at: 2 },
      },
    ),
    cause: edited(1, "assistant", { volatile: "number" }),
    path: "messages[1].content[1].content.at",
    read: HEAD,
    lost: 1_348,
  },
  {
    name: "new words of the user make an older model leave out its thinking",
    a: thinkingLoop(user(result("toolu_2", 600, marked))),
    b: thinkingLoop(user(result("toolu_2", 600)), assistant(prose(40, 46)), user(prose(60, 8, marked))),
    cause: { kind: "thinking-dropped" },
    path: "messages[1].content[0]",
    read: HEAD,
    lost: 1_059,
  },
  {
    name: "near miss: a newer model keeps its thinking",
    a: { ...thinkingLoop(user(result("toolu_2", 600, marked))), model: "claude-sonnet-4-6" },
    b: {
      ...thinkingLoop(user(result("toolu_2", 600)), assistant(prose(40, 46)), user(prose(60, 8, marked))),
      model: "claude-sonnet-4-6",
    },
    cause: nothing,
    read: HEAD + 1_259,
    lost: 0,
  },
  {
    name: "near miss: two forks of one turn, with a marker at the end of what they share",
    a: fork("Look at the schema.", marked),
    b: fork("Look at the service."),
    cause: nothing,
    path: "messages[4].content[1].text",
    read: KEPT,
    lost: 0,
  },
  {
    name: "near miss: a change behind the last marker",
    a: { ...a, messages: [...a.messages.slice(0, 4), user(prose(200, 6, marked), prose(30, 47))] },
    b: { ...a, messages: [...a.messages.slice(0, 4), user(prose(200, 6, marked), prose(30, 48))] },
    path: "messages[4].content[1].text",
    ...none,
  },
  {
    name: "near miss: one turn as two messages of the same role",
    a: { ...a, messages: [...a.messages.slice(0, 4), user(prose(150, 6), prose(50, 9, marked))] },
    b: next({ ...a, messages: [...a.messages.slice(0, 4), user(prose(150, 6)), user(prose(50, 9, marked))] }),
    ...none,
  },
  {
    name: "near miss: a string instead of one block",
    b: withMessage(b, 3, { role: "assistant", content: words(100, 5) }),
    ...none,
  },
  {
    name: "near miss: the members of a block in another order, and one that is null",
    b: withBlock(b, [1, 1], {
      input: { path: "src/server.ts", limit: 40 },
      name: "Read",
      id: "toolu_1",
      type: "tool_use",
      caller: null,
    }),
    ...none,
  },
  {
    name: "near miss: a call said to come from the model itself, a result said to be no error",
    b: withBlock(withBlock(b, [1, 1], { ...call("toolu_1"), caller: { type: "direct" } }), [2, 0], {
      ...blockOf(b, 2, 0),
      is_error: false,
    }),
    ...none,
  },
  {
    name: "near miss: going back to an earlier turn whose entry is in reach",
    a: { ...a, messages: [user(prose(400, 3, marked)), ...a.messages.slice(1)] },
    b: { ...a, messages: [user(prose(400, 3)), assistant(prose(90, 49)), user(prose(70, 50, marked))] },
    cause: nothing,
    path: "messages[1].content[0].text",
    read: HEAD + 400,
    lost: 0,
  },
  {
    name: "near miss: a summary in place of the conversation",
    b: { ...a, messages: [user(prose(250, 51, marked)), ...lastOf(b)] },
    cause: nothing,
    path: "messages[0].content[0].text",
    read: HEAD,
    lost: 0,
  },
];

/** A tool loop with thinking, on a model that keeps it only for as long as the loop lasts. */
function thinkingLoop(...after: readonly Message[]): Request {
  const thought = { type: "thinking", thinking: words(200, 45), signature: "c2lnbmVk" };
  const { messages: _messages, ...head } = a;
  return {
    ...head,
    model: "claude-sonnet-4-5",
    messages: [user(prose(400, 3)), assistant(thought, prose(50, 4), call("toolu_2")), ...after],
  };
}
