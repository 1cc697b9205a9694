/** The first open question, as a panel above the input: who asks, what exactly would run, why, and the keys.
 *  Invariant: the whole call is shown, or the panel says how much is not; nothing in it can look like our own words, because
 *  a call's lines start with a bar.
 *  Elsewhere: the keys (../state: keys.ts), how answers are given (../effects.ts). */

import { alikeQuestions, callText, describeCall, type OpenQuestion, type State } from "../state/index.ts";
import { diffOfCall } from "./diff-lines.ts";
import { cut, hanging, widthOf, wrap } from "./lines.ts";
import type { Theme } from "./theme.ts";

export const renderQuestion = (state: State, width: number, theme: Theme): readonly string[] => {
  const [question] = state.questions;
  if (!question) return [];
  const room = Math.max(3, Math.floor(state.rows / 2) - 6);
  const isFocused = state.focus === "question";
  const more = state.questions.length > 1 ? ` (1 of ${state.questions.length})` : "";
  return [
    theme.warning(rule(`── Question${more} `, width)),
    ...wrap(`${asker(question, state)} wants to use ${question.tool}:`, width),
    ...callLines(question, room, { width, theme, shorten: pathShortener(question, state) }),
    ...alikeLines(state, { width, theme }),
    ...hanging(theme.faint("Why: "), pathShortener(question, state)(reasonForPerson(question.reason)), width),
    ...question.notes.flatMap((note) => hanging(theme.faint("Note: "), note, width)),
    ...choices(question, state, theme).map((line) => (isFocused ? theme.bold(line) : line)),
  ];
};

/** The other questions that one key would answer too. */
const alikeLines = (state: State, { width, theme }: Pick<Look, "width" | "theme">): readonly string[] =>
  alikeQuestions(state)
    .slice(1)
    .flatMap((question) =>
      hanging(theme.faint("Also: "), `${describeCall(question)} (${asker(question, state)})`, width),
    );

/** What the agent could do instead is of no use to somebody who decides about this call. */
const ADVICE = /^read (?:with|the files with) |\bruns without approval\b/;

const reasonForPerson = (reason: string): string =>
  reason
    .split("; ")
    .filter((clause, index) => index === 0 || !ADVICE.test(clause))
    .join("; ");

const rule = (label: string, width: number): string =>
  cut(label + "─".repeat(Math.max(0, width - widthOf(label))), width);

const asker = ({ agent }: OpenQuestion, { children }: State): string => {
  if (agent === "main") return "The agent";
  const child = children.get(agent);
  if (!child) return `Fork ${agent}`;
  return `Fork "${child.label}"${child.worktree ? ", in its own worktree," : ""}`;
};

/** Paths below the working folder, or below the fork's own worktree, without that folder. */
const pathShortener = ({ agent }: OpenQuestion, { cwd, children }: State): ((text: string) => string) => {
  const worktree = children.get(agent)?.worktree?.path;
  return (text) => {
    const own = worktree === undefined ? text : text.replaceAll(`${worktree}/`, "");
    return own.replaceAll(`${cwd}/`, "");
  };
};

type Look = { readonly width: number; readonly theme: Theme; readonly shorten: (text: string) => string };

const callLines = ({ tool, args }: OpenQuestion, room: number, { width, theme, shorten }: Look): readonly string[] => {
  const diff = diffOfCall({ tool, args }, theme);
  const path =
    typeof args.file_path === "string"
      ? callText("", { file_path: shorten(args.file_path) })
          .split("\n")
          .slice(0, 1)
      : [];
  const lines = (diff ? [...path, ...diff] : callText(tool, args).split("\n")).flatMap((line) => wrap(line, width - 2));
  const shown = lines.slice(0, room);
  const bar = theme.warning("▏");
  return [
    ...shown.map((line) => cut(`${bar} ${line}`, width)),
    ...(lines.length > shown.length
      ? [theme.warning(cut(`${bar} … ${lines.length - shown.length} more lines; Ctrl-O shows all of them`, width))]
      : []),
  ];
};

const choices = ({ rule }: OpenQuestion, state: State, theme: Theme): readonly string[] => {
  const width = state.columns;
  const key = (letter: string): string => (theme.name === "none" ? `[${letter}]` : theme.selected(letter));
  if (state.attached?.isReadOnly) return wrap("Not answered here: this terminal only watches (--read-only).", width);
  const keys = [
    `${key("y")} once`,
    ...(rule === undefined ? [] : [`${key("a")} always in this session…`]),
    `${key("n")} no`,
    `${key("s")} no, and stop`,
    ...(alikeQuestions(state).length > 1 ? [`${key("l")} once, these ${alikeQuestions(state).length}`] : []),
  ];
  const how = state.focus === "question" || state.composing.kind !== "prompt" ? "" : "   (Ctrl-Q while you type)";
  return wrap(`${keys.join("   ")}${how}`, width);
};
