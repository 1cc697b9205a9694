/** Keys of the question whether a folder is trusted.
 *  Invariant: pure. A choice needs a key that was pressed after the question had been on the screen for half a second and
 *  that was not part of typing; every other key of a text goes to the input line, so nothing that was typed ahead is lost.
 *  Elsewhere: how it looks (../views: trust.ts), what trust means (@prefork/guard). */

import { handled, type KeyPress } from "./child-keys.ts";
import type { State, Step, TrustChoice, TrustQuestion } from "./state.ts";

const GRACE_MS = 500;

export type TrustOption = { readonly key: string; readonly choice: TrustChoice; readonly label: string };

export const trustOptions = ({ allowRules, problem }: TrustQuestion): readonly TrustOption[] => {
  const rules = allowRules === 1 ? "its allow rule" : `its ${allowRules} allow rules`;
  const trust: TrustOption = {
    key: "t",
    choice: "trust",
    label: allowRules === 0 ? "trust it" : `trust it, but without ${rules}`,
  };
  const accept: TrustOption = { key: "a", choice: "accept", label: `trust it, and accept ${rules}` };
  return [
    ...(problem === undefined ? [trust] : []),
    ...(problem === undefined && allowRules > 0 ? [accept] : []),
    { key: "n", choice: "later", label: "not now: work without these files" },
    { key: "q", choice: "leave", label: "leave" },
  ];
};

export const reduceTrustKey = (state: State, question: TrustQuestion, press: KeyPress): Step => {
  const { key, at, input } = press;
  if (key === "ctrl+c" || (key === "ctrl+d" && input.isEmpty)) return choose(state, "leave");
  if (key === "ctrl+l") return handled(state, { kind: "redraw" });
  if (key === "ctrl+z") return handled(state, { kind: "suspend" });
  const lines = scrollBy(key, state.rows);
  if (lines !== undefined) {
    const scroll = Math.max(0, Math.min(question.scroll + lines, lineBound(question, state.columns)));
    return handled({ ...state, trust: { ...question, scroll } });
  }
  const isDeliberate = at - question.shownAt >= GRACE_MS && at - state.lastKeyAt >= GRACE_MS;
  const choice = key === "escape" ? "later" : trustOptions(question).find((option) => option.key === key)?.choice;
  if (choice === undefined || !isDeliberate) return { state, effects: [], isHandled: key === "escape" };
  return choose(state, choice);
};

const choose = ({ trust: _trust, ...state }: State, choice: TrustChoice): Step =>
  handled(state, { kind: "trust", choice });

const scrollBy = (key: string, rows: number): number | undefined => {
  const screen = Math.max(1, rows - 8);
  switch (key) {
    case "up":
      return -1;
    case "down":
      return 1;
    case "pageUp":
      return -screen;
    case "pageDown":
      return screen;
    default:
      return undefined;
  }
};

/** About as many lines as the question has on a screen of this width: scrolling stops there. */
const lineBound = ({ sections }: TrustQuestion, columns: number): number => {
  const width = Math.max(1, columns - 4);
  const lines = sections.flatMap(({ title, lines: own }) => [title, "", ...own]);
  return lines.reduce((sum, line) => sum + Math.max(1, Math.ceil((1.2 * cellsOf(line)) / width)), 0);
};

/** From there on, most characters of Unicode are two columns wide. */
const WIDE = "\u1100";

const cellsOf = (line: string): number => [...line].reduce((sum, sign) => sum + (sign < WIDE ? 1 : 2), 0);
