/** What effects and commands may use: the state, the screen, the session, and the command line itself.
 *  Elsewhere: who provides it (open-terminal.ts). */

import type { TerminalSettings } from "@prefork/guard";
import type { Io } from "../io.ts";
import type { Action, Block, State, TrustChoice } from "./state/index.ts";
import type { TerminalSession } from "./terminal-session.ts";
import type { TerminalView } from "./terminal-view.ts";
import type { ThemeName } from "./views/index.ts";

export type CapturedRun = { readonly code: number; readonly text: string };

/** Without an id: a new session. */
export type SwitchTarget = { readonly id?: string; readonly model?: string };

export type TerminalContext = {
  readonly io: Io;
  readonly settings: Promise<TerminalSettings>;
  readonly state: () => State;
  readonly dispatch: (action: Action) => void;
  readonly screen: Pick<TerminalView, "draw" | "redraw" | "input" | "promptOf">;
  /** Resolves when the session is open. */
  readonly session: () => Promise<TerminalSession>;
  /** Closes this session and opens another one: a new one, or an earlier one by id, with another model if one is named. */
  readonly switchSession: (to?: SwitchTarget) => Promise<void>;
  /** Adds a prompt to the history of this folder. */
  readonly remember: (prompt: string) => void;
  /** Runs a prefork command in this process, with its output captured. */
  readonly runCli: (argv: readonly string[]) => Promise<CapturedRun>;
  /** Gives the terminal to another program while `work` runs. */
  readonly lend: <T>(work: () => Promise<T>) => Promise<T>;
  /** Runs something that may take long. Esc aborts the signal; then it rejects with "Cancelled.". */
  readonly work: <T>(label: string, run: (signal: AbortSignal) => Promise<T>) => Promise<T>;
  /** Cancels what `work` runs. */
  readonly cancel: () => void;
  /** Writes a control sequence to the terminal itself. */
  readonly writeSequence: (sequence: string) => void;
  readonly answerTrust: (choice: TrustChoice) => void;
  /** Which conversation is resumed first; undefined: a new one. */
  readonly chooseFirst: (id: string | undefined) => void;
  readonly suspend: () => void;
  readonly notify: (text: string) => Promise<void>;
  /** Runs the user's status command, and adds up what was spent today. */
  readonly refresh: (isMoneyToo: boolean) => Promise<void>;
  readonly setTheme: (name: ThemeName | "auto") => void;
  readonly explain: {
    /** What was said in a session, as its journal has it now. */
    readonly conversation: (session: string) => Promise<readonly Block[]>;
    /** What fresh sub-agents with the same context would have cost, if that can be said. */
    readonly family: (family: string) => Promise<{ readonly freshUsd?: number }>;
    /** Why the last request of this agent missed the cache. */
    readonly lastMiss: (agent: string) => Promise<string | undefined>;
  };
  readonly quit: () => void;
};
