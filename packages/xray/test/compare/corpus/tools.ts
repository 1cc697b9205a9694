/** Tools stand first: a change of one loses everything from it on, and an entry ends only where a marker was. */

import { a, type Block, b, KEPT, marked, next, type Request, tool } from "./conversation.ts";
import { nothing, type Pair } from "./pair.ts";

const all = { read: 0, lost: KEPT } as const;
const none = { cause: nothing, read: KEPT, lost: 0 } as const;

const [read = {}, edit = {}, bash = {}] = a.tools;
const withTools = (request: Request, ...tools: readonly Block[]): Request => ({ ...request, tools });

/** A description of the same length that ends in a date. */
const dated = (of: Block, date: string): Block => ({
  ...of,
  description: `${String(of.description).slice(0, -date.length - 7)} As of ${date}`,
});

const inSchema = (properties: Block): Block => ({ ...edit, input_schema: { type: "object", properties } });
const markedTools = withTools(a, read, edit, { ...bash, ...marked });
const web = { type: "web_search_20250305", name: "web_search", max_uses: 3 };
const hello = { role: "user", content: "Hello." };
const deferred = { ...tool("Late"), defer_loading: true };

export const tools: readonly Pair[] = [
  {
    name: "a tool more at the end",
    b: withTools(b, ...b.tools, tool("Grep")),
    cause: { kind: "tools-added", tools: ["Grep"] },
    path: "tools[3]",
    ...all,
  },
  {
    name: "a tool more at the end, with a marker on the last one before it",
    a: markedTools,
    b: withTools(next(markedTools), ...markedTools.tools, tool("Grep")),
    cause: { kind: "tools-added", tools: ["Grep"] },
    path: "tools[3]",
    read: 1_500,
    lost: KEPT - 1_500,
  },
  {
    name: "two tools more at the front",
    b: withTools(b, tool("Ask"), tool("Call"), ...b.tools),
    cause: { kind: "tools-added", tools: ["Ask", "Call"] },
    path: "tools[0]",
    ...all,
  },
  {
    name: "a tool taken out",
    b: withTools(b, read, bash),
    cause: { kind: "tools-removed", tools: ["Edit"] },
    path: "tools[1]",
    read: 0,
    lost: KEPT - 500,
  },
  {
    name: "the last tool taken out",
    b: withTools(b, read, edit),
    cause: { kind: "tools-removed", tools: ["Bash"] },
    path: "tools[2]",
    read: 0,
    lost: KEPT - 500,
  },
  {
    name: "no tools at all any more",
    b: withTools(b),
    cause: { kind: "tools-removed", tools: ["Read", "Edit", "Bash"] },
    path: "tools[0]",
    read: 0,
    lost: KEPT - 1_500,
  },
  {
    name: "one tool in place of another",
    b: withTools(b, read, tool("Write"), bash),
    cause: { kind: "tools-added", tools: ["Write"] },
    path: "tools[1]",
    read: 0,
    lost: KEPT - 500,
  },
  {
    name: "the same tools in another order",
    b: withTools(b, edit, read, bash),
    cause: { kind: "tools-reordered", tool: "Read", from: 0, to: 1 },
    path: "tools[0]",
    ...all,
  },
  {
    name: "the last two tools swapped",
    b: withTools(b, read, bash, edit),
    cause: { kind: "tools-reordered", tool: "Edit", from: 1, to: 2 },
    path: "tools[1]",
    ...all,
  },
  {
    name: "another description",
    b: withTools(b, read, { ...edit, description: String(edit.description).replace("one file", "any file") }, bash),
    cause: { kind: "tools-changed", tool: "Edit", key: "description" },
    path: "tools[1].description",
    ...all,
  },
  {
    name: "a date in a description",
    a: withTools(a, dated(read, "2026-03-01"), edit, bash),
    b: withTools(b, dated(read, "2026-03-02"), edit, bash),
    cause: { kind: "tools-changed", tool: "Read", key: "description", volatile: "date" },
    path: "tools[0].description",
    ...all,
  },
  {
    name: "another type of a parameter",
    b: withTools(b, read, inSchema({ path: { type: "number" } }), bash),
    cause: { kind: "tools-changed", tool: "Edit", key: "input_schema.properties.path.type" },
    path: "tools[1].input_schema.properties.path.type",
    ...all,
  },
  {
    name: "the parameters of a tool in another order",
    a: withTools(a, read, inSchema({ path: { type: "string" }, line: { type: "number" } }), bash),
    b: withTools(b, read, inSchema({ line: { type: "number" }, path: { type: "string" } }), bash),
    cause: { kind: "tools-changed", tool: "Edit", key: "input_schema.properties.line" },
    path: "tools[1].input_schema.properties.line",
    read: 0,
    lost: KEPT + 7,
  },
  {
    name: "a tool held to its schema",
    b: withTools(b, read, { ...edit, strict: true }, bash),
    cause: { kind: "tools-changed", tool: "Edit", key: "strict" },
    path: "tools[1].strict",
    ...all,
  },
  {
    name: "web search switched on: the provider's own tools open the system level",
    a: markedTools,
    b: withTools(next(markedTools), ...markedTools.tools, web),
    cause: { kind: "tools-added", tools: ["web_search"] },
    path: "tools[3]",
    read: 1_500,
    lost: KEPT - 1_500,
  },
  {
    name: "near miss: a deferred tool more, which stands outside the prompt",
    b: withTools(b, ...b.tools, deferred),
    ...none,
  },
  {
    name: "near miss: the members of a tool in another order",
    b: withTools(b, Object.fromEntries(Object.entries(read).toReversed()), edit, bash),
    ...none,
  },
  { name: "near miss: a marker on the last tool", b: withTools(b, read, edit, { ...bash, ...marked }), ...none },
  {
    name: "near miss: a member that is null",
    a: withTools(a, { ...read, strict: null }, edit, bash),
    b: withTools(b, { ...read, strict: null, defer_loading: null }, edit, bash),
    cause: nothing,
    read: KEPT + 9,
    lost: 0,
  },
  {
    name: "a tool behind the only marker changed, and the second request has no marker at all",
    a: { ...withTools(a, read, edit, { ...bash, ...marked }, tool("Grep")), system: [], messages: [hello] },
    b: { ...withTools(a, read, edit, bash, tool("Glob")), system: [], messages: [hello] },
    cause: { kind: "marker-missing", in: "b", at: "tools[2]" },
    path: "tools[3]",
    read: 0,
    lost: 1_500,
  },
];
