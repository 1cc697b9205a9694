/** Images: how many there are is in the key of all messages, so one more or one less loses them, wherever it stands. */

import { a, HEAD, image, KEPT, marked, next, prose, type Request, user } from "./conversation.ts";
import { nothing, type Pair } from "./pair.ts";

const IMAGE = 1_600;
const [CAT, DOG] = ["Y2F0", "ZG9n"].map((letters) => letters.repeat(60)) as [string, string];

/** The conversation with an image in its first prompt. */
const pictured = (letters: string): Request => ({
  ...a,
  messages: [user(image(letters), prose(400, 3)), ...a.messages.slice(1)],
});
const inResult = (letters: string): Request => ({
  ...a,
  messages: [
    ...a.messages.slice(0, 2),
    user({ type: "tool_result", tool_use_id: "toolu_1", content: [image(letters), { type: "text", text: "seen" }] }),
    ...a.messages.slice(3),
  ],
});

export const images: readonly Pair[] = [
  {
    name: "an image in a new turn",
    b: next(a, image(CAT), prose(60, 8, marked)),
    cause: { kind: "images", change: "added", count: 1 },
    path: "messages[6].content[0]",
    read: HEAD,
    lost: KEPT - HEAD,
  },
  {
    name: "a second image in a new turn",
    a: pictured(CAT),
    b: next(pictured(CAT), image(DOG), prose(60, 8, marked)),
    cause: { kind: "images", change: "added", count: 1 },
    path: "messages[6].content[0]",
    read: HEAD,
    lost: KEPT - HEAD + IMAGE,
  },
  {
    name: "an image left out later",
    a: pictured(CAT),
    b: next(a),
    cause: { kind: "images", change: "removed", count: 1 },
    path: "messages[0].content[0]",
    read: HEAD,
    lost: KEPT - HEAD,
  },
  {
    name: "another image in the place of one",
    a: pictured(CAT),
    b: next(pictured(DOG)),
    cause: { kind: "images", change: "changed", count: 1 },
    path: "messages[0].content[0].source.data",
    read: HEAD,
    lost: KEPT - HEAD,
  },
  {
    name: "another image in a result",
    a: inResult(CAT),
    b: next(inResult(DOG)),
    cause: { kind: "images", change: "changed", count: 1 },
    path: "messages[2].content[0].content[0].source.data",
    read: HEAD,
    lost: KEPT - HEAD - 600,
  },
  {
    name: "an image moved behind the text of its message: as many images, in another place",
    a: pictured(CAT),
    b: next({ ...a, messages: [user(prose(400, 3), image(CAT)), ...a.messages.slice(1)] }),
    cause: { kind: "message-edited", message: 0, role: "user", change: "edited" },
    path: "messages[0].content[0]",
    read: HEAD,
    lost: KEPT - HEAD + IMAGE,
  },
  {
    name: "near miss: the same image again",
    a: pictured(CAT),
    b: next(pictured(CAT)),
    cause: nothing,
    read: KEPT + IMAGE,
    lost: 0,
  },
];
