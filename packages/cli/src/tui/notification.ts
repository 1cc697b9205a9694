/** What calls the person back to the terminal: a bell, or a notification of the desktop.
 *  Invariant: pure; the text consists of our own words and of numbers, never of anything a model, a file or a tool wrote.
 *  Elsewhere: when it is sent (personal-settings.ts), what it says (state: events.ts). */

import type { TerminalSettings } from "@prefork/guard";

type Env = Readonly<Record<string, string | undefined>>;

const BELL = "\u0007";
const TITLE = "Prefork";

/** The bytes to send. */
export const notification = (kind: TerminalSettings["notify"], text: string, env: Env): string => {
  const bell = kind === "bell" || kind === "both" ? BELL : "";
  return kind === "desktop" || kind === "both" ? bell + throughTmux(desktop(text, env), env) : bell;
};

/** One form only: some terminals know both, and would show it twice. */
const desktop = (text: string, { TERM = "", VTE_VERSION }: Env): string => {
  const words = text.replace(/[^\p{L}\p{N} .,]/gu, "").slice(0, 100);
  return VTE_VERSION || /^(?:rxvt|foot)/.test(TERM)
    ? `\u001b]777;notify;${TITLE};${words}${BELL}`
    : `\u001b]9;${words}${BELL}`;
};

/** tmux passes on what is wrapped, if the user allows it. */
const throughTmux = (sequence: string, { TMUX }: Env): string =>
  TMUX ? `\u001bPtmux;${sequence.replaceAll("\u001b", "\u001b\u001b")}\u001b\\` : sequence;
