/** The question whether a folder is trusted, as a page: what its files would do, and the choices.
 *  Invariant: exactly `rows` lines, none wider than the screen; the choices are always visible, and lines from the folder are
 *  indented, so that none can look like one of them.
 *  Elsewhere: the keys (../state: trust-keys.ts), what is read (../trust-summary.ts). */

import { type State, type TrustQuestion, trustOptions } from "../state/index.ts";
import { cut, wrap } from "./lines.ts";
import type { Theme } from "./theme.ts";

export const renderTrust = (state: State, question: TrustQuestion, theme: Theme): readonly string[] => {
  const { columns: width, rows } = state;
  const choices = choiceLines(question, rows).map((line) => theme.bold(cut(line, width)));
  const head = [theme.bold(cut(`Trust ${question.folder}?`, width)), theme.border("─".repeat(width))];
  const room = Math.max(0, rows - head.length - choices.length - 2);
  const body = bodyLines(question, width, theme);
  const from = Math.min(question.scroll, Math.max(0, body.length - room));
  const shown = body.slice(from, from + room);
  const padding = Array.from({ length: room - shown.length }, () => "");
  return [
    ...head,
    ...shown.map((line) => cut(line, width)),
    ...padding,
    theme.border("─".repeat(width)),
    ...choices,
    theme.faint(cut(placeLine({ from, shown: shown.length, total: body.length }), width)),
  ].slice(-rows);
};

/** In a low terminal the choices share a line. */
const choiceLines = (question: TrustQuestion, rows: number): readonly string[] => {
  const lines = trustOptions(question).map(({ key, label }) => `${key}  ${label}`);
  return rows >= lines.length + 10 ? lines : [lines.join("   ")];
};

type ShownLines = { readonly from: number; readonly shown: number; readonly total: number };

const placeLine = ({ from, shown, total }: ShownLines): string => {
  const place = total > shown ? `lines ${from + 1} to ${from + shown} of ${total} · ↑↓ PgUp PgDn scroll · ` : "";
  return `${place}text that you type is kept for the input`;
};

const bodyLines = ({ changed, note, problem, sections }: TrustQuestion, width: number, theme: Theme): string[] => [
  ...(note === undefined ? [] : [...wrap(note, width).map(theme.warning), ""]),
  ...wrap(introduction(changed), width),
  ...(problem === undefined ? [] : ["", ...wrap(`It cannot be trusted as it is: ${problem}`, width).map(theme.bad)]),
  ...sections.flatMap(({ title, lines, isRisk }) => [
    "",
    ...wrap(title, width).map(isRisk ? theme.warning : theme.bold),
    ...lines.flatMap((line) => wrap(line, width - 4).map((part, index) => `${index === 0 ? "  " : "    "}${part}`)),
  ]),
];

const introduction = (changed: TrustQuestion["changed"]): string =>
  changed === undefined
    ? "Files in this folder can change what prefork does. None of them is used until you trust them. This is what they would do:"
    : `You trusted this folder, but it has changed since: ${changed.join(", ")}. Until you trust it again, its files are not used, except for what they deny or ask about. This is what they would do now:`;
