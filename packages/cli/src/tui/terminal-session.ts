/** What the terminal needs of a session, however that session is reached.
 *  Invariant: only plain data crosses it; a terminal that is attached to another process lacks the optional parts, and its
 *  commands say so.
 *  Elsewhere: a session of this process (open-terminal.ts), SessionControl (@prefork/runtime). */

import type { Mode } from "@prefork/guard";
import type { Session, SessionControl } from "@prefork/runtime";

export type TerminalSession = {
  readonly control: SessionControl;
  /** The session itself, if it runs in this process. */
  readonly own?: Session;
  readonly setMode?: (mode: Mode) => void;
  readonly close: () => Promise<void>;
};
