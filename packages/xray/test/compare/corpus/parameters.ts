/** Parameters: those in the key lose everything, or only the messages; the others lose nothing. */

import {
  a,
  b,
  HEAD,
  KEPT,
  MODEL,
  marked,
  marked1h,
  next,
  prose,
  type Request,
  respelled,
  tool,
} from "./conversation.ts";
import { nothing, type Pair } from "./pair.ts";

const all = { read: 0, lost: KEPT } as const;
const none = { cause: nothing, read: KEPT, lost: 0 } as const;
const older = { ...a, model: "claude-sonnet-4-6" };
const always = { ...a, model: "claude-fable-5" };
const format = { type: "json_schema", schema: { type: "object", properties: { answer: { type: "string" } } } };

export const parameters: readonly Pair[] = [
  {
    name: "another model",
    b: { ...b, model: "claude-opus-5" },
    cause: { kind: "model", from: MODEL, to: "claude-opus-5" },
    path: "model",
    ...all,
  },
  {
    name: "the same model by its dated name is another one to the cache",
    b: { ...b, model: "claude-sonnet-5-20260301" },
    cause: { kind: "model", from: MODEL, to: "claude-sonnet-5-20260301" },
    path: "model",
    ...all,
  },
  {
    name: "fast instead of standard",
    b: { ...b, speed: "fast" },
    cause: { kind: "speed", from: "its default", to: "fast" },
    path: "speed",
    ...all,
  },
  { name: "near miss: the standard speed by its name", b: { ...b, speed: "standard" }, ...none },
  {
    name: "thinking switched on",
    b: { ...b, thinking: { type: "adaptive" } },
    cause: { kind: "thinking", from: "its default", to: '{"type":"adaptive"}' },
    path: "thinking",
    ...all,
  },
  {
    name: "another thinking budget",
    a: { ...a, max_tokens: 9_000, thinking: { type: "enabled", budget_tokens: 2_048 } },
    b: { ...b, max_tokens: 9_000, thinking: { type: "enabled", budget_tokens: 4_096 } },
    cause: {
      kind: "thinking",
      from: '{"budget_tokens":2048,"type":"enabled"}',
      to: '{"budget_tokens":4096,"type":"enabled"}',
    },
    path: "thinking.budget_tokens",
    ...all,
  },
  {
    name: "near miss: the thinking that a model does anyway",
    a: always,
    b: { ...next(always), thinking: { type: "adaptive" } },
    ...none,
  },
  {
    name: "near miss: the same thinking with its members in another order",
    a: { ...a, max_tokens: 9_000, thinking: { type: "enabled", budget_tokens: 2_048 } },
    b: { ...b, max_tokens: 9_000, thinking: { budget_tokens: 2_048, type: "enabled" } },
    ...none,
  },
  {
    name: "less effort",
    b: { ...b, output_config: { effort: "low" } },
    cause: { kind: "effort", from: "its default", to: "low" },
    path: "output_config.effort",
    ...all,
  },
  { name: "near miss: the default effort by its name", b: { ...b, output_config: { effort: "high" } }, ...none },
  {
    name: "a tool is demanded",
    b: { ...b, tool_choice: { type: "any" } },
    cause: { kind: "tool-choice", from: "its default", to: '{"type":"any"}' },
    path: "tool_choice",
    read: HEAD,
    lost: KEPT - HEAD,
  },
  {
    name: "no calls in parallel",
    a: { ...a, tool_choice: { type: "auto" } },
    b: { ...b, tool_choice: { type: "auto", disable_parallel_tool_use: true } },
    cause: {
      kind: "tool-choice",
      from: "its default",
      to: '{"disable_parallel_tool_use":true,"type":"auto"}',
    },
    path: "tool_choice",
    read: HEAD,
    lost: KEPT - HEAD,
  },
  {
    name: "an output format",
    b: { ...b, output_config: { format } },
    cause: {
      kind: "parameter",
      name: "output_format",
      from: "its default",
      to: '{"format":{"schema":{"properties":{"answer":{"type":"string"…',
    },
    path: "output_config",
    ...all,
  },
  {
    name: "context management switched on",
    b: { ...b, context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } },
    cause: {
      kind: "parameter",
      name: "context_management",
      from: "its default",
      to: '{"edits":[{"type":"clear_tool_uses_20250919"}]}',
    },
    path: "context_management",
    ...all,
  },
  {
    name: "a tool server of the provider",
    b: { ...b, mcp_servers: [{ type: "url", name: "wiki", url: "https://wiki.invalid/mcp" }] },
    cause: {
      kind: "parameter",
      name: "mcp_servers",
      from: "its default",
      to: "wiki",
    },
    path: "mcp_servers",
    ...all,
  },
  {
    name: "one beta more",
    b,
    betas: { a: ["one-2026-01-01"], b: ["one-2026-01-01", "two-2026-02-02"] },
    cause: { kind: "parameter", name: "betas", from: "one-2026-01-01", to: "one-2026-01-01,two-2026-02-02" },
    path: "betas",
    ...all,
  },
  {
    name: "near miss: the same betas in another order",
    b,
    betas: { a: ["one-2026-01-01", "two-2026-02-02"], b: ["two-2026-02-02", "one-2026-01-01"] },
    ...none,
  },
  {
    name: "citations asked of a new document",
    b: next(
      a,
      {
        type: "document",
        source: { type: "text", media_type: "text/plain", data: "Sold by the dozen." },
        citations: { enabled: true },
      },
      prose(60, 8, marked),
    ),
    cause: { kind: "parameter", name: "citations", from: "its default", to: "on" },
    path: "messages[6].content[0]",
    // The level of the system opens with it, and no marker stands at the end of the tools.
    read: 0,
    lost: KEPT,
  },
  {
    name: "the same with a marker at the end of the tools",
    a: { ...a, tools: [tool("Read"), tool("Edit"), tool("Bash", marked)], tool_choice: { type: "auto" } },
    b: {
      ...b,
      tools: [tool("Read"), tool("Edit"), tool("Bash", marked)],
      tool_choice: { type: "auto" },
      system: [prose(1_000, 1), prose(500, 2, marked), prose(20, 99)],
    },
    cause: { kind: "system", change: "added" },
    path: "system[2]",
    read: HEAD,
    lost: KEPT - HEAD,
  },
  { name: "near miss: max_tokens only", b: { ...b, max_tokens: 4_000 }, ...none },
  { name: "near miss: stream only", b: { ...b, stream: true }, ...none },
  { name: "near miss: metadata only", b: { ...b, metadata: { user_id: "someone else" } }, ...none },
  { name: "near miss: stop sequences only", b: { ...b, stop_sequences: ["END"] }, ...none },
  {
    name: "near miss: service tier only, which this provider has in no key",
    b: { ...b, service_tier: "standard_only" },
    ...none,
  },
  { name: "near miss: temperature only", a: older, b: { ...next(older), temperature: 0.2 }, ...none },
  { name: "near miss: asking for diagnostics", b: { ...b, diagnostics: { previous_message_id: null } }, ...none },
  { name: "near miss: other order of members, white space and escapes", b: respelled(b), ...none },
  { name: "near miss: the marker lives longer", b: longLived(b), ...none },
];

/** The same markers, for an hour. */
function longLived(request: Request): Request {
  return JSON.parse(JSON.stringify(request).replaceAll(JSON.stringify(marked), JSON.stringify(marked1h))) as Request;
}
