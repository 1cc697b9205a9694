/** A slash command: its name, its line in the help, and what it does; and how a command answers.
 *  Invariant: whatever a command shows went through safeText or safeLine (../state: safe-text.ts) if it came from a model, a file, a tool or a provider.
 *  Elsewhere: the list (index.ts), how pages look (../views: pages.ts). */

import { homedir } from "node:os";
import { stateFolder } from "@prefork/guard";
import type { Session } from "@prefork/runtime";
import type { SessionStore } from "@prefork/runtime/observe";
import type { TerminalContext } from "../context.ts";
import { type ListItem, safeText } from "../state/index.ts";

/** A value that completes an argument. */
export type ArgumentChoice = { readonly value: string; readonly about?: string };

export type SlashCommand = {
  readonly name: string;
  /** What follows the name, for help and completion. */
  readonly args?: string;
  readonly summary: string;
  readonly group: "Forks" | "Session" | "Cost and cache" | "Set up" | "Screen";
  readonly run: (args: string, context: TerminalContext) => Promise<void> | void;
  /** Gets the choice from a list that `run` opened. */
  readonly chosen?: (id: string, context: TerminalContext) => Promise<void> | void;
  /** What can follow the name; `typed` is what is there already. */
  readonly complete?: (
    context: Pick<TerminalContext, "state" | "io">,
    typed: string,
  ) => Promise<readonly ArgumentChoice[]> | readonly ArgumentChoice[];
};

export const notice = (context: TerminalContext, text: string, level: "info" | "warn" | "error" = "info"): void =>
  context.dispatch({ type: "printed", block: { kind: "notice", level, text } });

export const hint = (context: TerminalContext, text: string): void => context.dispatch({ type: "hinted", text });

type TextPage = { readonly title: string; readonly text: string; readonly isMarkdown?: boolean };

export const openPage = (context: TerminalContext, page: TextPage): void =>
  context.dispatch({ type: "pageOpened", page: { kind: "text", scroll: 0, ...page } });

type ListPage = {
  readonly title: string;
  /** Which command gets the choice. */
  readonly command: string;
  readonly items: readonly ListItem[];
  /** What Enter does: "Enter opens it". */
  readonly hint: string;
  readonly selected?: number;
  readonly filter?: string;
};

export const openList = (context: TerminalContext, page: ListPage): void =>
  context.dispatch({ type: "pageOpened", page: { kind: "list", selected: 0, filter: "", ...page } });

/** Puts the start of a command on the input line, for the person to complete. */
export const typeNext = ({ screen }: TerminalContext, text: string): void => {
  screen.input.setText(text);
  screen.draw();
};

/** Shows what a prefork command prints. */
export const showCli = async (context: TerminalContext, title: string, argv: readonly string[]): Promise<void> => {
  const { text } = await context.runCli(argv);
  openPage(context, { title, text: text.trim() === "" ? "Nothing to show." : safeText(text) });
};

/** Runs a prefork command that changes something. What it prints is the answer; if it fails, an error. */
export const changeByCli = async (context: TerminalContext, argv: readonly string[]): Promise<void> => {
  const { text, code } = await context.runCli(argv);
  const said = safeText(text)
    .trim()
    .replace(/^prefork: /gm, "");
  if (code !== 0) throw new Error(said === "" ? `prefork ${argv[0] ?? ""} failed.` : said);
  if (said !== "") notice(context, said);
};

/** The session, if this process runs it. */
export const ownSession = async (context: TerminalContext): Promise<Session> => {
  const { own } = await context.session();
  if (own) return own;
  throw new Error("This terminal is attached to a session of another process. Use this command in the terminal there.");
};

/** Closing a session stops what runs in it, so the person has to do that first. */
export const requireIdle = ({ state }: TerminalContext): void => {
  const { runningSince, children } = state();
  if (runningSince !== undefined) throw new Error("The agent is working. Wait for it, or stop it with Esc first.");
  const running = [...children.values()].filter((child) => child.state !== "ended").length;
  if (running > 0)
    throw new Error(
      `${running} ${running === 1 ? "fork is" : "forks are"} running. Wait, or stop ${running === 1 ? "it" : "them"} in the fork list (↓, then x x).`,
    );
};

export const storeOf = ({ io: { env } }: Pick<TerminalContext, "io">): SessionStore => ({
  state: stateFolder(env, env.HOME || homedir()),
  now: Date.now,
  newId: () => "",
});

export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count.toLocaleString("en-US")} ${count === 1 ? noun : plural}`;
