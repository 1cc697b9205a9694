/** A whole frame: the blocks that are still changing, and everything below them.
 *  Invariant: what can change fits on the screen, so that no line above it ever has to be drawn again; finished blocks are
 *  printed once and belong to the terminal's own scrollback.
 *  Elsewhere: printing (../screen.ts). */

import type { State } from "../state/index.ts";
import { renderBlock } from "./blocks.ts";
import { cut, lastLines } from "./lines.ts";
import { renderQuestion } from "./question.ts";
import { renderActivity, renderStatus } from "./status.ts";
import { renderStrip } from "./strip.ts";
import type { Theme } from "./theme.ts";

/** Between the printed conversation and the input. */
export const renderAbove = (state: State, theme: Theme, room: number): readonly string[] => {
  const width = state.columns;
  const panels = [
    ...renderActivity(state, width, theme),
    ...renderStrip(state, width, theme),
    ...renderQuestion(state, width, theme),
  ];
  // In a low terminal the question matters most: it is the last panel.
  const shown = panels.slice(-Math.max(1, room));
  const left = room - shown.length;
  return [...(left >= 2 ? renderOpen(state, theme, left) : []), ...shown].map((line) => cut(line, width));
};

/** The blocks that are still changing. */
export const renderOpen = (state: State, theme: Theme, room: number): readonly string[] => {
  const look = { width: state.columns, theme, cwd: state.cwd, isOpen: false, now: state.now };
  const lines = state.main.open.flatMap((block) => renderBlock(block, look));
  return lastLines(lines, room, (hidden) => theme.faint(`… ${hidden} lines above`));
};

export const renderBelow = (state: State, theme: Theme): readonly string[] =>
  renderStatus(state, state.columns, theme).map((line) => cut(line, state.columns));
