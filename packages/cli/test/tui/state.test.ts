/** The terminal's state and views under anything that can happen to them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { visibleWidth } from "@earendil-works/pi-tui";
import type { EventBody, RuntimeEvent } from "@prefork/runtime";
import fc from "fast-check";
import { loadCodeTools } from "../../src/tui/load-code-tools.ts";
import { splitFinished } from "../../src/tui/state/conversation.ts";
import { type Action, type Effect, initialState, type Page, reduce, type State } from "../../src/tui/state/index.ts";
import {
  drawPage,
  renderAbove,
  renderBelow,
  renderBlock,
  renderPage,
  renderTrust,
  themeOf,
} from "../../src/tui/views/index.ts";
import { anyAction, type Timed } from "./random-actions.ts";

const theme = themeOf("dark", { links: true, code: loadCodeTools() });
const SEQUENCES = new RegExp(`${String.fromCharCode(27)}\\[[\\d;]*m`, "g");
/** Our own links: an address of a scheme that may be opened, a text, and the end. */
const LINKS = new RegExp(
  `${String.fromCharCode(27)}\\]8;;(?:https?|file|mailto):[!-~]*${String.fromCharCode(27)}\\\\(.*?)${String.fromCharCode(27)}\\]8;;${String.fromCharCode(27)}\\\\`,
  "g",
);
/** Anything that moves a cursor, or is not one of our own colours. */
const CONTROLS = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

type Played = {
  readonly state: State;
  readonly steps: readonly { readonly before: State; readonly action: Action; readonly effects: readonly Effect[] }[];
};

const play = (actions: readonly Timed[]): Played => {
  let state = initialState({ cwd: "/w", columns: 80, rows: 24, now: 0 });
  let at = 1_000_000;
  const steps = actions.map(({ action: make, afterMs }) => {
    at += afterMs;
    const [before, action] = [state, make(at)];
    const step = reduce(before, action);
    state = step.state;
    return { before, action, effects: step.effects };
  });
  return { state, steps };
};

const shownLines = (state: State): readonly string[] => {
  if (state.trust) return renderTrust(state, state.trust, theme);
  if (state.page) return renderPage(state, state.page, theme);
  const look = { width: state.columns, theme, cwd: state.cwd, isOpen: false, now: state.now };
  return [
    ...state.main.done.flatMap((block) => renderBlock(block, look)),
    ...renderAbove(state, theme, Math.max(1, state.rows - 4)),
    ...renderBelow(state, theme),
  ];
};

test("whatever happens, every line fits the screen and has no control sequence but our colours and links", () => {
  fc.assert(
    fc.property(fc.array(anyAction, { maxLength: 40 }), (actions) => {
      const { state } = play(actions);
      for (const line of shownLines(state)) {
        assert.ok(visibleWidth(line) <= state.columns, `wider than ${state.columns}: ${JSON.stringify(line)}`);
        assert.doesNotMatch(line.replace(SEQUENCES, "").replace(LINKS, "$1"), CONTROLS);
      }
      if (state.trust) assert.equal(renderTrust(state, state.trust, theme).length, state.rows);
      if (state.page) assert.equal(renderPage(state, state.page, theme).length, state.rows);
      else assert.ok(renderAbove(state, theme, Math.max(1, state.rows - 4)).length <= Math.max(1, state.rows - 4));
    }),
    { numRuns: 300 },
  );
});

test("a question is answered only by its own key, after it could be read, and never by a paste or by typing", () => {
  fc.assert(
    fc.property(fc.array(anyAction, { maxLength: 60 }), (actions) => {
      for (const { before, action, effects } of play(actions).steps)
        for (const effect of effects) {
          if (effect.kind !== "answer") continue;
          const [shown] = before.questions;
          if (action.type === "submitted") {
            assert.equal(before.composing.kind, "rule");
            continue;
          }
          assert.ok(action.type === "key");
          const answered = before.questions.find(({ id }) => id === effect.questionId);
          if (/^[l5]$/.test(action.key))
            assert.deepEqual([answered?.tool, answered?.reason], [shown?.tool, shown?.reason], "only what is alike");
          else assert.equal(answered, shown);
          assert.match(action.key, /^[ynsl1345]$/);
          assert.ok(action.at - before.questionShownAt >= 500, "it could be read");
          assert.deepEqual([before.page, before.trust], [undefined, undefined]);
          if (before.focus !== "question")
            assert.deepEqual([action.input.isEmpty, action.at - before.lastKeyAt >= 500], [true, true]);
        }
    }),
    { numRuns: 300 },
  );
});

