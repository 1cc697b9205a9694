/** The blocks of a conversation as lines.
 *  Invariant: a pure function of block, width and theme, so finished blocks are rendered once; calls are one line unless they
 *  are open.
 *  Elsewhere: the line of a call (../state: call-line.ts), diffs (diff-lines.ts). */

import { formatMoney } from "../../numbers.ts";
import type { Block, CallBlock, FamilyBlock } from "../state/index.ts";
import { callText, describeCall, safeLine } from "../state/index.ts";
import { diffOfCall } from "./diff-lines.ts";
import { cut, duration, hanging, lastLines, percent, widthOf, wrap } from "./lines.ts";
import { linkPath, type PathInLine } from "./links.ts";
import { renderGrowingMarkdown, renderMarkdown } from "./markdown.ts";
import type { Theme } from "./theme.ts";

export type BlockLook = {
  readonly width: number;
  readonly theme: Theme;
  readonly cwd: string;
  /** Calls show their diff or output, thinking its text. */
  readonly isOpen: boolean;
  readonly now: number;
};

/** Lines of output below a running call, and below one that failed. */
const TAIL_LINES = 5;
const MAX_OPEN_LINES = 200;
/** As much of a path as the line of a call shows. */
const MAX_PATH = 120;

export const renderBlock = (block: Block, look: BlockLook): readonly string[] =>
  linesOf(block, look).map((line) => cut(line, look.width));

const linesOf = (block: Block, look: BlockLook): readonly string[] => {
  const { theme, width } = look;
  switch (block.kind) {
    case "prompt":
      return ["", ...hanging(theme.prompt("❯ "), block.text.trimEnd(), width)];
    case "answer": {
      const text = block.text.trim();
      return text === "" ? [] : ["", ...(block.isDone ? renderMarkdown : renderGrowingMarkdown)(text, width, theme)];
    }
    case "thinking":
      return renderThinking(block.text, block.isDone, look);
    case "call":
      return renderCall(block, look);
    case "family":
      return renderFamily(block, look);
    case "notice": {
      const paint = block.level === "info" ? theme.faint : block.level === "warn" ? theme.warning : theme.bad;
      const sign = block.level === "info" ? "· " : "! ";
      return wrap(block.text, width - 2).map((line, index) => paint((index === 0 ? sign : "  ") + line));
    }
    case "output": {
      const lines = block.isMarkdown
        ? renderMarkdown(block.text, width - 2, theme)
        : lastLines(block.text.trimEnd().split("\n"), MAX_OPEN_LINES, hiddenLines(theme)).flatMap((line) =>
            wrap(line, width - 2),
          );
      return ["", theme.faint(cut(block.title, width)), ...lines.map((line) => `  ${line}`)];
    }
  }
};

const hiddenLines =
  (theme: Theme) =>
  (count: number): string =>
    theme.faint(`… ${count} more ${count === 1 ? "line" : "lines"} above`);

const renderThinking = (text: string, isDone: boolean, { theme, width, isOpen }: BlockLook): readonly string[] => {
  if (isOpen) return ["", ...wrap(text.trim(), width - 2).map((line) => theme.faint(`  ${line}`))];
  const words = text.trim().split(/\s+/).length;
  return text.trim() === ""
    ? []
    : [
        theme.faint(
          cut(isDone ? `✻ thought for ${words} words (Ctrl-O shows it)` : `✻ thinking… ${words} words`, width),
        ),
      ];
};

const renderCall = (call: CallBlock, look: BlockLook): readonly string[] => {
  const { theme, width } = look;
  const args = withShortPath(call, look.cwd);
  const title = describeCall({ tool: call.tool, args });
  const subject = linkPath(title.slice(call.tool.length), pathIn(call, args, look.cwd), theme);
  const line = cut(`${signOf(call, theme)} ${theme.bold(call.tool)}${subject}${timeOf(call, look)}`, width);
  return [line, ...detailsOf(call, look).map((detail) => cut(`  ${detail}`, width))];
};

const withShortPath = ({ args }: CallBlock, cwd: string): CallBlock["args"] => {
  const { file_path: path } = args;
  return typeof path === "string" && path.startsWith(`${cwd}/`)
    ? { ...args, file_path: path.slice(cwd.length + 1) }
    : args;
};

