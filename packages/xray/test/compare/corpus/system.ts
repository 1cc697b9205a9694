/** The system text: whatever is written in it stands before every message. */

import { a, b, HEAD, KEPT, marked, next, prose, type Request, text, tool, words } from "./conversation.ts";
import { nothing, type Pair } from "./pair.ts";

const none = { cause: nothing, read: KEPT, lost: 0 } as const;
const all = { read: 0, lost: KEPT } as const;

/** 1,500 tokens of system, with these 40 letters in the middle of the first block. */
const saying = (request: Request, said: string): Request => ({
  ...request,
  system: [text(`${words(490, 1)}${said.padEnd(40)}${words(500, 11)}`), prose(500, 2, marked)],
});

const changes = (name: string, from: string, to: string): Pick<Pair, "name" | "a" | "b" | "path"> => ({
  name,
  a: saying(a, from),
  b: saying(b, to),
  path: "system[0].text",
});

const toolsMarked: Request = { ...a, tools: [tool("Read"), tool("Edit"), tool("Bash", marked)] };

export const system: readonly Pair[] = [
  {
    ...changes("today's date in the system text", "Today is 2026-03-01.", "Today is 2026-03-02."),
    cause: { kind: "system", change: "edited", volatile: "date" },
    ...all,
  },
  {
    ...changes("a weekday in the system text", "It is Monday.", "It is Tuesday."),
    cause: { kind: "system", change: "edited", volatile: "date" },
    ...all,
  },
  {
    ...changes("the time in the system text", "Time: 09:15:02 UTC", "Time: 09:17:44 UTC"),
    cause: { kind: "system", change: "edited", volatile: "time" },
    ...all,
  },
  {
    ...changes(
      "a session id in the system text",
      "7c9e6679-7425-40de-944b-e07fc1f90ae7",
      "16fd2706-8baf-433b-82eb-8c7fada847da",
    ),
    cause: { kind: "system", change: "edited", volatile: "id" },
    ...all,
  },
  {
    ...changes("a scratch folder in the system text", "Scratch: /tmp/run-aa/work", "Scratch: /tmp/run-bb/work"),
    cause: { kind: "system", change: "edited", volatile: "path" },
    ...all,
  },
  {
    ...changes("a commit in the system text", "HEAD is 72ea62c1", "HEAD is 9e43e28b"),
    cause: { kind: "system", change: "edited", volatile: "hash" },
    ...all,
  },
  {
    ...changes("a count in the system text", "3 files changed", "4 files changed"),
    cause: { kind: "system", change: "edited", volatile: "number" },
    ...all,
  },
  {
    ...changes("one word of the system text", "Be brief.", "Be exact."),
    cause: { kind: "system", change: "edited" },
    ...all,
  },
  {
    name: "the system text changed, with a marker at the end of the tools",
    a: toolsMarked,
    b: { ...next(toolsMarked), system: [prose(1_000, 1), text(`${words(499, 2)}end.`, marked)] },
    cause: { kind: "system", change: "edited" },
    path: "system[1].text",
    read: 1_500,
    lost: KEPT - 1_500,
  },
  {
    name: "a block of the system text more",
    b: { ...b, system: [prose(1_000, 1), prose(30, 12), prose(500, 2, marked)] },
    cause: { kind: "system", change: "added" },
    path: "system[1]",
    ...all,
  },
  {
    name: "a block of the system text less",
    b: { ...b, system: [prose(500, 2, marked)] },
    cause: { kind: "system", change: "removed" },
    path: "system[0]",
    read: 0,
    lost: KEPT - 1_000,
  },
  {
    name: "no system text any more",
    b: { ...b, system: [] },
    cause: { kind: "system", change: "removed" },
    path: "system[0]",
    read: 0,
    lost: KEPT - 1_500,
  },
  {
    name: "another question under a system text with a date at its end",
    a: {
      ...a,
      system: [text(`${words(1_490, 1)}On 2026-03-01`, marked)],
      messages: [{ role: "user", content: "Who?" }],
    },
    b: {
      ...a,
      system: [text(`${words(1_490, 1)}On 2026-03-02`, marked)],
      messages: [{ role: "user", content: "Where?" }],
    },
    cause: { kind: "system", change: "edited", volatile: "date" },
    path: "system[0].text",
    read: 0,
    lost: 2_994,
  },
  {
    name: "near miss: a string instead of one block, in both cases unmarked",
    a: { ...a, system: words(1_500, 1) },
    b: { ...b, system: [text(words(1_500, 1))] },
    ...none,
  },
  {
    name: "near miss: the marker of the system text is gone, and the conversation's own is in reach",
    b: { ...b, system: [prose(1_000, 1), prose(500, 2)] },
    ...none,
  },
  {
    name: "near miss: another conversation under the same system text",
    b: { ...a, messages: [{ role: "user", content: [prose(300, 55, marked)] }] },
    cause: nothing,
    path: "messages[0].content[0].text",
    read: HEAD,
    lost: 0,
  },
  {
    name: "near miss: nothing in common",
    b: {
      ...a,
      tools: [tool("Zap")],
      system: [prose(1_200, 77, marked)],
      messages: [{ role: "user", content: [prose(300, 55, marked)] }],
    },
    cause: nothing,
    path: "tools[0]",
    read: 0,
    lost: 0,
  },
];