test("a folder is trusted only by a key for it, after the question could be read, and never by a paste or by typing", () => {
  fc.assert(
    fc.property(fc.array(anyAction, { maxLength: 60 }), (actions) => {
      for (const { before, action, effects } of play(actions).steps)
        for (const effect of effects) {
          if (effect.kind !== "trust") continue;
          assert.ok(action.type === "key" && before.trust);
          if (effect.choice === "leave" && action.key.startsWith("ctrl+")) continue;
          assert.equal({ t: "trust", a: "accept", n: "later", escape: "later", q: "leave" }[action.key], effect.choice);
          assert.ok(effect.choice !== "accept" || before.trust.allowRules > 0);
          assert.ok(action.at - before.trust.shownAt >= 500 && action.at - before.lastKeyAt >= 500, "it could be read");
        }
    }),
    { numRuns: 300 },
  );
});

test("a finished block never changes, so that it can be printed once", () => {
  fc.assert(
    fc.property(fc.array(anyAction, { maxLength: 60 }), (actions) => {
      let before = initialState({ cwd: "/w", columns: 80, rows: 24, now: 0 });
      for (const { action } of play(actions).steps) {
        const { state: after } = reduce(before, action);
        assert.deepEqual(after.main.done.slice(0, before.main.done.length), before.main.done);
        before = after;
      }
    }),
    { numRuns: 200 },
  );
});

test("an answer is split only between paragraphs: never inside a fence, a list or a table", () => {
  assert.deepEqual(splitFinished("one\n\ntwo"), ["one\n\n", "two"]);
  assert.deepEqual(splitFinished("one\n\n- a\n- b"), ["", "one\n\n- a\n- b"]);
  assert.deepEqual(splitFinished("```\na\n\nb\n```\n\nafter"), ["```\na\n\nb\n```\n\n", "after"]);
  assert.deepEqual(splitFinished("```\na\n\nb"), ["", "```\na\n\nb"]);
  assert.deepEqual(splitFinished("- a\n\n  more of a\n\nend"), ["- a\n\n  more of a\n\n", "end"]);
});

test("a long page scrolls to its end and back, and keys beyond an end change nothing", () => {
  const text = Array.from({ length: 60 }, (_, index) => `line ${index + 1}`).join("\n");
  let state = reduce(initialState({ cwd: "/w", columns: 40, rows: 20, now: 0 }), {
    type: "pageOpened",
    page: { kind: "text", title: "Page", text, scroll: 0 },
  }).state;
  const press = (key: string): string => {
    state = reduce(state, {
      type: "key",
      key,
      at: 0,
      input: { isEmpty: true, isOnLastLine: true, isCompleting: false },
    }).state;
    const { page } = state;
    assert.ok(page && "scroll" in page);
    const { lines, scrollLimit = 0 } = drawPage(state, page, theme);
    state = reduce(state, { type: "scrollLimited", limit: scrollLimit }).state;
    return lines[2] ?? "";
  };
  const shown = ["down", "pageDown", "end", "pageDown", "up", "home", "up", "down"].map(press);
  assert.deepEqual(shown, ["line 2", "line 19", "line 44", "line 44", "line 43", "line 1", "line 1", "line 2"]);
});

type Press = { readonly isEmpty?: boolean; readonly at?: number };

/** A terminal with these actions behind it, whose keys are pressed one after another. */
const openKeys = (...actions: readonly Action[]) => {
  let state = initialState({ cwd: "/w", columns: 80, rows: 24, now: 0 });
  for (const action of actions) state = reduce(state, action).state;
  return {
    get state(): State {
      return state;
    },
    press: (key: string, { isEmpty = true, at = state.now + 100 }: Press = {}): readonly Effect[] | "typed" => {
      const step = reduce(state, {
        ...{ type: "key", key, at },
        input: { isEmpty, isOnLastLine: true, isCompleting: false },
      });
      state = step.state;
      return step.isHandled ? step.effects : "typed";
    },
    does: (action: Action): readonly Effect[] => {
      const step = reduce(state, action);
      state = step.state;
      return step.effects;
    },
  };
};

