/** Random things that happen to a terminal: keys, pastes, sizes, and events of agents that say anything. */

import type { EventBody, RuntimeEvent } from "@prefork/runtime";
import fc from "fast-check";
import { type Action, safeLine } from "../../src/tui/state/index.ts";

const AGENTS = ["main", "task-1", "task-2", "task-3"] as const;

/** What a hostile model or file may contain. */
const NASTY = [
  "\u001b[2J\u001b[H",
  "\u001b]0;title\u0007",
  "\u001b]8;;http://evil\u001b\\link\u001b]8;;\u001b\\",
  "\u001b[?1049h",
  "\u009b31m",
  "\r\n\t",
  "\u202e\u2066abc",
  "日本語テキスト",
  "👩‍👩‍👧‍👦 ❤️ 👍🏽 🇺🇸 1️⃣ ⚠️ 한국어 नमस्ते العربية",
  "e\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301",
  "```\nconst a = 1;\n",
  "| a | b |\n|---|---|\n| 1 | 2 |\n",
  "- item\n  - nested\n\n1. one\n",
  "# Heading\n\nParagraph with **bold**.\n\n",
  "\u001b_pi:c\u0007",
  "[text](javascript:alert(1)) [https://good.example](https://evil.example/a?b) <https://a.example/ü>",
  "https://a.example/\u001b]8;;x and me@example.com, ![image](file:///etc/passwd) &#27;[2J",
  "\0\u0001\u0002",
  "x".repeat(500),
];

export const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 60 }),
  fc
    .array(fc.oneof(fc.constantFrom(...NASTY), fc.string({ maxLength: 12 })), { maxLength: 5 })
    .map((parts) => parts.join("")),
);

const usage = fc.record({
  plain: fc.nat(5_000),
  read: fc.nat(200_000),
  written: fc.record({ "5m": fc.nat(9_000) }),
  output: fc.nat(2_000),
});

const args = fc.oneof(
  fc.record({ command: anyText }),
  fc.record({ file_path: anyText, old_string: anyText, new_string: anyText }),
  fc.record({ file_path: anyText, content: anyText }),
  fc.record({ pattern: anyText, path: fc.oneof(anyText, fc.constant(7)) }),
  fc.constant({}),
);

const ids = fc.constantFrom("a", "b", "c");
const tools = fc.constantFrom("Bash", "Edit", "Write", "Read", "Grep", "Agent", "TodoWrite", "\u001b[31mEvil");

const bodies: fc.Arbitrary<EventBody> = fc.oneof(
  fc.record({ type: fc.constant("prompt_entered" as const), text: anyText }),
  fc.record({ type: fc.constant("text_grew" as const), turn: fc.nat(9), text: anyText }),
  fc.record({ type: fc.constant("text_grew" as const), turn: fc.nat(9), text: anyText }),
  fc.record({ type: fc.constant("thinking_grew" as const), turn: fc.nat(9), text: anyText }),
  fc.record({ type: fc.constant("text_entered" as const), turn: fc.nat(9), text: anyText }),
  fc.record({ type: fc.constant("answer_restarted" as const), turn: fc.nat(9) }),
  fc.record({
    ...{
      type: fc.constant("turn_started" as const),
      turn: fc.nat(9),
      prefixHash: fc.constant("h"),
      bytes: fc.nat(9_999),
    },
    markers: fc.constantFrom([], [{ segment: 1, role: "tail" as const, ttl: "5m" as const }]),
  }),
  fc.record({
    type: fc.constant("turn_ended" as const),
    turn: fc.nat(9),
    stop: fc.constant("end" as const),
    usage,
    ms: fc.nat(9_999),
    usd: fc.double({ min: 0, max: 2, noNaN: true }),
  }),
  fc.record({ type: fc.constant("call_proposed" as const), callId: ids, tool: tools, args }),
  fc.record({ type: fc.constant("question_asked" as const), callId: ids, reason: anyText }),
  fc.record({ type: fc.constant("call_started" as const), callId: ids, tool: tools, reason: anyText }),
  fc.record({ type: fc.constant("call_progressed" as const), callId: ids, text: anyText }),
  fc.record({ type: fc.constant("call_ended" as const), callId: ids, tool: tools, text: anyText, ms: fc.nat(90_000) }),
  fc.record({
    type: fc.constant("question_opened" as const),
    questionId: ids,
    tool: tools,
    args,
    reason: anyText,
    notes: fc.array(anyText, { maxLength: 2 }),
    rule: fc.constantFrom("Bash(npm test)", "Read(./x)"),
  }),
  fc.record({ type: fc.constant("question_closed" as const), questionId: ids }),
  fc.record({
    type: fc.constant("todos_changed" as const),
    todos: fc.array(
      fc.record({
        content: anyText,
        status: fc.constantFrom("pending" as const, "in_progress" as const, "completed" as const),
      }),
      { maxLength: 4 },
    ),
  }),
  fc.record({
    type: fc.constant("family_launched" as const),
    family: fc.constant("f"),
    forks: fc.nat(3),
    reason: anyText,
    advice: fc.array(anyText, { maxLength: 1 }),
  }),
  fc.record({
    ...{
      type: fc.constant("fork_started" as const),
      taskId: fc.constantFrom("task-1", "task-2", "task-3"),
      runId: fc.constant("r"),
    },
    ...{ parent: fc.constant("main"), label: anyText, querySource: fc.constantFrom("agent:builtin:fork", "user") },
    ...{
      mode: fc.constantFrom("sync" as const, "fire-and-forget" as const),
      skipTranscript: fc.boolean(),
      cacheKeyHash: fc.constant("k"),
    },
  }),
  fc.record({
    type: fc.constant("task_ended" as const),
    taskId: fc.constantFrom("task-1", "task-2", "task-3"),
    end: fc.constantFrom("reported", "failed"),
    turns: fc.nat(9),
    usage,
    usd: fc.double({ min: 0, max: 2, noNaN: true }),
  }),
  fc.record({
    type: fc.constant("worktree_created" as const),
    taskId: fc.constantFrom("task-1", "task-2"),
    path: anyText,
    branch: anyText,
  }),
  fc.record({
    type: fc.constant("worktree_finished" as const),
    taskId: fc.constantFrom("task-1", "task-2"),
    files: fc.nat(4),
    isRemoved: fc.boolean(),
  }),
  fc.record({ type: fc.constant("settings_noticed" as const), notice: anyText }),
  fc.record({
    type: fc.constant("exchange_ended" as const),
    end: fc.constantFrom("done" as const, "aborted" as const, "provider-failed" as const),
    reason: anyText,
    turns: fc.nat(9),
    usage,
  }),
) as fc.Arbitrary<EventBody>;

