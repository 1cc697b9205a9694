/** A slash command: its name, its line in the help, and what it does.
 *  Elsewhere: the list (index.ts). */

import type { TerminalContext } from "../context.ts";

export type SlashCommand = {
  readonly name: string;
  /** What follows the name, for help and completion. */
  readonly args?: string;
  readonly summary: string;
  readonly group: "Forks" | "Session" | "Cost and cache" | "Set up" | "Screen";
  readonly run: (args: string, context: TerminalContext) => Promise<void> | void;
  /** Gets the choice from a list that `run` opened. */
  readonly chosen?: (id: string, context: TerminalContext) => Promise<void> | void;
};

export const print = (context: TerminalContext, title: string, text: string): void =>
  context.dispatch({ type: "printed", block: { kind: "output", title, text } });

export const notice = (context: TerminalContext, text: string, level: "info" | "warn" | "error" = "info"): void =>
  context.dispatch({ type: "printed", block: { kind: "notice", level, text } });

type TextPage = { readonly title: string; readonly text: string; readonly isMarkdown?: boolean };

export const openPage = (context: TerminalContext, page: TextPage): void =>
  context.dispatch({ type: "pageOpened", page: { kind: "text", scroll: 0, ...page } });

/** Shows what a prefork command prints. */
export const showCli = async (context: TerminalContext, title: string, argv: readonly string[]): Promise<void> => {
  const { text } = await context.runCli(argv);
  openPage(context, { title, text: text.trimEnd() === "" ? "Nothing to show." : text });
};