const eventOf = (body: EventBody, agent = "main", at = 1_000): Action => ({
  type: "event",
  event: { ...body, agent, at, seq: 1, session: "s", level: "info", family: "f" } as RuntimeEvent,
});

const forkStarted = (taskId: string): Action =>
  eventOf({
    ...{ type: "fork_started", taskId, runId: "r", parent: "main", label: `part ${taskId}` },
    ...{ querySource: "agent:builtin:fork", mode: "fire-and-forget", skipTranscript: false, cacheKeyHash: "k" },
  });

const listPage = (title: string): Action => ({
  type: "pageOpened",
  page: {
    ...{ kind: "list", title, command: "c", selected: 0, filter: "", hint: "opens it" },
    items: [{ id: "1", label: "one" }],
  },
});

const textPage = (title: string): Action => ({
  type: "pageOpened",
  page: { kind: "text", title, text: "text", scroll: 0 },
});

test("a page that was opened from a list leads back to it", () => {
  const keys = openKeys(listPage("Worktrees"));
  const titles = (): readonly (string | undefined)[] =>
    [...keys.state.pagesBelow, keys.state.page].map((page) => (page && "title" in page ? page.title : undefined));
  assert.deepEqual(keys.press("enter"), [{ kind: "chosen", command: "c", id: "1" }]);
  keys.does(listPage("Merge"));
  keys.press("enter");
  keys.does(textPage("Diff"));
  assert.deepEqual(titles(), ["Worktrees", "Merge", "Diff"]);
  // A list that is opened again shows its new content instead of lying above itself.
  keys.does(listPage("Worktrees"));
  assert.deepEqual(titles(), ["Worktrees"]);
  keys.press("enter");
  keys.does(textPage("Diff"));
  keys.press("escape");
  assert.deepEqual(titles(), ["Worktrees"]);
  // A choice that opens nothing leaves all pages; what is opened later by another key does not lead back to them.
  keys.press("enter");
  keys.press("?");
  keys.does(textPage("Help"));
  keys.press("escape");
  assert.deepEqual(titles(), [undefined]);
});

test("pages below the open one are bounded", () => {
  const keys = openKeys(...Array.from({ length: 50 }, (_, index) => textPage(`Page ${index}`)));
  assert.equal(keys.state.pagesBelow.length, 8);
  assert.deepEqual(keys.press("ctrl+c"), []);
  assert.deepEqual([keys.state.page, keys.state.pagesBelow], [undefined, []]);
});

test("Enter on a prompt that was recalled right after a page was closed is asked for twice", () => {
  const closed = () => {
    const keys = openKeys(textPage("Diff"));
    keys.press("escape");
    return keys;
  };
  const keys = closed();
  assert.equal(keys.press("up"), "typed");
  assert.deepEqual(keys.press("enter", { isEmpty: false }), []);
  assert.equal(keys.state.hint, "This is an earlier prompt. Press Enter again to send it.");
  assert.equal(keys.press("enter", { isEmpty: false }), "typed");
  // Somebody who changes the prompt, or comes back later, means it.
  const changed = closed();
  changed.press("up");
  changed.press("x", { isEmpty: false });
  assert.equal(changed.press("enter", { isEmpty: false }), "typed");
  const later = closed();
  later.press("up", { at: later.state.now + 60_000 });
  assert.equal(later.press("enter", { isEmpty: false }), "typed");
});

test("hints are shown on pages, and a fork that was stopped by the person says so", () => {
  const keys = openKeys(forkStarted("task-1"));
  keys.press("down");
  keys.press("enter");
  keys.press("x");
  const { page } = keys.state;
  assert.ok(page);
  assert.equal(
    renderPage(keys.state, page, themeOf("none")).at(-1),
    "Press x again to stop part task-1. Its work so far is kept.",
  );
  assert.deepEqual(keys.press("x"), [{ kind: "stop", child: "task-1" }]);
  const ended: EventBody = {
    ...{ type: "task_ended", taskId: "task-1", end: "aborted", reason: "interrupted", turns: 1, usd: 0 },
    usage: { plain: 0, read: 0, written: {}, output: 0 },
  };
  keys.does(eventOf(ended));
  const child = keys.state.children.get("task-1");
  assert.deepEqual([child?.end, child?.reason], ["stopped by you", undefined]);
  assert.equal(renderPage(keys.state, page, themeOf("none"))[0], "part task-1 (stopped by you) · following");
});

