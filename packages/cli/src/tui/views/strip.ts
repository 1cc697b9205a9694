/** The fork strip: one line per child, above the input.
 *  Invariant: at most a third of the screen is used.
 *  Elsewhere: which rows there are (../state: strip-rows.ts), a child's own conversation (pages.ts), the summary of a family in the conversation (blocks.ts). */

import { formatMoney } from "../../numbers.ts";
import { type Child, isMergeable, type State, type StripRow, stripRows } from "../state/index.ts";
import { cut, duration, paintLine, percent, shortTokens, spread } from "./lines.ts";
import type { Theme } from "./theme.ts";

export const renderStrip = (state: State, width: number, theme: Theme): readonly string[] => {
  const rows = stripRows(state);
  if (rows.length === 0) return [];
  const most = Math.max(3, Math.floor(state.rows / 3) - 1);
  const selected = rows.findIndex(({ id }) => id === state.selectedChild);
  const from = Math.max(0, Math.min(selected - most + 1, rows.length - most));
  const shown = rows.slice(from, from + most);
  const hidden = rows.length - shown.length;
  const isFocused = state.focus === "strip";
  const isAwaited = rows.some((row) => row.kind === "child" && row.child.isForeground && row.child.state !== "ended");
  const help = isFocused
    ? "↑↓ · Enter open · s steer · b background · x stop · m merge"
    : `↓ select a fork${isAwaited ? " · Ctrl-B do not wait for it" : ""}`;
  return [
    theme.border(cut(`── ${summary(rows)}${hidden > 0 ? ` · ${hidden} not shown` : ""} ── ${help} `, width)),
    ...shown.map((row) => {
      const room = Math.max(1, width - 2);
      const line =
        row.kind === "child"
          ? childLine(row.child, { state, width: room, theme })
          : familyLine(row.children, room, theme);
      return isFocused && row.id === state.selectedChild ? paintLine(`❯ ${line}`, width, theme.selected) : `  ${line}`;
    }),
  ];
};

const summary = (rows: readonly StripRow[]): string => {
  const children = rows.flatMap((row) => (row.kind === "child" ? [row.child] : row.children));
  const count = (state: Child["state"]): number => children.filter((child) => child.state === state).length;
  const parts = [
    count("running") > 0 ? `${count("running")} running` : "",
    count("asking") > 0 ? `${count("asking")} asking` : "",
    count("ended") > 0 ? `${count("ended")} done` : "",
  ].filter(Boolean);
  return `Forks: ${parts.join(", ")}`;
};

type Look = { readonly state: State; readonly width: number; readonly theme: Theme };

const childLine = (child: Child, { state, width, theme }: Look): string => {
  const sign =
    child.state === "asking"
      ? theme.warning("?")
      : child.state === "running"
        ? theme.accent("◌")
        : child.end === "reported"
          ? theme.good("✓")
          : theme.bad("✗");
  const doing =
    child.state === "asking"
      ? theme.warning("needs an answer (Ctrl-Q)")
      : theme.faint(child.state === "ended" ? endText(child) : child.activity);
  return spread(`${sign} ${child.label} ${doing}`, theme.faint(figures(child, state)), width);
};

const endText = ({ end = "ended", reason, worktree }: Child): string => {
  if (worktree?.state === "ready" && worktree.files)
    return `${worktree.files} ${worktree.files === 1 ? "file" : "files"} to merge (m)`;
  return reason === undefined ? end : `${end}: ${reason}`;
};

/** Turns, tokens, money, share read from the cache, and the seconds until its entry expires. Fewer in a narrow terminal. */
const figures = (child: Child, { now, columns }: State): string => {
  const { cache, turns, tokens, usd } = child;
  const share = cache && cache.prompt > 0 ? `${percent(cache.read / cache.prompt)} cached` : "";
  const left =
    cache?.warmUntil === undefined || child.state === "ended"
      ? ""
      : cache.warmUntil > now
        ? `warm for ${duration(cache.warmUntil - now)}`
        : "cold";
  const all = [
    // Unknown for a fork of an earlier run.
    turns === 0 && child.state === "ended" ? "" : `${turns} ${turns === 1 ? "turn" : "turns"}`,
    tokens === 0 && child.state === "ended" ? "" : `${shortTokens(tokens)} tokens`,
    formatMoney(usd, 4),
    share,
    left,
  ];
  return (
    FIGURES[child.state === "ended" ? "ended" : "running"]
      .find(({ from }) => columns >= from)
      ?.shown.map((index) => all[index])
      .filter(Boolean)
      .join(" · ") ?? ""
  );
};

/** Which figures fit, by the width of the screen. What a child that has ended did matters more than what it took. */
const FIGURES: Readonly<
  Record<"running" | "ended", readonly { readonly from: number; readonly shown: readonly number[] }[]>
> = {
  running: [
    { from: 110, shown: [0, 1, 2, 3, 4] },
    { from: 90, shown: [0, 2, 3, 4] },
    { from: 70, shown: [0, 2, 3] },
    { from: 50, shown: [2, 3] },
    { from: 0, shown: [2] },
  ],
  ended: [
    { from: 110, shown: [0, 1, 2, 3] },
    { from: 0, shown: [2] },
  ],
};

const familyLine = (children: readonly Child[], width: number, theme: Theme): string => {
  const files = children.filter(isMergeable).reduce((sum, { worktree }) => sum + (worktree?.files ?? 0), 0);
  const usd = children.reduce((sum, child) => sum + child.usd, 0);
  return spread(
    `${theme.good("✓")} ${children.length} forks done, ${files} ${files === 1 ? "file" : "files"} to merge`,
    theme.faint(formatMoney(usd, 4)),
    width,
  );
};