const KEYS = [
  "escape",
  "enter",
  "tab",
  "shift+tab",
  "up",
  "down",
  "left",
  "right",
  "home",
  "end",
  "pageUp",
  "pageDown",
  "space",
  "backspace",
];
const CONTROLS = ["c", "d", "l", "o", "q", "b", "g"].map((letter) => `ctrl+${letter}`);
const LETTERS = [..."ytansl12345xmbsq?k jGé"];

const suggested = (prompts: readonly string[]) => (): Action => ({ type: "suggested", prompts });

const anyTrustQuestion = fc.record({
  allowRules: fc.nat(3),
  sections: fc.array(
    fc.record({
      title: fc.constant("Tool servers"),
      lines: fc.array(
        anyText.map((text) => safeLine(text, 200)),
        { maxLength: 8 },
      ),
      isRisk: fc.boolean(),
    }),
    { maxLength: 4 },
  ),
});

type AnyTrustQuestion = typeof anyTrustQuestion extends fc.Arbitrary<infer Question> ? Question : never;

const trustAsked =
  (question: AnyTrustQuestion) =>
  (at: number): Action => ({
    type: "trustAsked",
    question: { folder: "/w", ...question, scroll: 0, shownAt: at },
  });

/** Time passes between them, sometimes more than half a second. */
export type Timed = { readonly action: (at: number) => Action; readonly afterMs: number };

export const anyAction: fc.Arbitrary<Timed> = fc.record({
  afterMs: fc.oneof(fc.nat(400), fc.nat(3_000)),
  action: fc.oneof(
    {
      weight: 6,
      arbitrary: fc.tuple(bodies, fc.constantFrom(...AGENTS)).map(
        ([body, agent]) =>
          (at: number): Action => ({
            type: "event",
            event: {
              ...body,
              agent,
              at,
              seq: 1,
              session: "s",
              level: "info",
              ...(agent === "main" ? {} : { family: "f" }),
            } as RuntimeEvent,
          }),
      ),
    },
    {
      weight: 4,
      arbitrary: fc
        .record({
          key: fc.oneof(
            fc.constantFrom(...KEYS),
            fc.constantFrom(...CONTROLS),
            fc.constantFrom(...LETTERS),
            fc.constant("paste"),
          ),
          input: fc.record({
            ...{ isEmpty: fc.boolean(), isOnLastLine: fc.boolean(), isCompleting: fc.boolean() },
            takesEscape: fc.boolean(),
          }),
        })
        .map(
          (press) =>
            (at: number): Action => ({ type: "key", ...press, at }),
        ),
    },
    {
      weight: 1,
      arbitrary: anyText.map(
        (text) =>
          (at: number): Action => ({ type: "submitted", text, at }),
      ),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(fc.integer({ min: 10, max: 300 }), fc.integer({ min: 4, max: 80 })).map(
        ([columns, rows]) =>
          (): Action => ({ type: "resized", columns, rows }),
      ),
    },
    { weight: 1, arbitrary: fc.constant((at: number): Action => ({ type: "ticked", at })) },
    { weight: 1, arbitrary: fc.array(fc.constantFrom("git status", "run `ls`"), { maxLength: 3 }).map(suggested) },
    { weight: 1, arbitrary: anyTrustQuestion.map(trustAsked) },
  ),
});
