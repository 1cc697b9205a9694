/** The terminal's state and views under anything that can happen to them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { visibleWidth } from "@earendil-works/pi-tui";
import fc from "fast-check";
import { loadCodeTools } from "../../src/tui/load-code-tools.ts";
import { splitFinished } from "../../src/tui/state/conversation.ts";
import { type Action, type Effect, initialState, reduce, type State } from "../../src/tui/state/index.ts";
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
          assert.equal(effect.questionId, shown?.id);
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