test("the selected fork has a mark and one highlight over the whole line", () => {
  const keys = openKeys(forkStarted("task-1"), forkStarted("task-2"));
  keys.press("down");
  const rows = renderAbove(keys.state, theme, 20).filter((line) => line.includes("part task-"));
  assert.equal(rows[0]?.replace(SEQUENCES, "").slice(0, 15), "❯ ◌ part task-1");
  assert.deepEqual(rows[0]?.match(SEQUENCES), ["\u001b[7m", "\u001b[27m"]);
  assert.equal(visibleWidth(rows[0] ?? ""), 80);
  assert.equal(rows[1]?.replace(SEQUENCES, "").slice(0, 15), "  ◌ part task-2");
});

test("a fork that ends stays selected as long as its row is shown", () => {
  const keys = openKeys(forkStarted("task-1"), forkStarted("task-2"));
  const end = (taskId: string): void => {
    const usage = { plain: 0, read: 0, written: {}, output: 0 };
    keys.does(eventOf({ type: "task_ended", taskId, end: "reported", turns: 1, usd: 0, usage }));
  };
  keys.press("down");
  end("task-1");
  assert.deepEqual([keys.state.focus, keys.state.selectedChild], ["strip", "task-1"]);
  keys.press("end");
  keys.press("enter");
  assert.equal(keys.state.page?.kind === "conversation" && keys.state.page.agent, "task-2");
  keys.press("escape");
  end("task-2"); // the family becomes one line of the conversation
  assert.deepEqual([keys.state.focus, keys.state.selectedChild], ["input", undefined]);
});

test("the keys of a question stand out, with brackets where there are no colours", () => {
  const keys = openKeys(
    eventOf({
      ...{ type: "question_opened", questionId: "a", tool: "Bash", args: { command: "ls" } },
      reason: "npm runs scripts, so it needs approval; read with jq .a b.json; only npm -v runs without approval",
      ...{ notes: [], rule: "Bash(ls)" },
    }),
  );
  // What the agent could do instead is not shown to the person.
  assert.ok(renderAbove(keys.state, themeOf("none"), 20).includes("Why: npm runs scripts, so it needs approval"));
  assert.equal(
    renderAbove(keys.state, themeOf("none"), 20).at(-2),
    "[y] once   [a] always in this session…   [n] no   [s] no, and stop   (Ctrl-Q",
  );
  assert.ok(renderAbove(keys.state, theme, 20).join("\n").includes("\u001b[7my\u001b[27m once"));
});

test("slash commands that were typed can be recalled", () => {
  const keys = openKeys();
  assert.deepEqual(keys.does({ type: "submitted", text: " /fork look ", at: 1 }), [
    { kind: "command", name: "fork", args: "look", typed: "/fork look" },
  ]);
  assert.deepEqual(keys.press("?"), [{ kind: "command", name: "help", args: "" }]);
});

test("a list that asks which conversation to resume: Enter takes one, Esc begins a new one, Ctrl-C leaves", () => {
  const items = [{ id: "s1", label: "one" }];
  const page: Page = {
    ...{ kind: "list", title: "Resume", command: "first", items, selected: 0, filter: "", hint: "resumes it" },
    otherwise: { id: "new", hint: "starts a new one" },
  };
  const after = (...keys: readonly string[]): unknown => {
    const opened = openKeys({ type: "pageOpened", page });
    const effects = keys.map((key) => opened.press(key)).at(-1);
    return [effects, opened.state.page];
  };
  assert.deepEqual(after("o", "enter"), [[{ kind: "chosen", command: "first", id: "s1" }], undefined]);
  assert.deepEqual(after("x", "escape", "escape"), [[{ kind: "chosen", command: "first", id: "new" }], undefined]);
  assert.deepEqual(after("ctrl+c"), [[{ kind: "quit" }], undefined]);
});

test("quitting says how many forks it would stop", () => {
  const keys = openKeys(forkStarted("task-1"), forkStarted("task-2"));
  keys.press("ctrl+d", { at: 1_000_000 });
  assert.equal(keys.state.hint, "Press Ctrl-D again to quit. 2 forks are running and would be stopped.");
  assert.deepEqual(keys.press("ctrl+d"), [{ kind: "quit" }]);
});