/** The path that the line shows. A path that was cut is not linked. */
const pathIn = ({ args }: CallBlock, shortened: CallBlock["args"], cwd: string): PathInLine => {
  const name = "file_path" in args ? "file_path" : "path";
  const [path, shown] = [args[name], shortened[name]];
  return typeof path === "string" && typeof shown === "string"
    ? { path, shown: safeLine(shown, MAX_PATH), cwd, isAtEnd: name === "path" }
    : { path: "", shown: "", cwd, isAtEnd: false };
};

const signOf = ({ state, fault, tool }: CallBlock, theme: Theme): string => {
  if (state === "asking") return theme.warning("?");
  if (state !== "ended") return theme.accent("◌");
  // A fork that was started has not done anything yet.
  if (fault === undefined) return tool === "Agent" ? theme.accent("⑂") : theme.good("✓");
  return theme.bad("✗");
};

const timeOf = ({ state, startedAt, ms, fault }: CallBlock, { now, theme }: BlockLook): string => {
  const failed = fault === undefined ? "" : theme.bad(` · ${FAULTS[fault] ?? fault}`);
  const took = state === "running" ? now - startedAt : state === "ended" ? (ms ?? 0) : 0;
  return `${failed}${took >= 1_000 ? theme.faint(` · ${duration(took)}`) : ""}`;
};

const FAULTS: Readonly<Record<string, string>> = {
  "unknown-tool": "no such tool",
  "bad-input": "invalid arguments",
  denied: "not allowed",
  failed: "failed",
  "timed-out": "timed out",
  aborted: "stopped",
  interrupted: "interrupted",
};

const detailsOf = (call: CallBlock, { isOpen, theme, width }: BlockLook): readonly string[] => {
  const output = call.output.trimEnd();
  if (isOpen) {
    const diff = diffOfCall(call, theme);
    if (diff && call.fault === undefined) return diff.slice(0, MAX_OPEN_LINES).flatMap((line) => wrap(line, width - 2));
    const result = lastLines(output === "" ? [] : output.split("\n"), MAX_OPEN_LINES, hiddenLines(theme))
      .flatMap((line) => wrap(line, width - 2))
      .map(theme.faint);
    return [...wholeCall(call, width), ...result];
  }
  if (call.state === "running" && output !== "") return output.split("\n").slice(-TAIL_LINES).map(theme.faint);
  if (call.fault !== undefined && output !== "") return output.split("\n").slice(0, 3).map(theme.faint);
  return [];
};

/** What the one line of a call could not show: a person may have to read all of it before it is allowed. */
const wholeCall = ({ tool, args }: CallBlock, width: number): readonly string[] => {
  const text = callText(tool, args);
  const isInLine = !text.includes("\n") && widthOf(describeCall({ tool, args })) + 4 <= width && tool === "Bash";
  if (isInLine || NAMED_IN_LINE.has(tool)) return [];
  return text
    .split("\n")
    .slice(0, MAX_OPEN_LINES)
    .flatMap((line) => wrap(line, width - 2));
};

/** Tools whose line says everything that matters. */
const NAMED_IN_LINE: ReadonlySet<string> = new Set(["Read", "Grep", "Glob", "TodoWrite"]);

const renderFamily = (family: FamilyBlock, { theme, width }: BlockLook): readonly string[] => {
  const ends = Object.entries(family.ends).map(([end, count]) => `${count} ${end}`);
  const saved =
    family.freshUsd === undefined || family.freshUsd <= family.usd
      ? undefined
      : `saved ${formatMoney(family.freshUsd - family.usd)} against fresh sub-agents`;
  const parts = [
    `${family.forks} ${family.forks === 1 ? "fork" : "forks"}`,
    ends.join(", "),
    duration(family.ms),
    formatMoney(family.usd),
    ...(family.warmShare === undefined ? [] : [`${percent(family.warmShare)} of their first requests from the cache`]),
    ...(saved === undefined ? [] : [saved]),
  ];
  return hanging(`${theme.good("⑂")} `, parts.join(" · "), width);
};
