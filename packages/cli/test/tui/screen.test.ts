/** The screen as an emulator shows it: always the frame that the state describes, and above it what was printed. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import fc from "fast-check";
import { Screen } from "../../src/tui/screen.ts";
import { type Action, initialState, reduce, type State } from "../../src/tui/state/index.ts";
import { renderAbove, renderBelow, renderPage, renderTrust, themeOf } from "../../src/tui/views/index.ts";
import { EmulatedTerminal } from "./emulated.ts";
import { anyAction, type Timed } from "./random-actions.ts";

const theme = themeOf("none");

class Played {
  readonly terminal = new EmulatedTerminal(60, 20);
  state: State = initialState({ cwd: "/w", columns: 60, rows: 20, now: 0 });
  readonly screen: Screen;

  constructor() {
    this.screen = new Screen({
      theme: "none",
      terminal: this.terminal,
      state: (columns, rows) => {
        if (this.state.columns !== columns || this.state.rows !== rows) this.act({ type: "resized", columns, rows });
        return this.state;
      },
      onKey: () => true,
      onSubmit: () => undefined,
    });
    this.screen.start();
  }

  act(action: Action): void {
    this.state = reduce(this.state, action).state;
    this.screen.draw();
  }

  async drawn(): Promise<void> {
    this.screen.drawNow();
    await sleep(0);
    await this.terminal.settled();
  }

  /** The lines that must be at the end of the screen. */
  expected(): readonly string[] {
    if (this.state.trust) return renderTrust(this.state, this.state.trust, theme).map(plain);
    if (this.state.page) return renderPage(this.state, this.state.page, theme).map(plain);
    const input = this.screen.input.render(this.state.columns);
    const below = renderBelow(this.state, theme);
    const above = renderAbove(this.state, theme, Math.max(1, this.state.rows - input.length - below.length));
    return [...above, ...input, ...below].map(plain);
  }
}

const plain = (line: string): string => stripVTControlCharacters(line.replaceAll("\u001b_pi:c\u0007", "")).trimEnd();

/** Up to the first character whose width terminals may see differently. */
const comparable = (line: string): string =>
  /^[\u0020-\u024f\u2010-\u2027\u2190-\u27bf]*/.exec(line)?.[0].trimEnd() ?? "";

const isResize = ({ action }: Timed): boolean => action(0).type === "resized";

test("after anything that happens, the emulator shows the frame that the state describes", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyAction, { maxLength: 40 }), async (actions) => {
      const played = new Played();
      await played.drawn();
      let at = 1_000_000;
      for (const timed of actions) {
        at += timed.afterMs;
        const action = timed.action(at);
        if (action.type === "resized") played.terminal.resize(Math.max(20, action.columns), Math.max(12, action.rows));
        else played.act(action);
        await played.drawn();
      }
      const expected = played.expected();
      const shown = played.terminal.lines();
      const last = shown.findLastIndex((line) => line !== "");
      const tail = shown.slice(0, last + 1).slice(-expected.findLastIndex((line) => line !== "") - 1);
      assert.deepEqual(
        tail.map(comparable),
        expected.slice(0, expected.findLastIndex((line) => line !== "") + 1).map(comparable),
        `${actions.filter(isResize).length} resizes`,
      );
    }),
    { numRuns: 60 },
  );
});

test("every finished message is printed once, in order, whatever is drawn in between", async () => {
  const played = new Played();
  for (let index = 0; index < 200; index++) {
    played.act({ type: "printed", block: { kind: "answer", text: `Message number ${index}.`, isDone: true } });
    if (index % 3 === 0)
      played.act({ type: "pageOpened", page: { kind: "text", title: "Page", text: "A page.", scroll: 0 } });
    if (index % 3 === 1)
      played.act({
        type: "key",
        key: "escape",
        at: index * 1_000,
        input: { isEmpty: true, isOnLastLine: true, isCompleting: false },
      });
    await played.drawn();
  }
  played.act({
    type: "key",
    key: "escape",
    at: 900_000,
    input: { isEmpty: true, isOnLastLine: true, isCompleting: false },
  });
  await played.drawn();
  const { active } = played.terminal.emulator.buffer;
  const all = Array.from(
    { length: active.length },
    (_, line) => active.getLine(line)?.translateToString(true).trimEnd() ?? "",
  );
  const numbers = all.flatMap((line) => /^Message number (\d+)\.$/.exec(line)?.slice(1).map(Number) ?? []);
  assert.deepEqual(
    numbers,
    Array.from({ length: 200 }, (_, index) => index),
  );
});

test("at the end the input line, the forks and the status line are gone, and the conversation is left", async () => {
  const played = new Played();
  played.act({ type: "printed", block: { kind: "answer", text: "It is done.", isDone: true } });
  played.act({ type: "hinted", text: "A hint." });
  await played.drawn();
  assert.ok(played.terminal.lines().some((line) => line.includes("─────")));
  played.screen.finish();
  await played.terminal.settled();
  assert.deepEqual(
    played.terminal.lines().filter((line) => line !== ""),
    ["It is done."],
  );
});

test("a window that was closed does not keep the screen from stopping, nor the session from being closed", () => {
  class ClosedWindow extends EmulatedTerminal {
    override stop(): void {
      throw new Error("setRawMode EIO"); // as Node does
    }
  }
  const state = initialState({ cwd: "/w", columns: 60, rows: 20, now: 0 });
  const screen = new Screen({
    ...{ theme: "none", terminal: new ClosedWindow(60, 20), state: () => state },
    ...{ onKey: () => true, onSubmit: () => undefined },
  });
  screen.start();
  screen.finish();
});
