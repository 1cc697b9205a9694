/** The terminal: `prefork` without a command. */

export { openTerminal, type TerminalRequest } from "./open-terminal.ts";
